/**
 * POST /v1/providers/{provider}/webhooks: what providers tell later. They have no API key; each is believed by its own
 * signature, over the bytes as they came.
 *
 * H1. Whether the provider takes webhooks, and whether there is room, is asked before a byte of the body is read.
 * H2. No body is parsed here, whatever its type says, and none is logged.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Deps } from '../../deps.ts'
import { recordReceipt, webhookReader } from '../../operations/record-receipt.ts'
import { Refusal } from '../../operations/refusal.ts'
import { problemAnswers } from '../openapi.ts'

const bodyLimit = 262_144
/**
 * Requests that are read or worked on at one time, of one provider: with their bodies no more than 16 MiB. Whoever floods one
 * keeps no other provider's out.
 */
const mostAtOnce = 64

const params = Type.Object(
  { provider: Type.String({ description: 'The name of a provider, as it is configured.' }) },
  { additionalProperties: false },
)
interface Params {
  readonly provider: string
}

export async function webhookRoutes(app: FastifyInstance, deps: Deps): Promise<void> {
  const open = new Map<string, number>()
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit }, (_, bytes: Buffer, done) => done(null, bytes))
    scope.post<{ Params: Params }>('/v1/providers/:provider/webhooks', {
      bodyLimit,
      schema: {
        operationId: 'recordReceipt',
        tags: ['providers'],
        summary: 'Take in what a provider tells later',
        description:
          'For providers, not for callers: each signs in its own way, and needs no API key. An event is taken in once, however often it is told; a receipt settles a message whose outcome is unknown, and what a person wrote back goes into the conversation of the message that it answers.',
        params,
        response: {
          200: {
            description:
              'Taken in: applied, known already, too old to be believed, or of no message that is known here.',
            content: { 'text/plain': { schema: { type: 'string' } }, 'text/xml': { schema: { type: 'string' } } },
          },
          ...problemAnswers([
            'invalid-request',
            'webhook-forged',
            'not-found',
            'payload-too-large',
            'internal-error',
            'store-unavailable',
            'overloaded',
          ]),
        },
      },
      onRequest: async (request, reply) => {
        const { name } = webhookReader(deps, request.params.provider)
        const count = open.get(name) ?? 0
        if (count >= mostAtOnce) throw new Refusal('overloaded', null, {}, 1)
        open.set(name, count + 1)
        reply.raw.once('close', () => open.set(name, (open.get(name) ?? 1) - 1))
      },
      handler: async (request, reply) => {
        const answer = await recordReceipt(deps, webhookReader(deps, request.params.provider), incoming(request))
        // 200 and nothing else: LINE and Postmark take no other for an acknowledgement.
        reply.code(200)
        return answer === undefined ? reply.send() : reply.type(answer.contentType).send(answer.body)
      },
    })
  })
}

function incoming({ url, headers, body }: FastifyRequest) {
  const start = url.indexOf('?')
  const query = new URLSearchParams(start < 0 ? '' : url.slice(start + 1))
  return { rawBody: Buffer.isBuffer(body) ? body : Buffer.alloc(0), headers, url, query }
}

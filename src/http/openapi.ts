/** The OpenAPI 3.1 document: made from the route schemas and the error catalogue, served at /openapi.json and /docs. */
import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import { messageExample, problemExamples } from './examples.ts'
import { problems, problemUri, type ProblemType } from '../core/problems.ts'
import { components } from './schemas.ts'

const description = `A gateway for outbound messages that does not send twice.

Give every send an \`Idempotency-Key\`: your own name of the event. **Any 5xx, any time-out, from anyone: repeat the same
request with the same key.** If a provider's answer is lost, the message is \`unknown\`; it is not sent again unless that
provider can prove that it will not duplicate. [Which key?](/docs/which-key) tells what to use in a webhook handler, a
queue consumer, a form or an agent.`

export async function describeApi(app: FastifyInstance): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Sendonce', version: '1', description },
      servers: [{ url: '/', description: 'This gateway' }],
      components: {
        securitySchemes: {
          apiKey: {
            type: 'http',
            scheme: 'bearer',
            description: '`so_live_<id>_<secret>` or `so_test_…`: one account, one environment, some scopes.',
          },
        },
      },
      tags: [
        { name: 'messages', description: 'Sending, and what became of it.' },
        { name: 'conversations', description: 'What was said, at which version.' },
        { name: 'idempotency keys', description: 'Did my send go out? Will it ever?' },
        { name: 'providers', description: 'Where messages go.' },
        { name: 'API keys', description: 'Who may ask, and what they are bound to.' },
        { name: 'operating', description: 'For whoever runs the gateway.' },
      ],
    },
    refResolver: { buildLocalReference: (json) => json['$id'] as string },
  })
  for (const component of components) app.addSchema(component)
}

export const ref = (id: string): { $ref: string } => ({ $ref: `${id}#` })

/** What @fastify/swagger takes as a header: the description, and beside it the members of its schema. */
const headerDocs = {
  'X-Request-Id': { description: 'Id of this request, in the logs too.', type: 'string', format: 'uuid' },
  'Retry-After': { description: 'Seconds after which to ask again.', type: 'integer', minimum: 1 },
  Location: { description: 'Where it is.', type: 'string', format: 'uri-reference' },
  'Idempotency-Key': { description: 'The key that this request went by, quoted.', type: 'string' },
  'Idempotency-Key-Source': { description: '`derived`, where the key was.', type: 'string', enum: ['derived'] },
  'Idempotent-Replayed': {
    description: '`true`: this request did not make the claim; it is told what became of the first.',
    type: 'string',
    enum: ['true'],
  },
  ETag: { description: 'The version of the conversation, for If-Match.', type: 'string' },
  'WWW-Authenticate': { description: 'The scheme to use.', type: 'string' },
} as const
type HeaderName = keyof typeof headerDocs

const headersOf = (...names: HeaderName[]): object =>
  Object.fromEntries((['X-Request-Id', ...names] as const).map((name) => [name, headerDocs[name]]))

/** What @fastify/swagger takes as one answer of a route. */
interface AnswerDoc {
  readonly description: string
  readonly headers?: object
  readonly content: Readonly<Record<string, object>>
}

export function answers(text: string, id: string, example: unknown, ...headers: HeaderName[]): AnswerDoc {
  return {
    description: text,
    headers: headersOf(...headers),
    content: { 'application/json': { schema: ref(id), examples: { example: { value: example } } } },
  }
}

export const messageAnswer = (text: string, status: 'sent' | 'queued', ...headers: HeaderName[]): AnswerDoc =>
  answers(text, 'Message', messageExample(status), ...headers)

const retryAfterOf: readonly ProblemType[] = ['in-progress', 'store-unavailable', 'overloaded', 'shutting-down']

/** The problems that a route can answer with, grouped by status. @param headers that they may carry beside their own */
export function problemAnswers(
  types: readonly ProblemType[],
  headers: readonly HeaderName[] = [],
): Record<number, AnswerDoc> {
  const byStatus = Map.groupBy(new Set(types), (type) => problems[type].status)
  return Object.fromEntries(
    [...byStatus].map(([status, group]) => [
      status,
      {
        description: group.map((type) => `\`${type}\`: ${problems[type].title}. ${problems[type].advice}`).join('\n\n'),
        headers: headersOf(
          ...headers,
          ...(group.some((type) => retryAfterOf.includes(type)) ? (['Retry-After'] as const) : []),
          ...(status === 401 ? (['WWW-Authenticate'] as const) : []),
          ...(status === 412 ? (['ETag'] as const) : []),
        ),
        content: {
          'application/problem+json': {
            schema: ref('Problem'),
            examples: Object.fromEntries(
              group.map((type) => [type, { summary: problemUri(type), value: problemExamples(type) }]),
            ),
          },
        },
      },
    ]),
  )
}

/** Problems that any authenticated route may give. */
export const everywhere = [
  'unauthorized',
  'forbidden',
  'not-found',
  'internal-error',
  'store-unavailable',
  'overloaded',
] as const satisfies ProblemType[]

/** Problems that any POST may give, for its body is read even where none is wanted. */
export const ofBodies = [
  'invalid-request',
  'payload-too-large',
  'unsupported-media-type',
] as const satisfies ProblemType[]

export const secured = [{ apiKey: [] }]

/** POST /v1/messages, and what it would come to: POST /v1/messages/check. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Answer } from '../../core/answer.ts'
import { keyFromHeader, keySource, quotedKey } from '../../core/idempotency.ts'
import type { MessageRequest } from '../../core/message-content.ts'
import type { ProblemType } from '../../core/problems.ts'
import type { Deps } from '../../deps.ts'
import { checkMessage } from '../../operations/check-message.ts'
import { namesOf, type Names, type SendRequest } from '../../operations/plan-message.ts'
import { sendMessage } from '../../operations/send-message.ts'
import { callerOf } from '../auth.ts'
import { checkExample, requestExamples } from '../examples.ts'
import { headerLines } from '../header-lines.ts'
import { answers, everywhere, messageAnswer, problemAnswers, ref, secured } from '../openapi.ts'
import { preferencesOf } from '../prefer.ts'
import { occurrence } from '../problem-answers.ts'
import { sendCompiler } from '../validation.ts'

const headers = {
  'Idempotency-Key': {
    type: 'string',
    description:
      "The caller's name for the event, 1 to 255 bytes, bare or quoted. Without it, `conversation` and `reference` must be given.",
    examples: ['order-42-shipped'],
  },
  'If-Match': {
    type: 'string',
    pattern: '^"(0|[1-9][0-9]{0,8})"$',
    description:
      'The ETag of the conversation as it was read: sent only if nothing was said in it since. An API key may require it.',
    examples: ['"3"'],
  },
  Prefer: {
    type: 'string',
    description:
      '`wait=N`: seconds to wait for the outcome (default 15, at most 60). `respond-async`: answer 202 at once.',
    examples: ['wait=10'],
  },
  traceparent: {
    type: 'string',
    description: 'W3C trace context, passed on to the sandbox and to receivers of webhooks.',
  },
}

const body = {
  type: 'object',
  required: ['channel'],
  discriminator: {
    propertyName: 'channel',
    mapping: Object.fromEntries(
      ['Sms', 'Email', 'Chat', 'Push', 'Webhook'].map((name) => [
        name.toLowerCase(),
        `#/components/schemas/${name}Request`,
      ]),
    ),
  },
  oneOf: ['SmsRequest', 'EmailRequest', 'ChatRequest', 'PushRequest', 'WebhookRequest'].map(ref),
  'x-examples': requestExamples,
}

/** Problems of a request that cannot be read, or names no event. */
const ofRequests = [
  'invalid-request',
  'idempotency-key-required',
  'idempotency-key-invalid',
  'request-timeout',
  'header-too-large',
  'payload-too-large',
  'unsupported-media-type',
  ...everywhere,
] as const satisfies ProblemType[]

export function sendingRoutes(app: FastifyInstance, deps: Deps): void {
  app.post<{ Body: MessageRequest }>('/v1/messages', {
    config: { scope: 'send' },
    validatorCompiler: sendCompiler,
    schema: {
      operationId: 'sendMessage',
      tags: ['messages'],
      summary: 'Send a message once',
      description:
        'Claims the key, then calls the provider, and answers with what came of it. The same request with the same key gets the same answer and sends nothing.',
      security: secured,
      headers: { type: 'object', properties: headers },
      body,
      response: {
        201: messageAnswer(
          'The provider accepted the message.',
          'sent',
          'Location',
          'Idempotency-Key',
          'Idempotency-Key-Source',
          'Idempotent-Replayed',
        ),
        202: messageAnswer(
          'The message waits for a person, is scheduled, queued or being sent.',
          'queued',
          'Location',
          'Retry-After',
          'Idempotency-Key',
          'Idempotency-Key-Source',
          'Idempotent-Replayed',
        ),
        ...problemAnswers(
          [
            ...ofRequests,
            'idempotency-key-timestamp',
            'in-progress',
            'key-void',
            'result-expired',
            'message-canceled',
            'possible-duplicate',
            'conversation-changed',
            'conversation-version-required',
            'policy-refused',
            'idempotency-key-reused',
            'no-provider',
            'message-rejected',
            'message-expired',
            'shutting-down',
            'outcome-unknown',
          ],
          ['Idempotency-Key', 'Idempotency-Key-Source', 'Idempotent-Replayed'],
        ),
      },
    },
    handler: async (request, reply) => {
      const [asked, names] = askedBy(request)
      reply.header('idempotency-key', quotedKey(names[0]))
      if (keySource(names[0]) === 'derived') reply.header('idempotency-key-source', 'derived')
      return answer(reply, await sendMessage(deps, asked, names))
    },
  })

  app.post<{ Body: MessageRequest }>('/v1/messages/check', {
    config: { scope: 'send' },
    validatorCompiler: sendCompiler,
    schema: {
      operationId: 'checkMessage',
      tags: ['messages'],
      summary: 'What would become of a send',
      description:
        'The same headers and body as a send; nothing is claimed, and no provider hears of it. A moment later it may be otherwise.',
      security: secured,
      headers: { type: 'object', properties: headers },
      body,
      response: { 200: answers('The whole verdict.', 'Check', checkExample), ...problemAnswers(ofRequests) },
    },
    handler: async (request) => {
      const [asked, names] = askedBy(request)
      return checkMessage(deps, asked, names, occurrence(request.id))
    },
  })
}

/** @throws Refusal: no key, or a malformed one */
function askedBy(request: FastifyRequest<{ Body: MessageRequest }>): [SendRequest, Names] {
  const caller = callerOf(request)
  const { waitMs, async } = preferencesOf(headerLines(request.raw, 'prefer'))
  const asked = {
    scope: caller,
    sender: caller,
    keyHeader: keyFromHeader(headerLines(request.raw, 'idempotency-key')),
    request: request.body,
    waitMs,
    async,
    traceparent: traceparentOf(request.headers['traceparent']),
    ifMatch: headerLines(request.raw, 'if-match')?.join(', ') ?? null,
  }
  return [asked, namesOf(asked)]
}

function answer(reply: FastifyReply, given: Answer): FastifyReply {
  if (given.location !== null) reply.header('location', given.location)
  if (given.retryAfterS !== null) reply.header('retry-after', given.retryAfterS)
  if (given.replayed) reply.header('idempotent-replayed', 'true')
  return reply.code(given.status).type(given.contentType).send(given.body)
}

/** W3C Trace Context, version 00; anything else is not passed on. */
function traceparentOf(header: string | string[] | undefined): string | null {
  return typeof header === 'string' && /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(header) ? header : null
}

/** /v1/messages: sending, reading, acting. Each POST calls the operation of its operationId. */
import type { FastifyInstance, FastifyReply } from 'fastify'
import { Type } from 'typebox'
import type { Answer } from '../../core/answer.ts'
import { keyFromHeader, keySource, quotedKey } from '../../core/idempotency.ts'
import { idFromUuid, uuidFromId } from '../../core/ids.ts'
import type { MessageRequest } from '../../core/message-content.ts'
import { messageView } from '../../core/message-view.ts'
import { timelineView } from '../../core/timeline.ts'
import type { Deps } from '../../deps.ts'
import { cancelMessage } from '../../operations/cancel-message.ts'
import { getMessage } from '../../operations/get-message.ts'
import { namesOf } from '../../operations/plan-message.ts'
import { resolveMessage } from '../../operations/resolve-message.ts'
import { sendMessage } from '../../operations/send-message.ts'
import { callerOf } from '../auth.ts'
import { messageExample, requestExamples, timelineExample } from '../examples.ts'
import { answers, everywhere, messageAnswer, ofBodies, problemAnswers, ref, secured } from '../openapi.ts'
import { headerLines } from '../header-lines.ts'
import { preferencesOf } from '../prefer.ts'
import { listQuery, messageId, type ListQuery, type ResolveBody } from '../schemas.ts'
import { invalid, sendCompiler } from '../validation.ts'

const idParams = Type.Object({ id: messageId }, { additionalProperties: false })
interface IdParams {
  readonly id: string
}

export function messageRoutes(app: FastifyInstance, deps: Deps): void {
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
      headers: {
        type: 'object',
        properties: {
          'Idempotency-Key': {
            type: 'string',
            description:
              "The caller's name for the event, 1 to 255 bytes, bare or quoted. Without it, `conversation` and `reference` must be given.",
            examples: ['order-42-shipped'],
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
        },
      },
      body: {
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
      },
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
          'The message is scheduled, queued or being sent.',
          'queued',
          'Location',
          'Retry-After',
          'Idempotency-Key',
          'Idempotency-Key-Source',
          'Idempotent-Replayed',
        ),
        ...problemAnswers(
          [
            'invalid-request',
            'idempotency-key-required',
            'idempotency-key-invalid',
            'idempotency-key-timestamp',
            'unsupported-precondition',
            'request-timeout',
            'header-too-large',
            'in-progress',
            'key-void',
            'result-expired',
            'message-canceled',
            'possible-duplicate',
            'payload-too-large',
            'unsupported-media-type',
            'idempotency-key-reused',
            'no-provider',
            'message-rejected',
            'message-expired',
            'shutting-down',
            'outcome-unknown',
            ...everywhere,
          ],
          ['Idempotency-Key', 'Idempotency-Key-Source', 'Idempotent-Replayed'],
        ),
      },
    },
    handler: async (request, reply) => {
      const caller = callerOf(request)
      const { waitMs, async } = preferencesOf(headerLines(request.raw, 'prefer'))
      const keyHeader = keyFromHeader(headerLines(request.raw, 'idempotency-key'))
      const asked = { scope: caller, keyHeader, request: request.body, waitMs, async }
      const names = namesOf(asked)
      reply.header('idempotency-key', quotedKey(names[0]))
      if (keySource(names[0]) === 'derived') reply.header('idempotency-key-source', 'derived')
      const hasPrecondition = request.headers['if-match'] !== undefined
      const traceparent = traceparentOf(request.headers['traceparent'])
      return answer(reply, await sendMessage(deps, { ...asked, traceparent, hasPrecondition }, names))
    },
  })

  app.get<{ Querystring: ListQuery }>('/v1/messages', {
    config: { scope: 'read' },
    schema: {
      operationId: 'listMessages',
      tags: ['messages'],
      summary: 'List messages, newest first',
      security: secured,
      querystring: listQuery,
      response: {
        200: answers('A page.', 'MessageList', { data: [messageExample('sent')], nextCursor: null }),
        ...problemAnswers(['invalid-request', ...everywhere]),
      },
    },
    handler: async (request) => {
      const { limit = 50, cursor, createdAfter, createdBefore, ...filter } = request.query
      const messages = await deps.store.listMessages(
        callerOf(request),
        {
          ...filter,
          ...(createdAfter === undefined ? {} : { createdAfter: new Date(createdAfter) }),
          ...(createdBefore === undefined ? {} : { createdBefore: new Date(createdBefore) }),
        },
        limit + 1, // one more tells whether there is a next page
        cursor === undefined ? null : idOfCursor(cursor),
      )
      const data = messages.slice(0, limit)
      const last = data.at(-1)
      return {
        data: data.map(messageView),
        nextCursor: messages.length > limit && last !== undefined ? cursorOf(last.id) : null,
      }
    },
  })

  app.get<{ Params: IdParams }>('/v1/messages/:id', {
    config: { scope: 'read' },
    schema: {
      operationId: 'getMessage',
      tags: ['messages'],
      summary: 'The present state of a message',
      security: secured,
      params: idParams,
      response: { 200: messageAnswer('The message.', 'sent'), ...problemAnswers(['invalid-request', ...everywhere]) },
    },
    handler: async (request) => messageView(await getMessage(deps, callerOf(request), request.params.id)),
  })

  app.get<{ Params: IdParams }>('/v1/messages/:id/events', {
    config: { scope: 'read' },
    schema: {
      operationId: 'getTimeline',
      tags: ['messages'],
      summary: 'The time line of a message',
      description: 'Claimed, attempts with what they showed, decisions: with who and when.',
      security: secured,
      params: idParams,
      response: {
        200: answers('The time line, oldest first.', 'Timeline', timelineExample),
        ...problemAnswers(['invalid-request', ...everywhere]),
      },
    },
    handler: async (request) => {
      const message = await getMessage(deps, callerOf(request), request.params.id)
      return timelineView(message, await deps.store.findEvents(message.id))
    },
  })

  app.post<{ Params: IdParams }>('/v1/messages/:id/cancel', {
    config: { scope: 'send' },
    schema: {
      operationId: 'cancelMessage',
      tags: ['messages'],
      summary: 'Cancel a message that has not left',
      description: 'While it is scheduled or queued, and every attempt so far was not sent. Again is the same.',
      security: secured,
      params: idParams,
      response: {
        200: answers('It is canceled.', 'Message', messageExample('canceled')),
        ...problemAnswers([...ofBodies, 'too-late', 'in-progress', ...everywhere]),
      },
    },
    handler: async (request) => {
      const caller = callerOf(request)
      return messageView(await cancelMessage(deps, caller, request.params.id, caller.apiKey))
    },
  })

  app.post<{ Params: IdParams; Body: ResolveBody }>('/v1/messages/:id/resolve', {
    config: { scope: 'resolve' },
    schema: {
      operationId: 'resolveMessage',
      tags: ['messages'],
      summary: 'Settle an unknown outcome by hand',
      description:
        'One verdict an attempt: the same again answers 200, another 409 with who decided what, when. `resend` has one that was not sent queued again under its key.',
      security: secured,
      params: idParams,
      body: ref('Resolution'),
      response: {
        200: messageAnswer('It is settled.', 'sent'),
        ...problemAnswers([...ofBodies, 'already-decided', 'too-late', 'in-progress', 'not-unknown', ...everywhere]),
      },
    },
    handler: async (request) => {
      const caller = callerOf(request)
      const { attempt, outcome, providerMessageId, evidence, resend = false } = request.body
      if (outcome === 'not_sent' && providerMessageId !== undefined)
        throw invalid('/providerMessageId', 'belongs to a message that was sent')
      if (outcome === 'sent' && resend) throw invalid('/resend', 'belongs to a message that was not sent')
      const verdict = { attempt, outcome, resend, evidence, providerMessageId: providerMessageId ?? null }
      return messageView(await resolveMessage(deps, caller, request.params.id, verdict, caller.apiKey))
    },
  })
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

const cursorOf = (uuid: string): string => Buffer.from(idFromUuid('message', uuid)).toString('base64url')

function idOfCursor(cursor: string): string {
  const id = uuidFromId('message', Buffer.from(cursor, 'base64url').toString('latin1'))
  if (id === undefined) throw invalid('/cursor', 'is not the nextCursor of a page')
  return id
}

/** /v1/messages: reading, and acting on one. Each POST calls the operation of its operationId. Sending is in sending.ts. */
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { messageView } from '../../core/message-view.ts'
import { timelineView } from '../../core/timeline.ts'
import type { Deps } from '../../deps.ts'
import { cancelMessage } from '../../operations/cancel-message.ts'
import { getMessage } from '../../operations/get-message.ts'
import { resolveMessage } from '../../operations/resolve-message.ts'
import { callerOf } from '../auth.ts'
import { cursorOf, idOfCursor } from '../cursor.ts'
import { messageExample, timelineExample } from '../examples.ts'
import { answers, everywhere, messageAnswer, ofBodies, problemAnswers, ref, secured } from '../openapi.ts'
import { messageId } from '../schema-parts.ts'
import { listQuery, type ListQuery, type ResolveBody } from '../schemas.ts'
import { invalid } from '../validation.ts'

const idParams = Type.Object({ id: messageId }, { additionalProperties: false })
interface IdParams {
  readonly id: string
}

export function messageRoutes(app: FastifyInstance, deps: Deps): void {
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
      description: 'While it is held, scheduled or queued, and every attempt so far was not sent. Again is the same.',
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
      return messageView(await resolveMessage(deps, caller, request.params.id, verdict, caller))
    },
  })
}

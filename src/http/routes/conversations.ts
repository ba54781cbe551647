/** /v1/conversations: what was said, at which version, and what the other side says. */
import type { FastifyInstance } from 'fastify'
import { Type, type Static } from 'typebox'
import { conversationEntries, inboundView, type Entry } from '../../core/conversation-view.ts'
import { etagOf } from '../../core/conversation.ts'
import type { Scope } from '../../core/idempotency.ts'
import type { Deps } from '../../deps.ts'
import { recordInbound } from '../../operations/record-inbound.ts'
import { Refusal } from '../../operations/refusal.ts'
import { callerOf } from '../auth.ts'
import type { InboundBody } from '../conversation-schemas.ts'
import { cursorOf, idOfCursor } from '../cursor.ts'
import { conversationExample, conversationMessagesExample, inboundExample } from '../examples.ts'
import { answers, everywhere, ofBodies, problemAnswers, ref, secured } from '../openapi.ts'
import { line } from '../schema-parts.ts'

const params = Type.Object(
  { conversation: line(255, { description: 'Its name, percent-encoded.' }) },
  { additionalProperties: false },
)
type Params = Static<typeof params>

const pageQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
    cursor: Type.Optional(Type.String({ description: '`nextCursor` of the page before.' })),
  },
  { additionalProperties: false },
)
type PageQuery = Static<typeof pageQuery>

export function conversationRoutes(app: FastifyInstance, deps: Deps): void {
  app.get<{ Params: Params }>('/v1/conversations/:conversation', {
    config: { scope: 'read' },
    schema: {
      operationId: 'getConversation',
      tags: ['conversations'],
      summary: 'The version of a conversation, and what was said last',
      description: 'One that was never heard of is at version 0.',
      security: secured,
      params,
      response: {
        200: answers('The conversation.', 'Conversation', conversationExample, 'ETag'),
        ...problemAnswers(['invalid-request', ...everywhere]),
      },
    },
    handler: async (request, reply) => {
      const caller = callerOf(request)
      const { conversation } = request.params
      const { version, updatedAt } = await deps.store.findConversation(caller, conversation)
      const [last] = await entriesOf(deps, caller, conversation, 1, null)
      reply.header('etag', etagOf(version))
      return {
        conversation,
        object: 'conversation',
        environment: caller.environment,
        version,
        updatedAt: updatedAt?.toISOString() ?? null,
        lastMessage: last?.view ?? null,
      }
    },
  })

  app.get<{ Params: Params; Querystring: PageQuery }>('/v1/conversations/:conversation/messages', {
    config: { scope: 'read' },
    schema: {
      operationId: 'listConversationMessages',
      tags: ['conversations'],
      summary: 'What was said in a conversation, newest first',
      description: 'Messages of either direction, with those that wait. The ETag is what a send gives as If-Match.',
      security: secured,
      params,
      querystring: pageQuery,
      response: {
        200: answers('A page.', 'ConversationMessages', conversationMessagesExample, 'ETag'),
        ...problemAnswers(['invalid-request', ...everywhere]),
      },
    },
    handler: async (request, reply) => {
      const caller = callerOf(request)
      const { limit = 50, cursor } = request.query
      const { conversation } = request.params
      const before = cursor === undefined ? null : idOfCursor(cursor)
      const { version } = await deps.store.findConversation(caller, conversation) // before what is shown with it
      const entries = await entriesOf(deps, caller, conversation, limit + 1, before)
      const page = entries.slice(0, limit)
      const last = page.at(-1)
      reply.header('etag', etagOf(version))
      return {
        version,
        data: page.map(({ view }) => view),
        nextCursor: entries.length > limit && last !== undefined ? cursorOf(last.id) : null,
      }
    },
  })

  app.post<{ Params: Params; Body: InboundBody }>('/v1/conversations/:conversation/inbound', {
    config: { scope: 'send' },
    schema: {
      operationId: 'recordInbound',
      tags: ['conversations'],
      summary: 'Record what the other side said',
      description:
        'Once per `eventId`, however often it is told; the first makes a new version. Replies that come by the webhooks of providers are recorded by themselves.',
      security: secured,
      params,
      body: ref('InboundRequest'),
      response: {
        200: answers('It is recorded; or it was before.', 'RecordedInbound', inboundExample, 'ETag'),
        ...problemAnswers([...ofBodies, 'in-progress', ...everywhere]),
      },
    },
    handler: async (request, reply) => {
      const caller = callerOf(request)
      // Who writes both sides of a conversation has not read it.
      if (caller.kind === 'agent')
        throw new Refusal('forbidden', 'An agent does not record what the other side said; a service does.')
      const { version, inbound } = await recordInbound(deps, caller, request.params.conversation, request.body)
      reply.header('etag', etagOf(version))
      return { version, inbound: inboundView(inbound) }
    },
  })
}

async function entriesOf(
  deps: Deps,
  scope: Scope,
  conversation: string,
  limit: number,
  before: string | null,
): Promise<Entry[]> {
  const outbound = await deps.store.listMessages(scope, { conversation }, limit, before)
  const inbound = await deps.store.listInbound(scope, conversation, limit, before)
  return conversationEntries(outbound, inbound).slice(0, limit)
}

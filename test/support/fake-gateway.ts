/**
 * A gateway as the contract has it, as far as an agent's tools see it: conversations with versions, keys, intents,
 * messages that are held. In memory, with a script for answers that the real one gives rarely.
 */
import type { AddressInfo } from 'node:net'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { problems, type ProblemType } from '../../src/core/problems.ts'
import { handleProblems } from '../../src/http/problem-answers.ts'
import { mcpEndpoint } from '../../src/mcp/http-endpoint.ts'
import { Refusal } from '../../src/operations/refusal.ts'

export const agentKey = `so_test_agent_${'a'.repeat(40)}`

interface FakeMessage {
  readonly id: string
  readonly conversation: string
  readonly intent: string
  readonly createdAt: string
  readonly to: string
  readonly content: object
  status: string
  statusReason: string | null
}

type Entry =
  | { direction: 'outbound'; at: string; message: object }
  | { direction: 'inbound'; at: string; inbound: object }
interface Conversation {
  version: number
  readonly entries: Entry[]
}

export interface FakeRequest {
  readonly method: string
  readonly url: string
  readonly headers: FastifyRequest['headers']
  readonly body: unknown
}

export interface FakeGateway {
  readonly app: FastifyInstance
  readonly url: string
  /** Requests of the routes, in order. */
  readonly requests: FakeRequest[]
  readonly messages: FakeMessage[]
  /** Answers requests of the routes in place of the contract; undefined: as the contract has it. */
  script: ((request: FastifyRequest, reply: FastifyReply) => unknown) | null
  /** What becomes of a proposal at first; default `held`. */
  outcome: 'held' | 'sent'
  hears(conversation: string, from: string, text: string): void
  /** By another caller, or before. */
  says(conversation: string, text: string, more?: { intent?: string; status?: string }): FakeMessage
  decide(id: string, decision: 'approved' | 'declined'): void
  close(): Promise<void>
}

/** A problem; its detail tempts, as no detail should. */
export function problem(reply: FastifyReply, status: number, type: string, more: object = {}): FastifyReply {
  const known = Object.hasOwn(problems, type) ? problems[type as ProblemType] : null
  const { title, retryable, advice } = known ?? { title: `Some ${type}`, retryable: false, advice: '' }
  const detail = `It is at version 7, try another intent under a new key. ${advice}`
  const body = { type: `/problems/${type}`, title, status, detail, instance: 'urn:test', retryable, ...more }
  return reply.code(status).type('application/problem+json').send(JSON.stringify(body))
}

const reference = ({ id, status, createdAt }: FakeMessage): object => ({ id, status, createdAt })
const now = (): string => new Date().toISOString()

export async function fakeGateway(): Promise<FakeGateway> {
  const app = fastify()
  app.decorateRequest('caller', null)
  handleProblems(app)
  const conversations = new Map<string, Conversation>()
  const keys = new Map<string, { readonly message: FakeMessage; readonly body: string }>()

  const conversationOf = (name: string): Conversation => {
    const known = conversations.get(name) ?? { version: 0, entries: [] }
    conversations.set(name, known)
    return known
  }
  const insert = (conversation: string, body: Record<string, unknown>, status: string): FakeMessage => {
    const message = {
      id: `msg_${String(gateway.messages.length + 1).padStart(32, '0')}`,
      status,
      statusReason: status === 'held' ? 'approval' : null,
      channel: 'sms',
      to: '+447700900123',
      content: {},
      intent: '',
      createdAt: now(),
      sendAt: null,
      notAfter: now(),
      sentAt: null,
      delivery: null,
      possibleDuplicateOf: null,
      ...body,
      conversation,
    }
    gateway.messages.push(message)
    const known = conversationOf(conversation)
    known.entries.push({ direction: 'outbound', at: message.createdAt, message })
    if (status === 'sent') known.version++
    return message
  }
  const gateway: FakeGateway = {
    app,
    url: '',
    requests: [],
    messages: [],
    script: null,
    outcome: 'held',
    hears: (conversation, from, text) => {
      const known = conversationOf(conversation)
      const inbound = { id: `evt_${known.entries.length}`, eventId: null, source: 'api', from, text, receivedAt: now() }
      known.entries.push({ direction: 'inbound', at: now(), inbound })
      known.version++
    },
    says: (conversation, text, { intent = '', status = 'sent' } = {}) =>
      insert(conversation, { content: { text }, intent }, status),
    decide: (id, decision) => {
      const message = gateway.messages.find((each) => each.id === id)
      if (message === undefined) throw new Error(`there is no ${id}`)
      message.status = decision === 'approved' ? 'sent' : 'canceled'
      message.statusReason = decision === 'approved' ? null : 'declined'
      if (decision === 'approved') conversationOf(message.conversation).version++
    },
    close: async () => app.close(),
  }

  mcpEndpoint(app, {
    authenticate: async ({ headers }) => {
      if (headers.authorization !== `Bearer ${agentKey}`) throw new Refusal('unauthorized')
      return { account: 'acme', environment: 'test', apiKey: 'agent', scopes: ['send', 'read'] } as never
    },
    publicUrl: 'https://gateway.example',
  })

  app.addHook('preHandler', async (request, reply) => {
    const { method, url, headers, body } = request
    if (!url.startsWith('/v1/')) return undefined
    gateway.requests.push({ method, url, headers, body })
    if (headers.authorization !== `Bearer ${agentKey}`) throw new Refusal('unauthorized')
    return gateway.script?.(request, reply)
  })

  app.get<{ Params: { name: string }; Querystring: { limit: string } }>(
    '/v1/conversations/:name/messages',
    (request) => {
      const { version, entries } = conversationOf(request.params.name)
      const limit = Number(request.query.limit)
      return { version, data: entries.toReversed().slice(0, limit), nextCursor: entries.length > limit ? 'more' : null }
    },
  )
  app.get<{ Querystring: { conversation?: string; status?: string } }>('/v1/messages', ({ query }) => ({
    data: gateway.messages
      .filter(({ conversation, status }) => conversation === query.conversation && status === query.status)
      .toReversed(),
    nextCursor: null,
  }))
  app.get<{ Params: { id: string } }>('/v1/messages/:id', ({ params }) => {
    const message = gateway.messages.find(({ id }) => id === params.id)
    if (message === undefined) throw new Refusal('not-found')
    return message
  })

  interface Asked {
    readonly headers: FastifyRequest['headers']
    readonly body: Record<string, unknown>
  }
  /** Why it is not claimed, or what it repeats; null: nothing is in its way. */
  const inTheWay = ({ headers, body }: Asked): { repeats: FakeMessage } | [number, string, object] | null => {
    const { conversation, intent } = body as { conversation: string; intent: string }
    const known = keys.get(String(headers['idempotency-key']))
    if (known !== undefined && known.body === JSON.stringify(body)) return { repeats: known.message }
    if (known !== undefined) {
      const errors = [{ pointer: '/content/text', detail: 'differs from the first request under this key' }]
      return [422, 'idempotency-key-reused', { sent: 'maybe', message: reference(known.message), errors }]
    }
    const { version } = conversationOf(conversation)
    if (headers['if-match'] !== `"${version}"`)
      return [412, 'conversation-changed', { sent: 'no', conversation: { conversation, version } }]
    const same = gateway.messages.find(
      (each) => each.intent === intent && each.conversation === conversation && each.status !== 'canceled',
    )
    return same === undefined ? null : [409, 'possible-duplicate', { sent: 'no', message: reference(same) }]
  }
  app.post<{ Body: Asked['body'] }>('/v1/messages', (request, reply) => {
    const way = inTheWay(request)
    if (Array.isArray(way)) return problem(reply, ...way)
    const { body, headers } = request
    const message = way?.repeats ?? insert(String(body['conversation']), body, gateway.outcome)
    keys.set(String(headers['idempotency-key']), { message, body: JSON.stringify(body) })
    if (way !== null) reply.header('idempotent-replayed', 'true')
    return reply.code(message.status === 'sent' ? 201 : 202).send(message)
  })
  app.post<{ Body: Asked['body'] }>('/v1/messages/check', (request) => {
    const way = inTheWay(request)
    const [status, type, more] = Array.isArray(way) ? way : []
    const hold = gateway.outcome === 'held'
    return {
      verdict: Array.isArray(way) ? 'refuse' : way !== null ? 'repeat' : hold ? 'hold' : 'send',
      reason: 'So it is.',
      problem:
        type === undefined
          ? null
          : { type: `/problems/${type}`, title: `Some ${type}`, status, retryable: false, ...more },
      key: { key: null, source: 'client', message: way !== null && 'repeats' in way ? reference(way.repeats) : null },
      provider: 'sandbox-blind',
      conversation: null,
      intent: null,
      duplicate: { mode: 'hold', message: null },
      approval: { required: hold, reason: hold ? 'approval' : null },
      text: { encoding: 'GSM-7', characters: 5, segments: 1 },
    }
  })

  await app.listen({ host: '127.0.0.1', port: 0 })
  return Object.assign(gateway, { url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}` })
}

/**
 * A gateway of the contract that the console reads, in memory, and the console itself as it is served: for tests of the
 * page. `node test/support/console-fake.ts` starts it with samples, to be looked at.
 */
import type { AddressInfo } from 'node:net'
import fastify, { type FastifyReply, type FastifyRequest } from 'fastify'
import { consolePages } from '../../src/http/console/pages.ts'
import type { Entry, Message, Problem, TimelineEntry } from '../../src/http/console/browser/types.ts'
import { fill, keyOf, messageOf, people, type Person, type Some } from './console-samples.ts'

export interface Asked {
  readonly method: string
  readonly path: string
  readonly by: string
  readonly body: unknown
}

/** In place of the contract's answer. `drop`: what was asked is done, and the connection ends without an answer. */
export type Instead = { status: number; body: object } | 'drop' | { waitFor: Promise<void> }

export interface ConsoleFake {
  readonly url: string
  readonly messages: Map<string, Message>
  readonly events: Map<string, TimelineEntry[]>
  readonly conversations: Map<string, { version: number; entries: Entry[] }>
  readonly asked: Asked[]
  /** Sends that an approval led to. */
  readonly sends: string[]
  /** Asked before each answer; undefined: the contract's. */
  instead: (asked: Asked) => Instead | undefined
  add(some?: Some): Message
  change(id: string, change: Partial<Message>): Message
  posts(): Asked[]
  close(): Promise<void>
}

class Refused extends Error {
  readonly problem: Omit<Problem, 'title' | 'detail'>
  constructor(status: number, type: string, more: object = {}) {
    super(type)
    this.problem = { status, type, ...more }
  }
}

export async function consoleFake(port = 0): Promise<ConsoleFake> {
  const app = fastify({ forceCloseConnections: true, routerOptions: { maxParamLength: 1024 } })
  const fake: Omit<ConsoleFake, 'url'> = {
    messages: new Map(),
    events: new Map(),
    conversations: new Map(),
    asked: [],
    sends: [],
    instead: () => undefined,
    add: (some = {}) => {
      const message = messageOf(some)
      fake.messages.set(message.id, message)
      return message
    },
    change: (id, change) => {
      const changed = { ...found(id), ...change, updatedAt: new Date().toISOString() }
      fake.messages.set(id, changed)
      return changed
    },
    posts: () => fake.asked.filter(({ method }) => method === 'POST'),
    close: async () => app.close(),
  }

  const found = (id: string): Message => {
    const message = fake.messages.get(id)
    if (message === undefined) throw new Refused(404, 'not-found')
    return message
  }

  app.setErrorHandler(async (error, _, reply) => {
    if (!(error instanceof Refused)) return reply.code(500).send({ title: String(error) })
    const { type, ...more } = error.problem
    const sentence = { title: `The title of ${type}`, detail: `The detail of ${type}.` }
    return reply.code(more.status).send({ type: `/problems/${type}`, ...sentence, ...more })
  })
  const callers = new WeakMap<FastifyRequest, Person>()
  const personOf = (request: FastifyRequest, scope: string): Person => {
    const person = callers.get(request)
    if (person === undefined) throw new Refused(401, 'unauthorized')
    if (!person.scopes.includes(scope))
      throw new Refused(403, 'forbidden', { detail: `The scope \`${scope}\` is needed.` })
    return person
  }
  app.addHook('preHandler', async (request) => {
    if (!request.url.startsWith('/v1')) return
    const person = keyOf(request.headers.authorization)
    if (person !== undefined) callers.set(request, person)
    fake.asked.push({ method: request.method, path: request.url, by: person?.id ?? '', body: request.body })
  })
  /** What the script wants in place of an answer, or after it was made. */
  const answer = async (request: FastifyRequest, reply: FastifyReply, make: () => object): Promise<unknown> => {
    const instead = fake.instead({
      method: request.method,
      path: request.url,
      by: callers.get(request)?.id ?? '',
      body: request.body,
    })
    if (instead === undefined) return make()
    if (instead === 'drop') {
      make()
      request.raw.socket.destroy()
      return reply.hijack()
    }
    if ('waitFor' in instead) {
      await instead.waitFor
      return make()
    }
    return reply.code(instead.status).send(instead.body)
  }

  app.get<{ Querystring: Record<string, string> }>('/v1/messages', async (request, reply) =>
    answer(request, reply, () => {
      personOf(request, 'read')
      const { limit = '50', cursor, ...filter } = request.query
      const all = [...fake.messages.values()]
        .filter((message) =>
          Object.entries(filter).every(
            ([name, value]) => (message as unknown as Record<string, unknown>)[name] === value,
          ),
        )
        .toSorted((a, b) => b.createdAt.localeCompare(a.createdAt))
      const from = Number(cursor ?? 0)
      const to = from + Number(limit)
      return { data: all.slice(from, to), nextCursor: to < all.length ? String(to) : null }
    }),
  )
  app.get<{ Params: { id: string } }>('/v1/messages/:id', async (request, reply) =>
    answer(request, reply, () => {
      personOf(request, 'read')
      return found(request.params.id)
    }),
  )
  app.get<{ Params: { id: string } }>('/v1/messages/:id/events', async (request, reply) =>
    answer(request, reply, () => {
      personOf(request, 'read')
      const { createdAt } = found(request.params.id)
      const claimed = { id: `evt_${request.params.id}`, type: 'claimed', at: createdAt, attempt: null, data: {} }
      return { data: [claimed, ...(fake.events.get(request.params.id) ?? [])] }
    }),
  )
  app.get<{ Params: { name: string }; Querystring: Record<string, string> }>(
    '/v1/conversations/:name/messages',
    async (request, reply) =>
      answer(request, reply, () => {
        personOf(request, 'read')
        const { version, entries } = fake.conversations.get(request.params.name) ?? { version: 0, entries: [] }
        const from = Number(request.query['cursor'] ?? 0)
        const to = from + Number(request.query['limit'] ?? 50)
        const newest = entries.toSorted((a, b) => b.at.localeCompare(a.at))
        const data = newest
          .slice(from, to)
          .map((entry) =>
            entry.direction === 'outbound'
              ? { ...entry, message: fake.messages.get(entry.message.id) ?? entry.message }
              : entry,
          )
        return { version, data, nextCursor: to < newest.length ? String(to) : null }
      }),
  )
  app.get<{ Params: { key: string } }>('/v1/idempotency-keys/:key', async (request, reply) =>
    answer(request, reply, () => {
      personOf(request, 'read')
      const { key } = request.params
      if (key === 'voided')
        return { key, source: 'client', firstSeenAt: new Date().toISOString(), sent: 'no', message: null }
      const message = [...fake.messages.values()].find(({ idempotencyKey }) => idempotencyKey === key)
      if (message === undefined) throw new Refused(404, 'key-never-seen')
      const sent = message.status === 'sent' ? 'yes' : ['failed', 'canceled'].includes(message.status) ? 'no' : 'maybe'
      return { key, source: 'client', firstSeenAt: message.createdAt, sent, message }
    }),
  )
  for (const verb of ['approve', 'decline'] as const)
    app.post<{ Params: { id: string }; Body: { fingerprint: string } }>(
      `/v1/messages/:id/${verb}`,
      async (request, reply) =>
        answer(request, reply, () =>
          decided(fake, found(request.params.id), verb, personOf(request, 'approve'), request.body.fingerprint),
        ),
    )
  app.post<{ Params: { id: string }; Body: Verdict }>('/v1/messages/:id/resolve', async (request, reply) =>
    answer(request, reply, () => settled(fake, found(request.params.id), personOf(request, 'resolve'), request.body)),
  )
  consolePages(app)
  await app.listen({ host: '127.0.0.1', port })
  return Object.assign(fake, { url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}` })
}

/** One decision counts; the same again is the same. */
function decided(
  fake: Omit<ConsoleFake, 'url'>,
  message: Message,
  verb: 'approve' | 'decline',
  person: Person,
  fingerprint: string,
): Message {
  const { id, approval, status } = message
  if (person.kind !== 'person' || message.sentBy === person.id)
    throw new Refused(403, 'forbidden', { detail: 'A person other than the sender has to decide.' })
  if (approval === null) throw new Refused(409, 'not-held')
  if (fingerprint !== message.fingerprint) throw new Refused(409, 'fingerprint-mismatch')
  const decision = verb === 'approve' ? 'approved' : 'declined'
  if (approval.status === decision) return message
  if (approval.status !== 'pending')
    throw new Refused(409, 'already-decided', {
      decision: { decision: approval.status, by: approval.by, at: approval.at },
    })
  if (status !== 'held') throw new Refused(409, 'too-late')
  const at = new Date().toISOString()
  const done = { ...approval, status: decision, by: person.id, at } as const
  fake.events.set(id, [
    ...(fake.events.get(id) ?? []),
    { id: `evt_${decision}${id}`, type: decision, at, attempt: null, data: { apiKey: person.id } },
  ])
  if (verb === 'decline') return fake.change(id, { approval: done, status: 'canceled', statusReason: 'declined' })
  const present = fake.conversations.get(message.conversation ?? '')?.version
  if (present !== undefined && message.conversationVersion !== null && present !== message.conversationVersion)
    return fake.change(id, { approval: done, status: 'canceled', statusReason: 'conversation_changed' })
  fake.sends.push(id)
  return fake.change(id, {
    approval: done,
    status: 'sent',
    statusReason: null,
    sentAt: at,
    attempts: 1,
    providerMessageId: 'SM1',
  })
}

interface Verdict {
  readonly attempt: string
  readonly outcome: 'sent' | 'not_sent'
  readonly evidence: string
  readonly providerMessageId?: string
  readonly resend?: boolean
}

function settled(fake: Omit<ConsoleFake, 'url'>, message: Message, person: Person, verdict: Verdict): Message {
  const { attempt, outcome, evidence, providerMessageId = null, resend = false } = verdict
  const at = new Date().toISOString()
  if (!message.openAttempts.includes(attempt)) {
    if (message.resolution === null) throw new Refused(409, 'not-unknown')
    if (message.resolution.outcome === outcome) return message
    throw new Refused(409, 'already-decided', { decision: message.resolution })
  }
  const openAttempts = message.openAttempts.filter((id) => id !== attempt)
  const resolution = { by: 'operator', at, attempt, outcome, apiKey: person.id, evidence }
  if (outcome === 'sent')
    return fake.change(message.id, {
      status: 'sent',
      statusReason: null,
      sentAt: at,
      providerMessageId,
      resolution,
      openAttempts: [],
      plan: null,
    })
  if (openAttempts.length > 0) return fake.change(message.id, { resolution, openAttempts })
  if (resend)
    return fake.change(message.id, { status: 'queued', statusReason: null, resolution, openAttempts, plan: null })
  return fake.change(message.id, {
    status: 'failed',
    statusReason: 'resolved_not_sent',
    resolution,
    openAttempts,
    plan: null,
  })
}

if (import.meta.main) {
  const fake = await consoleFake(Number(process.env['PORT'] ?? 0))
  fill(fake)
  process.stdout.write(`${fake.url}/console\n${people.map(({ name, token }) => `${name}: ${token}`).join('\n')}\n`)
}

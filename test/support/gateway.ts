/**
 * A gateway for tests: the real store, application and operations; providers, randomness and the passing of passes are
 * the test's. No loop runs: a test steps the workers by `runOnce`.
 */
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify'
import { pino } from 'pino'
import { buildApp } from '../../src/app.ts'
import { databaseClock, type Clock } from '../../src/clock.ts'
import type { Channel } from '../../src/core/message-content.ts'
import type { LookResult, Outcome } from '../../src/core/outcome.ts'
import type { Deps } from '../../src/deps.ts'
import { authenticator } from '../../src/http/auth.ts'
import { createMetrics } from '../../src/metrics.ts'
import { newSecret } from '../../src/new-secret.ts'
import { uuidMaker } from '../../src/new-uuid.ts'
import { inFlight } from '../../src/operations/in-flight.ts'
import { providerSlots } from '../../src/operations/provider-slots.ts'
import { repeatsSeen } from '../../src/operations/repeats.ts'
import { waitersFor } from '../../src/operations/wait-for-outcome.ts'
import type { AttemptContext, LookContext, Provider, WriteGate } from '../../src/providers/provider.ts'
import { openDatabase } from '../../src/store/database.ts'
import { createStore, type Store } from '../../src/store/store.ts'

export const apiKey = `so_live_test_${'k'.repeat(40)}`

export interface Call extends AttemptContext {
  readonly to: string
  readonly rendered: string | null
}

export interface FakeProvider extends Provider {
  readonly calls: Call[]
  /** What the next calls come to; default: accepted at once. */
  answer: (call: Call, gate: WriteGate) => Outcome | Promise<Outcome>
  readonly looks: LookContext[]
  /** What the next look-ups tell; default: nothing is there. */
  show: (look: LookContext) => LookResult | Promise<LookResult>
}

export const accepted = (providerMessageId: string | null = 'p1'): Outcome => ({
  kind: 'accepted',
  providerMessageId,
  evidence: { phase: 'answered', httpStatus: 201, detail: 'accepted' },
})
export const rejected = (): Outcome => ({
  kind: 'rejected',
  evidence: { phase: 'answered', httpStatus: 400, code: '21211', detail: 'refused' },
})
export const lost = (): Outcome => ({
  kind: 'unknown',
  evidence: { phase: 'begun', code: 'UND_ERR_SOCKET', detail: 'no answer' },
})
export const nothing = (): LookResult => ({
  kind: 'absent',
  evidence: { phase: 'answered', httpStatus: 200, detail: 'not shown' },
})
export const found = (count = 1): LookResult => ({
  kind: 'found',
  count,
  providerMessageId: 'p1',
  evidence: { phase: 'answered', httpStatus: 200, detail: 'shown' },
})
export const notSent = (
  reason: 'not_begun' | 'refused_for_now' | 'credentials' = 'not_begun',
  retryAfterMs: number | null = null,
): Outcome => ({
  kind: 'not_sent',
  reason,
  retryAfterMs,
  evidence: { phase: reason === 'not_begun' ? 'not_begun' : 'answered', code: reason, detail: 'not accepted' },
})

export function fakeProvider(name: string, more: Partial<Provider> = {}): FakeProvider {
  const provider: FakeProvider = {
    name,
    adapter: 'fake',
    environment: 'live',
    capabilities: {
      channels: ['sms', 'email', 'chat', 'push', 'webhook'],
      deduplication: null,
      lookup: null,
      lateEvidence: 'none',
      acceptance: 'status',
    },
    identity: 'fake-identity',
    callMs: 2_000,
    concurrency: 64,
    limitBroken: () => null,
    calls: [],
    answer: () => accepted(),
    looks: [],
    show: () => nothing(),
    render: ({ to, content }, { messageId }) => JSON.stringify({ messageId, to, content }),
    send: async (message, attempt, gate, rendered) => {
      const call = { ...attempt, to: message.to, rendered }
      provider.calls.push(call)
      return provider.answer(call, gate)
    },
    look: async (_, look) => {
      provider.looks.push(look)
      return provider.show(look)
    },
    parseWebhook: { lacks: 'it is a fake' },
    close: async () => {},
    ...more,
  }
  return provider
}

export interface TestGateway {
  readonly app: FastifyInstance
  readonly deps: Deps
  readonly provider: FakeProvider
  /** What was logged, line by line. */
  readonly logged: string[]
  send(body: unknown, options?: SendOptions): Promise<LightMyRequestResponse>
  get(path: string, headers?: Record<string, string>): Promise<LightMyRequestResponse>
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<LightMyRequestResponse>
  close(): Promise<void>
}

export interface SendOptions {
  readonly key?: string
  readonly prefer?: string
  readonly headers?: Record<string, string>
}

export interface TestGatewayOptions {
  readonly provider?: FakeProvider
  /** After `provider` in the route of each channel that they take. */
  readonly others?: readonly FakeProvider[]
  readonly leaseMarginMs?: number
  /** Stands between the operations and the real store. */
  readonly wrapStore?: (store: Store) => Store
  readonly clock?: (real: Clock) => Clock
  readonly trustedProxies?: readonly string[]
}

export async function testGateway(databaseUrl: string, options: TestGatewayOptions = {}): Promise<TestGateway> {
  const provider = options.provider ?? fakeProvider('fake')
  const database = openDatabase(databaseUrl, () => {})
  const store = options.wrapStore?.(createStore(database)) ?? createStore(database)
  const realClock = databaseClock(async () => store.readTime())
  await realClock.synchronise()
  const clock = options.clock?.(realClock) ?? realClock
  const calls = inFlight()
  const logged: string[] = []
  const logger = pino({ level: 'trace' }, { write: (line) => void logged.push(line) })
  const all = [provider, ...(options.others ?? [])]
  const find: Deps['providers']['find'] = (name, environment) =>
    all.find((each) => name === each.name && environment === each.environment)
  const deps: Deps = {
    store,
    providers: {
      find,
      route: (channel: Channel, environment) =>
        all.filter((each) => environment === each.environment && each.capabilities.channels.includes(channel)),
      all: () => all,
    },
    clock,
    newUuid: uuidMaker(() => clock.now().getTime()),
    newSecret,
    random: () => 0,
    log: logger,
    metrics: createMetrics(),
    slots: providerSlots(clock),
    waiters: waitersFor(store, clock, calls),
    inFlight: calls,
    repeats: repeatsSeen(),
    leaseMarginMs: options.leaseMarginMs ?? 2_000,
    acceptsClaims: () => true,
    nudgeDispatcher: () => {},
    nudgeReconciler: () => {},
  }
  const { fastify: app } = await buildApp({
    deps,
    logger,
    authenticate: authenticator(store, apiKey, clock),
    readiness: { draining: () => false },
    bodyLimitBytes: 1_048_576,
    trustedProxies: options.trustedProxies ?? [],
  })
  const request = async (asked: InjectOptions): Promise<LightMyRequestResponse> =>
    app.inject({ ...asked, headers: { authorization: `Bearer ${apiKey}`, ...asked.headers } })
  return {
    app,
    deps,
    provider,
    logged,
    send: async (body, { key, prefer, headers = {} } = {}) =>
      request({
        method: 'POST',
        url: '/v1/messages',
        headers: {
          'content-type': 'application/json',
          ...(key === undefined ? {} : { 'idempotency-key': key }),
          ...(prefer === undefined ? {} : { prefer }),
          ...headers,
        },
        payload: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    get: async (url, headers = {}) => request({ method: 'GET', url, headers }),
    post: async (url, body, headers = {}) =>
      request({
        method: 'POST',
        url,
        ...(body === undefined
          ? { headers }
          : { headers: { 'content-type': 'application/json', ...headers }, payload: JSON.stringify(body) }),
      }),
    close: async () => {
      await calls.idle()
      await app.close()
      await database.close()
    },
  }
}

export const sms = (text = 'hello', more: object = {}): object => ({
  channel: 'sms',
  to: '+447700900123',
  content: { text },
  ...more,
})

/** Resolves when `condition` holds. @throws after `ms` */
export async function until(condition: () => boolean | Promise<boolean>, ms = 10_000): Promise<void> {
  const end = Date.now() + ms
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`not within ${ms} ms: ${condition.toString()}`)
    await new Promise((again) => setTimeout(again, 5))
  }
}

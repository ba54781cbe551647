/** What callers and operators see of a message that the gateway settles (api.md, the table of answers; wait-for-outcome.ts, V1). */
import type { LightMyRequestResponse } from 'fastify'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Outcome } from '../../src/core/outcome.ts'
import { createReconciler } from '../../src/workers/reconciler.ts'
import { useDatabase } from '../support/database.ts'
import {
  accepted,
  lost,
  notSent,
  nothing,
  rejected,
  sms,
  testGateway,
  until,
  type TestGateway,
} from '../support/gateway.ts'
import {
  able,
  answers,
  hourMs,
  keyInUse,
  lostMessage,
  makeStepDue,
  passingTime,
  reconfigure,
  recoverableProvider,
  shown,
  takeStep,
} from './recovery-steps.ts'
import { dispatch, makeDue, untilStatus } from './steps.ts'
import { heldOutcome, isReplay, messageIn, problemIn, timelineOf, told } from './told.ts'

const database = useDatabase()
const time = passingTime()
let gateway: TestGateway
let replica: TestGateway
let reconciler: ReturnType<typeof createReconciler>
let step: (id: string) => Promise<boolean>
beforeAll(async () => {
  const provider = recoverableProvider(able({ key: true }))
  gateway = await testGateway(database.url, { provider, clock: time.clock })
  replica = await testGateway(database.url, { provider, clock: time.clock })
  reconciler = createReconciler(gateway.deps)
  step = async (id) => takeStep(database, reconciler, id)
})
beforeEach(() => {
  time.reset()
  reconfigure(gateway.provider, { capabilities: able({ key: true }) })
  gateway.provider.show = () => nothing()
  gateway.provider.calls.length = 0
})
afterAll(async () => {
  await gateway.close()
  await replica.close()
})

/** A first request that waits, and whose answer has been lost. */
async function waiting(key: string, prefer: string): Promise<{ id: string; answer: Promise<LightMyRequestResponse> }> {
  gateway.provider.answer = () => lost()
  const answer = gateway.send(sms('once'), { key, prefer })
  await until(() => gateway.provider.calls.length === 1)
  const id = String(gateway.provider.calls[0]?.messageId)
  await untilStatus(gateway, id, 'unknown')
  return { id, answer }
}

const retryAfterOf = ({ headers }: LightMyRequestResponse): number | undefined =>
  headers['retry-after'] === undefined ? undefined : Number(headers['retry-after'])

test('V1 a caller who waits hears 201 when the replay succeeds within the wait, and so do repeats here and elsewhere', async () => {
  const { id, answer } = await waiting('within', 'wait=10')
  const repeats = [gateway, replica].map(async (asked) => asked.send(sms('once'), { key: 'within', prefer: 'wait=10' }))
  await until(() => gateway.deps.waiters.count() === 2 && replica.deps.waiters.count() === 1)
  const replay = heldOutcome()
  gateway.provider.answer = async () => replay.promise
  await makeStepDue(database, id)
  const { done } = await reconciler.runOnce()
  await untilStatus(gateway, id, 'sending')
  const meanwhile = await replica.send(sms('once'), { key: 'within', prefer: 'wait=0' })
  expect([told(meanwhile), problemIn(meanwhile).retryable, isReplay(meanwhile)]).toEqual([
    '409 in-progress',
    true,
    false,
  ])
  replay.resolve(accepted())
  await done
  const all = await Promise.all([answer, ...repeats])
  expect(all.map(told)).toEqual(['201 sent', '201 sent', '201 sent'])
  expect(all.map(isReplay)).toEqual([false, true, true])
  expect(new Set(all.map(({ body }) => body)).size).toBe(1)
  expect(messageIn(await answer)).toMatchObject({ attempts: 2, resolution: { by: 'provider_replay' } })
})

test('V1 a wait ends at once when the next step is due after it: 504, of use to repeat, and Retry-After says when', async () => {
  const { id, answer } = await waiting('later', 'wait=10')
  answers(gateway.provider, keyInUse(40_000))
  await step(id)
  const first = await answer
  expect([told(first), isReplay(first), problemIn(first).retryable, problemIn(first).sent]).toEqual([
    '504 outcome-unknown',
    false,
    true,
    'maybe',
  ])
  expect(retryAfterOf(first)).toBeGreaterThanOrEqual(39)
  expect(retryAfterOf(first)).toBeLessThanOrEqual(41)
  expect(problemIn(first).detail).toContain('repeats the call under the same key')
  const again = await replica.send(sms('once'), { key: 'later', prefer: 'wait=5' })
  expect([told(again), isReplay(again), problemIn(again).retryable]).toEqual(['504 outcome-unknown', true, true])
})

test('V1 a wait that is over while a step is due: 504, of use to repeat', async () => {
  const { answer } = await waiting('over', 'wait=1')
  const repeat = await replica.send(sms('once'), { key: 'over', prefer: 'wait=0' })
  for (const each of [await answer, repeat])
    expect([told(each), problemIn(each).retryable, retryAfterOf(each)]).toEqual(['504 outcome-unknown', true, 1])
})

test.each<{ name: string; outcome: Outcome }>([
  { name: 'refused for good', outcome: rejected() },
  { name: 'another request has the key', outcome: { ...lost(), isReplayPointless: true } as Outcome },
])(
  'api.md, 504: of no use to repeat when no step is left ($name), and nobody waits for nothing',
  async ({ name, outcome }) => {
    const key = name.replaceAll(' ', '-')
    const { id, answer } = await waiting(key, 'wait=10')
    answers(gateway.provider, outcome)
    await step(id)
    for (const each of [await answer, await replica.send(sms('once'), { key, prefer: 'wait=10' })])
      expect([told(each), problemIn(each).retryable, retryAfterOf(each)]).toEqual([
        '504 outcome-unknown',
        false,
        undefined,
      ])
  },
)

test('api.md, 504: while it is asked for, a repeat waits for what the provider shows', async () => {
  reconfigure(gateway.provider, { capabilities: able({ look: true }) })
  const { id, answer } = await waiting('asked', 'wait=10')
  time.pass(5_100)
  await step(id)
  expect(await shown(gateway, id)).toMatchObject({ plan: { step: 'look', lastEvidence: 'no answer' } })
  time.pass(1_000)
  await step(id) // proven absent
  expect((await shown(gateway, id)).status).toBe('queued')
  gateway.provider.answer = () => accepted()
  const repeat = replica.send(sms('once'), { key: 'asked', prefer: 'wait=10' })
  await until(() => replica.deps.waiters.count() === 1)
  await makeDue(database)
  await dispatch(gateway)
  expect((await Promise.all([answer, repeat])).map(told)).toEqual(['201 sent', '201 sent'])
})

test('GET shows plan, openAttempts and resolution; events tell warranted, looked and resolved in order', async () => {
  reconfigure(gateway.provider, { capabilities: able({ key: true, look: true }) })
  const id = await lostMessage(gateway, 'told')
  answers(gateway.provider, notSent())
  await step(id)
  const open = await shown(gateway, id)
  expect(open).toMatchObject({ status: 'unknown', plan: { step: 'replay', steps: 1 }, resolution: null })
  expect(open.openAttempts).toHaveLength(1)
  expect(Date.parse(String(open.plan?.givesUpAt))).toBeGreaterThan(Date.now() + 22 * hourMs)
  time.pass(23 * hourMs)
  await step(id) // the window is over: from now on it is asked
  for (let looks = 0; looks < 2; looks++) {
    time.pass(1_000)
    await step(id)
  }
  expect(await shown(gateway, id)).toMatchObject({
    status: 'queued',
    plan: null,
    openAttempts: [],
    resolution: { by: 'lookup', outcome: 'not_sent', apiKey: null },
  })
  const told_ = (await timelineOf(gateway, id)).map(({ type, data }) =>
    type === 'attempt_ended' ? `ended ${String(data['outcome'])}` : type,
  )
  expect(told_.filter((line) => line !== 'attempt_started')).toEqual([
    'claimed',
    'ended unknown',
    'warranted',
    'ended not_sent',
    'looked',
    'ended not_sent',
    'looked',
    'resolved',
  ])
})

test('GET /v1/providers shows what each can do about a lost answer', async () => {
  const capabilities = able({ key: true, look: { strength: 'weak' } })
  reconfigure(gateway.provider, { capabilities })
  const [provider] = (await gateway.get('/v1/providers')).json<{ data: { capabilities: object }[] }>().data
  const { deduplication, lookup, lateEvidence, acceptance } = capabilities
  expect(provider?.capabilities).toEqual({ recovery: 'keyed', deduplication, lookup, lateEvidence, acceptance })
  for (const [can, recovery] of [
    [{}, 'blind'],
    [{ look: true }, 'lookup'],
    [{ look: { strength: 'weak' } }, 'lookup-weak'],
  ] as const) {
    reconfigure(gateway.provider, { capabilities: able(can) })
    const [shownNow] = (await gateway.get('/v1/providers')).json<{ data: { capabilities: object }[] }>().data
    expect(shownNow?.capabilities).toMatchObject({ recovery })
  }
})

test('metrics tell who settles what is unknown, what look-ups told, and how messages were settled', async () => {
  const lines = async (): Promise<string> => (await gateway.get('/metrics')).body
  const value = (text: string, name: string): number =>
    Number(new RegExp(`^${name} ([\\d.e+-]+)$`, 'm').exec(text)?.[1] ?? 0)
  const waits = (text: string, who: string): number => value(text, `sendonce_unknown\\{waits_for="${who}"\\}`)
  const before = await lines()
  const id = await lostMessage(gateway, 'metrics')
  const between = await lines()
  expect([
    waits(between, 'gateway') - waits(before, 'gateway'),
    waits(between, 'person') - waits(before, 'person'),
  ]).toEqual([1, 0])
  answers(gateway.provider, rejected())
  await step(id)
  const person = await lines()
  expect([
    waits(person, 'gateway') - waits(before, 'gateway'),
    waits(person, 'person') - waits(before, 'person'),
  ]).toEqual([0, 1])
  expect(value(person, 'sendonce_settled_total\\{by="provider_replay",to="sent"\\}')).toBeGreaterThanOrEqual(1)
  expect(value(person, 'sendonce_settled_total\\{by="lookup",to="queued"\\}')).toBeGreaterThanOrEqual(2)
  expect(value(person, 'sendonce_lookups_total\\{provider="fake",result="absent"\\}')).toBeGreaterThanOrEqual(4)
})

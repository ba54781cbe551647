/** A lost answer of a provider that acts once on one key: the same call again (behaviour.md, E3a, E4, E5, E10, E11; recovery.ts). */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Outcome } from '../../src/core/outcome.ts'
import { createReconciler } from '../../src/workers/reconciler.ts'
import { useDatabase } from '../support/database.ts'
import { accepted, lost, notSent, rejected, sms, testGateway, type TestGateway } from '../support/gateway.ts'
import {
  able,
  alarmsOf,
  answers,
  hourMs,
  keyInUse,
  keyReused,
  lostMessage,
  passingTime,
  recoverableProvider,
  shown,
  takeStep,
} from './recovery-steps.ts'
import { dispatch, dispatchNothing, makeDue, untilStatus } from './steps.ts'
import { newApiKey, problemIn, timelineOf, told } from './told.ts'

const database = useDatabase()
const time = passingTime()
let gateway: TestGateway
let step: (id: string) => Promise<boolean>
beforeAll(async () => {
  gateway = await testGateway(database.url, { provider: recoverableProvider(able({ key: true })), clock: time.clock })
  const reconciler = createReconciler(gateway.deps)
  step = async (id) => takeStep(database, reconciler, id)
})
beforeEach(() => {
  time.reset()
  gateway.provider.calls.length = 0
  gateway.deps.slots.resume('fake')
  gateway.deps.metrics.alarms.reset()
})
afterAll(async () => gateway.close())

test('E4 the replay carries the same provider key and identical bytes, under a fresh attempt', async () => {
  const id = await lostMessage(gateway, 'e4')
  answers(gateway.provider, accepted('p9'))
  expect(await step(id)).toBe(true)
  const [first, second] = gateway.provider.calls
  expect(second).toMatchObject({
    messageId: id,
    createdAt: first?.createdAt,
    attemptNumber: 2,
    rendered: first?.rendered,
  })
  expect(first?.rendered).toContain(id)
  const { status, attempts, providerMessageId, resolution, plan, openAttempts } = await shown(gateway, id)
  expect([status, attempts, providerMessageId, plan, openAttempts]).toEqual(['sent', 2, 'p9', null, []])
  const events = await timelineOf(gateway, id)
  expect(events.map(({ type }) => type)).toEqual([
    'claimed',
    'attempt_started',
    'attempt_ended',
    'attempt_started',
    'warranted',
    'attempt_ended',
  ])
  const [, , ended, started, warranted] = events
  expect(warranted).toMatchObject({ attempt: started?.attempt, data: { warrant: 'key', for: 1 } })
  expect(started?.attempt).not.toBe(ended?.attempt)
  expect(resolution).toMatchObject({ by: 'provider_replay', outcome: 'sent', attempt: started?.attempt })
  expect(await step(id)).toBe(false)
  await makeDue(database)
  await dispatchNothing(gateway)
  expect(gateway.provider.calls).toHaveLength(2)
})

test('E4 what was not sent for certain keeps its bytes for the next try, too', async () => {
  answers(gateway.provider, notSent(), lost(), accepted())
  const key = 'e4-kept'
  await gateway.send(sms('kept'), { key, prefer: 'wait=0' })
  await makeDue(database)
  await dispatch(gateway)
  const id = String(gateway.provider.calls[0]?.messageId)
  await untilStatus(gateway, id, 'unknown')
  await step(id)
  expect(new Set(gateway.provider.calls.map(({ rendered }) => rendered)).size).toBe(1)
  expect(gateway.provider.calls).toHaveLength(3)
})

test('E4, R4 within the window only: after it nothing is called, the plan is given up, and a person is left', async () => {
  const id = await lostMessage(gateway, 'window')
  const { plan } = await shown(gateway, id)
  expect(plan).toMatchObject({ step: 'replay', steps: 0 })
  time.pass(23 * hourMs - 60_000)
  await step(id) // lost once more: the window is counted from the first attempt
  expect((await shown(gateway, id)).plan).toMatchObject({ step: 'replay', givesUpAt: plan?.givesUpAt, steps: 1 })
  time.pass(60_000)
  answers(gateway.provider, accepted())
  expect(await step(id)).toBe(true)
  expect(gateway.provider.calls).toHaveLength(2)
  const after = await shown(gateway, id)
  expect([after.status, after.plan, after.openAttempts.length]).toEqual(['unknown', null, 2])
  expect((await timelineOf(gateway, id)).at(-1)).toMatchObject({ type: 'gave_up', data: { step: 'replay' } })
  const answer = await gateway.send(sms('once'), { key: 'window' })
  expect([told(answer), problemIn(answer).retryable, answer.headers['retry-after']]).toEqual([
    '504 outcome-unknown',
    false,
    undefined,
  ])
  expect(await step(id)).toBe(false)
})

test('E4, B2 the write gate of a replay shuts with the window', async () => {
  const id = await lostMessage(gateway, 'window-gate')
  time.pass(23 * hourMs - 60_000)
  const gates: boolean[] = []
  gateway.provider.answer = (_, gate) => {
    gates.push(gate())
    time.jump(60_000)
    gates.push(gate())
    return notSent()
  }
  await step(id)
  expect(gates).toEqual([true, false])
  expect(await shown(gateway, id)).toMatchObject({ status: 'unknown', plan: null })
})

test('E4 `key in use` means ask again, when the provider says, under the same key', async () => {
  const id = await lostMessage(gateway, 'in-use')
  answers(gateway.provider, keyInUse(7_000), keyInUse(), accepted())
  const before = Date.now()
  await step(id)
  const { status, plan } = await shown(gateway, id)
  expect([status, plan?.step]).toEqual(['unknown', 'replay'])
  expect(Date.parse(String(plan?.at)) - before).toBeGreaterThanOrEqual(7_000)
  await step(id)
  await step(id)
  expect((await shown(gateway, id)).status).toBe('sent')
  expect(gateway.provider.calls.map(({ messageId }) => messageId)).toEqual([id, id, id, id])
  expect(await alarmsOf(gateway)).toEqual({})
})

test('E4 `key with another body` means unknown and an alarm, and no further replay', async () => {
  const id = await lostMessage(gateway, 'reused')
  answers(gateway.provider, keyReused(), accepted())
  await step(id)
  expect(await shown(gateway, id)).toMatchObject({ status: 'unknown', statusReason: 'key_reused', plan: null })
  expect(await alarmsOf(gateway)).toEqual({ provider_key_conflict: 1 })
  time.pass(hourMs)
  expect(await step(id)).toBe(false)
  expect(gateway.provider.calls).toHaveLength(2)
})

test.each<{ name: string; outcome: Outcome; next: 'replay' | null; pauseMs?: number }>([
  { name: 'is refused a connection', outcome: notSent('not_begun'), next: 'replay' },
  { name: 'is put off by the provider', outcome: notSent('refused_for_now', 9_000), next: 'replay', pauseMs: 9_000 },
  { name: 'meets refused credentials', outcome: notSent('credentials'), next: 'replay', pauseMs: 60_000 },
  { name: 'is lost, too', outcome: lost(), next: 'replay' },
  { name: 'is refused for good', outcome: rejected(), next: null },
])(
  'E3a a replay that $name leaves the message unknown: no failure, nothing canceled',
  async ({ name, outcome, next, pauseMs = 0 }) => {
    const key = `e3a-${name.replaceAll(/\W/g, '-')}`
    const id = await lostMessage(gateway, key)
    const [first] = (await shown(gateway, id)).openAttempts
    answers(gateway.provider, outcome)
    const before = Date.now()
    await step(id)
    const { status, attempts, plan, openAttempts } = await shown(gateway, id)
    expect([status, attempts, plan?.step ?? null]).toEqual(['unknown', 2, next])
    expect(openAttempts[0]).toBe(first)
    expect(openAttempts).toHaveLength(outcome.kind === 'unknown' ? 2 : 1)
    expect(plan === null || Date.parse(plan.at) - before >= pauseMs).toBe(true)
    expect(told(await gateway.post(`/v1/messages/${id}/cancel`))).toBe('409 too-late')
    const answer = await gateway.send(sms('once'), { key, prefer: 'wait=0' })
    expect([told(answer), problemIn(answer).sent]).toEqual(['504 outcome-unknown', 'maybe'])
    gateway.deps.slots.resume('fake')
    answers(gateway.provider, accepted())
    expect(await step(id)).toBe(next !== null)
    expect((await shown(gateway, id)).status).toBe(next === null ? 'unknown' : 'sent')
  },
)

test('E3a while the provider is down, each replay comes later than the one before', async () => {
  const id = await lostMessage(gateway, 'down')
  answers(gateway.provider, notSent())
  const pauses: number[] = []
  for (let steps = 1; steps <= 5; steps++) {
    const before = Date.now()
    await step(id)
    const { plan } = await shown(gateway, id)
    expect(plan?.steps).toBe(steps)
    pauses.push(Math.round((Date.parse(String(plan?.at)) - before) / 1_000))
  }
  expect(pauses).toEqual([1, 2, 4, 8, 16])
})

test('E5 the provider key is the message id: two accounts with one key of theirs differ on the wire', async () => {
  const other = await newApiKey(gateway, 'other')
  const mine = await lostMessage(gateway, 'shared')
  await gateway.send(sms('once'), { key: 'shared', prefer: 'wait=0', headers: other.headers })
  const theirs = String(gateway.provider.calls.at(-1)?.messageId)
  expect(theirs).not.toBe(mine)
  expect(
    gateway.provider.calls.map(({ rendered }) => JSON.parse(String(rendered)) as { messageId: string }),
  ).toMatchObject([{ messageId: mine }, { messageId: theirs }])
  expect(gateway.provider.calls.every(({ rendered }) => !String(rendered).includes('shared'))).toBe(true)
})

test('E10 after notAfter there is no replay, and the message stays unknown', async () => {
  const id = await lostMessage(gateway, 'e10', { ttlSeconds: 60 })
  time.pass(60_001)
  answers(gateway.provider, accepted())
  await step(id)
  expect(gateway.provider.calls).toHaveLength(1)
  expect(await shown(gateway, id)).toMatchObject({ status: 'unknown', plan: null })
})

test('E10 notAfter passes between the commit of a replay and its first byte: none leaves', async () => {
  const id = await lostMessage(gateway, 'e10-gate', { ttlSeconds: 60 })
  const gates: boolean[] = []
  gateway.provider.answer = (_, gate) => {
    gates.push(gate())
    time.jump(60_000)
    gates.push(gate())
    return notSent()
  }
  await step(id)
  expect(gates).toEqual([true, false])
  const { status, plan, openAttempts } = await shown(gateway, id)
  expect([status, plan, openAttempts.length]).toEqual(['unknown', null, 1])
})

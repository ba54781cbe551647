/** A lost answer of a provider that can be asked by our reference (behaviour.md, E9; recovery.ts, R2; reconcile-message.ts, K2). */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { LookResult } from '../../src/core/outcome.ts'
import { createReconciler } from '../../src/workers/reconciler.ts'
import { useDatabase } from '../support/database.ts'
import { accepted, found, lost, nothing, sms, testGateway, type TestGateway } from '../support/gateway.ts'
import {
  able,
  alarmsOf,
  answers,
  hourMs,
  lostMessage,
  passingTime,
  reconfigure,
  recoverableProvider,
  shown,
  takeStep,
} from './recovery-steps.ts'
import { dispatch, dispatchNothing, makeDue, rescue, untilStatus } from './steps.ts'
import { heldOutcome, isReplay, messageIn, timelineOf, told, uuidOf } from './told.ts'

const database = useDatabase()
const time = passingTime()
let gateway: TestGateway
/** Another process on the same data base, with the same provider and the same time. */
let replica: TestGateway
let step: (id: string) => Promise<boolean>
let stepElsewhere: (id: string) => Promise<boolean>
beforeAll(async () => {
  const provider = recoverableProvider(able({ look: true }))
  gateway = await testGateway(database.url, { provider, clock: time.clock })
  replica = await testGateway(database.url, { provider, clock: time.clock })
  const [here, there] = [createReconciler(gateway.deps), createReconciler(replica.deps)]
  step = async (id) => takeStep(database, here, id)
  stepElsewhere = async (id) => takeStep(database, there, id)
})
beforeEach(() => {
  time.reset()
  reconfigure(gateway.provider, { capabilities: able({ look: true }) })
  gateway.provider.show = () => nothing()
  gateway.provider.calls.length = 0
  gateway.provider.looks.length = 0
  gateway.deps.metrics.alarms.reset()
})
afterAll(async () => {
  await gateway.close()
  await replica.close()
})

/** What the time line says of look-ups and verdicts. */
const lookedIn = async (id: string): Promise<string[]> =>
  (await timelineOf(gateway, id))
    .filter(({ type }) => ['looked', 'resolved', 'gave_up', 'expired'].includes(type))
    .map(({ type, data }) => [type, data['result'] ?? data['outcome'], data['absence']].filter(Boolean).join(' '))

test('E9 the look-up finds it: sent, by the look-up, and nothing is called again', async () => {
  const id = await lostMessage(gateway, 'found')
  expect(await shown(gateway, id)).toMatchObject({ plan: { step: 'look', steps: 0 } })
  gateway.provider.show = () => found()
  await step(id)
  const { status, providerMessageId, resolution, attempts } = await shown(gateway, id)
  expect([status, providerMessageId, attempts]).toEqual(['sent', 'p1', 1])
  expect(resolution).toMatchObject({ by: 'lookup', outcome: 'sent' })
  expect(gateway.provider.looks).toMatchObject([{ messageId: id }])
  expect(gateway.deps.slots.inUse('fake')).toBe(0)
  const again = await gateway.send(sms('once'), { key: 'found' })
  expect([told(again), isReplay(again), gateway.provider.calls.length]).toEqual(['201 sent', true, 1])
  expect(await lookedIn(id)).toEqual(['looked found'])
  expect(await step(id)).toBe(false)
})

test('E9 absent early, once, proven: exactly one more attempt, and the time line tells why', async () => {
  const id = await lostMessage(gateway, 'absent')
  await step(id) // before the lease is over and a settling time more
  time.pass(3_000)
  await step(id)
  expect(await lookedIn(id)).toEqual(['looked absent early', 'looked absent early'])
  time.pass(2_100)
  await step(id)
  const { plan } = await shown(gateway, id)
  expect(plan).toMatchObject({ step: 'look', steps: 3 })
  await step(id) // too soon after it
  expect(await shown(gateway, id)).toMatchObject({ status: 'unknown', attempts: 1 })
  time.pass(1_000)
  await step(id)
  const told_ = await shown(gateway, id)
  expect([told_.status, told_.plan, told_.openAttempts]).toEqual(['queued', null, []])
  expect(told_.resolution).toMatchObject({ by: 'lookup', outcome: 'not_sent' })
  answers(gateway.provider, accepted('second'))
  await makeDue(database)
  await dispatch(gateway)
  await untilStatus(gateway, id, 'sent')
  expect((await lookedIn(id)).slice(2)).toEqual([
    'looked absent once',
    'looked absent once',
    'looked absent proven',
    'resolved not_sent',
  ])
  await makeDue(database)
  await dispatchNothing(gateway)
  expect([await step(id), gateway.provider.calls.length]).toEqual([false, 2])
})

test('R2 the first look that could count comes when it can, and the second a settling time later', async () => {
  const id = await lostMessage(gateway, 'when')
  const [row] = await database.query<{ counts: Date }>(
    `SELECT lease_until + interval '1 second' AS counts FROM messages WHERE idempotency_key = 'when'`,
  )
  const planned = async (): Promise<number> => Date.parse(String((await shown(gateway, id)).plan?.at))
  let at = await planned()
  while (at < Number(row?.counts)) {
    time.pass(Math.max(0, at - gateway.deps.clock.now().getTime()))
    await step(id)
    at = await planned()
    expect(gateway.provider.looks.length).toBeLessThan(8)
  }
  expect(at).toBe(Number(row?.counts))
})

test('E9 an absence that is proven settles the attempts so far: one that is lost after it is proven absent afresh', async () => {
  const id = await lostMessage(gateway, 'afresh')
  time.pass(5_100)
  await step(id)
  time.pass(1_000)
  await step(id)
  answers(gateway.provider, lost(), accepted())
  await makeDue(database)
  await dispatch(gateway)
  await untilStatus(gateway, id, 'unknown')
  await step(id)
  expect((await lookedIn(id)).at(-1)).toMatch(/^looked absent (early|once)$/) // by two clocks: only not proven
  expect((await shown(gateway, id)).status).toBe('unknown')
  expect(gateway.provider.calls).toHaveLength(2)
})

test('E9 found twice: it was sent twice already; sent, with an alarm, and never sent again', async () => {
  const id = await lostMessage(gateway, 'doubled')
  gateway.provider.show = () => found(2)
  await step(id)
  expect(await shown(gateway, id)).toMatchObject({ status: 'sent', attempts: 1 })
  expect([await lookedIn(id), await alarmsOf(gateway)]).toEqual([['looked doubled'], { accepted_twice: 1 }])
  await makeDue(database)
  await dispatchNothing(gateway)
  expect(gateway.provider.calls).toHaveLength(1)
})

test('E9 a look-up that fails leaves it unknown, to be asked later, when the provider says; it proves nothing', async () => {
  const id = await lostMessage(gateway, 'fails')
  const failed: LookResult = {
    kind: 'failed',
    retryAfterMs: 30_000,
    evidence: { phase: 'answered', httpStatus: 503, detail: 'not answered' },
  }
  time.pass(5_100)
  await step(id)
  gateway.provider.show = () => failed
  time.pass(1_000)
  const before = gateway.deps.clock.now().getTime()
  await step(id)
  const { status, plan } = await shown(gateway, id)
  expect(status).toBe('unknown')
  expect(Date.parse(String(plan?.at)) - before).toBeGreaterThanOrEqual(30_000)
  expect(await lookedIn(id)).toEqual(['looked absent once', 'looked failed'])
  gateway.provider.show = () => found()
  await step(id)
  expect((await shown(gateway, id)).status).toBe('sent')
})

test.each([
  { name: 'a weak look-up', look: { strength: 'weak' } as const, forMs: 25 * hourMs },
  { name: 'a list that we scan', look: { match: 'scan' } as const, forMs: 7 * 24 * hourMs },
])(
  'D2, E9 $name never proves an absence: nothing is sent again, and at the end a person is left',
  async ({ name, look, forMs }) => {
    reconfigure(gateway.provider, { capabilities: able({ look }) })
    const id = await lostMessage(gateway, name.replaceAll(' ', '-'))
    for (let looks = 0; looks < 6; looks++) {
      time.pass(10_000)
      await step(id)
    }
    expect(new Set(await lookedIn(id))).toEqual(new Set(['looked absent early']))
    time.pass(forMs)
    await step(id)
    expect(await shown(gateway, id)).toMatchObject({ status: 'unknown', plan: null, attempts: 1 })
    expect([gateway.provider.calls.length, await step(id)]).toEqual([1, false])
  },
)

test('K2 looks of two replicas do not add up to a proof; two of one do', async () => {
  const id = await lostMessage(gateway, 'replicas')
  time.pass(5_100)
  await step(id)
  time.pass(2_000)
  await stepElsewhere(id)
  expect(await shown(gateway, id)).toMatchObject({ status: 'unknown', attempts: 1 })
  expect(await lookedIn(id)).toEqual(['looked absent once', 'looked absent once'])
  time.pass(1_000)
  await stepElsewhere(id)
  expect((await shown(gateway, id)).status).toBe('queued')
  await makeDue(database)
  await dispatch(gateway)
})

test('K2 a look that is answered late counts from when it began: the two are a settling time apart', async () => {
  const id = await lostMessage(gateway, 'slow-look')
  time.pass(5_100)
  await step(id)
  gateway.provider.show = () => {
    time.pass(1_000)
    return nothing()
  }
  await step(id)
  expect(await shown(gateway, id)).toMatchObject({ status: 'unknown', attempts: 1 })
})

test('engine.md, Gate: where nobody saw the call end, an absence counts only after ten leases', async () => {
  const outcome = heldOutcome()
  gateway.provider.answer = async () => outcome.promise
  const { id } = messageIn(await gateway.send(sms('once'), { key: 'unseen', prefer: 'wait=0' }))
  await database.query(
    `UPDATE messages SET attempt_started_at = now() - interval '4 seconds', lease_until = now() - interval '1 millisecond'
     WHERE id = $1`,
    [uuidOf(id)],
  )
  await rescue(replica)
  time.pass(30_000)
  for (let looks = 0; looks < 3; looks++) await stepElsewhere(id)
  expect(new Set(await lookedIn(id))).toEqual(new Set(['looked absent early']))
  time.pass(8_000) // ten leases, and a settling time
  await stepElsewhere(id)
  expect((await lookedIn(id)).at(-1)).toBe('looked absent once')
  outcome.resolve(accepted('late'))
  await untilStatus(gateway, id, 'sent')
  expect(gateway.provider.calls).toHaveLength(1)
})

/** Slots of a provider, and the queue for them (provider-slots.ts, L1 to L3; send-message.ts, slotFor). */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Clock } from '../../src/clock.ts'
import { providerSlots, type Release } from '../../src/operations/provider-slots.ts'
import { useDatabase } from '../support/database.ts'
import { accepted, fakeProvider, lost, sms, testGateway, until, type TestGateway } from '../support/gateway.ts'
import { createReconciler } from '../../src/workers/reconciler.ts'
import { able } from './recovery-steps.ts'
import { dispatch } from './steps.ts'
import { told } from './told.ts'

/** A clock whose timers are the test's to fire. */
function handClock() {
  const timers = new Set<() => void>()
  const clock: Clock = {
    now: () => new Date(),
    latest: () => new Date(),
    mark: () => ({ monotonicMs: 0, wallMs: 0 }),
    elapsedMs: () => 0,
    after: (_, work) => {
      timers.add(work)
      return () => void timers.delete(work)
    },
  }
  return { clock, timers }
}

test('L2 a slot goes to whoever waited longest, and nobody overtakes', async () => {
  const slots = providerSlots(handClock().clock)
  const one = fakeProvider('fake', { concurrency: 1 })
  const first = slots.tryTake(one)
  const order: string[] = []
  const queued = ['a', 'b'].map(async (name) => {
    const release = await slots.take(one, 1_000)
    order.push(name)
    return release
  })
  expect([slots.waiting(), slots.tryTake(one)]).toEqual([2, null])
  first?.()
  first?.() // more than once is once
  const a = await queued[0]
  expect([order, slots.inUse('fake'), slots.waiting()]).toEqual([['a'], 1, 1])
  a?.()
  const b = await queued[1]
  expect([order, slots.inUse('fake'), slots.waiting()]).toEqual([['a', 'b'], 1, 0])
  b?.()
  expect(slots.inUse('fake')).toBe(0)
})

test('L2 whoever waited long enough goes without, and the slot is the next one’s', async () => {
  const { clock, timers } = handClock()
  const slots = providerSlots(clock)
  const one = fakeProvider('fake', { concurrency: 1 })
  const first = slots.tryTake(one)
  const tired = slots.take(one, 10)
  const [timeOut] = timers
  timeOut?.()
  expect(await tired).toBeNull()
  const patient = slots.take(one, 1_000)
  first?.()
  expect(await patient).toBeTypeOf('function')
  expect([slots.inUse('fake'), slots.waiting(), timers.size]).toEqual([1, 0, 0])
})

test('L3 a provider that is stopped sends everybody away who waits for it', async () => {
  const slots = providerSlots(handClock().clock)
  const one = fakeProvider('fake', { concurrency: 1 })
  slots.tryTake(one)
  const waiting = slots.take(one, 1_000)
  slots.stop('fake')
  expect([await waiting, await slots.take(one, 1_000)]).toEqual([null, null])
})

const database = useDatabase()
let gateway: TestGateway
beforeAll(async () => {
  gateway = await testGateway(database.url, { provider: fakeProvider('fake', { concurrency: 1 }) })
})
afterAll(async () => gateway.close())

/** The only slot is taken until the test gives it back. */
function busy(): Release {
  const release = gateway.deps.slots.tryTake(gateway.provider)
  if (release === null) throw new Error('the slot is not free')
  onTestFinished(release)
  return release
}

test('L1 a new message waits for a slot before it is claimed: its lease is not spent on it', async () => {
  const release = busy()
  const answer = gateway.send(sms(), { key: 'waits' })
  await until(() => gateway.deps.slots.waiting() === 1)
  expect(await database.query(`SELECT 1 FROM messages`)).toEqual([])
  release()
  expect(told(await answer)).toBe('201 sent')
  expect(await database.query(`SELECT 1 FROM due_work`)).toEqual([])
})

test('a repeat waits for no slot: it is found, and answered as what it became', async () => {
  busy()
  expect(told(await gateway.send(sms(), { key: 'waits' }))).toBe('201 sent')
  const other = await gateway.send(sms('another text'), { key: 'waits' })
  expect(told(other)).toMatch(/^422 /)
  expect(gateway.deps.slots.waiting()).toBe(0)
})

test('a caller that does not wait is not made to: its message is queued at once', async () => {
  busy()
  expect(told(await gateway.send(sms(), { key: 'at-once', prefer: 'wait=0' }))).toMatch(/^202 /)
})

test('what waits in the data base stands in the same queue as requests do', async () => {
  const release = busy()
  const answers = ['r1', 'r2'].map(async (key) => gateway.send(sms(), { key, prefer: 'wait=5' }))
  await until(() => gateway.deps.slots.waiting() === 2)
  await gateway.send(sms('later'), { key: 'async', prefer: 'respond-async' })
  gateway.provider.answer = async () => accepted()
  const passed = dispatch(gateway)
  await until(() => gateway.deps.slots.waiting() > 2)
  release()
  await passed
  expect((await Promise.all(answers)).map(told)).toEqual(['201 sent', '201 sent'])
})

test('Q1 the next step about a lost answer stands in the same queue, too: requests that keep coming do not put it off', async () => {
  const keyed = fakeProvider('fake', { concurrency: 1, capabilities: able({ key: true }) })
  const busyGateway = await testGateway(database.url, { provider: keyed })
  onTestFinished(async () => busyGateway.close())
  keyed.answer = () => lost()
  expect(told(await busyGateway.send(sms('lost'), { key: 'lost', prefer: 'wait=0' }))).toMatch(/^(202|504) /)
  await until(async () => (await database.query(`SELECT 1 FROM due_work WHERE task = 'reconcile'`)).length === 1)
  await database.query(`UPDATE due_work SET due_at = now() - interval '1 second'`)
  keyed.answer = () => accepted()
  const release = busyGateway.deps.slots.tryTake(keyed)
  const request = busyGateway.send(sms('new'), { key: 'keeps-coming', prefer: 'wait=5' })
  await until(() => busyGateway.deps.slots.waiting() === 1)
  const { taken, done } = await createReconciler(busyGateway.deps).runOnce()
  expect(taken).toBe(1)
  await until(() => busyGateway.deps.slots.waiting() === 2)
  release?.()
  expect([await done, told(await request)]).toEqual([1, '201 sent'])
  expect(keyed.calls).toHaveLength(3)
})

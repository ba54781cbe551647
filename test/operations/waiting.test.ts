/** How long a caller waits, and for what (api.md, `Prefer`; wait-for-outcome.ts, V1). */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Store } from '../../src/store/store.ts'
import { useDatabase } from '../support/database.ts'
import { accepted, lost, notSent, rejected, sms, testGateway, until, type TestGateway } from '../support/gateway.ts'
import { dispatch, dispatchNothing, lapse, rescue, untilStatus } from './steps.ts'
import { heldOutcome, isReplay, messageIn, problemIn, told, type HeldOutcome } from './told.ts'

const database = useDatabase()
let gateway: TestGateway
/** Another process on the same data base. */
let replica: TestGateway
/** How many messages each poll of the replica asked for. */
const polls: number[] = []

beforeAll(async () => {
  gateway = await testGateway(database.url)
  const wrapStore = (store: Store): Store => ({
    ...store,
    findVersions: async (ids) => {
      polls.push(ids.length)
      return store.findVersions(ids)
    },
  })
  replica = await testGateway(database.url, { wrapStore })
})
beforeEach(() => {
  gateway.provider.calls.length = 0
  gateway.provider.answer = () => accepted()
  polls.length = 0
})
afterAll(async () => {
  await gateway.close()
  await replica.close()
})

function held(): HeldOutcome {
  const outcome = heldOutcome()
  gateway.provider.answer = async () => outcome.promise
  return outcome
}

test('wait=0: the first request hears 202 sending at once; the call goes on', async () => {
  const outcome = held()
  const first = await gateway.send(sms(), { key: 'wait-0', prefer: 'wait=0' })
  expect([told(first), isReplay(first)]).toEqual(['202 sending', false])
  expect(first.headers['location']).toBe(`/v1/messages/${messageIn(first).id}`)
  expect(Number(first.headers['retry-after'])).toBeGreaterThanOrEqual(1)
  outcome.resolve(accepted())
  await untilStatus(gateway, messageIn(first).id, 'sent')
})

test('wait=0: a repeat that meets a call in flight hears 409 in-progress at once, not marked as a replay', async () => {
  const outcome = held()
  const first = await gateway.send(sms(), { key: 'repeat-0', prefer: 'wait=0' })
  for (const asked of [gateway, replica]) {
    const again = await asked.send(sms(), { key: 'repeat-0', prefer: 'wait=0' })
    expect([told(again), isReplay(again)]).toEqual(['409 in-progress', false])
    expect(Number(again.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    const { sent, retryable, message } = problemIn(again)
    expect([sent, retryable, message?.id]).toEqual(['maybe', true, messageIn(first).id])
  }
  outcome.resolve(accepted())
  expect(told(await replica.send(sms(), { key: 'repeat-0' }))).toBe('201 sent')
  expect([gateway.provider.calls.length, replica.provider.calls.length]).toEqual([1, 0])
})

test('respond-async: the first request hears 202 queued and calls nobody; a worker sends it', async () => {
  const first = await gateway.send(sms(), { key: 'async', prefer: 'respond-async, wait=30' })
  expect([told(first), isReplay(first)]).toEqual(['202 queued', false])
  expect(first.headers).toMatchObject({ location: `/v1/messages/${messageIn(first).id}` })
  expect(Number(first.headers['retry-after'])).toBeGreaterThanOrEqual(1)
  expect(gateway.provider.calls).toEqual([])
  await dispatch(gateway)
  const again = await gateway.send(sms(), { key: 'async', prefer: 'respond-async' })
  expect([told(again), isReplay(again)]).toEqual(['201 sent', true])
  expect(gateway.provider.calls).toHaveLength(1)
})

test('respond-async: a repeat that meets a call in flight hears 202 sending at once, marked as a replay', async () => {
  const outcome = held()
  await gateway.send(sms(), { key: 'async-repeat', prefer: 'wait=0' })
  for (const asked of [gateway, replica]) {
    const again = await asked.send(sms(), { key: 'async-repeat', prefer: 'respond-async' })
    expect([told(again), isReplay(again)]).toEqual(['202 sending', true])
    expect(again.headers['retry-after']).toBeDefined()
  }
  outcome.resolve(accepted())
})

test.each([
  { name: 'sent', outcome: accepted(), says: '201 sent' },
  { name: 'failed', outcome: rejected(), says: '422 message-rejected' },
  { name: 'unknown', outcome: lost(), says: '504 outcome-unknown' },
])(
  'a wait ends when the message is $name, in the process that calls and in every other, with one answer',
  async ({ name, outcome, says }) => {
    const call = held()
    const key = `ends-${name}`
    const first = gateway.send(sms(), { key })
    await until(() => gateway.provider.calls.length === 1)
    const repeats = [gateway, replica, replica].map(async (asked) => asked.send(sms(), { key }))
    await until(() => polls.length > 1)
    call.resolve(outcome)
    const answers = await Promise.all([first, ...repeats])
    expect(new Set(answers.map((answer) => `${told(answer)} ${answer.body}`)).size).toBe(1)
    expect(told(await first)).toBe(says)
    expect(answers.map(isReplay)).toEqual([false, true, true, true])
    expect([gateway.provider.calls.length, replica.provider.calls.length]).toEqual([1, 0])
  },
)

test('a wait is over when its time is: 202 for the first request, 409 in-progress for a repeat', async () => {
  const outcome = held()
  const started = performance.now()
  const first = gateway.send(sms(), { key: 'over', prefer: 'wait=1' })
  await until(() => gateway.provider.calls.length === 1)
  const repeats = [gateway, replica].map(async (asked) => asked.send(sms(), { key: 'over', prefer: 'wait=1' }))
  const answers = await Promise.all([first, ...repeats])
  expect(answers.map(told)).toEqual(['202 sending', '409 in-progress', '409 in-progress'])
  expect(answers.map(isReplay)).toEqual([false, false, false])
  expect(performance.now() - started).toBeGreaterThanOrEqual(990)
  expect(performance.now() - started).toBeLessThan(3_000)
  outcome.resolve(accepted())
})

test.each(['wait=soon', 'wait=-1', ';;;', 'handling=lenient', 'wait=99999999999999999999'])(
  'a `Prefer` that cannot be read is ignored: %s waits as usual',
  async (prefer) => {
    const outcome = held()
    const key = `prefer-${prefer.replaceAll(/\W/g, '')}`
    const first = gateway.send(sms(), { key, prefer })
    await until(() => gateway.provider.calls.length === 1)
    outcome.resolve(accepted())
    expect(told(await first)).toBe('201 sent')
  },
)

test('a message that waits for a slot is sent by whichever process has one, and its first request hears of it', async () => {
  const { slots } = gateway.deps
  const releases = Array.from({ length: gateway.provider.concurrency }, () => slots.tryTake(gateway.provider))
  const first = gateway.send(sms(), { key: 'no-slot' })
  await until(async () => (await replica.get('/v1/idempotency-keys/no-slot')).statusCode === 200)
  await dispatchNothing(gateway)
  expect(gateway.provider.calls).toEqual([])
  await dispatch(replica)
  expect(told(await first)).toBe('201 sent')
  expect([gateway.provider.calls.length, replica.provider.calls.length]).toEqual([0, 1])
  for (const release of releases) release?.()
  replica.provider.calls.length = 0
})

test('a wait ends when the message is canceled, here and elsewhere', async () => {
  gateway.provider.answer = () => notSent('refused_for_now', 60_000)
  const first = gateway.send(sms(), { key: 'canceled' })
  await until(() => gateway.provider.calls.length === 1)
  const repeat = replica.send(sms(), { key: 'canceled' })
  await until(async () => (await gateway.send(sms(), { key: 'canceled', prefer: 'wait=0' })).statusCode === 202)
  const { id } = messageIn(await gateway.send(sms(), { key: 'canceled', prefer: 'wait=0' }))
  expect((await gateway.post(`/v1/messages/${id}/cancel`)).statusCode).toBe(200)
  expect(told(await first)).toBe('409 message-canceled')
  expect((await repeat).body).toBe((await first).body)
})

test('a wait ends when the lease has lapsed and a rescuer of another process has said so', async () => {
  const outcome = held()
  const first = gateway.send(sms(), { key: 'lapsed' })
  await until(() => gateway.provider.calls.length === 1)
  const repeat = replica.send(sms(), { key: 'lapsed' })
  await lapse(database, String(gateway.provider.calls[0]?.messageId))
  expect(await rescue(replica)).toBe(1)
  expect(told(await repeat)).toBe('504 outcome-unknown')
  outcome.resolve(accepted())
  expect(told(await first)).toBe('201 sent')
})

test('waiters of another process ask in one statement for all of them, and hold no connection', async () => {
  const outcome = held()
  const keys = Array.from({ length: 5 }, (_, i) => `crowd-${i}`)
  for (const key of keys) await gateway.send(sms(), { key, prefer: 'wait=0' })
  const crowd = keys.flatMap((key) => Array.from({ length: 30 }, async () => replica.send(sms(), { key })))
  await until(() => replica.deps.waiters.count() === 150)
  polls.length = 0
  await until(() => polls.length >= 3)
  expect(new Set(polls)).toEqual(new Set([5]))
  const [row] = await database.query<{ busy: number }>(
    `SELECT count(*)::int AS busy FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'sendonce' AND state <> 'idle'`,
  )
  expect(row?.busy).toBeLessThanOrEqual(1)
  outcome.resolve(accepted())
  expect(new Set((await Promise.all(crowd)).map(told))).toEqual(new Set(['201 sent']))
  expect([gateway.provider.calls.length, replica.deps.waiters.count()]).toEqual([5, 0])
})

test('waits end at once when a process drains, but for the calls that are its own', async () => {
  const outcome = held()
  const draining = await testGateway(database.url)
  draining.provider.answer = async () => outcome.promise
  await gateway.send(sms(), { key: 'drain-elsewhere', prefer: 'wait=0' })
  const elsewhere = draining.send(sms(), { key: 'drain-elsewhere' })
  const own = draining.send(sms(), { key: 'drain-own' })
  await until(() => draining.deps.waiters.count() === 2)
  draining.deps.waiters.drain()
  expect(told(await elsewhere)).toBe('409 in-progress')
  outcome.resolve(accepted())
  expect(told(await own)).toBe('201 sent')
  await draining.close()
})

/** Cases in which two rules of the contract meet, or a fault falls into the narrow place between two steps. */
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { idFromUuid } from '../../src/core/ids.ts'
import { StoreOverloaded, StoreUnavailable } from '../../src/store/database-errors.ts'
import type { Store } from '../../src/store/store.ts'
import * as dispatcher from '../../src/workers/dispatcher.ts'
import { useDatabase } from '../support/database.ts'
import { accepted, fakeProvider, sms, testGateway, type TestGateway } from '../support/gateway.ts'
import { dispatch, lapse, rescue, steerableClock, untilStatus } from './steps.ts'
import { attemptIn, heldOutcome, isReplay, messageIn, present, problemIn, timelineOf, told } from './told.ts'

const database = useDatabase()
const { steer, clock } = steerableClock()
const stand: { in: Partial<Store> } = { in: {} }
let gateway: TestGateway
beforeAll(async () => {
  const wrapStore = (store: Store): Store => ({
    ...store,
    claimMessage: async (...claim) => ({ ...store, ...stand.in }).claimMessage(...claim),
    findKey: async (...key) => ({ ...store, ...stand.in }).findKey(...key),
  })
  gateway = await testGateway(database.url, { clock, wrapStore })
})
beforeEach(() => {
  gateway.provider.calls.length = 0
  gateway.provider.answer = () => accepted()
  stand.in = {}
  steer.aheadMs = 0
})
afterAll(async () => gateway.close())

test('api.md, Order; N2: a precondition never stands before the look-up: a repeat that gained If-Match is a replay', async () => {
  const first = await gateway.send(sms('if-match'), { key: 'if-match' })
  const again = await gateway.send(sms('if-match'), { key: 'if-match', headers: { 'if-match': '"1"' } })
  expect([told(again), isReplay(again), again.body]).toEqual(['201 sent', true, first.body])
})

test('api.md; N4: a claim in doubt whose reading back finds the store overloaded is store-unavailable, not "nothing was claimed"', async () => {
  const other = await testGateway(database.url)
  onTestFinished(async () => other.close())
  stand.in.claimMessage = async (claim) => {
    await other.deps.store.claimMessage(claim)
    throw new StoreUnavailable('doubtful', 'planned')
  }
  stand.in.findKey = async () => Promise.reject(new StoreOverloaded())
  const answer = await gateway.send(sms('overloaded'), { key: 'overloaded' })
  expect(await database.query(`SELECT 1 FROM messages WHERE idempotency_key = 'overloaded'`)).toHaveLength(1)
  expect(told(answer)).toBe('503 store-unavailable')
  expect(problemIn(answer).sent).toBe('maybe')
})

test('api.md; N4: a claim in doubt that could not be read back yet, and then no room for another: store-unavailable, for it may be made yet', async () => {
  let tries = 0
  stand.in.claimMessage = async () => {
    tries += 1
    throw tries === 1 ? new StoreUnavailable('doubtful', 'planned') : new StoreOverloaded()
  }
  const answer = await gateway.send(sms('executed late'), { key: 'executed-late' })
  expect([tries, told(answer), problemIn(answer).sent]).toEqual([2, '503 store-unavailable', 'maybe'])
})

test('N4: a claim in doubt that is read back when another attempt of it runs: that one is called once, and ended by its own caller', async () => {
  const other = await testGateway(database.url)
  onTestFinished(async () => other.close())
  const outcome = heldOutcome()
  other.provider.answer = async () => outcome.promise
  let id = ''
  let dispatched: Promise<void> | undefined
  stand.in.claimMessage = async (claim) => {
    await other.deps.store.claimMessage(claim)
    id = idFromUuid('message', claim.message.id)
    await lapse(database, id)
    await rescue(other)
    const verdict = { attempt: await attemptIn(other, id), outcome: 'not_sent', resend: true, evidence: 'not there' }
    expect(told(await other.post(`/v1/messages/${id}/resolve`, verdict))).toBe('200 queued')
    dispatched = dispatch(other)
    await untilStatus(other, id, 'sending')
    throw new StoreUnavailable('doubtful', 'planned')
  }
  const first = await gateway.send(sms('another attempt'), { key: 'another-attempt', prefer: 'wait=0' })
  expect(told(first)).toBe('202 sending')
  await gateway.deps.inFlight.idle()
  expect([gateway.provider.calls.length, (await present(other, id)).status]).toEqual([0, 'sending'])
  outcome.resolve(accepted())
  await dispatched
  expect([other.provider.calls.length, (await present(other, id)).status]).toEqual([1, 'sent'])
})

test('M4, B3: acceptance learnt after a verdict of not sent is stored although its intent has been taken meanwhile', async () => {
  const outcome = heldOutcome()
  gateway.provider.answer = async () => outcome.promise
  const body = sms('m4', { intent: 'm4' })
  const { id } = messageIn(await gateway.send(body, { key: 'm4-first', prefer: 'wait=0' }))
  await lapse(database, id)
  await rescue(gateway)
  const verdict = { attempt: await attemptIn(gateway, id), outcome: 'not_sent', evidence: 'not in the console' }
  expect(told(await gateway.post(`/v1/messages/${id}/resolve`, verdict))).toBe('200 failed')
  gateway.provider.answer = () => accepted()
  expect(told(await gateway.send(body, { key: 'm4-second' }))).toBe('201 sent')
  outcome.resolve(accepted('late'))
  await gateway.deps.inFlight.idle()
  expect(told(await gateway.send(body, { key: 'm4-first' }))).toBe('201 sent') // it went out, twice: both must say so
})

test('reliability.md, fault 25: a claim that waits behind a stuck one of its key is 409; its group goes on', async () => {
  const stuck = new pg.Client({ connectionString: database.url })
  await stuck.connect()
  onTestFinished(async () => stuck.end())
  await stuck.query('BEGIN')
  await stuck.query(
    `INSERT INTO idempotency_keys (account_id, environment, key, voided_by) VALUES ('default', 'live', 'stuck', 'k')`,
  )
  const keys = ['stuck', ...Array.from({ length: 5 }, (_, i) => `neighbour-${i}`)]
  const answers = await Promise.all(keys.map(async (key) => gateway.send(sms('stuck'), { key, prefer: 'wait=6' })))
  await stuck.query('ROLLBACK')
  expect(answers.map(told)).toEqual(['409 in-progress', ...keys.slice(1).map(() => '201 sent')])
  const [stuckAnswer] = answers
  expect(stuckAnswer?.headers['retry-after']).toBeDefined()
  expect(stuckAnswer?.json()).toMatchObject({ sent: 'maybe', retryable: true })
})

test('timeline.ts, T2: the first attempt never stands before the claim, though our reading of the clock is behind', async () => {
  const { id } = messageIn(await gateway.send(sms('t2'), { key: 't2', prefer: 'respond-async' }))
  steer.aheadMs = -50
  await dispatch(gateway)
  const types = (await timelineOf(gateway, id)).map(({ type }) => type)
  expect(types).toEqual(['claimed', 'attempt_started', 'attempt_ended'])
})

test('a message that another provider took says so: its row, its stored answer and its list agree', async () => {
  const { id } = messageIn(await gateway.send(sms('route'), { key: 'route', prefer: 'respond-async' }))
  const other = fakeProvider('other')
  const providers = { find: () => undefined, route: () => [other], all: () => [other] }
  const { done } = await dispatcher.runOnce({ ...gateway.deps, providers })
  await done
  expect(other.calls).toHaveLength(1)
  const replay = await gateway.send(sms('route'), { key: 'route' })
  expect(replay.json()).toMatchObject({ provider: 'other' })
  expect(await present(gateway, id)).toEqual(replay.json())
  expect((await gateway.get('/v1/messages?provider=other')).json()).toMatchObject({ data: [{ id }] })
})

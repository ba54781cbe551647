/** Taking what is due (dispatcher.ts, X1, X2; due-work.ts, W1; behaviour.md, F1, F9). */
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import type { Deps } from '../../src/deps.ts'
import { StoreUnavailable } from '../../src/store/database-errors.ts'
import * as dispatcher from '../../src/workers/dispatcher.ts'
import { useDatabase } from '../support/database.ts'
import { accepted, fakeProvider, notSent, sms, testGateway, until, type TestGateway } from '../support/gateway.ts'
import { dispatch, dispatchNothing, dueInMs, makeDue, steerableClock } from '../operations/steps.ts'
import { heldOutcome, messageIn, newApiKey, present, timelineOf, told, uuidOf } from '../operations/told.ts'

const database = useDatabase()
const { steer, clock } = steerableClock()
let gateway: TestGateway
let replica: TestGateway
beforeAll(async () => {
  gateway = await testGateway(database.url, { clock })
  replica = await testGateway(database.url)
})
beforeEach(async () => {
  for (const { provider } of [gateway, replica]) {
    provider.calls.length = 0
    provider.answer = () => accepted()
  }
  steer.aheadMs = 0
})
afterAll(async () => {
  await gateway.close()
  await replica.close()
})

let keys = 0
async function queued(more: object = {}): Promise<string> {
  const answer = await gateway.send(sms('due', more), { key: `due-${keys++}`, prefer: 'respond-async' })
  expect(answer.statusCode).toBe(202)
  return messageIn(answer).id
}

/** A pass with other dependencies. @returns how many messages it took */
async function passWith(more: Partial<Deps>, { due = 'all' }: { due?: 'all' | 'as it is' } = {}): Promise<number> {
  if (due === 'all') await makeDue(database)
  const { taken, done } = await dispatcher.runOnce({ ...gateway.deps, ...more })
  await done
  return taken
}

/** How far from `ms` the message is due, in seconds: less than one has passed since. */
async function dueOff(id: string, ms: number): Promise<number> {
  const due = (await dueInMs(database, id)) ?? Infinity
  return Math.abs(Math.round((due - ms) / 1_000))
}

test('a message that is not accepted is called again: base 1 s, doubled each time, capped at 5 min, with full jitter', async () => {
  gateway.provider.answer = () => notSent()
  const id = await queued()
  const pauses: number[] = []
  for (let attempt = 1; attempt <= 11; attempt++) {
    const random = attempt % 2 === 0 ? 0.5 : 0.999
    expect(await passWith({ random: () => random })).toBe(1)
    const ceiling = Math.min(300_000, 1_000 * 2 ** (attempt - 1))
    pauses.push(ceiling * random)
    expect(await dueOff(id, ceiling * random)).toBe(0)
    if (ceiling * random > 1_500) await dispatchNothing(gateway) // it is not due before
  }
  expect(Math.max(...pauses)).toBeLessThanOrEqual(300_000)
  expect(await present(gateway, id)).toMatchObject({ status: 'queued', attempts: 11 })
  gateway.provider.answer = () => accepted()
  await makeDue(database)
  await dispatch(gateway)
  expect(await present(gateway, id)).toMatchObject({ status: 'sent', attempts: 12 })
})

test('Retry-After is honoured where it is longer than the pause, and never shortens it', async () => {
  const id = await queued()
  gateway.provider.answer = () => notSent('refused_for_now', 20_000)
  await passWith({ random: () => 0.5 })
  expect(await dueOff(id, 20_000)).toBe(0)
  gateway.provider.answer = () => notSent('refused_for_now', 100)
  await passWith({ random: () => 0.99 })
  expect(await dueOff(id, 1_980)).toBe(0)
  await gateway.post(`/v1/messages/${id}/cancel`)
})

test('X1, E10 a pause never leads past notAfter: then the message is expired, and not called', async () => {
  const id = await queued({ ttlSeconds: 10 })
  gateway.provider.answer = () => notSent('refused_for_now', 3_600_000)
  await dispatch(gateway)
  expect(await dueOff(id, 10_000)).toBe(0)
  steer.aheadMs = 10_100
  await makeDue(database)
  await dispatch(gateway)
  expect(await present(gateway, id)).toMatchObject({ status: 'failed', statusReason: 'expired' })
  expect(gateway.provider.calls).toHaveLength(1)
  expect(await dueInMs(database, id)).toBeNull()
})

test('X1 what is held is left alone until notAfter, however often it is taken, and has lapsed then', async () => {
  const policy = { requireConversationVersion: false }
  const agent = await newApiKey(gateway, 'default', { kind: 'agent', scopes: ['send', 'read'], policy })
  const answer = await gateway.send(sms('held', { ttlSeconds: 600 }), { key: 'held', headers: agent.headers })
  const { id } = messageIn(answer)
  const due = async (): Promise<object[]> =>
    database.query(
      `SELECT task, round(extract(epoch FROM due_at - now()) / 10)::int * 10 AS s FROM due_work WHERE message_id = $1`,
      [uuidOf(id)],
    )
  const takeNow = async (): Promise<void> => {
    await database.query(`UPDATE due_work SET due_at = now() - interval '1 ms' WHERE message_id = $1`, [uuidOf(id)])
    expect(await passWith({}, { due: 'as it is' })).toBe(1)
  }
  expect([told(answer), await due()]).toEqual(['202 held', [{ task: 'held', s: 600 }]])
  await takeNow()
  await takeNow()
  expect([(await present(gateway, id)).status, await due()]).toEqual(['held', [{ task: 'held', s: 600 }]])
  steer.aheadMs = 600_100
  await takeNow()
  expect(await present(gateway, id)).toMatchObject({ status: 'canceled', statusReason: 'lapsed', attempts: 0 })
  expect([gateway.provider.calls, await due()]).toEqual([[], []])
})

test('X1 what a person approved is called once, and what was approved too, and whose conversation moved by that, is not', async () => {
  const policy = { requireConversationVersion: false }
  const agent = await newApiKey(gateway, 'default', { kind: 'agent', scopes: ['send', 'read'], policy })
  const ask = async (text: string) => {
    const options = { key: `approved-${text}`, headers: agent.headers }
    return messageIn(await gateway.send(sms(text, { conversation: 'approvals', delaySeconds: 60 }), options))
  }
  const approve = async ({ id }: { id: string }) => {
    const { fingerprint } = (await gateway.get(`/v1/messages/${id}`)).json<{ fingerprint: string }>()
    return gateway.post(`/v1/messages/${id}/approve`, { fingerprint }, { prefer: 'respond-async' })
  }
  const [first, second] = [await ask('one'), await ask('two')]
  expect([told(await approve(first)), told(await approve(second))]).toEqual(['200 scheduled', '200 scheduled'])
  steer.aheadMs = 61_000
  for (const { id } of [first, second]) {
    await database.query(`UPDATE due_work SET due_at = now() - interval '1 ms' WHERE message_id = $1`, [uuidOf(id)])
    expect(await passWith({}, { due: 'as it is' })).toBe(1)
  }
  expect(gateway.provider.calls.map(({ messageId }) => messageId)).toEqual([first.id])
  expect(await present(gateway, second.id)).toMatchObject({ status: 'canceled', statusReason: 'conversation_changed' })
  expect((await timelineOf(gateway, second.id)).map(({ type }) => type)).toEqual([
    'claimed',
    'approved',
    'conversation_changed',
  ])
})

test('X2 what meets no free slot is put off for a moment, not lost and not called', async () => {
  const busy = fakeProvider('fake', { concurrency: 1 })
  const free = fakeProvider('free')
  const providers = {
    find: (name: string) => [busy, free].find((provider) => provider.name === name),
    route: () => [busy],
    all: () => [busy, free],
  }
  const id = await queued()
  const release = gateway.deps.slots.tryTake(busy)
  expect(await passWith({ providers })).toBe(1)
  expect(busy.calls).toEqual([])
  expect(await dueInMs(database, id)).toBeLessThanOrEqual(250)
  release?.()
  expect(await passWith({ providers })).toBe(1)
  expect([busy.calls.length, free.calls.length]).toEqual([1, 0])
  expect((await present(gateway, id)).status).toBe('sent')
})

test('X2 a message whose provider has gone from the configuration waits, and goes out when it is back', async () => {
  const id = await queued({ provider: 'fake' })
  const other = fakeProvider('other')
  const providers = { find: () => undefined, route: () => [other], all: () => [other] }
  expect(await passWith({ providers })).toBe(1)
  expect(other.calls).toEqual([])
  expect(await dueOff(id, 5_000)).toBe(0)
  await makeDue(database)
  await dispatch(gateway)
  expect((await present(gateway, id)).status).toBe('sent')
})

test('X2 a message that pinned no provider takes the present route when its own has gone', async () => {
  const id = await queued()
  const other = fakeProvider('other')
  const providers = { find: () => undefined, route: () => [other], all: () => [other] }
  expect(await passWith({ providers })).toBe(1)
  expect(other.calls).toHaveLength(1)
  expect((await present(gateway, id)).status).toBe('sent')
})

test('F9 two dispatchers at once call each message once', async () => {
  const ids = await Promise.all(Array.from({ length: 80 }, async () => queued()))
  await until(async () => {
    await Promise.all([dispatch(gateway, 0), dispatch(replica, 0), dispatch(replica, 0), dispatch(gateway, 0)])
    return gateway.provider.calls.length + replica.provider.calls.length >= 80
  })
  const called = [...gateway.provider.calls, ...replica.provider.calls].map(({ messageId }) => messageId)
  expect(called.toSorted()).toEqual(ids.toSorted())
  await dispatchNothing(gateway)
})

test('W1 two that took the same message call it once: the attempt is one compare-and-set', async () => {
  const id = await queued()
  const [message] = await gateway.deps.store.findMessages([uuidOf(id)])
  const takeDue = async () => (message === undefined ? [] : [message])
  const store = { ...gateway.deps.store, takeDue }
  await Promise.all([passWith({ store }), passWith({ store }), passWith({ store })])
  expect(gateway.provider.calls).toHaveLength(1)
  expect(await present(gateway, id)).toMatchObject({ status: 'sent', attempts: 1 })
})

test('W1, F1 a worker that died after taking a message loses nothing: it is due again, and sent once', async () => {
  const id = await queued()
  await until(async () => (await gateway.deps.store.takeDue('dispatch', 1)).length === 1)
  await dispatchNothing(replica) // the others leave it alone meanwhile
  expect(await dueOff(id, 30_000)).toBe(0)
  await makeDue(database)
  await dispatch(replica)
  expect([gateway.provider.calls.length, replica.provider.calls.length]).toEqual([0, 1])
})

test('W1 a message whose attempt could not be recorded is not called, and is due again; the others of the pass go out', async () => {
  const [unlucky, lucky] = [await queued(), await queued()]
  const { store } = gateway.deps
  const failing = {
    ...store,
    saveMessage: async (...[change]: Parameters<typeof store.saveMessage>) => {
      if (change.next.id === uuidOf(unlucky)) throw new StoreUnavailable('absent', 'planned')
      return store.saveMessage(change)
    },
  }
  expect(await passWith({ store: failing })).toBe(2)
  expect(gateway.provider.calls.map(({ messageId }) => messageId)).toEqual([lucky])
  expect(await dueOff(unlucky, 30_000)).toBe(0)
  await makeDue(database)
  await dispatch(gateway)
  expect((await present(gateway, unlucky)).status).toBe('sent')
})

test('B1 while it is called its lease stands in the due work, and no dispatch does', async () => {
  const outcome = heldOutcome()
  gateway.provider.answer = async () => outcome.promise
  const id = await queued()
  const { done } = await dispatcher.runOnce(gateway.deps)
  await until(() => gateway.provider.calls.length === 1)
  const [row] = await database.query(
    `SELECT d.task, d.due_at = m.lease_until AS same FROM due_work d JOIN messages m ON m.id = d.message_id WHERE m.id = $1`,
    [uuidOf(id)],
  )
  expect(row).toEqual({ task: 'lease', same: true })
  await makeDue(database)
  await dispatchNothing(replica)
  outcome.resolve(accepted())
  await done
  expect(await database.query('SELECT 1 FROM due_work WHERE message_id = $1', [uuidOf(id)])).toEqual([])
})

test('a pass takes what its providers have slots for, the longest due first', async () => {
  const few = fakeProvider('fake', { concurrency: 3 })
  const providers = { find: () => few, route: () => [few], all: () => [few] }
  const ids: string[] = []
  for (let i = 0; i < 5; i++) ids.push(await queued())
  await Promise.all(
    ids.map(async (id, i) =>
      database.query(`UPDATE due_work SET due_at = now() - $2 * interval '1 minute' WHERE message_id = $1`, [
        uuidOf(id),
        i,
      ]),
    ),
  )
  expect(await passWith({ providers }, { due: 'as it is' })).toBe(3)
  expect(few.calls.map(({ messageId }) => messageId).toSorted()).toEqual(ids.slice(2).toSorted())
  expect(await passWith({ providers })).toBe(2)
  const release = [1, 2, 3].map(() => gateway.deps.slots.tryTake(few))
  await queued()
  expect(await passWith({ providers })).toBe(0)
  for (const give of release) give?.()
  await dispatch(gateway)
})

test('what was decided meanwhile is not called: a taken message that was canceled', async () => {
  const id = await queued()
  const [message] = await gateway.deps.store.findMessages([uuidOf(id)])
  await gateway.post(`/v1/messages/${id}/cancel`)
  const store = { ...gateway.deps.store, takeDue: async () => (message === undefined ? [] : [message]) }
  expect(await passWith({ store })).toBe(1)
  expect(gateway.provider.calls).toEqual([])
  expect(told(await gateway.get(`/v1/messages/${id}`))).toBe('200 canceled')
  expect(gateway.deps.slots.inUse('fake')).toBe(0)
})

test('W1 a row that someone else holds at this moment is passed over, and holds nobody up', async () => {
  const ids = [await queued(), await queued(), await queued()]
  const other = new pg.Client({ connectionString: database.url })
  await other.connect()
  onTestFinished(async () => other.end())
  await other.query('BEGIN')
  await other.query('SELECT 1 FROM due_work WHERE message_id = $1 FOR UPDATE', [uuidOf(ids[0] ?? '')])
  await dispatch(gateway, 2)
  expect(gateway.provider.calls.map(({ messageId }) => messageId).toSorted()).toEqual(ids.slice(1).toSorted())
  await other.query('ROLLBACK')
  await dispatch(gateway)
  expect(gateway.provider.calls).toHaveLength(3)
})

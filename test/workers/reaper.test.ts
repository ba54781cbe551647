/** Retention (reaper.ts; erase-results.ts, R1, R2; behaviour.md, I1). */
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import * as reaper from '../../src/workers/reaper.ts'
import { useDatabase } from '../support/database.ts'
import { accepted, lost, notSent, rejected, sms, testGateway, until, type TestGateway } from '../support/gateway.ts'
import { untilStatus } from '../operations/steps.ts'
import { heldOutcome, isReplay, messageIn, present, problemIn, told, uuidOf } from '../operations/told.ts'
import { insertMessage, rightRows } from '../store/rows.ts'

const database = useDatabase()
let gateway: TestGateway
let replica: TestGateway
beforeAll(async () => {
  gateway = await testGateway(database.url)
  replica = await testGateway(database.url)
})
beforeEach(() => {
  gateway.provider.calls.length = 0
  gateway.provider.answer = () => accepted()
})
afterAll(async () => {
  await gateway.close()
  await replica.close()
})

const dayMs = 86_400_000
const retentionMs = 30 * dayMs
const reap = async (from = gateway): Promise<number> => reaper.runOnce(from.deps, retentionMs)

/** Everything that is there was made, and last changed, so long ago. */
async function passed(days: number, changed = days): Promise<void> {
  await database.query(
    `UPDATE messages SET created_at = now() - $1 * interval '1 day', updated_at = now() - $2 * interval '1 day'`,
    [days, changed],
  )
}

test('I1 a result within its retention is a replay; after it 409 result-expired with id and last status, and 0 calls', async () => {
  const first = await gateway.send(sms('i1'), { key: 'i1' })
  await passed(29.9)
  expect(await reap()).toBe(0)
  const replay = await gateway.send(sms('i1'), { key: 'i1' })
  expect([replay.body, isReplay(replay)]).toEqual([first.body, true])
  await passed(30.1)
  expect(await reap()).toBe(1)
  const { id } = messageIn(first)
  for (let i = 0; i < 3; i++) {
    const expired = await gateway.send(sms('i1'), { key: 'i1' })
    expect(told(expired)).toBe('409 result-expired')
    expect(problemIn(expired)).toMatchObject({ sent: 'yes', retryable: false, message: { id, status: 'sent' } })
    expect(isReplay(expired)).toBe(false)
  }
  const other = await gateway.send(sms('other'), { key: 'i1' })
  expect([told(other), problemIn(other).sent]).toEqual(['422 idempotency-key-reused', 'yes'])
  expect(gateway.provider.calls).toHaveLength(1)
})

test('I1 what is left answers by either name, cannot be voided, and is shown by its key', async () => {
  const body = sms('names', { conversation: 'c', reference: 'r' })
  const { id } = messageIn(await gateway.send(body, { key: 'names' }))
  const derived = messageIn(await gateway.send(sms('names', { conversation: 'c', reference: 'r2' }))).idempotencyKey
  await passed(31)
  expect(await reap()).toBe(2)
  for (const options of [{ key: 'names' }, { key: 'another' }, {}])
    expect(told(await gateway.send(body, options))).toBe('409 result-expired')
  expect(told(await gateway.send(sms('names', { conversation: 'c', reference: 'r2' }), { key: derived }))).toBe(
    '409 result-expired',
  )
  const voided = await gateway.post('/v1/idempotency-keys/names/void')
  expect([told(voided), problemIn(voided).message?.id]).toEqual(['409 key-taken', id])
  const found = await gateway.get('/v1/idempotency-keys/names')
  expect(found.json()).toMatchObject({ key: 'names', sent: 'yes', message: { id, status: 'sent' } })
  expect((await gateway.get(`/v1/messages/${id}`)).statusCode).toBe(404)
  expect((await gateway.get('/v1/messages?conversation=c')).json()).toMatchObject({ data: [] })
  expect(gateway.provider.calls).toHaveLength(2)
})

test('I1 a failed and a canceled one are erased too, and still say that nothing was sent', async () => {
  gateway.provider.answer = () => rejected()
  await gateway.send(sms('failed'), { key: 'failed' })
  const { id } = messageIn(await gateway.send(sms('canceled', { delaySeconds: 60 }), { key: 'canceled' }))
  await gateway.post(`/v1/messages/${id}/cancel`)
  await passed(31)
  expect(await reap()).toBe(2)
  for (const key of ['failed', 'canceled']) {
    const expired = await gateway.send(sms(key, key === 'canceled' ? { delaySeconds: 60 } : {}), { key })
    expect(told(expired)).toBe('409 result-expired')
    expect(problemIn(expired)).toMatchObject({ sent: 'no', message: { status: key } })
  }
})

test('R1 what is in flight, unknown or waiting is never erased, however old', async () => {
  const outcome = heldOutcome()
  gateway.provider.answer = () => lost()
  const unknown = problemIn(await gateway.send(sms(), { key: 'r1-unknown' })).message?.id ?? ''
  gateway.provider.answer = () => notSent('refused_for_now', dayMs)
  const queued = messageIn(await gateway.send(sms(), { key: 'r1-queued', prefer: 'wait=0' })).id
  await untilStatus(gateway, queued, 'queued')
  const scheduled = messageIn(await gateway.send(sms('s', { delaySeconds: 60 }), { key: 'r1-scheduled' })).id
  gateway.provider.answer = async () => outcome.promise
  const sending = messageIn(await gateway.send(sms(), { key: 'r1-sending', prefer: 'wait=0' })).id
  await passed(4_000)
  expect(await reap()).toBe(0)
  for (const [id, status] of Object.entries({
    [unknown]: 'unknown',
    [queued]: 'queued',
    [scheduled]: 'scheduled',
    [sending]: 'sending',
  }))
    expect((await present(gateway, id)).status).toBe(status)
  outcome.resolve(accepted())
  await untilStatus(gateway, sending, 'sent')
})

test('R1, I2 retention counts from when a message became final, not from its claim', async () => {
  await gateway.send(sms('old'), { key: 'r1-old' })
  await passed(400, 29)
  expect(await reap()).toBe(0)
  await passed(400, 31)
  expect(await reap()).toBeGreaterThanOrEqual(1)
})

test('R2 the time line goes with the message; the key and what is left stay', async () => {
  gateway.provider.answer = () => lost()
  const id = problemIn(await gateway.send(sms(), { key: 'r2' })).message?.id ?? ''
  const events = (await gateway.get(`/v1/messages/${id}/events`)).json<{ data: { attempt: string | null }[] }>()
  const attempt = events.data.find((event) => event.attempt !== null)?.attempt
  await gateway.post(`/v1/messages/${id}/resolve`, { attempt, outcome: 'sent', evidence: 'seen' })
  const count = async (table: string): Promise<number> =>
    (await database.query(`SELECT 1 FROM ${table} WHERE message_id = $1`, [uuidOf(id)])).length
  expect(await count('events')).toBe(1)
  await passed(31)
  await reap()
  expect([await count('events'), await count('erased_messages'), await count('idempotency_keys')]).toEqual([0, 1, 1])
})

test('R2 batches are bounded, and a pass goes on until nothing old is left', async () => {
  await database.query('DELETE FROM messages')
  await insertMessage(database, { ...rightRows.sent, created_at: new Date(0), updated_at: new Date(0) })
  await database.query(
    `INSERT INTO messages SELECT m.* FROM generate_series(1, 4500) AS i,
     LATERAL (SELECT (jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid(), 'n', i))).* FROM messages AS t LIMIT 1) AS m`,
  )
  const batches: number[] = []
  const { store } = gateway.deps
  const eraseResults = async (finalBefore: Date, limit: number): Promise<number> => {
    const erased = await store.eraseResults(finalBefore, limit)
    expect(erased).toBeLessThanOrEqual(limit)
    batches.push(erased)
    return erased
  }
  expect(await reaper.runOnce({ ...gateway.deps, store: { ...store, eraseResults } }, retentionMs)).toBe(4_501)
  expect(batches.length).toBeGreaterThanOrEqual(3)
  expect(await reap()).toBe(0)
})

test('receipts as old as results that are erased go, in batches, applied or not; their messages are another matter', async () => {
  await database.query('DELETE FROM receipts')
  const row = `SELECT 'fake', 'e' || n, 'live', now() - n * interval '1 minute' - interval '29 days 12 hours',
    gen_random_uuid(), 'delivered', now(), CASE WHEN n % 2 = 0 THEN now() END FROM generate_series(1, 5000) n`
  const names = 'provider, event_id, environment, received_at, message_id, kind, occurred_at, applied_at'
  await database.query(`INSERT INTO receipts (${names}) ${row}`)
  const batches: number[] = []
  const { store } = gateway.deps
  const eraseReceipts: typeof store.eraseReceipts = async (before, limit) => {
    const erased = await store.eraseReceipts(before, limit)
    batches.push(erased)
    return erased
  }
  await reaper.runOnce({ ...gateway.deps, store: { ...store, eraseReceipts } }, retentionMs)
  expect(await database.query('SELECT count(*)::int AS left FROM receipts')).toEqual([{ left: 719 }])
  expect(batches).toEqual([2_000, 2_000, 281])
})

test('R2 a result that someone else holds at this moment is left for the next pass, and holds nobody up', async () => {
  await database.query('DELETE FROM messages')
  const ids: string[] = []
  for (let i = 0; i < 3; i++) ids.push(messageIn(await gateway.send(sms(), { key: `held-${i}` })).id)
  await passed(31)
  const other = new pg.Client({ connectionString: database.url })
  await other.connect()
  onTestFinished(async () => other.end())
  await other.query('BEGIN')
  await other.query('SELECT 1 FROM messages WHERE id = $1 FOR UPDATE', [uuidOf(ids[0] ?? '')])
  expect(await reap()).toBe(2)
  await other.query('ROLLBACK')
  expect(await reap()).toBe(1)
})

test('I1 repeats that read while two reapers erase get a replay or 409, never a second call', async () => {
  const keys = Array.from({ length: 60 }, (_, i) => `race-${i}`)
  await Promise.all(keys.map(async (key) => gateway.send(sms(), { key })))
  gateway.provider.calls.length = 0
  await passed(31)
  const reaping = { on: true }
  const seen = new Set<string>()
  const reading = keys.map(async (key, i) => {
    do seen.add(told(await (i % 2 === 0 ? gateway : replica).send(sms(), { key })))
    while (reaping.on)
  })
  await until(() => seen.size > 0)
  const erased = await Promise.all([reap(gateway), reap(replica)])
  reaping.on = false
  await Promise.all(reading)
  expect(erased[0] + erased[1]).toBeGreaterThanOrEqual(60)
  for (const key of keys) expect(told(await gateway.send(sms(), { key }))).toBe('409 result-expired')
  expect([...seen].filter((word) => !['201 sent', '409 result-expired'].includes(word))).toEqual([])
  expect([gateway.provider.calls.length, replica.provider.calls.length]).toEqual([0, 0])
})

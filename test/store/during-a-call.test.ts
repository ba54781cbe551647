/** What the data base holds while a provider is called, and how its rows age (behaviour.md, D2; engine.md, Rows). */
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createDatabase, useDatabase } from '../support/database.ts'
import { accepted, sms, testGateway, until, type Call, type TestGateway } from '../support/gateway.ts'
import { dispatch } from '../operations/steps.ts'
import { heldOutcome, told, uuidOf } from '../operations/told.ts'

const database = useDatabase()
let gateway: TestGateway
beforeAll(async () => {
  gateway = await testGateway(database.url)
})
afterAll(async () => gateway.close())

const lookUp = `
  SELECT m.status, m.attempts, m.attempt_id IS NOT NULL AS attempt, m.lease_until > now() AS leased, k.key
  FROM messages m JOIN idempotency_keys k ON k.message_id = m.id WHERE m.id = $1`

test.each(['wait=10', 'respond-async'])(
  'D2, B1 key, message and attempt are committed before the provider is called (%s)',
  async (prefer) => {
    const seen: unknown[] = []
    gateway.provider.answer = async ({ messageId }: Call) => {
      seen.push(...(await database.query(lookUp, [uuidOf(messageId)])))
      return accepted()
    }
    const key = `d2-${prefer.replaceAll(/\W/g, '')}`
    await gateway.send(sms(), { key, prefer })
    if (prefer === 'respond-async') await dispatch(gateway)
    expect(seen).toEqual([{ status: 'sending', attempts: 1, attempt: true, leased: true, key }])
  },
)

test('D2 no transaction, lock or busy connection is open while providers are called; duplicates answer at once', async () => {
  const outcome = heldOutcome()
  gateway.provider.answer = async () => outcome.promise
  gateway.provider.calls.length = 0
  const keys = Array.from({ length: 12 }, (_, i) => `open-${i}`)
  const sync = keys.slice(0, 6).map(async (key) => gateway.send(sms(), { key }))
  for (const key of keys.slice(6)) await gateway.send(sms(), { key, prefer: 'respond-async' })
  const dispatched = dispatch(gateway, 6)
  await until(() => gateway.provider.calls.length === 12)
  const busy = `SELECT pid, state, xact_start FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'sendonce' AND (state <> 'idle' OR xact_start IS NOT NULL)`
  expect(await database.query(busy)).toEqual([])
  const locks = `SELECT l.mode FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    WHERE a.datname = current_database() AND a.application_name = 'sendonce'`
  expect(await database.query(locks)).toEqual([])
  for (const key of keys) {
    const again = await gateway.send(sms(), { key, prefer: 'wait=0' })
    expect(told(again)).toBe('409 in-progress')
  }
  outcome.resolve(accepted())
  await dispatched
  expect(new Set((await Promise.all(sync)).map(told))).toEqual(new Set(['201 sent']))
})

test.each([
  { width: 1, prefer: 'wait=10' },
  { width: 64, prefer: 'wait=10' },
])(
  'nine of ten updates of messages are HOT, though a long transaction keeps dead rows: $width sends at a time, $prefer',
  async ({ width, prefer }) => {
    const made = await createDatabase()
    const reader = new pg.Client({ connectionString: made.url })
    await reader.connect()
    await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
    await reader.query('SELECT 1 FROM messages')
    const sender = await testGateway(made.url)
    const asynchronous = prefer === 'respond-async'
    const keys = Array.from({ length: 320 }, (_, i) => `hot-${i}`)
    for (let from = 0; from < keys.length; from += width)
      await Promise.all(keys.slice(from, from + width).map(async (key) => sender.send(sms(), { key, prefer })))
    if (asynchronous) await dispatch(sender, 320)
    await sender.close() // a connection tells what it counted when it ends
    await reader.query('ROLLBACK')
    const counted = `SELECT n_tup_upd::int AS "all", n_tup_hot_upd::int AS hot FROM pg_stat_user_tables WHERE relname = 'messages'`
    let updates = { all: 0, hot: 0 }
    await until(async () => {
      updates = (await reader.query<typeof updates>(counted)).rows[0] ?? updates
      return updates.all === (asynchronous ? 640 : 320)
    })
    await reader.end()
    await made.drop()
    expect(updates.hot / updates.all).toBeGreaterThanOrEqual(0.9)
  },
)

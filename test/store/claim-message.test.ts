/** The claim (claim-message.ts, C1 to C3; behaviour.md, D1, D2). */
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Claim, ClaimResult } from '../../src/store/claim-message.ts'
import { openDatabase, type Database } from '../../src/store/database.ts'
import { createStore, type Store } from '../../src/store/store.ts'
import { createDatabase, useDatabase } from '../support/database.ts'
import { until } from '../support/gateway.ts'
import { newClaim, scope } from './claims.ts'

const database = useDatabase()
const opened: Database[] = []
let stores: readonly [Store, Store]

beforeAll(() => {
  const open = (): Store => {
    const one = openDatabase(database.url, () => {})
    opened.push(one)
    return createStore(one)
  }
  stores = [open(), open()]
})
afterAll(async () => {
  for (const one of opened) await one.close()
})

const kinds = (results: readonly ClaimResult[]): Record<string, number> =>
  Object.fromEntries(
    Object.entries(Object.groupBy(results, ({ kind }) => kind)).map(([kind, all]) => [kind, all?.length ?? 0]),
  )

async function rows(table: string, where: string, value: unknown): Promise<number> {
  return (await database.query(`SELECT 1 FROM ${table} WHERE ${where}`, [value])).length
}

/** All claims at once, over both stores in turn. */
const claimAll = async (claims: readonly Claim[]): Promise<ClaimResult[]> =>
  Promise.all(claims.map(async (claim, i) => stores[i % 2 === 0 ? 0 : 1].claimMessage(claim)))

test.each(['sending', 'queued', 'scheduled'] as const)(
  'D1, C2 of 200 claims of one key at once, over two stores, exactly one wins (%s)',
  async (as) => {
    const key = `d1-${as}`
    const claims = Array.from({ length: 200 }, () => newClaim(key, { as }))
    const results = await claimAll(claims)
    expect(kinds(results)).toEqual({ claimed: 1, key_taken: 199 })
    const [row] = await database.query<{ id: string; status: string }>(
      `SELECT m.id, m.status FROM messages m JOIN idempotency_keys k ON k.message_id = m.id WHERE k.key = $1`,
      [key],
    )
    const winner = claims[results.findIndex(({ kind }) => kind === 'claimed')]?.message
    expect(row).toEqual({ id: winner?.id, status: as })
    expect(await rows('messages', 'idempotency_key = $1', key)).toBe(1)
    expect(await rows('due_work', 'message_id = $1', row?.id)).toBe(as === 'sending' ? 0 : 1)
  },
)

test('D1 50 keys raced by 4 each: one winner a key', async () => {
  const claims = Array.from({ length: 200 }, (_, i) => newClaim(`d1-many-${i % 50}`))
  expect(kinds(await claimAll(claims))).toEqual({ claimed: 50, key_taken: 150 })
  const [row] = await database.query(
    `SELECT count(*)::int AS n, count(DISTINCT idempotency_key)::int AS keys FROM messages
     WHERE idempotency_key LIKE 'd1-many-%'`,
  )
  expect(row).toEqual({ n: 50, keys: 50 })
})

const nameOf = (url: string): string => new URL(url).pathname.slice(1)

/** What a data base has counted, once it has counted so many commits: connections tell when they end. */
async function transactionsOf(url: string, commits: number): Promise<{ commits: number; rollbacks: number }> {
  const counted = `SELECT xact_commit::int AS commits, xact_rollback::int AS rollbacks FROM pg_stat_database WHERE datname = $1`
  let found = { commits: 0, rollbacks: 0 }
  await until(async () => {
    found = (await database.query<typeof found>(counted, [nameOf(url)]))[0] ?? found
    return found.commits >= commits
  })
  return found
}

test('C2 a conflict makes no error, and rolls nothing back', async () => {
  const made = await createDatabase()
  const own = openDatabase(made.url, () => {})
  const store = createStore(own)
  const claims = Array.from({ length: 60 }, (_, i) => newClaim(`c2-${i % 3}`))
  expect(kinds(await Promise.all(claims.map(async (claim) => store.claimMessage(claim))))).toMatchObject({ claimed: 3 })
  for (let i = 0; i < 20; i++) expect(await store.claimMessage(newClaim(`c2-${i % 3}`))).toEqual({ kind: 'key_taken' })
  await own.close() // a connection tells what it counted when it ends
  expect((await transactionsOf(made.url, 20)).rollbacks).toBe(0)
  await made.drop()
})

test('groups of two replicas that want the same keys in opposite order never wait for each other in a circle', async () => {
  const made = await createDatabase()
  const pair = [openDatabase(made.url, () => {}), openDatabase(made.url, () => {})]
  const [one, other] = pair.map(createStore)
  const holder = new pg.Client({ connectionString: made.url })
  await holder.connect()
  await holder.query('BEGIN')
  await holder.query(
    `INSERT INTO idempotency_keys (account_id, environment, key, voided_by) VALUES ('default', 'live', 'm', 'k')`,
  )
  const keys = ['a', 'm', 'z']
  const claiming = Promise.all([
    ...keys.map(async (key) => one?.claimMessage(newClaim(key))),
    ...keys.toReversed().map(async (key) => other?.claimMessage(newClaim(key))),
  ])
  // Each has inserted what it asks for first, and waits half-way.
  const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = $1 AND wait_event_type = 'Lock'`
  await until(async () => (await database.query(waiting, [nameOf(made.url)])).length === 2)
  await holder.query(`DELETE FROM idempotency_keys WHERE key = 'm'`)
  await holder.query('COMMIT')
  expect((await claiming).filter((result) => result?.kind === 'claimed')).toHaveLength(3)
  for (const replica of pair) await replica.close()
  await holder.end()
  const { commits, rollbacks } = await transactionsOf(made.url, 3)
  expect([commits >= 3, rollbacks]).toEqual([true, 0]) // nobody waited in vain
  await made.drop()
})

test('C2 a key that is claimed twice in one group has one winner, the first, and each loser is told', async () => {
  const [store] = stores
  const results = await Promise.all(
    ['a', 'b', 'a', 'c', 'a'].map(async (key) => store.claimMessage(newClaim(`g-${key}`))),
  )
  expect(results.map(({ kind }) => kind)).toEqual(['claimed', 'claimed', 'key_taken', 'claimed', 'key_taken'])
})

test('C1 key, second name, message and due work are written in one transaction', async () => {
  const claim = newClaim('c1', { as: 'queued', secondKey: `derived:v1:${'1'.repeat(64)}` })
  expect(await stores[0].claimMessage(claim)).toMatchObject({ kind: 'claimed' })
  const xmins = await database.query<{ xmin: string }>(
    `SELECT xmin::text FROM idempotency_keys WHERE message_id = $1
     UNION ALL SELECT xmin::text FROM messages WHERE id = $1 UNION ALL SELECT xmin::text FROM due_work WHERE message_id = $1`,
    [claim.message.id],
  )
  expect([xmins.length, new Set(xmins.map(({ xmin }) => xmin)).size]).toEqual([4, 1])
})

test('C1 if the second name is taken, nothing at all of the claim is written', async () => {
  const name = `derived:v1:${'2'.repeat(64)}`
  await stores[0].claimMessage(newClaim('c1-first', { secondKey: name }))
  const late = newClaim('c1-late', { as: 'queued', secondKey: name })
  expect(await stores[1].claimMessage(late)).toEqual({ kind: 'key_taken' })
  expect(await rows('idempotency_keys', 'key = $1', 'c1-late')).toBe(0)
  expect(await rows('messages', 'id = $1', late.message.id)).toBe(0)
  expect(await rows('due_work', 'message_id = $1', late.message.id)).toBe(0)
})

test('C1 one name claimed as a key and as a second name at once has one winner', async () => {
  const name = `derived:v1:${'3'.repeat(64)}`
  const claims = Array.from({ length: 60 }, (_, i) =>
    i % 2 === 0 ? newClaim(name) : newClaim(`c1-both-${i}`, { secondKey: name }),
  )
  expect(kinds(await claimAll(claims))).toEqual({ claimed: 1, key_taken: 59 })
  expect(await rows('idempotency_keys', `key = $1 OR key LIKE 'c1-both-%'`, name)).toBeLessThanOrEqual(2)
})

test.each([
  {
    name: 'a taken intent',
    poison: (key: string): Claim => newClaim(key, { request: { intent: 'taken' } }),
    tells: { kind: 'intent_taken' },
  },
  {
    name: 'a taken second name',
    poison: (key: string): Claim => newClaim(key, { secondKey: `derived:v1:${'4'.repeat(64)}` }),
    tells: { kind: 'key_taken' },
  },
])('G2 $name in a group fails that claim alone', async ({ name, poison, tells }) => {
  await stores[0].claimMessage(poison(`${name}, first`))
  const claims = Array.from({ length: 40 }, (_, i) => (i === 17 ? poison(`${name}, poison`) : newClaim(`${name} ${i}`)))
  const results = await Promise.all(claims.map(async (claim) => stores[0].claimMessage(claim)))
  expect(results[17]).toEqual(tells)
  expect(kinds(results)).toMatchObject({ claimed: 39 })
  expect(await rows('messages', 'idempotency_key LIKE $1', `${name} %`)).toBe(39)
  expect(await rows('idempotency_keys', 'key = $1', `${name}, poison`)).toBe(0)
})

test('G2 two claims of one intent in one group: the first has it, the other is told, all others are claimed', async () => {
  const intent = { request: { intent: 'twice' } }
  const claims = [newClaim('t-0'), newClaim('t-1', intent), newClaim('t-2'), newClaim('t-3', intent), newClaim('t-4')]
  const results = await Promise.all(claims.map(async (claim) => stores[0].claimMessage(claim)))
  expect(results.map(({ kind }) => kind)).toEqual(['claimed', 'claimed', 'claimed', 'intent_taken', 'claimed'])
})

test('G2 a row that the data base refuses outright is an error for its own claim alone', async () => {
  const broken = newClaim('broken', { request: { channel: 'pigeon' as 'sms' } })
  const claims = [newClaim('b-0'), broken, newClaim('b-1')]
  const results = await Promise.allSettled(claims.map(async (claim) => stores[0].claimMessage(claim)))
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(await rows('idempotency_keys', 'key = $1', 'broken')).toBe(0)
})

test('a key that differs in case or account is another key; a tombstone is a taken one', async () => {
  const other = newClaim('Case')
  const elsewhere = newClaim('case')
  const claims = [newClaim('case'), other, { ...elsewhere, message: { ...elsewhere.message, account: 'other' } }]
  expect(kinds(await claimAll(claims))).toEqual({ claimed: 3 })
  expect(await stores[0].insertTombstone(scope, 'void', 'k')).toBe(true)
  expect(await stores[1].claimMessage(newClaim('void'))).toEqual({ kind: 'key_taken' })
  expect(await stores[0].insertTombstone(scope, 'case', 'k')).toBe(false)
})

test('C3 the lease is set by the clock of the data base, whatever the clock of the gateway says', async () => {
  const claim = newClaim('c3', { leaseMs: 5_000 })
  const wrong = new Date(Date.now() - 300_000)
  const result = await stores[0].claimMessage({ ...claim, message: { ...claim.message, createdAt: wrong } })
  const [row] = await database.query<{ ms: number; created: Date; age: number }>(
    `SELECT extract(epoch FROM lease_until - created_at) * 1000 AS ms, created_at AS created,
       extract(epoch FROM now() - created_at) AS age FROM messages WHERE id = $1`,
    [claim.message.id],
  )
  expect(Number(row?.ms)).toBe(5_000)
  expect(Number(row?.age)).toBeLessThan(10)
  expect(result).toMatchObject({ kind: 'claimed', message: { createdAt: row?.created, updatedAt: row?.created } })
})

test('a claim reads back as it was made, by its key, its second name and its id', async () => {
  const name = `derived:v1:${'5'.repeat(64)}`
  const claim = newClaim('reads-back', { secondKey: name, request: { conversation: 'c', reference: 'r', intent: 'i' } })
  const result = await stores[0].claimMessage(claim)
  const claimed = result.kind === 'claimed' ? result.message : undefined
  expect(await stores[1].findMessages([claim.message.id])).toEqual([claimed])
  for (const key of ['reads-back', name])
    expect(await stores[1].findKey(scope, [key])).toMatchObject({ kind: 'message', key, message: claimed })
  expect(await stores[1].findKey(scope, ['nothing', name, 'reads-back'])).toMatchObject({ key: name })
  expect(await stores[1].findKey({ ...scope, account: 'other' }, ['reads-back'])).toBeUndefined()
  expect(await stores[1].findByIntent(scope, 'i')).toMatchObject({
    id: claim.message.id,
    request: claim.message.request,
  })
})

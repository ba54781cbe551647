/** API keys as rows (src/store/api-keys.ts), and what the migration makes of those from before there were kinds. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { secretHash } from '../../src/core/api-key.ts'
import type { NewApiKey } from '../../src/store/api-keys.ts'
import { openDatabase, type Database } from '../../src/store/database.ts'
import { createStore, type Store } from '../../src/store/store.ts'
import { useDatabase } from '../support/database.ts'
import { insert } from './rows.ts'

const database = useDatabase()
const acme = { account: 'acme', environment: 'live' } as const
const hashes = ['first', 'second', 'third'].map(secretHash) as [Buffer, Buffer, Buffer]
let opened: Database
let store: Store
beforeAll(() => {
  opened = openDatabase(database.url, () => {})
  store = createStore(opened)
})
afterAll(async () => opened.close())

let keys = 0
async function newKey(more: Partial<NewApiKey> = {}): Promise<string> {
  const id = `k${keys++}`
  const key = {
    id,
    ...acme,
    kind: 'service',
    name: null,
    scopes: ['send'],
    policy: null,
    createdBy: 'someone',
  } as const
  await store.insertApiKey({ ...key, secretHash: hashes[0], ...more })
  return id
}
const databaseTime = async (): Promise<number> => (await store.readTime()).getTime()

test('what is inserted is found again, and the account is made with its first key', async () => {
  const given = { kind: 'agent', scopes: ['send', 'read'], policy: { requireApproval: 'never' }, name: 'a' } as const
  const id = await newKey({ account: 'new-account', ...given })
  const before = await databaseTime()
  const { createdAt, ...found } = (await store.findApiKey(id)) ?? { createdAt: new Date(0) }
  expect(found).toEqual({
    id,
    account: 'new-account',
    environment: 'live',
    ...given,
    createdBy: 'someone',
    secretHash: hashes[0],
    previousSecretHash: null,
    previousUntil: null,
    revokedAt: null,
  })
  expect(Math.abs(createdAt.getTime() - before)).toBeLessThan(10_000)
  expect(await store.findApiKey('nobody')).toBeUndefined()
})

test('P2 the present secret becomes the previous one, until a time of the data base', async () => {
  const id = await newKey()
  const before = await databaseTime()
  const until = await store.replaceSecret(acme, id, hashes[1], 60)
  const after = await databaseTime()
  expect(until?.getTime()).toBeGreaterThanOrEqual(before + 60_000)
  expect(until?.getTime()).toBeLessThanOrEqual(after + 60_001) // rounded to milliseconds
  const second = { secretHash: hashes[1], previousSecretHash: hashes[0], previousUntil: until }
  expect(await store.findApiKey(id)).toMatchObject(second)
  const later = await store.replaceSecret(acme, id, hashes[2], 60)
  const third = { secretHash: hashes[2], previousSecretHash: hashes[1], previousUntil: later }
  expect(await store.findApiKey(id)).toMatchObject(third)
  expect(await store.replaceSecret(acme, id, hashes[0], 0)).toBeNull()
  const alone = { secretHash: hashes[0], previousSecretHash: null, previousUntil: null }
  expect(await store.findApiKey(id)).toMatchObject(alone)
})

test('P1 nothing is changed from another account or environment', async () => {
  const id = await newKey()
  const before = await store.findApiKey(id)
  for (const scope of [
    { account: 'rival', environment: 'live' },
    { account: 'acme', environment: 'test' },
  ] as const) {
    expect(await store.replaceSecret(scope, id, hashes[1], 60)).toBeUndefined()
    expect(await store.revokeApiKey(scope, id)).toBeUndefined()
  }
  expect(await store.findApiKey(id)).toEqual(before)
})

test('P2 a revoked key stays as it was: the time of its revocation, and its secret', async () => {
  const id = await newKey()
  const since = await store.revokeApiKey(acme, id)
  expect(since).toBeInstanceOf(Date)
  expect(await store.revokeApiKey(acme, id)).toEqual(since)
  expect(await store.replaceSecret(acme, id, hashes[1], 60)).toBeUndefined()
  expect(await store.findApiKey(id)).toMatchObject({ revokedAt: since, secretHash: hashes[0] })
})

test('keys of before there were kinds: with approve or resolve a person’s, all others a service’s; nothing else changes', async () => {
  const folder = join(import.meta.dirname, '../../prisma/migrations')
  const apply = async (name: string) => database.query(await readFile(join(folder, name, 'migration.sql'), 'utf8'))
  await database.query('DROP SCHEMA public CASCADE')
  await database.query('CREATE SCHEMA public')
  for (const name of ['20261130000000_init', '20261201000000_recovery', '20261202000000_receipts']) await apply(name)
  await insert(database, 'accounts', { id: 'acme' })
  const old: Readonly<Record<string, string[]>> = {
    sender: ['send', 'read'],
    manager: ['admin'],
    nothing: [],
    approver: ['approve'],
    settler: ['send', 'resolve'],
    all: ['send', 'read', 'approve', 'resolve', 'admin'],
  }
  for (const [id, scopes] of Object.entries(old))
    await insert(database, 'api_keys', { id, account_id: 'acme', environment: 'live', secret_hash: hashes[0], scopes })
  const revoked = { id: 'revoked', account_id: 'acme', environment: 'test', secret_hash: hashes[1] }
  await insert(database, 'api_keys', { ...revoked, scopes: ['send'], revoked_at: new Date() })
  await apply('20261203000000_api_keys')

  const rows = await database.query<{ id: string; kind: string }>('SELECT id, kind FROM api_keys')
  expect(Object.fromEntries(rows.map(({ id, kind }) => [id, kind]))).toEqual({
    sender: 'service',
    manager: 'service',
    nothing: 'service',
    approver: 'person',
    settler: 'person',
    all: 'person',
    revoked: 'service',
  })
  const found = await store.findApiKey('settler')
  const unknown = { name: null, policy: null, createdBy: null, previousSecretHash: null, previousUntil: null }
  expect(found).toMatchObject({ ...acme, scopes: old['settler'], secretHash: hashes[0], revokedAt: null, ...unknown })
  expect((await store.findApiKey('revoked'))?.revokedAt).toBeInstanceOf(Date)
})

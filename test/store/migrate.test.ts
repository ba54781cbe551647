/** Migrations (migrate.ts, G1, G2; behaviour.md, N2), and their agreement with Prisma's own engine and schema. */
import { createHash, randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, expect, inject, test } from 'vitest'
import { migrate, migrationProblem } from '../../src/store/migrate.ts'
import { urlOfDatabase } from '../support/database.ts'
import { until } from '../support/gateway.ts'

const migrationsDir = join(import.meta.dirname, '../../prisma/migrations')
const names = (await readdir(migrationsDir, { withFileTypes: true }))
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name)
  .toSorted()

const made: string[] = []
const clients: pg.Client[] = []

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {}) // a test ends connections
  await client.connect()
  clients.push(client)
  return client
}

/** A data base with nothing in it. */
async function emptyDatabase(): Promise<{ url: string; client: pg.Client }> {
  const name = `migrate_${randomBytes(6).toString('hex')}`
  const server = await connected(inject('serverUrl'))
  await server.query(`CREATE DATABASE ${name} TEMPLATE template0`)
  made.push(name)
  const url = urlOfDatabase(inject('serverUrl'), name)
  return { url, client: await connected(url) }
}

afterAll(async () => {
  for (const client of clients) await client.end()
  const server = new pg.Client({ connectionString: inject('serverUrl') })
  await server.connect()
  for (const name of made) await server.query(`DROP DATABASE ${name} WITH (FORCE)`)
  await server.end()
})

async function tablesIn(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1`,
  )
  return rows.map(({ name }) => name)
}

test('an empty data base is migrated once; again there is nothing to do', async () => {
  const { url, client } = await emptyDatabase()
  expect(await migrationProblem(client)).toMatch(/not migrated \(.*init.*\): run npm run db:migrate$/)
  expect(await migrate(url)).toEqual(names)
  expect(await migrationProblem(client)).toBeNull()
  expect(await migrate(url)).toEqual([])
  expect(await tablesIn(client)).toEqual(
    expect.arrayContaining(['_prisma_migrations', 'accounts', 'idempotency_keys', 'messages']),
  )
})

test('six at once on one data base: one applies, the others find nothing left to do', async () => {
  const { url, client } = await emptyDatabase()
  const applied = await Promise.all(Array.from({ length: 6 }, async () => migrate(url)))
  expect(applied.flat()).toEqual(names)
  const { rows } = await client.query('SELECT migration_name FROM _prisma_migrations')
  expect(rows).toHaveLength(names.length)
})

test('the record is that of Prisma: the name of the folder and the SHA-256 of the file', async () => {
  const { url, client } = await emptyDatabase()
  await migrate(url)
  const { rows } = await client.query<{ name: string; checksum: string; finished: boolean; steps: number }>(
    `SELECT migration_name AS name, checksum, finished_at IS NOT NULL AS finished, applied_steps_count AS steps
     FROM _prisma_migrations ORDER BY 1`,
  )
  const expected = await Promise.all(
    names.map(async (name) => {
      const sql = await readFile(join(migrationsDir, name, 'migration.sql'), 'utf8')
      return { name, checksum: createHash('sha256').update(sql).digest('hex'), finished: true, steps: 1 }
    }),
  )
  expect(rows).toEqual(expected)
})

test('G2 a migration whose file has changed since it was applied is refused, and nothing is done', async () => {
  const { url, client } = await emptyDatabase()
  await migrate(url)
  await client.query(`UPDATE _prisma_migrations SET checksum = 'another'`)
  await expect(migrate(url)).rejects.toThrow(`migration ${names[0]} was changed after it had been applied`)
  await expect(migrationProblem(client)).rejects.toThrow(/was changed/)
  await client.query('UPDATE _prisma_migrations SET rolled_back_at = now()')
  await expect(migrate(url)).rejects.toThrow(/already exists/) // rolled back, it says; so it is pending
})

test('G1 a kill in the middle leaves nothing half-applied, and the next run begins afresh', async () => {
  const { url, client } = await emptyDatabase()
  const obstacle = await connected(url)
  await obstacle.query('BEGIN')
  await obstacle.query('CREATE TABLE messages (id int)') // not committed: the migration waits for it, half-way
  const killed = migrate(url).catch((error: unknown) => error)
  const waiting = `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  await until(async () => (await client.query(waiting)).rows.length === 1)
  await client.query(`SELECT pg_terminate_backend(pid) FROM (${waiting}) AS w`)
  expect(await killed).toBeInstanceOf(Error)
  await obstacle.query('ROLLBACK')
  expect(await tablesIn(client)).toEqual(['_prisma_migrations'])
  expect((await client.query('SELECT 1 FROM _prisma_migrations')).rows).toEqual([])
  expect(await migrate(url)).toEqual(names)
})

test('G1 a kill between the migration and its record undoes both', async () => {
  const { url, client } = await emptyDatabase()
  await client.query('CREATE TABLE sweeps (oddly int)')
  await expect(migrate(url)).rejects.toThrow(/already exists/) // by now there is a table for the records
  await client.query('DROP TABLE sweeps')
  const obstacle = await connected(url)
  await obstacle.query('BEGIN')
  await obstacle.query('LOCK TABLE _prisma_migrations IN SHARE MODE') // it can be read, and nothing can be recorded
  const killed = migrate(url).catch((error: unknown) => error)
  const waiting = `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  await until(async () => (await client.query(waiting)).rows.length === 1)
  await client.query(`SELECT pg_terminate_backend(pid) FROM (${waiting}) AS w`)
  expect(await killed).toBeInstanceOf(Error)
  await obstacle.query('ROLLBACK')
  expect(await tablesIn(client)).toEqual(['_prisma_migrations'])
  expect(await migrate(url)).toEqual(names)
})

test('G1 a migration that fails leaves nothing behind, and gives the lock free', async () => {
  const { url, client } = await emptyDatabase()
  await client.query('CREATE TABLE sweeps (oddly int)') // the last table of the migration: all else came before
  await expect(migrate(url)).rejects.toThrow(/"sweeps" already exists/)
  expect(await tablesIn(client)).toEqual(['_prisma_migrations', 'sweeps'])
  await client.query('DROP TABLE sweeps')
  expect(await migrate(url)).toEqual(names)
})

test('a server that is too old is named in one line', async () => {
  const { client } = await emptyDatabase()
  const old = { query: async () => ({ rows: [{ number: 140_012, name: '14.12' }] }) } as unknown as pg.Client
  expect(await migrationProblem(old)).toBe('PostgreSQL 14.12 is too old: 15 or newer is needed')
  expect(await migrationProblem(client)).not.toContain('too old')
})

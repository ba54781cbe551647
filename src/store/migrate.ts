/**
 * Migrations: the reviewed SQL of prisma/migrations, applied in order, each in one transaction together with its row in
 * `_prisma_migrations`. The table is Prisma's own (name, columns, checksum), so `prisma migrate deploy` goes on from here
 * and the other way round; unlike Prisma's engine, a kill in the middle leaves nothing half-applied to be mended by hand.
 *
 * G1. A migration and its record are committed together.
 * G2. An applied migration whose file has changed since is an error, never silently skipped.
 */
import { createHash, randomUUID } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'

const migrationsDir = join(import.meta.dirname, '../../prisma/migrations')
/** Any number: it keeps two migrations of one data base apart in time. */
const advisoryLock = 7_365_446_001
const minimumVersion = 150_000

interface Migration {
  readonly name: string
  readonly sql: string
  readonly checksum: string
}

/** The migrations that the code needs, oldest first. */
async function loadMigrations(): Promise<Migration[]> {
  const entries = await readdir(migrationsDir, { withFileTypes: true })
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
  return Promise.all(
    names.toSorted().map(async (name) => {
      const sql = await readFile(join(migrationsDir, name, 'migration.sql'), 'utf8')
      return { name, sql, checksum: createHash('sha256').update(sql).digest('hex') }
    }),
  )
}

/** What keeps this data base from being used, in one line; null if nothing does. */
export async function migrationProblem(client: pg.ClientBase): Promise<string | null> {
  const { rows } = await client.query<{ number: number; name: string }>(
    `SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS name`,
  )
  const version = rows[0]
  if (version !== undefined && version.number < minimumVersion)
    return `PostgreSQL ${version.name} is too old: 15 or newer is needed`
  const pending = await pendingMigrations(client)
  const names = pending.map(({ name }) => name).join(', ')
  return pending.length === 0 ? null : `the data base is not migrated (${names}): run npm run db:migrate`
}

async function pendingMigrations(client: pg.ClientBase): Promise<Migration[]> {
  const wanted = await loadMigrations()
  const { rows: tables } = await client.query<{ found: boolean }>(
    `SELECT to_regclass('_prisma_migrations') IS NOT NULL AS found`,
  )
  if (tables[0]?.found !== true) return wanted
  const { rows } = await client.query<{ name: string; checksum: string }>(
    `SELECT migration_name AS name, checksum FROM _prisma_migrations
     WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL`,
  )
  const applied = new Map(rows.map(({ name, checksum }) => [name, checksum]))
  for (const { name, checksum } of wanted)
    if ((applied.get(name) ?? checksum) !== checksum)
      throw new Error(`migration ${name} was changed after it had been applied`)
  return wanted.filter(({ name }) => !applied.has(name))
}

// Columns and types as Prisma's engine makes them (prisma-engines, sql-schema-connector, `create_migrations_table`).
const migrationsTable = `
  CREATE TABLE IF NOT EXISTS _prisma_migrations (
    id varchar(36) PRIMARY KEY NOT NULL, checksum varchar(64) NOT NULL, finished_at timestamptz,
    migration_name varchar(255) NOT NULL, logs text, rolled_back_at timestamptz,
    started_at timestamptz NOT NULL DEFAULT now(), applied_steps_count integer NOT NULL DEFAULT 0)`

/** Applies what is pending; several processes may call it at once. @returns the names applied */
export async function migrate(url: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
  await client.connect()
  try {
    await client.query('SELECT pg_advisory_lock($1)', [advisoryLock])
    await client.query(migrationsTable)
    const pending = await pendingMigrations(client)
    for (const migration of pending) await apply(client, migration)
    return pending.map(({ name }) => name)
  } finally {
    await client.end() // gives the lock free, and undoes what was not committed
  }
}

async function apply(client: pg.Client, { name, sql, checksum }: Migration): Promise<void> {
  await client.query('BEGIN')
  await client.query(sql)
  await client.query(
    `INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at, applied_steps_count)
     VALUES ($1, $2, $3, clock_timestamp(), 1)`,
    [randomUUID(), checksum, name],
  )
  await client.query('COMMIT')
}

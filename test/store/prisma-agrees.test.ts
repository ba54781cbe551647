/** Prisma's own engine agrees: what we applied it need not apply, and schema.prisma says of the tables what is there. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PrismaPg } from '@prisma/adapter-pg'
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils'
import { SchemaEngine } from '@prisma/schema-engine-wasm'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { migrate } from '../../src/store/migrate.ts'
import { useDatabase } from '../support/database.ts'

const database = useDatabase()
const prismaDir = join(import.meta.dirname, '../../prisma')
const schema = { path: 'schema.prisma', content: await readFile(join(prismaDir, 'schema.prisma'), 'utf8') }
const filters = { externalTables: [], externalEnums: [] }

/**
 * The native engine sends a script as it is (`raw_cmd` in prisma-engines). This adapter splits it at every semicolon, those
 * in the body of a function too.
 */
function scriptsWhole(factory: PrismaPg, pool: pg.Pool): PrismaPg {
  const connect = factory.connect.bind(factory)
  factory.connect = async () =>
    Object.assign(await connect(), { executeScript: async (script: string) => void (await pool.query(script)) })
  return factory
}

async function engineOn(url: string): Promise<SchemaEngine> {
  const pool = new pg.Pool({ connectionString: url, max: 1 })
  const adapter = bindMigrationAwareSqlAdapterFactory(scriptsWhole(new PrismaPg(pool), pool))
  const engine = await SchemaEngine.new({ datamodels: [[schema.path, schema.content]] }, () => {}, adapter)
  onTestFinished(async () => {
    engine.free()
    await pool.end() // with its session ends the engine's advisory lock
  })
  return engine
}

async function migrationsList(): Promise<Parameters<SchemaEngine['applyMigrations']>[0]['migrationsList']> {
  const baseDir = join(prismaDir, 'migrations')
  const entries = await readdir(baseDir, { withFileTypes: true })
  const folders = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
  const read = async (path: string) => {
    const value = await readFile(join(baseDir, path, 'migration.sql'), 'utf8')
    return { path, migrationFile: { path: 'migration.sql', content: { tag: 'ok' as const, value } } }
  }
  return {
    baseDir,
    shadowDbInitScript: '',
    lockfile: { path: 'migration_lock.toml', content: await readFile(join(baseDir, 'migration_lock.toml'), 'utf8') },
    migrationDirectories: await Promise.all(folders.toSorted().map(read)),
  }
}

test('Prisma’s engine finds nothing left to apply where our runner has been', async () => {
  const engine = await engineOn(database.url)
  const applied = await engine.applyMigrations({ filters, migrationsList: await migrationsList() })
  expect(applied).toEqual({ appliedMigrationNames: [] })
})

test('where Prisma’s engine has been, our runner finds nothing left to apply', async () => {
  await database.query('DROP SCHEMA public CASCADE')
  await database.query('CREATE SCHEMA public')
  const engine = await engineOn(database.url)
  const list = await migrationsList()
  const applied = await engine.applyMigrations({ filters, migrationsList: list })
  expect(applied.appliedMigrationNames).toEqual(list.migrationDirectories.map(({ path }) => path))
  expect(await migrate(database.url)).toEqual([])
})

interface Column {
  readonly table: string
  readonly column: string
  readonly type: string
  readonly nullable: boolean
}

const columnsOf = async (): Promise<Column[]> =>
  database.query<Column & Record<string, unknown>>(
    `SELECT c.relname AS table, a.attname AS column, format_type(a.atttypid, a.atttypmod) AS type, NOT a.attnotnull AS nullable
     FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
       AND c.relname <> '_prisma_migrations' ORDER BY 1, 2`,
  )

const indexesOf = async (): Promise<{ name: string; columns: string }[]> =>
  database.query(
    `SELECT c.relname AS name, (SELECT string_agg(a.attname, ', ' ORDER BY k.ord) FROM unnest(i.indkey) WITH ORDINALITY AS k (attnum, ord)
       JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum) AS columns
     FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
     WHERE c.relnamespace = 'public'::regnamespace AND c.relname <> '_prisma_migrations_pkey' ORDER BY 1`,
  )

test('schema.prisma and the SQL make the same tables: names, types and nullability of every column', async () => {
  const bySql = await columnsOf()
  const sqlIndexes = await indexesOf()
  const engine = await engineOn(database.url)
  const { stdout: script } = await engine.diff({
    from: { tag: 'empty' },
    to: { tag: 'schemaDatamodel', files: [schema] },
    script: true,
    exitCode: null,
    filters,
  })
  await database.query('DROP SCHEMA public CASCADE')
  await database.query('CREATE SCHEMA public')
  await database.query(String(script))
  const bySchema = await columnsOf()
  expect(bySchema.length).toBeGreaterThan(50)
  // Prisma's own SQL never says NOT NULL of an array.
  const comparable = (columns: readonly Column[]): Column[] =>
    columns.map((column) => (column.type === 'text[]' ? { ...column, nullable: false } : column))
  expect(comparable(bySchema)).toEqual(comparable(bySql))
  // Partial indexes cannot be said in schema.prisma; every index that it says is in the SQL.
  expect(sqlIndexes).toEqual(expect.arrayContaining(await indexesOf()))
})

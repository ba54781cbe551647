/** The PostgreSQL server of a run: the embedded one in a folder of the run, with its durable defaults; and what it did. */
import pg from 'pg'
import { startEmbeddedPostgres } from '../src/store/embedded-postgres.ts'
import { cpuSecondsOfFamily, parentOf } from './processor-time.ts'

export interface Server {
  readonly version: string
  /** For a program's `DATABASE_URL`. */
  urlOf(database: string): string
  /** Makes it anew, empty. */
  createDatabase(name: string): Promise<void>
  query<Row extends pg.QueryResultRow>(database: string, text: string, values?: unknown[]): Promise<Row[]>
  work(database: string | null): Promise<Work>
  stop(): Promise<void>
}

/** Sums since the server's start. */
export interface Work {
  readonly cpuS: number | null
  readonly walBytes: number
  readonly commits: number
}

export async function startServer(dataDir: string): Promise<Server> {
  const server = await startEmbeddedPostgres({ dataDir, exclusive: false })
  const watcher = new pg.Client({ connectionString: server.url })
  await watcher.connect()
  const first = await watcher.query<{ pid: number; version: string; fsync: string }>(
    `SELECT pg_backend_pid() AS pid, current_setting('server_version') AS version, current_setting('fsync') AS fsync`,
  )
  const { pid = 0, version = '', fsync } = first.rows[0] ?? {}
  if (fsync !== 'on') throw new Error('fsync is off: nothing measured would hold')
  const postmaster = parentOf(pid)
  const urlOf = (name: string): string => {
    const url = new URL(server.url)
    url.pathname = `/${name}`
    return url.href
  }
  return {
    version,
    urlOf,
    createDatabase: async (name) => {
      await watcher.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
      await watcher.query(`CREATE DATABASE ${name}`)
    },
    query: async <Row extends pg.QueryResultRow>(database: string, text: string, values: unknown[] = []) => {
      const client = new pg.Client({ connectionString: urlOf(database) })
      await client.connect()
      try {
        return (await client.query<Row>(text, values)).rows
      } finally {
        await client.end()
      }
    },
    work: async (database) => {
      const { rows } = await watcher.query<{ wal: string; commits: string | null }>(
        `SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS wal,
          (SELECT xact_commit FROM pg_stat_database WHERE datname = $1) AS commits`,
        [database],
      )
      return {
        cpuS: postmaster === null ? null : cpuSecondsOfFamily(postmaster),
        walBytes: Number(rows[0]?.wal),
        commits: Number(rows[0]?.commits ?? 0),
      }
    },
    stop: async () => {
      await watcher.end()
      await server.stop()
    },
  }
}

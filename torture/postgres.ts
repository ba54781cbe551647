/** The PostgreSQL of a run: embedded, in the run's folder, durable; killed with all its processes, and back on its port. */
import { spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { startEmbeddedPostgres } from '../src/store/embedded-postgres.ts'
import { migrate } from '../src/store/migrate.ts'

export interface Postgres {
  readonly url: string
  /** Straight to the server, past all proxies. Waits for it, if it is down. */
  query<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]>
  /** kill -9 of the postmaster and of each of its processes. Resolves when it answers again. */
  kill(): Promise<void>
  stop(): Promise<void>
}

export async function startPostgres(folder: string): Promise<Postgres> {
  // `exclusive`: the session that holds the lock notices the server's death, and starts it again on its old port.
  const server = await startEmbeddedPostgres({ dataDir: folder, exclusive: true })
  try {
    await migrate(server.url)
  } catch (error) {
    await server.stop()
    throw error
  }
  const query = async <Row extends pg.QueryResultRow>(
    text: string,
    values: readonly unknown[] = [],
  ): Promise<Row[]> => {
    for (let tries = 0; ; tries++) {
      const client = new pg.Client({ connectionString: server.url, connectionTimeoutMillis: 2_000 })
      client.on('error', () => {}) // what was asked fails too, and tells
      try {
        await client.connect()
        return (await client.query<Row>(text, [...values])).rows
      } catch (error) {
        if (tries > 200 || (error instanceof pg.DatabaseError && !/^(57|08)/.test(error.code ?? ''))) throw error
        await pause(100)
      } finally {
        await client.end().catch(() => {}) // never connected
      }
    }
  }
  return {
    url: server.url,
    query,
    kill: async () => {
      const lockFile = await readFile(join(folder, 'postgres/postmaster.pid'), 'utf8')
      const postmaster = Number(lockFile.split('\n')[0])
      if (!(postmaster > 1)) throw new Error('postmaster.pid names no process')
      for (const pid of [postmaster, ...childrenOf(postmaster)]) killHard(pid)
      await pause(200)
      await query('SELECT')
    },
    stop: async () => server.stop(),
  }
}

/** Each has a process group of its own, so they are found by their parent. */
function childrenOf(pid: number): number[] {
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' })
  return stdout
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .flatMap(([child = 0, parent]) => (parent === pid ? [child] : []))
}

function killHard(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // gone already, with its postmaster
  }
}

/**
 * The connection to PostgreSQL: one pool, used directly by the hot statements and by the Prisma client for the cold
 * ones. Owns time-outs, the bound on what waits, and the retry of serialization failures.
 */
import { PrismaPg } from '@prisma/adapter-pg'
import pg from 'pg'
import { asStoreError, isSerializationFailure, StoreOverloaded } from './database-errors.ts'
import { PrismaClient } from './generated/client.ts'

/** A statement that is prepared once a connection. `name` is unique to `text`. */
export interface Statement {
  readonly name: string
  readonly text: string
}

export interface Database {
  readonly prisma: PrismaClient
  /** Runs one statement, which is its own transaction. @throws StoreUnavailable, StoreOverloaded, StoreLocked, or a bug's error */
  run<Row extends pg.QueryResultRow>(statement: Statement, values: readonly unknown[]): Promise<Row[]>
  /** Runs a cold read or write of the Prisma client, with its errors translated likewise. */
  cold<T>(work: (prisma: PrismaClient) => Promise<T>): Promise<T>
  /** Runs it when this turn of the event loop is over: what was asked in it goes together. */
  readonly soon: (work: () => void) => void
  close(): Promise<void>
}

/** Before it comes every id: for a page that has none before it, by the same look-up in the index as all others. */
export const lastUuid = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

const connections = 16
/** Statements that may wait for a connection; at 1 ms each that is half a second. */
const maxWaiting = 512
const maxTries = 4

/** Every statement here is a look-up by index; a plan made while a table was small must not outlive that. */
export const plannerOptions = '-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c jit=off'

export function openDatabase(url: string, onIdleError: (error: Error) => void): Database {
  const pool = new pg.Pool({
    connectionString: url,
    max: connections,
    application_name: 'sendonce',
    keepAlive: true,
    connectionTimeoutMillis: 3_000,
    // The server gives up before we do, so that an error is definite wherever it can be.
    statement_timeout: 3_500,
    lock_timeout: 500, // ours are held for the length of a commit
    idle_in_transaction_session_timeout: 5_000,
    query_timeout: 4_000,
    idleTimeoutMillis: 60_000,
    options: plannerOptions,
  })
  pool.on('error', onIdleError)
  const prisma = new PrismaClient({
    adapter: new PrismaPg(pool, { onPoolError: onIdleError, disposeExternalPool: false }),
  })

  const translated = async <T>(work: () => Promise<T>): Promise<T> => {
    for (let tries = 1; ; tries++) {
      if (pool.waitingCount >= maxWaiting) throw new StoreOverloaded()
      try {
        return await work()
      } catch (error) {
        if (isSerializationFailure(error) && tries < maxTries) continue
        throw asStoreError(error)
      }
    }
  }

  return {
    prisma,
    run: async <Row extends pg.QueryResultRow>(statement: Statement, values: readonly unknown[]) =>
      translated(async () => (await pool.query<Row>({ ...statement, values: [...values] })).rows),
    cold: async (work) => translated(async () => await work(prisma)),
    soon: (work) => void setImmediate(work),
    close: async () => {
      await prisma.$disconnect()
      await pool.end()
    },
  }
}

/** The data base of a gateway or a tool: the server of DATABASE_URL, or the embedded one, checked and ready. */
import pg from 'pg'
import { openDatabase, type Database } from './database.ts'
import { startEmbeddedPostgres } from './embedded-postgres.ts'
import { migrate, migrationProblem } from './migrate.ts'

export interface Connection {
  readonly database: Database
  close(): Promise<void>
}

interface Warn {
  warn(fields: object, text: string): void
}

/** @param databaseUrl null: the embedded one in `dataDir`, migrated here. @throws Error with one clear line */
export async function connect(databaseUrl: string | null, dataDir: string, log: Warn): Promise<Connection> {
  const onIdleError = (error: Error): void => log.warn({ error: error.name }, 'a connection to the data base was lost')
  if (databaseUrl !== null) {
    await checkServer(databaseUrl)
    const database = openDatabase(databaseUrl, onIdleError)
    return { database, close: async () => database.close() }
  }
  const onLost = (): void => log.warn({}, 'the embedded PostgreSQL died and does not start yet')
  const server = await startEmbeddedPostgres({ dataDir, exclusive: true, onLost })
  await migrate(server.url).catch(async (error: unknown) => {
    await server.stop()
    throw error
  })
  const database = openDatabase(server.url, onIdleError)
  return {
    database,
    close: async () => {
      await database.close()
      await server.stop()
    },
  }
}

async function checkServer(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
  client.on('error', () => {}) // what was asked fails too, and tells
  try {
    await client.connect()
    const problem = await migrationProblem(client)
    if (problem !== null) throw new Error(`DATABASE_URL: ${problem}`)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (message.startsWith('DATABASE_URL')) throw error
    throw new Error(`DATABASE_URL: the data base cannot be reached (${code ?? message})`, { cause: error })
  } finally {
    await client.end().catch(() => {}) // never connected
  }
}

/** For a tool beside the gateway: shares the embedded server with a gateway that runs, or starts and stops it. */
export async function withDatabase<T>(
  { databaseUrl, dataDir }: { databaseUrl: string | null; dataDir: string },
  work: (database: Database) => Promise<T>,
): Promise<T> {
  const server = databaseUrl === null ? await startEmbeddedPostgres({ dataDir, exclusive: false }) : null
  const url = server?.url ?? databaseUrl ?? ''
  try {
    if (server === null) await checkServer(url)
    else await migrate(url)
    const database = openDatabase(url, () => {}) // what was asked fails too, and tells
    try {
      return await work(database)
    } finally {
      await database.close()
    }
  } finally {
    await server?.stop()
  }
}

/** A data base of its own for a test file, copied from the migrated template; one of a failed file is kept, and named. */
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, inject, onTestFailed } from 'vitest'

export const templateName = 'sendonce_template'

export function urlOfDatabase(serverUrl: string, name: string): string {
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}

/** Makes a copy of the template. */
export async function createDatabase(): Promise<{ url: string; drop: () => Promise<void> }> {
  const name = `test_${randomBytes(6).toString('hex')}`
  await onServer(`CREATE DATABASE ${name} TEMPLATE ${templateName}`)
  const drop = async (): Promise<void> => onServer(`DROP DATABASE ${name} WITH (FORCE)`)
  return { url: urlOfDatabase(inject('serverUrl'), name), drop }
}

async function onServer(sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: inject('serverUrl') })
  await client.connect()
  try {
    // Two copies at once fail: the template is being accessed by the other.
    for (let tries = 0; ; tries++) {
      try {
        await client.query(sql)
        return
      } catch (error) {
        if (!(error instanceof pg.DatabaseError) || error.code !== '55006' || tries > 200) throw error
        await new Promise((again) => setTimeout(again, 50))
      }
    }
  } finally {
    await client.end()
  }
}

export interface TestDatabase {
  readonly url: string
  /** Another connection, to see what others see. */
  query<Row extends pg.QueryResultRow>(sql: string, values?: unknown[]): Promise<Row[]>
}

/** For the whole file: call it once, at the top. */
export function useDatabase(): TestDatabase {
  let url = ''
  let pool: pg.Pool | undefined
  let failed = false
  beforeAll(async () => {
    const made = await createDatabase()
    url = made.url
    pool = new pg.Pool({ connectionString: url, max: 4 })
    pool.on('error', () => {}) // a test may end the server's connections
    return async () => {
      await pool?.end()
      if (failed) process.stdout.write(`kept: ${new URL(url).pathname.slice(1)}\n`)
      else await made.drop()
    }
  })
  afterAll(() => {})
  return {
    get url() {
      return url
    },
    query: async <Row extends pg.QueryResultRow>(sql: string, values: unknown[] = []) => {
      onTestFailed(() => {
        failed = true
      })
      if (pool === undefined) throw new Error('the data base is made in beforeAll')
      return (await pool.query<Row>(sql, values)).rows
    },
  }
}

/** What a failed statement proves (database-errors.ts, D1, D2; reliability.md, faults 17, 18, 23 to 27). */
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { asStoreError, StoreLocked, StoreOverloaded, StoreUnavailable } from '../../src/store/database-errors.ts'
import { openDatabase, type Database } from '../../src/store/database.ts'
import { createStore } from '../../src/store/store.ts'
import { useDatabase } from '../support/database.ts'
import { until } from '../support/gateway.ts'
import { tcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'
import { newClaim, scope } from './claims.ts'

const database = useDatabase()
const opened: Database[] = []
let proxy: TcpProxy

beforeAll(async () => {
  proxy = await tcpProxy(database.url)
})
afterAll(async () => {
  for (const one of opened) await one.close()
  await proxy.close()
})

function open(url: string): Database {
  const one = openDatabase(url, () => {})
  opened.push(one)
  return one
}

const sleep = { name: 'sleep', text: 'SELECT pg_sleep($1::float8)' }

/** `absent`, `doubtful`, or the name of an error that speaks of the statement itself. */
async function provenBy(work: Promise<unknown>): Promise<string> {
  try {
    await work
    return 'no error'
  } catch (error) {
    if (error instanceof StoreUnavailable) return error.effect
    return error instanceof Error ? error.constructor.name : 'thrown'
  }
}

describe.concurrent('a statement that failed on a real server', () => {
  test('D2 its backend was ended while it ran: doubtful, and the next statement finds a connection', async () => {
    const one = open(database.url)
    const proven = provenBy(one.run({ name: 'to-be-ended', text: 'SELECT pg_sleep(30) AS to_be_ended' }, []))
    await until(async () => (await endBackends('SELECT pg_sleep(30) AS to_be_ended')) > 0)
    expect(await proven).toBe('doubtful')
    expect(await one.run({ name: 'one', text: 'SELECT 1 AS one' }, [])).toEqual([{ one: 1 }])
  })

  test('D1, fault 24: the server’s own time-out has undone it: absent', async () => {
    expect(await provenBy(open(database.url).run({ name: 'slow', text: 'SELECT pg_sleep($1::float8), 1' }, [60]))).toBe(
      'absent',
    )
  })

  test('D2, fault 22: our own time-out says nothing of it: doubtful', async () => {
    const one = open(proxy.urlOf(database.url))
    proxy.strike('time', 'silence')
    expect(await provenBy(createStore(one).readTime())).toBe('doubtful')
  })

  test('D1, fault 23: no connection came free in time: absent, for nothing was sent', async () => {
    const one = open(database.url)
    // All of them are open already: what is looked at is waiting for one, not opening it.
    for (let i = 0; i < 16; i++) await Promise.all(Array.from({ length: i + 1 }, async () => one.run(sleep, [0.01])))
    const busy = Array.from({ length: 16 }, async () => provenBy(one.run(sleep, [3.3])))
    expect(await provenBy(one.run({ name: 'one', text: 'SELECT 1' }, []))).toBe('absent')
    expect(new Set(await Promise.all(busy))).toEqual(new Set(['no error']))
  })

  test('D1 nobody listens: absent', async () => {
    const url = new URL(database.url)
    url.port = '1'
    expect(await provenBy(open(url.href).run(sleep, [0]))).toBe('absent')
    expect(await provenBy(createStore(open(url.href)).claimMessage(newClaim('nobody')))).toBe('absent')
  })

  test.each(['reset before', 'reset after', 'end after'] as const)(
    'D2 a hot statement and a cold one whose connection failed (%s) speak of the data base, not of a bug',
    async (fault) => {
      const own = await tcpProxy(database.url)
      const store = createStore(open(own.urlOf(database.url)))
      own.strike('time', fault)
      expect(await provenBy(store.readTime())).toBe('doubtful')
      own.shut()
      const cold = [
        store.findApiKey('k'),
        store.findMessage(scope, randomUUID()),
        store.listMessages(scope, {}, 1, null),
        store.findEvents(randomUUID()),
      ]
      for (const proven of await Promise.all(cold.map(provenBy))) expect(proven).toMatch(/^(absent|doubtful)$/)
      own.open()
      expect(await store.findApiKey('k')).toBeUndefined()
      await own.close()
    },
  )

  test('more statements than may wait are refused at once, and those that wait are carried out', async () => {
    const one = open(database.url)
    const work = Array.from({ length: 600 }, async () =>
      provenBy(one.run({ name: 'nap', text: 'SELECT pg_sleep(0.01)' }, [])),
    )
    const refused = await Promise.race([Promise.all(work.slice(0, 1)), provenBy(one.run(sleep, [0]))])
    expect(refused).toBe('StoreOverloaded')
    const proven = Object.groupBy(await Promise.all(work), (word) => word)
    expect(Object.keys(proven).toSorted()).toEqual(['StoreOverloaded', 'no error'])
    expect(proven['no error']?.length).toBeGreaterThanOrEqual(512)
  })
})

/** @returns how many */
async function endBackends(query: string): Promise<number> {
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  const { rows } = await client.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND state = 'active' AND query = $1`,
    [query],
  )
  await client.end()
  return rows.length
}

test.each(['40001', '40P01'])('D4, fault 27: a serialization failure (%s) is tried again inside', async (code) => {
  const sequence = `tries_${code.toLowerCase()}`
  await database.query(`CREATE SEQUENCE ${sequence}`)
  await database.query(
    `CREATE FUNCTION flaky_${code.toLowerCase()}() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
       IF nextval('${sequence}') < 3 THEN RAISE EXCEPTION 'not now' USING ERRCODE = '${code}'; END IF;
       RETURN 7; END $$`,
  )
  const statement = { name: `flaky-${code}`, text: `SELECT flaky_${code.toLowerCase()}() AS seven` }
  expect(await open(database.url).run(statement, [])).toEqual([{ seven: 7 }])
})

test('an error of the statement itself is a bug, and comes back as it is', async () => {
  const one = open(database.url)
  await expect(one.run({ name: 'bug', text: 'SELECT nothing_of_the_kind' }, [])).rejects.toMatchObject({
    code: '42703',
  })
  const store = createStore(one)
  const holder = { kind: 'service', scopes: ['send'], policy: null, name: null, createdBy: null } as const
  const key = { id: 'k', ...scope, ...holder, secretHash: Buffer.alloc(32) }
  await store.insertApiKey(key)
  expect(await provenBy(store.insertApiKey(key))).toBe('PrismaClientKnownRequestError')
})

/** SQLSTATEs, and what they prove. */
const codes: Readonly<Record<string, 'absent' | 'doubtful'>> = {
  '57014': 'absent', // cancelled by time-out: rolled back
  '53100': 'absent', // disk full
  '53300': 'absent', // too many connections
  '25006': 'absent', // read-only: a primary that became a standby
  '57P01': 'doubtful', // ended by an administrator: it may have committed
  '57P02': 'doubtful',
  '57P03': 'doubtful',
  '08006': 'doubtful',
  '08007': 'doubtful',
  '40003': 'doubtful',
  '25P03': 'doubtful',
  '58030': 'doubtful', // fdatasync failed: the row may have survived (reliability.md, 30)
  XX000: 'doubtful',
}

test.each(Object.entries(codes))('SQLSTATE %s is %s', (code, effect) => {
  const error = Object.assign(new pg.DatabaseError('of the server', 0, 'error'), { code })
  expect(asStoreError(error)).toMatchObject({ effect, cause: error })
})

test.each([
  ['ECONNREFUSED', 'connect', 'absent'],
  ['ENOTFOUND', 'getaddrinfo', 'absent'],
  ['EAI_AGAIN', 'getaddrinfo', 'absent'],
  ['ECONNRESET', 'connect', 'absent'],
  ['ECONNRESET', 'read', 'doubtful'],
  ['EPIPE', 'write', 'doubtful'],
  ['ETIMEDOUT', 'read', 'doubtful'],
])('%s in %s is %s: the phase proves it, not the code', (code, syscall, effect) => {
  expect(asStoreError(Object.assign(new Error(code), { code, syscall }))).toMatchObject({ effect })
})

test.each([
  ['timeout exceeded when trying to connect', 'absent'],
  ['Connection terminated unexpectedly', 'doubtful'],
  ['Connection terminated', 'doubtful'],
  ['Query read timeout', 'doubtful'],
])('the driver’s "%s" is %s', (message, effect) => {
  expect(asStoreError(new Error(message))).toMatchObject({ effect })
})

test.each([new Error('a bug'), new TypeError('x is not a function'), 'thrown', undefined, new StoreOverloaded()])(
  'what does not speak of the data base comes back as it is: %s',
  (error) => {
    expect(asStoreError(error)).toBe(error)
  },
)

test('fault 25: a lock that someone else holds is waited for half a second, and then the row is said to be held', async () => {
  await database.query(`INSERT INTO accounts (id) VALUES ('held')`)
  const holder = new pg.Client({ connectionString: database.url })
  await holder.connect()
  await holder.query('BEGIN')
  await holder.query(`UPDATE accounts SET created_at = now() WHERE id = 'held'`)
  const statement = { name: 'wait-for-it', text: `UPDATE accounts SET created_at = now() WHERE id = 'held'` }
  await expect(open(database.url).run(statement, [])).rejects.toBeInstanceOf(StoreLocked)
  await holder.end()
})

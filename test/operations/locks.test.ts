/** What happens when someone else holds a lock on what an outcome must be written to. */
import pg from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { accepted, sms, testGateway, until, type TestGateway } from '../support/gateway.ts'
import { told, uuidOf } from './told.ts'

const database = useDatabase()
let gateway: TestGateway
beforeAll(async () => {
  gateway = await testGateway(database.url)
})
afterAll(async () => gateway.close())

test.each([
  ['its row', (id: string) => `SELECT 1 FROM messages WHERE id = '${id}' FOR UPDATE`],
  ['the table, as a migration does', () => 'LOCK TABLE messages IN ACCESS EXCLUSIVE MODE'],
])(
  'B3, F5; reliability.md, fault 52: an outcome that meets a lock on %s is stored when the lock is gone',
  async (name, lock) => {
    const other = new pg.Client({ connectionString: database.url })
    await other.connect()
    onTestFinished(async () => other.end())
    gateway.logged.length = 0
    gateway.provider.answer = async ({ messageId }) => {
      await other.query('BEGIN')
      await other.query(lock(uuidOf(messageId)))
      return accepted()
    }
    const first = gateway.send(sms('locked'), { key: name.replaceAll(/\W/g, '-'), prefer: 'wait=5' })
    await until(() => gateway.logged.some((line) => /could not be stored yet|a send failed in the gateway/.test(line)))
    await other.query('ROLLBACK')
    expect(told(await first)).toBe('201 sent')
  },
)

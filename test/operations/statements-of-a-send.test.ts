/** How much the data base is asked for a send: performance.md's fast path is two statements, those with the fewest parts. */
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDatabase, type Database, type Statement } from '../../src/store/database.ts'
import { createStore } from '../../src/store/store.ts'
import { useDatabase } from '../support/database.ts'
import { lost, rejected, testGateway, type TestGateway } from '../support/gateway.ts'

const database = useDatabase()
const asked: string[] = []
let opened: Database
let gateway: TestGateway

beforeAll(async () => {
  opened = openDatabase(database.url, () => {})
  const run = async <Row extends pg.QueryResultRow>(statement: Statement, values: readonly unknown[]) => {
    asked.push(statement.name)
    return opened.run<Row>(statement, values)
  }
  gateway = await testGateway(database.url, { wrapStore: () => createStore({ ...opened, run }) })
})
afterAll(async () => {
  await gateway.close()
  await opened.close()
})

const sms = { channel: 'sms', to: '+447700900123', content: { text: 'hello' } }

test.each([
  ['accepted', sms, {}, 201, ['claim-plain', 'save-first']],
  ['refused', { ...sms, to: '+447700900124' }, {}, 422, ['claim-plain', 'save-first']],
  ['in a conversation', { ...sms, conversation: 'c' }, {}, 201, ['claim', 'save-first']],
  ['with a second name', { ...sms, conversation: 'c', reference: 'r' }, {}, 201, ['claim', 'save-first']],
  ['accepted later', { ...sms, to: '+447700900125' }, { prefer: 'respond-async' }, 202, ['claim-plain']],
  ['of an unknown outcome', { ...sms, to: '+447700900126' }, {}, 504, ['claim-plain', 'save']],
])('a send that is %s', async (name, body, headers, status, statements) => {
  gateway.provider.answer = ({ to }) =>
    to.endsWith('4')
      ? rejected()
      : to.endsWith('6')
        ? lost()
        : { kind: 'accepted', providerMessageId: 'p', evidence: { phase: 'answered', detail: 'accepted' } }
  asked.length = 0
  const answer = await gateway.send(body, { key: name.replaceAll(' ', '-'), headers })
  expect([answer.statusCode, asked]).toEqual([status, statements])
})

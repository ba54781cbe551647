/** Which conversation a reply belongs to (find-conversation.ts, F1 and F2). */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDatabase, type Database } from '../../src/store/database.ts'
import { findConversationOfReply, type ReplySearch } from '../../src/store/find-conversation.ts'
import { useDatabase } from '../support/database.ts'
import { insertMessage, rightRows, type Row } from './rows.ts'

const kept = useDatabase()
let database: Database
beforeAll(() => {
  database = openDatabase(kept.url, () => {})
})
afterAll(async () => database.close())

let seconds = 0
/** Later than all before it, and to nobody else. */
async function sent(more: Row = {}): Promise<string> {
  const id = randomUUID()
  const attempt_started_at = new Date(Date.UTC(2026, 0, 1, 0, 0, ++seconds))
  await insertMessage(kept, { ...rightRows.sent, id, conversation: 'c', ...more, attempt_started_at })
  return id
}
const search = async (recipients: readonly string[], more: Partial<ReplySearch> = {}) =>
  findConversationOfReply(database, {
    provider: 'fake',
    environment: 'live',
    recipients,
    messageId: null,
    providerMessageId: null,
    ...more,
  })
/** Of a row that is not sent: what `sent` adds. */
const unsent = { sent_at: null, answer_status: null, attempt_ended_at: null, outcome: null, evidence: null }
const person = (): string => `+44${randomUUID()}`

test('the newest message to that person that names a conversation', async () => {
  const recipient = person()
  expect(await search([recipient])).toBeUndefined()
  await sent({ recipient, conversation: 'older', account_id: 'acme' })
  await sent({ recipient, conversation: 'newer', account_id: 'other' })
  await sent({ recipient, conversation: null })
  await sent({ recipient: person(), conversation: "somebody else's" })
  expect(await search([recipient])).toEqual({ account: 'other', conversation: 'newer' })
})

test('of that provider and environment, by the attempt and not by the route', async () => {
  const recipient = person()
  await sent({ recipient, provider: 'other', conversation: 'went to the next of its route' })
  await sent({ recipient, attempt_provider: 'other' })
  await sent({ recipient, environment: 'test' })
  expect(await search([recipient])).toMatchObject({ conversation: 'went to the next of its route' })
  expect(await search([recipient], { environment: 'test', provider: 'other' })).toBeUndefined()
})

test.each([
  ['sent', rightRows.sent, true],
  ['unknown', rightRows.unknown, true],
  ['sending', rightRows.sending, true],
  ['queued again', rightRows['queued again'], false],
  ['failed', rightRows.failed, false],
  ['canceled after a try', rightRows['canceled after a try'], false],
])('F1 one that is %s may have been answered: that is %s', async (_, row, may) => {
  const recipient = person()
  await sent({ recipient, ...(row.status === 'sent' ? {} : unsent), ...row })
  expect((await search([recipient])) !== undefined).toBe(may)
})

test('F2 the message that is named wins over the newest', async () => {
  const recipient = person()
  const first = await sent({ recipient, conversation: 'first', provider_message_id: 'p-1' })
  await sent({ recipient, conversation: 'second', provider_message_id: 'p-2' })
  await sent({ recipient, conversation: 'third' })
  expect(await search([recipient], { providerMessageId: 'p-2' })).toMatchObject({ conversation: 'second' })
  expect(await search([recipient], { providerMessageId: 'p-9' })).toMatchObject({ conversation: 'third' })
  expect(await search([recipient], { messageId: first })).toMatchObject({ conversation: 'first' })
  expect(await search([recipient], { messageId: randomUUID() })).toMatchObject({ conversation: 'third' })
})

test('F2 by our id whoever answers it, but of this provider and environment alone', async () => {
  const id = await sent({ recipient: person(), conversation: 'passed on' })
  expect(await search([person()], { messageId: id })).toMatchObject({ conversation: 'passed on' })
  expect(await search([], { messageId: id })).toMatchObject({ conversation: 'passed on' })
  expect(await search([], { messageId: id, provider: 'other' })).toBeUndefined()
  expect(await search([], { messageId: id, environment: 'test' })).toBeUndefined()
  expect(await search([person()], { providerMessageId: 'p-1' })).toBeUndefined()
})

test('any of several recipients; each letter counts, and nothing in them is a pattern', async () => {
  const recipient = `${person()}'%_\\`
  await sent({ recipient })
  expect(await search([person(), recipient, recipient])).toBeDefined()
  expect(await search([recipient.toUpperCase()])).toBeUndefined()
  expect(await search(['%', '', "' OR true --"])).toBeUndefined()
})

test('it is two look-ups by index, however many messages there are', async () => {
  const plan: string[] = []
  const explaining: Database = {
    ...database,
    run: async ({ text }, values) => {
      const rows = await database.run<{ 'QUERY PLAN': string }>({ name: 'explained', text: `EXPLAIN ${text}` }, values)
      plan.push(...rows.map((row) => row['QUERY PLAN']))
      return []
    },
  }
  await findConversationOfReply(explaining, {
    provider: 'fake',
    environment: 'live',
    recipients: ['a', 'b'],
    messageId: randomUUID(),
    providerMessageId: 'p',
  })
  expect(plan.join('\n')).toMatch(/messages_pkey/)
  expect(plan.join('\n')).toMatch(/messages_by_recipient/)
  expect(plan.join('\n')).not.toMatch(/Seq Scan/)
})

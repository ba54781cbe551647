/** Statements that must stay look-ups by index, also by a plan that was made while the tables were empty. */
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { finalAnswer } from '../../src/core/answer.ts'
import type { Change } from '../../src/store/save-message.ts'
import { openDatabase, plannerOptions, type Database, type Statement } from '../../src/store/database.ts'
import { createStore, type Store } from '../../src/store/store.ts'
import { newUuid } from '../../src/new-uuid.ts'
import { useDatabase } from '../support/database.ts'
import { changeTo, guardOf, newClaim, scope, sentState } from './claims.ts'

const database = useDatabase()
let opened: Database
/** Its statements are kept, and carried out. */
let store: Store
const seen = new Map<string, Statement>()

beforeAll(() => {
  opened = openDatabase(database.url, () => {})
  store = createStore({
    ...opened,
    run: async <Row extends pg.QueryResultRow>(statement: Statement, values: readonly unknown[]) => {
      seen.set(statement.name, statement)
      return opened.run<Row>(statement, values)
    },
  })
})
afterAll(async () => opened.close())

/** Made by every PostgreSQL that is supported: EXPLAIN (GENERIC_PLAN) came with 16. */
async function genericPlan(text: string): Promise<string[]> {
  const count = Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map(([, n]) => Number(n)))
  const nothing = Array.from({ length: count }, () => 'NULL').join(', ')
  const client = new pg.Client({ connectionString: database.url, options: plannerOptions })
  await client.connect()
  try {
    await client.query('SET plan_cache_mode = force_generic_plan')
    await client.query(`PREPARE asked AS ${text}`)
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(
      `EXPLAIN EXECUTE asked${count === 0 ? '' : ` (${nothing})`}`,
    )
    return rows.map((row) => row['QUERY PLAN'])
  } finally {
    await client.end()
  }
}

/** The indexes that its generic plan reads, in order, each with what is looked up in it. */
async function planOf(name: string): Promise<string[]> {
  const { text = '' } = seen.get(name) ?? {}
  const plan = await genericPlan(text)
  expect(plan.filter((line) => line.includes('Seq Scan'))).toEqual([])
  return plan.flatMap((line, i) => {
    const index = /(?:using|Bitmap Index Scan on) (\w+)/.exec(line)?.[1]
    return index === undefined ? [] : [`${index}: ${/\((.*)\)/.exec(plan[i + 1] ?? '')?.[1] ?? ''}`]
  })
}

/** The change that ends the first attempt of a new message. */
async function changed(of: Store, mayHaveDueWork: boolean): Promise<Change> {
  const claimed = await of.claimMessage(newClaim(newUuid()))
  if (claimed.kind !== 'claimed') throw new Error(claimed.kind)
  const change = changeTo(claimed.message, sentState(claimed.message), { mayHaveDueWork })
  return { ...change, next: { ...change.next, answer: finalAnswer(change.next) } }
}

const inbound = { ...scope, conversation: 'c', source: 'api', eventId: 'e', sender: 's', text: 't', occurredAt: null }

test.each<[string, (of: Store) => Promise<unknown>, readonly RegExp[]]>([
  ['conversation', async (of) => of.findConversation(scope, 'c'), [/^conversations_pkey: .*conversation = \$3/]],
  [
    'inbound-by-event',
    async (of) => {
      await of.recordInbound({ ...inbound, id: newUuid() })
      await of.recordInbound({ ...inbound, id: newUuid() })
    },
    [/^inbound_(once|by_conversation): .*conversation = \$3/],
  ],
  [
    'inbound-of-conversation',
    async (of) => of.listInbound(scope, 'c', 10, null),
    [/^inbound_by_conversation: .*conversation = \$3\) AND \(id < /],
  ],
  [
    'first-of-content',
    async (of) => of.findFirstOfContent(scope, '+447700900123', '0'.repeat(32), 900),
    [
      /^duplicate_guards_pkey: .*content_hash = /,
      /^messages_pkey: /,
      /^messages_by_recipient: .*hashtextextended.*id >= /,
    ],
  ],
  [
    'was-reached',
    async (of) => of.wasReached(scope, 'sms', '+447700900123'),
    [/^messages_by_recipient: hashtextextended/],
  ],
  [
    'waiting-ids-of',
    async (of) => of.listMessages(scope, { status: 'held' }, 10, null),
    [/^due_work_pkey: message_id < /, /^messages_pkey: id = d.message_id/],
  ],
  [
    'ids-by-recipient',
    async (of) => of.listMessages(scope, { to: '+447700900123' }, 10, null),
    [/^messages_by_recipient: .*hashtextextended.*id < /],
  ],
  ...(['claim', 'claim-plain'] as const).map((name): [string, (of: Store) => Promise<unknown>, readonly RegExp[]] => [
    name,
    async (of) => {
      const request = name === 'claim' ? { conversation: 'c' } : {}
      const claim = newClaim(`plan of ${name}`, { request })
      await of.claimMessage({ ...claim, guard: guardOf(claim) })
    },
    [/^messages_pkey: id = g.message_id/, /^messages_by_recipient: .*hashtextextended.*id >= /],
  ]),
  ['save', async (of) => of.saveMessage(await changed(of, true)), [/^messages_pkey: id = c/]],
  ['save-first', async (of) => of.saveMessage(await changed(of, false)), [/^messages_pkey: id = c/]],
  ['erase-inbound', async (of) => of.eraseInbound(new Date(0), 10), [/^inbound_by_age: received_at < \$1/]],
  ['erase-guards', async (of) => of.eraseGuards(10), [/^duplicate_guards_by_age: .*first_at < /]],
])('%s looks up in its index', async (name, ask, expected) => {
  await ask(store)
  for (const index of expected)
    expect(await planOf(name)).toEqual(expect.arrayContaining([expect.stringMatching(index)]))
  // Of all messages of an account nobody walks through.
  expect((await planOf(name)).filter((index) => index.startsWith('messages_by_scope'))).toEqual([])
})

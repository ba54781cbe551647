/** Versions of conversations on PostgreSQL (claim-message.ts, C4; save-message.ts, S3; behaviour.md, K2). */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Message, State } from '../../src/core/message.ts'
import type { Claim } from '../../src/store/claim-message.ts'
import { ConversationMoved } from '../../src/store/database-errors.ts'
import { openDatabase, type Database } from '../../src/store/database.ts'
import { createStore, type Store } from '../../src/store/store.ts'
import { newUuid } from '../../src/new-uuid.ts'
import { useDatabase } from '../support/database.ts'
import { until } from '../support/gateway.ts'
import { changeTo, guardOf, newClaim, scope, type Asked } from './claims.ts'

const database = useDatabase()
const opened: Database[] = []
/** Two processes: each has its own pool. */
let stores: readonly [Store, Store]

beforeAll(() => {
  const open = (): Store => {
    const one = openDatabase(database.url, () => {})
    opened.push(one)
    return createStore(one)
  }
  stores = [open(), open()]
})
afterAll(async () => {
  for (const one of opened) await one.close()
})

let names = 0
const newName = (): string => `v-${names++}`
const claimed = async (asked: Asked): Promise<Message> => {
  const result = await stores[0].claimMessage(newClaim(newName(), asked))
  if (result.kind !== 'claimed') throw new Error('a new key is claimed')
  return result.message
}
const approved: State = { status: 'queued', last: null, dueAt: new Date() }

async function counts(): Promise<Record<string, number>> {
  const tables = ['idempotency_keys', 'messages', 'due_work', 'duplicate_guards', 'conversations', 'answers', 'events']
  const [row] = await database.query<Record<string, number>>(
    `SELECT ${tables.map((name) => `(SELECT count(*)::int FROM ${name}) AS ${name}`).join(', ')}`,
  )
  return row ?? {}
}

test.each([0, 1, 4])(
  'K2 of 20 claims at once at version %i, over two processes, one is made, and nothing else is written at all',
  async (version) => {
    const conversation = newName()
    for (let i = 0; i < version; i++) await claimed({ request: { conversation } })
    const before = await counts()
    const claims = Array.from({ length: 20 }, (_, i): Claim => {
      const key = newName()
      const request = { conversation, content: { text: `${i}` } }
      const claim = newClaim(key, { as: 'queued', request, secondKey: `${key}, too`, bound: { ifVersion: version } })
      return { ...claim, guard: guardOf(claim) }
    })
    const results = await Promise.all(claims.map(async (claim, i) => stores[i % 2 === 0 ? 0 : 1].claimMessage(claim)))
    expect(results.filter(({ kind }) => kind === 'claimed')).toHaveLength(1)
    expect(results.filter(({ kind }) => kind === 'conversation_moved')).toHaveLength(19)
    const after = await counts()
    const grown = Object.entries(after).map(([name, count]) => [name, count - (before[name] ?? 0)])
    expect(Object.fromEntries(grown)).toEqual({
      idempotency_keys: 2,
      messages: 1,
      due_work: 1,
      duplicate_guards: 1,
      conversations: version === 0 ? 1 : 0,
      answers: 0,
      events: 0,
    })
    expect((await stores[1].findConversation(scope, conversation)).version).toBe(version + 1)
  },
)

test('of 20 claims of one key at once at one version none is told that its own twin moved the conversation', async () => {
  const [conversation, key] = [newName(), newName()]
  const results = await Promise.all(
    Array.from({ length: 20 }, async (_, i) =>
      stores[i % 2 === 0 ? 0 : 1].claimMessage(newClaim(key, { request: { conversation }, bound: { ifVersion: 0 } })),
    ),
  )
  expect(results.filter(({ kind }) => kind === 'claimed')).toHaveLength(1)
  expect(results.filter(({ kind }) => kind === 'key_taken')).toHaveLength(19)
})

test('a version is counted in its own account and environment', async () => {
  const conversation = newName()
  await claimed({ request: { conversation } })
  for (const elsewhere of [{ account: 'another' }, { environment: 'test' }] as const) {
    const asked = { request: { conversation }, message: elsewhere, bound: { ifVersion: 1 } }
    expect(await stores[0].claimMessage(newClaim(newName(), asked))).toEqual({ kind: 'conversation_moved' })
    const first = newClaim(newName(), { ...asked, bound: { ifVersion: 0 } })
    expect(await stores[0].claimMessage(first)).toMatchObject({ kind: 'claimed' })
    expect((await stores[0].findConversation({ ...scope, ...elsewhere }, conversation)).version).toBe(1)
  }
  expect((await stores[0].findConversation(scope, conversation)).version).toBe(1)
})

test('many groups of one conversation from two processes lose no version', async () => {
  const conversation = newName()
  for (let round = 0; round < 4; round++)
    await Promise.all(
      Array.from({ length: 40 }, async (_, i) =>
        stores[i % 2 === 0 ? 0 : 1].claimMessage(newClaim(newName(), { request: { conversation } })),
      ),
    )
  expect((await stores[0].findConversation(scope, conversation)).version).toBe(160)
})

test('S3 of two that wait on one version and leave at once, one leaves: in every round, from whichever process', async () => {
  for (let round = 0; round < 10; round++) {
    const conversation = newName()
    const waits = { as: 'held', request: { conversation }, bound: { rechecks: true } } as const
    const both = [await claimed(waits), await claimed(waits)]
    const results = await Promise.allSettled(
      both.map(async (message, i) => stores[i === 0 ? 0 : 1].saveMessage(changeTo(message, approved))),
    )
    const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
    expect(refused).toEqual([expect.any(ConversationMoved)])
    const found = await stores[0].findMessages(both.map(({ id }) => id))
    expect(found.map(({ state: { status } }) => status).toSorted()).toEqual(['held', 'queued'])
  }
})

test('S3 a message that leaves and a claim at the same version, at once: one of them goes', async () => {
  for (let round = 0; round < 10; round++) {
    const conversation = newName()
    const held = await claimed({ as: 'held', request: { conversation }, bound: { rechecks: true } })
    const [left, made] = await Promise.allSettled([
      stores[0].saveMessage(changeTo(held, approved)),
      stores[1].claimMessage(newClaim(newName(), { request: { conversation }, bound: { ifVersion: 0 } })),
    ])
    const isMade = made.status === 'fulfilled' && made.value.kind === 'claimed'
    expect([left.status === 'fulfilled', isMade].filter(Boolean)).toHaveLength(1)
    expect((await stores[0].findConversation(scope, conversation)).version).toBe(1)
  }
})

test('S3 a change that came too late moves nothing, and is not told that the conversation moved', async () => {
  const conversation = newName()
  const held = await claimed({ as: 'held', request: { conversation }, bound: { rechecks: true } })
  await stores[0].saveMessage(changeTo(held, { status: 'canceled', reason: null, last: null }))
  await claimed({ request: { conversation } })
  expect(await stores[1].saveMessage(changeTo(held, approved))).toBe(false)
  expect((await stores[0].findConversation(scope, conversation)).version).toBe(1)
})

describe('C4 every claim locks its conversation before its guard', () => {
  test.each<[string, Asked]>([
    ['one that nothing binds', {}],
    ['one that asks for a version', { bound: { ifVersion: 1 } }],
    ['one that is checked again', { as: 'held', bound: { rechecks: true } }],
  ])('%s', async (_, asked) => {
    const request = { conversation: newName(), content: { text: newName() } }
    const first = newClaim(newName(), { request })
    await stores[0].claimMessage({ ...first, guard: guardOf(first) })
    const holder = new pg.Client({ connectionString: database.url })
    await holder.connect()
    onTestFinished(async () => holder.end())
    await holder.query('BEGIN')
    await holder.query('SELECT 1 FROM conversations WHERE conversation = $1 FOR UPDATE', [request.conversation])
    const claim = newClaim(newName(), { ...asked, request })
    const claiming = stores[1].claimMessage({ ...claim, guard: guardOf(claim) })
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
    await until(async () => (await database.query(waiting)).length === 1)
    const free = await holder.query('SELECT 1 FROM duplicate_guards WHERE message_id = $1 FOR UPDATE SKIP LOCKED', [
      first.message.id,
    ])
    await holder.query('ROLLBACK')
    expect(free.rows).toHaveLength(1)
    expect(await claiming).toMatchObject({ kind: 'claimed', message: { possibleDuplicateOf: first.message.id } })
  })
})

test('most updates of conversations and guards are HOT', async () => {
  const request = { conversation: newName(), content: { text: newName() } }
  const counted = async () =>
    database.query<{ name: string; all: number; hot: number }>(
      `SELECT relname AS name, n_tup_upd::int AS "all", n_tup_hot_upd::int AS hot FROM pg_stat_user_tables
       WHERE relname IN ('conversations', 'duplicate_guards') ORDER BY relname`,
    )
  const own = openDatabase(database.url, () => {})
  const store = createStore(own)
  const before = await counted()
  for (let i = 0; i < 200; i++) {
    const claim = newClaim(newName(), { request })
    await store.claimMessage({ ...claim, guard: guardOf(claim) })
  }
  await own.close() // a connection tells what it counted when it ends
  let grown: { all: number; hot: number }[] = []
  await until(async () => {
    const now = await counted()
    grown = now.map(({ all, hot }, i) => ({ all: all - (before[i]?.all ?? 0), hot: hot - (before[i]?.hot ?? 0) }))
    return grown.length === 2 && grown.every(({ all }) => all >= 199)
  })
  for (const { all, hot } of grown) expect(hot / all).toBeGreaterThanOrEqual(0.9)
})

test('what came in long ago is erased in batches: the words go, the event stays and is not new again', async () => {
  const conversation = newName()
  const told = (eventId: string) => ({
    ...scope,
    id: newUuid(),
    conversation,
    source: 'api',
    eventId,
    sender: 's',
    text: 'a secret',
    occurredAt: null,
  })
  for (const eventId of ['old 1', 'old 2', 'old 3', 'new']) await stores[0].recordInbound(told(eventId))
  await database.query(`UPDATE inbound_messages SET received_at = 'epoch' WHERE event_id LIKE 'old %'`)
  const erase = async (): Promise<number> => stores[0].eraseInbound(new Date(1), 2)
  expect([await erase(), await erase(), await erase()]).toEqual([2, 1, 0])
  const texts = (await stores[1].listInbound(scope, conversation, 10, null)).map(({ sender, text }) => [sender, text])
  expect(texts).toEqual([
    ['s', 'a secret'],
    [null, null],
    [null, null],
    [null, null],
  ])
  expect(await stores[1].recordInbound(told('old 2'))).toMatchObject({
    isNew: false,
    version: 4,
    inbound: { eventId: 'old 2', sender: null, text: null },
  })
})

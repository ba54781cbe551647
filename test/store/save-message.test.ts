/** The write of every change after the claim (save-message.ts, S1, S2). */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { finalAnswer } from '../../src/core/answer.ts'
import type { Message, State } from '../../src/core/message.ts'
import type { Effect } from '../../src/core/events.ts'
import { openDatabase, type Database } from '../../src/store/database.ts'
import { createStore, type Store } from '../../src/store/store.ts'
import { useDatabase } from '../support/database.ts'
import { changeTo, ended, newAttempt, newClaim, sentState, type Asked } from './claims.ts'

const database = useDatabase()
const opened: Database[] = []
let stores: readonly [Store, Store]
let store: Store
let claims = 0

beforeAll(() => {
  const open = (): Store => {
    const one = openDatabase(database.url, () => {})
    opened.push(one)
    return createStore(one)
  }
  stores = [open(), open()]
  store = stores[0]
})
afterAll(async () => {
  for (const one of opened) await one.close()
})

async function claimed(asked: Asked = {}): Promise<Message> {
  const result = await store.claimMessage(newClaim(`save-${claims++}`, asked))
  if (result.kind !== 'claimed') throw new Error('a new key is claimed')
  return result.message
}

const note = (type: 'late_outcome' | 'expired' = 'late_outcome'): Effect => ({
  type: 'record',
  entry: { type, at: new Date(), attemptId: null, data: { note: 'n' } },
})

interface Written {
  readonly status: string
  readonly version: number
  readonly events: number
  readonly task: string | null
  readonly due: Date | null
  readonly lease: Date | null
}

async function written({ id }: Message): Promise<Written | undefined> {
  const [row] = await database.query<Written & Record<string, unknown>>(
    `SELECT status, version, lease_until AS lease, d.task, d.due_at AS due,
       (SELECT count(*)::int FROM events WHERE message_id = m.id) AS events
     FROM messages m LEFT JOIN due_work d ON d.message_id = m.id WHERE m.id = $1`,
    [id],
  )
  return row
}

test('a change is written, and reads back as it was given', async () => {
  const message = await claimed()
  const change = changeTo(message, sentState(message))
  expect(await store.saveMessage(change)).toBe(true)
  expect(await store.findMessages([message.id])).toEqual([change.next])
})

test('S1 a change of a version that is gone writes nothing at all: no state, no due work, no event', async () => {
  const message = await claimed()
  const first = changeTo(message, sentState(message))
  await store.saveMessage(first)
  const before = await written(message)
  const dueAt = new Date(Date.now() + 60_000)
  if (message.state.status !== 'sending') throw new Error('it is sending')
  const last = ended(message.state.attempt, 'not_sent')
  const late = changeTo(
    message,
    { status: 'queued', last, dueAt },
    { effects: [note(), { type: 'dispatch_at', at: dueAt }] },
  )
  expect(await store.saveMessage(late)).toBe(false)
  expect(await written(message)).toEqual(before)
  expect(await store.saveMessage({ ...first, next: { ...first.next, version: 7 } })).toBe(false)
})

test('S1 a change of a message that is not there is not written', async () => {
  const { message } = newClaim('nowhere')
  expect(await store.saveMessage(changeTo(message, sentState(message), { effects: [note()] }))).toBe(false)
  expect(await database.query('SELECT 1 FROM events WHERE message_id = $1', [message.id])).toEqual([])
})

test('S1 of two changes of one version in one group, the first is written and the other came too late', async () => {
  const [one, other] = [await claimed(), await claimed()]
  const changes = [
    changeTo(one, sentState(one, 'first'), { effects: [note()] }),
    changeTo(other, sentState(other, 'other')),
    changeTo(one, sentState(one, 'second'), { effects: [note()] }),
  ]
  expect(await Promise.all(changes.map(async (change) => store.saveMessage(change)))).toEqual([true, true, false])
  const [found] = await store.findMessages([one.id])
  expect(found?.state).toMatchObject({ providerMessageId: 'first' })
  expect((await written(one))?.events).toBe(1)
})

test('S1 of many changes of one version at once, over two stores, exactly one is written', async () => {
  for (let round = 0; round < 10; round++) {
    const message = await claimed()
    const changes = Array.from({ length: 20 }, (_, i) =>
      changeTo(message, sentState(message, `p${i}`), { effects: [note()] }),
    )
    const saved = await Promise.all(changes.map(async (change, i) => stores[i % 2 === 0 ? 0 : 1].saveMessage(change)))
    expect(saved.filter(Boolean)).toHaveLength(1)
    const [found] = await store.findMessages([message.id])
    expect(found?.state).toMatchObject({ providerMessageId: `p${saved.indexOf(true)}` })
    expect(await written(message)).toMatchObject({ version: 2, events: 1 })
  }
})

test('state, due work, events and answer of a change are written in one transaction', async () => {
  const message = await claimed({ as: 'queued' })
  const attempt = newAttempt()
  const begin = changeTo(
    message,
    { status: 'sending', attempt },
    { effects: [note(), note('expired')], leaseMs: 5_000 },
  )
  expect(await store.saveMessage(begin)).toBe(true)
  const xmins = await database.query<{ xmin: string }>(
    `SELECT xmin::text FROM messages WHERE id = $1 UNION ALL SELECT xmin::text FROM due_work WHERE message_id = $1
     UNION ALL SELECT xmin::text FROM events WHERE message_id = $1`,
    [message.id],
  )
  expect([xmins.length, new Set(xmins.map(({ xmin }) => xmin)).size]).toEqual([4, 1])
  await store.saveMessage(changeTo(begin.next, sentState(begin.next), { effects: [note()] }))
  const final = await database.query<{ same: boolean }>(
    `SELECT m.xmin = a.xmin AND m.xmin = (SELECT e.xmin FROM events e WHERE e.message_id = m.id ORDER BY id DESC LIMIT 1) AS same
     FROM messages m JOIN answers a ON a.message_id = m.id WHERE m.id = $1`,
    [message.id],
  )
  expect(final).toEqual([{ same: true }])
})

test('a change that the data base refuses writes no event and leaves the due work alone', async () => {
  const message = await claimed({ as: 'queued' })
  const before = await written(message)
  const impossible = changeTo(message, { status: 'canceled', reason: null, last: null }, { effects: [note()] })
  const refused = store.saveMessage({ ...impossible, next: { ...impossible.next, answer: null } })
  await expect(refused).rejects.toThrow(/final_has_its_answer/)
  expect(await written(message)).toEqual(before)
})

test('G2 a change that the data base refuses harms no other change of its group', async () => {
  const messages = await Promise.all(Array.from({ length: 9 }, async () => claimed()))
  const results = await Promise.allSettled(
    messages.map(async (message, i) => {
      const change = changeTo(message, sentState(message), { effects: [note()] })
      return store.saveMessage(i === 4 ? { ...change, next: { ...change.next, answer: null } } : change)
    }),
  )
  expect(results.map(({ status }) => status)).toEqual(messages.map((_, i) => (i === 4 ? 'rejected' : 'fulfilled')))
  const rows = await Promise.all(messages.map(written))
  expect(rows.map((row) => [row?.status, row?.events])).toEqual(
    messages.map((_, i) => (i === 4 ? ['sending', 0] : ['sent', 1])),
  )
})

test('S2 a lease is set by the clock of the data base, stands in the due work, and only a change that begins sets one', async () => {
  const message = await claimed({ as: 'queued' })
  const attempt = { ...newAttempt(), startedAt: new Date(Date.now() - 300_000) }
  const begun = changeTo(message, { status: 'sending', attempt }, { leaseMs: 5_000 })
  const [clock] = await database.query<{ now: Date }>('SELECT now()')
  await store.saveMessage(begun)
  const row = await written(message)
  expect(row).toMatchObject({ status: 'sending', task: 'lease', due: row?.lease })
  const ms = (row?.lease?.getTime() ?? 0) - (clock?.now.getTime() ?? 0)
  expect(ms).toBeGreaterThanOrEqual(5_000)
  expect(ms).toBeLessThan(6_000)
  await store.saveMessage(changeTo(begun.next, sentState(begun.next)))
  expect(await written(message)).toMatchObject({ status: 'sent', lease: row?.lease, task: null })
})

test('due work: set with a dispatch, cleared without, and left alone where none can be', async () => {
  const dueAt = new Date(Date.now() + 60_000)
  const message = await claimed()
  if (message.state.status !== 'sending') throw new Error('it is sending')
  const last = ended(message.state.attempt, 'not_sent')
  const waits = changeTo(
    message,
    { status: 'queued', last, dueAt },
    { effects: [{ type: 'dispatch_at', at: dueAt }], mayHaveDueWork: false },
  )
  await store.saveMessage(waits)
  expect(await written(message)).toMatchObject({ task: 'dispatch', due: dueAt })
  const canceled = changeTo(waits.next, { status: 'canceled', reason: null, last })
  await store.saveMessage({ ...canceled, mayHaveDueWork: false })
  expect(await written(message)).toMatchObject({ status: 'canceled', task: 'dispatch' })
  const other = await claimed({ as: 'queued' })
  await store.saveMessage(changeTo(other, { status: 'canceled', reason: null, last: null }))
  expect(await written(other)).toMatchObject({ status: 'canceled', task: null })
})

test('an intent is given free by failed and canceled, and by nothing else', async () => {
  const guard = async (message: Message): Promise<unknown> =>
    (await database.query<{ g: string }>('SELECT intent_guard AS g FROM messages WHERE id = $1', [message.id]))[0]?.g
  const sent = await claimed({ request: { intent: 'kept' } })
  await store.saveMessage(changeTo(sent, sentState(sent)))
  const canceled = await claimed({ as: 'queued', request: { intent: 'freed' } })
  expect([await guard(sent), await guard(canceled)]).toEqual(['kept', 'freed'])
  await store.saveMessage(changeTo(canceled, { status: 'canceled', reason: null, last: null }))
  expect([await guard(sent), await guard(canceled)]).toEqual(['kept', null])
})

test('news for the time line alone changes no message', async () => {
  const message = await claimed()
  const before = await written(message)
  await store.recordEvents(message.id, [{ type: 'late_outcome', at: new Date(), attemptId: null, data: { a: 1 } }])
  expect(await written(message)).toEqual({ ...before, events: 1 })
  expect(await store.findEvents(message.id)).toMatchObject([{ type: 'late_outcome', data: { a: 1 } }])
})

const rejectedState = (message: Message): State => {
  const sent = sentState(message)
  if (sent.status !== 'sent') throw new Error('it is sent')
  return { status: 'failed', reason: 'provider_refused', last: { ...sent.attempt, outcome: 'rejected' } }
}

test.each<[string, Asked, (message: Message) => State]>([
  ['sent', {}, sentState],
  ['sent without an id of the provider', {}, (message) => sentState(message, null)],
  ['sent with an intent, in a conversation', { request: { intent: 'i', conversation: 'c' } }, sentState],
  ['refused', {}, rejectedState],
  ['refused with an intent', { request: { intent: 'j' } }, rejectedState],
  ['sent, and rendered before', { message: { rendered: '{}' } }, sentState],
])('a first outcome leaves the same by the short statement as by the whole one: %s', async (_, asked, stateOf) => {
  const leftBy = async (mayHaveDueWork: boolean): Promise<unknown> => {
    const number = claims
    const intent = asked.request?.intent === undefined ? {} : { intent: `${asked.request.intent}${number}` }
    const message = await claimed({ ...asked, request: { ...asked.request, ...intent } })
    const state = stateOf(message)
    const change = changeTo(message, state, { mayHaveDueWork })
    const at = state.status === 'failed' ? (state.last?.endedAt ?? new Date()) : change.next.updatedAt
    const next = { ...change.next, updatedAt: at, rendered: null }
    expect(await store.saveMessage({ ...change, next: { ...next, answer: finalAnswer(next) } })).toBe(true)
    const [row] = await database.query<Record<string, unknown>>(
      `SELECT m.*, a.status AS a_status, a.content_type, a.location, a.body,
         (SELECT count(*)::int FROM due_work d WHERE d.message_id = m.id) AS due,
         (SELECT count(*)::int FROM events e WHERE e.message_id = m.id) AS events
       FROM messages m LEFT JOIN answers a ON a.message_id = m.id WHERE m.id = $1`,
      [message.id],
    )
    // What is one's own: ids, keys and times. Each of them is there or not in both.
    const own = /^[0-9a-f]{8}-|^save-|^[ij]\d+$|^\/v1\/messages\/|"id":|"intent":/
    return Object.entries(row ?? {}).map(([name, value]) =>
      value instanceof Date || (typeof value === 'string' && own.test(value)) ? [name, 'its own'] : [name, value],
    )
  }
  expect(await leftBy(false)).toEqual(await leftBy(true))
})

/** Rows and messages: what is written reads back the same, in every state; an impossible row throws. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ApprovalDecision, Message, Plan, Resolution, State } from '../../src/core/message.ts'
import { statuses } from '../../src/core/message.ts'
import { openAttempt } from '../../src/core/recovery.ts'
import { openDatabase, type Database } from '../../src/store/database.ts'
import { messageFromRow, type MessageRowWithAnswer } from '../../src/store/message-rows.ts'
import { createStore, type Store } from '../../src/store/store.ts'
import { useDatabase } from '../support/database.ts'
import { changeTo, ended, newAttempt, newClaim, scope, type Asked } from './claims.ts'

const database = useDatabase()
let opened: Database
let store: Store
beforeAll(() => {
  opened = openDatabase(database.url, () => {})
  store = createStore(opened)
})
afterAll(async () => opened.close())

let claims = 0
async function claimed(asked: Asked): Promise<Message> {
  const result = await store.claimMessage(newClaim(`row-${claims++}`, asked))
  if (result.kind !== 'claimed') throw new Error('a new key is claimed')
  return result.message
}

const soon = new Date(Date.now() + 60_000)
const first = newAttempt()
const second = newAttempt(2)
const byPerson: Resolution = {
  by: 'operator',
  at: new Date(),
  attemptId: first.id,
  outcome: 'sent',
  apiKey: 'someone',
  evidence: 'seen, with "quotes" and ünïcode 🙂',
}
const lateAnswer: Resolution = { by: 'late_answer', at: new Date(), attemptId: first.id, outcome: 'not_sent' }

const plan: Plan = { step: 'look', at: soon, givesUpAt: soon, steps: 3 }

const lateRefusal = {
  status: 'failed',
  reason: 'provider_refused',
  last: ended(first, 'rejected'),
} as const

const open = [openAttempt(ended(first, 'unknown'))]

const approved: ApprovalDecision = { decision: 'approved', by: 'someone', at: new Date(), from: '2001:db8::1' }
const declined: ApprovalDecision = { ...approved, decision: 'declined' }

const states: [string, State, Partial<Message>?][] = [
  ['held', { status: 'held' }],
  ['scheduled, and approved', { status: 'scheduled', sendAt: soon }, { decision: approved }],
  ['queued, and approved', { status: 'queued', last: null, dueAt: soon }, { decision: approved }],
  ['declined', { status: 'canceled', reason: 'declined', last: null }, { decision: declined }],
  ['lapsed', { status: 'canceled', reason: 'lapsed', last: null }],
  ['approved in vain', { status: 'canceled', reason: 'conversation_changed', last: null }, { decision: approved }],
  ['scheduled', { status: 'scheduled', sendAt: soon }],
  ['queued, never called', { status: 'queued', last: null, dueAt: soon }],
  ['queued again', { status: 'queued', last: ended(first, 'not_sent'), dueAt: soon }],
  ['sending', { status: 'sending', attempt: first }, { rendered: 'what was "sent"' }],
  ['sending again, with an attempt open', { status: 'sending', attempt: second }, { open, rendered: 'bytes' }],
  [
    'unknown, after a repeat that was not sent',
    { status: 'unknown', attempt: ended(second, 'not_sent'), plan: null },
    { open },
  ],
  ['unknown', { status: 'unknown', attempt: ended(first, 'unknown'), plan: null }],
  [
    'unknown, with a step planned',
    { status: 'unknown', attempt: ended(first, 'unknown'), plan },
    { rendered: 'bytes' },
  ],
  [
    'sending, and proven by a receipt',
    { status: 'sending', attempt: first },
    { proof: { attemptId: first.id, providerMessageId: 'p', at: soon } },
  ],
  ['sent', { status: 'sent', attempt: ended(first, 'accepted'), providerMessageId: 'p', sentAt: soon }],
  [
    'sent, settled by a person',
    { status: 'sent', attempt: ended(first, 'unknown'), providerMessageId: null, sentAt: soon },
    { resolution: byPerson },
  ],
  [
    'sent, and delivered',
    { status: 'sent', attempt: ended(first, 'unknown'), providerMessageId: null, sentAt: soon },
    {
      delivery: { status: 'undelivered', at: soon, code: '30005' },
      resolution: { by: 'receipt', at: soon, attemptId: first.id, outcome: 'sent' },
    },
  ],
  ['failed', lateRefusal, { resolution: lateAnswer }],
  ['expired, never called', { status: 'failed', reason: 'expired', last: null }],
  [
    'failed, settled by a person',
    {
      status: 'failed',
      reason: 'resolved_not_sent',
      last: ended(first, 'unknown'),
    },
    { resolution: { ...byPerson, outcome: 'not_sent' } },
  ],
  ['canceled', { status: 'canceled', reason: null, last: null }],
  ['canceled after a try', { status: 'canceled', reason: null, last: ended(first, 'not_sent') }],
]

test('every status is among the states of this test', () => {
  expect(new Set(states.map(([, { status }]) => status))).toEqual(new Set(statuses))
})

/** Raw rows, Prisma's rows, and rows found by key: all must read the same. Lists leave the stored answer out. */
async function expectFoundEverywhere(expected: Message | undefined): Promise<void> {
  const { answer: _, rendered: __, proof: ___, ...shown } = expected ?? newClaim('').message
  const byKey = await store.findKey(scope, [shown.idempotencyKey])
  expect(byKey?.kind === 'message' ? byKey.message : undefined).toEqual(expected)
  expect(await store.findMessages([shown.id])).toEqual([expected])
  expect(await store.findMessage(scope, shown.id)).toEqual(expected)
  expect((await store.listMessages(scope, {}, 1, null))[0]).toEqual(shown)
}

/** The lease is the data base's to set; whoever began the attempt knows it to within a moment. */
async function leaseOf(id: string): Promise<Date | null> {
  const rows = await database.query<{ lease_until: Date | null }>('SELECT lease_until FROM messages WHERE id = $1', [
    id,
  ])
  return rows[0]?.lease_until ?? null
}
function withLease(message: Message, leaseUntil: Date | null): Message {
  const { state } = message
  if (leaseUntil === null) return message
  if ('attempt' in state) return { ...message, state: { ...state, attempt: { ...state.attempt, leaseUntil } } as State }
  if (!('last' in state) || state.last === null) return message
  return { ...message, state: { ...state, last: { ...state.last, leaseUntil } } }
}

test.each(states)(
  'a message that is %s reads back as it was written, however it is read',
  async (_, state, more = {}) => {
    const wasHeld = 'decision' in more || ('reason' in state && state.reason === 'lapsed')
    const waits = state.status === 'held' || state.status === 'scheduled' ? state.status : 'queued'
    const heldFor = wasHeld ? 'duplicate' : null
    const had = await claimed({ as: waits, message: waits === 'held' ? {} : { heldFor } })
    const attempted = 'attempt' in state || ('last' in state && state.last !== null)
    const before: Message = {
      ...had,
      attempts: attempted && state.status !== 'sending' ? 1 : 0,
    }
    const change = changeTo(before, state, {
      leaseMs: 'attempt' in state || ('last' in state && state.last !== null) ? 1_000 : null,
    })
    const changed = { ...change.next, ...more }
    const next = state.status === 'scheduled' ? { ...changed, sendAt: had.sendAt } : changed
    const expected =
      state.status === 'scheduled' && had.sendAt !== null ? { ...next, state: { ...state, sendAt: had.sendAt } } : next
    expect(await store.saveMessage({ ...change, next: expected })).toBe(true)
    await expectFoundEverywhere(withLease(expected, await leaseOf(had.id)))
  },
)

test('a second attempt reads back with its number', async () => {
  const message = await claimed({ as: 'queued' })
  const tried = changeTo({ ...message, attempts: 1 }, { status: 'queued', last: ended(first, 'not_sent'), dueAt: soon })
  await store.saveMessage(tried)
  const again = changeTo(tried.next, { status: 'sending', attempt: second }, { leaseMs: 1_000 })
  await store.saveMessage(again)
  const [found] = await store.findMessages([message.id])
  expect(found).toEqual(withLease(again.next, await leaseOf(message.id)))
  expect(found).toMatchObject({ attempts: 2, open: [], state: { attempt: { number: 2 } } })
})

test('what bound a claim reads back: who sent it, why it is held, on which version, like which one, and where it may go', async () => {
  const alike = await claimed({ as: 'queued' })
  const conversation = 'bound'
  await claimed({ as: 'queued', request: { conversation } })
  const message = await claimed({
    as: 'held',
    request: { conversation },
    bound: { rechecks: true },
    message: {
      heldFor: 'duplicate',
      possibleDuplicateOf: alike.id,
      sentBy: 'agent7',
      allowedProviders: ['b', 'a "b"'],
    },
  })
  expect(message).toMatchObject({
    state: { status: 'held' },
    heldFor: 'duplicate',
    decision: null,
    sentBy: 'agent7',
    conversationVersion: 1,
    possibleDuplicateOf: alike.id,
    allowedProviders: ['b', 'a "b"'],
  })
  await expectFoundEverywhere(message)
  const free = await claimed({ as: 'queued', message: { sentBy: null, allowedProviders: [] } })
  expect(free).toMatchObject({ sentBy: null, heldFor: null, conversationVersion: null, allowedProviders: [] })
  await expectFoundEverywhere(free)
})

test('what was asked reads back whole: members, metadata, texts of any script, times and trace', async () => {
  const request = {
    channel: 'email',
    to: 'someone@example.com',
    content: { subject: "naïve “quotes” \\ ' $1 %s 🙂", html: '<p>\n</p>', headers: { 'X-One': 'a' } },
    cc: ['a@example.com', 'b@example.com'],
    conversation: "c'; DROP TABLE messages; --",
    reference: '{"json": [1]}',
    intent: 'i\\n',
  } as unknown as NonNullable<Asked['request']>
  const claim = newClaim('whole', { request })
  const metadata = { 'a "b"': 'c\\d', empty: '' }
  const traceparent = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`
  const result = await store.claimMessage({ ...claim, message: { ...claim.message, metadata, traceparent } })
  const message = result.kind === 'claimed' ? result.message : undefined
  expect(message).toMatchObject({ metadata, traceparent, request })
  await expectFoundEverywhere(message)
})

async function rawRow(state: State['status']): Promise<MessageRowWithAnswer> {
  const message = await claimed({ as: 'queued' })
  const ordinary = states.find(([, { status }]) => status === state)
  if (ordinary === undefined) throw new Error('every status is there')
  const [, found, more] = ordinary
  const change = changeTo({ ...message, attempts: 1 }, found, { leaseMs: 1_000 })
  await store.saveMessage({ ...change, next: { ...change.next, ...more } })
  const row = await opened.prisma.message.findUniqueOrThrow({ where: { id: message.id } })
  const answer = await opened.prisma.answer.findUnique({ where: { messageId: message.id } })
  const { contentType = null, location = null, body = null } = answer ?? {}
  return { ...row, answerContentType: contentType, answerLocation: location, answerBody: body }
}

test.each([
  ['sending', 'attemptId'],
  ['sending', 'attemptProvider'],
  ['sending', 'attemptStartedAt'],
  ['unknown', 'outcome'],
  ['unknown', 'evidence'],
  ['unknown', 'attemptEndedAt'],
  ['sent', 'sentAt'],
  ['sent', 'attemptId'],
  ['sent', 'answerBody'],
  ['failed', 'failedReason'],
  ['failed', 'answerContentType'],
] as const)('a row that is %s without %s throws, and names the message, not its content', async (status, field) => {
  const row = await rawRow(status)
  expect(messageFromRow(row).state.status).toBe(status)
  expect(() => messageFromRow({ ...row, [field]: null })).toThrow(
    new RegExp(`^message ${row.id}, ${status}: (${field}|its answer) is missing$`),
  )
})

test('a stored answer is replaced with the verdict that it belonged to, and erased with its message', async () => {
  const message = await claimed({ as: 'queued' })
  const failed = changeTo({ ...message, attempts: 1 }, { ...lateRefusal }, { leaseMs: 1_000 })
  await store.saveMessage(failed)
  const corrected = changeTo(failed.next, {
    status: 'sent',
    attempt: ended(first, 'accepted'),
    providerMessageId: 'p',
    sentAt: soon,
  })
  await store.saveMessage(corrected)
  const [found] = await store.findMessages([message.id])
  expect([failed.next.answer?.status, found?.answer]).toEqual([422, corrected.next.answer])
  await database.query(`UPDATE messages SET created_at = 'epoch', updated_at = 'epoch' WHERE id = $1`, [message.id])
  await store.eraseResults(new Date(1), 10)
  expect(await database.query('SELECT 1 FROM answers WHERE message_id = $1', [message.id])).toEqual([])
})

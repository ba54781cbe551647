/** The table of api.md, "The answer follows from the message's status", row by row. */
import { describe, expect, test } from 'vitest'
import { answerFor, finalAnswer, jsonType, problemType, type Asker } from '../../src/core/answer.ts'
import { sentOf, statuses, statusReason, type Message, type State, type Status } from '../../src/core/message.ts'
import { messageView } from '../../src/core/message-view.ts'
import {
  after,
  approve,
  attempt,
  cancel,
  decided,
  decline,
  ended,
  expire,
  messageIn,
  moved,
  outcomeOf,
  play,
  settle,
  states,
  t0,
} from './fixtures.ts'

const askers = {
  first: { claimed: true, async: false },
  'first, respond-async': { claimed: true, async: true },
  repeat: { claimed: false, async: false },
  'repeat, respond-async': { claimed: false, async: true },
} as const satisfies Record<string, Asker>
type Who = keyof typeof askers
const everyone = Object.keys(askers) as Who[]
const firsts = everyone.filter((who) => askers[who].claimed)
const repeats = everyone.filter((who) => !askers[who].claimed)

/** Each message as a history leaves it, with its stored answer where it has one. */
const messages = {
  sent: play(messageIn(states.sending), outcomeOf(attempt(), 'accepted')),
  held: messageIn(states.held),
  scheduled: messageIn(states.scheduled),
  queued: messageIn(states.queued),
  sending: messageIn(states.sending),
  unknown: play(messageIn(states.sending), outcomeOf(attempt(), 'unknown')),
  'failed, refused': play(messageIn(states.sending), outcomeOf(attempt(), 'rejected')),
  'failed, settled by a person': play(messageIn(states.unknown), settle('not_sent')),
  'failed, expired': play(messageIn(states.queued), expire),
  canceled: play(messageIn(states.queued), cancel),
  declined: play(messageIn(states.held), decline()),
  lapsed: play(messageIn(states.held), expire),
  'canceled, for its conversation moved': play(messageIn(states.held), moved(decided('approved'))),
} as const satisfies Record<string, Message>
type Which = keyof typeof messages

interface Row {
  readonly status: number
  readonly type: string | null
  readonly retryable?: boolean
  readonly sent?: string
  readonly location: boolean
  readonly retryAfter: boolean
  readonly replayed: boolean
}
const made = (status: number, retryAfter: boolean, replayed: boolean): Row => ({
  status,
  type: null,
  location: true,
  retryAfter,
  replayed,
})
const refused = (status: number, type: string, sent: string, replayed: boolean): Row => ({
  status,
  type,
  retryable: false,
  sent,
  location: false,
  retryAfter: false,
  replayed,
})
const inProgress: Row = { ...refused(409, 'in-progress', 'maybe', false), retryable: true, retryAfter: true }

const table: readonly (readonly [Which, readonly Who[], (replayed: boolean) => Row])[] = [
  ['sent', everyone, (replayed) => made(201, false, replayed)],
  ['held', everyone, (replayed) => made(202, true, replayed)],
  ['scheduled', everyone, (replayed) => made(202, true, replayed)],
  ['queued', everyone, (replayed) => made(202, true, replayed)],
  ['sending', [...firsts, 'repeat, respond-async'], (replayed) => made(202, true, replayed)],
  ['sending', ['repeat'], () => inProgress],
  ['unknown', everyone, (replayed) => refused(504, 'outcome-unknown', 'maybe', replayed)],
  ['failed, refused', everyone, (replayed) => refused(422, 'message-rejected', 'no', replayed)],
  ['failed, settled by a person', everyone, (replayed) => refused(422, 'message-rejected', 'no', replayed)],
  ['failed, expired', everyone, (replayed) => refused(422, 'message-expired', 'no', replayed)],
  ...(['canceled', 'declined', 'lapsed', 'canceled, for its conversation moved'] as const).map(
    (which) => [which, everyone, (replayed: boolean) => refused(409, 'message-canceled', 'no', replayed)] as const,
  ),
]
const rows = table.flatMap(([which, who, row]) =>
  who.map((asker) => [which, asker, row(repeats.includes(asker))] as const),
)

describe('the answer', () => {
  test('is settled for every status and every asker', () => {
    expect(new Set(rows.map(([which, who]) => `${which}: ${who}`)).size).toBe(rows.length)
    expect(rows).toHaveLength(Object.keys(messages).length * everyone.length)
    expect(new Set(Object.values(messages).map(({ state }) => state.status))).toEqual(new Set(statuses))
  })

  test.each(rows)('A1 A2 of a message that is %s, to a %s, is that of the table', (which, who, row) => {
    const message = messages[which]
    const answer = answerFor(message, askers[who], t0)
    const path = `/v1/messages/msg_${message.id.replaceAll('-', '')}`
    expect(answer.status).toBe(row.status)
    expect(answer.contentType).toBe(row.type === null ? jsonType : problemType)
    expect(answer.location).toBe(row.location ? path : null)
    expect(answer.retryAfterS !== null).toBe(row.retryAfter)
    expect(answer.replayed).toBe(row.replayed)
    const problem = {
      type: `/problems/${row.type}`,
      status: row.status,
      retryable: row.retryable,
      sent: row.sent,
      instance: path,
    }
    expect(JSON.parse(answer.body)).toMatchObject(row.type === null ? { status: message.state.status } : problem)
  })

  const problemRows = rows.filter(([, , { type }]) => type !== null)
  test.each(problemRows)('of a message that is %s, to a %s, is a problem with all its members', (which, who) => {
    const message = messages[which]
    const body = JSON.parse(answerFor(message, askers[who], t0).body) as Record<string, unknown>
    expect(Object.keys(body).toSorted()).toEqual(
      ['detail', 'instance', 'message', 'retryable', 'sent', 'status', 'title', 'type'].toSorted(),
    )
    expect(body['title']).toMatch(/./)
    expect(body['detail']).toMatch(/\.$/)
    expect(body['message']).toEqual({
      id: `msg_${message.id.replaceAll('-', '')}`,
      status: message.state.status,
      createdAt: '2026-12-01T09:00:00.000Z',
    })
  })

  test('tells why: the code and the words of the provider, the time that passed, the person', () => {
    const detail = (which: Which): unknown =>
      (JSON.parse(messages[which].answer?.body ?? '{}') as { detail: unknown }).detail
    expect(detail('failed, refused')).toMatch(/refused it \(21211\): Invalid To number\./)
    expect(detail('failed, expired')).toContain('before 2026-12-02T09:00:00.000Z')
    expect(detail('failed, settled by a person')).toContain('A person settled')
    expect(detail('declined')).toMatch(/A person declined it\./)
    expect(detail('lapsed')).toMatch(/Nobody approved it before notAfter\./)
    expect(detail('canceled, for its conversation moved')).toMatch(/The conversation moved on before it left: read it/)
    expect(detail('canceled')).not.toMatch(/declined|approved|conversation/)
  })

  test('ends what the provider said before it says what to do', () => {
    const refusedWith = (detail: string) => {
      const evidence = { phase: 'answered', httpStatus: 400, code: '21610', detail } as const
      const event = { ...outcomeOf(attempt(), 'rejected'), outcome: { kind: 'rejected', evidence } } as const
      return play(messageIn(states.sending), event).answer?.body
    }
    for (const detail of ['Attempt to send to unsubscribed recipient', 'Attempt to send to unsubscribed recipient.'])
      expect(refusedWith(detail)).toContain('(21610): Attempt to send to unsubscribed recipient. Nothing')
  })

  test('holds no recipient, text or key where it is a problem', () => {
    for (const [which, who] of problemRows) {
      const { body } = answerFor(messages[which], askers[who], t0)
      for (const secret of ['447700900123', 'parcel', 'order-42']) expect(body).not.toContain(secret)
    }
  })
})

describe('a stored answer', () => {
  const finals = (Object.keys(messages) as Which[]).filter((which) => messages[which].answer !== null)

  test.each(finals)('A1 of one that is %s is given to the first and to every repeat, byte for byte', (which) => {
    const message = messages[which]
    const first = answerFor(message, askers.first, t0)
    for (const who of everyone)
      for (const now of [t0, after(86_400_000 * 365)]) {
        const { replayed, ...again } = answerFor(message, askers[who], now)
        const { replayed: _, ...bytes } = first
        expect(again).toEqual(bytes)
        expect(replayed).toBe(repeats.includes(who))
      }
    expect(first).toMatchObject({ ...message.answer, retryAfterS: null })
  })

  test('A1 is not made anew: what stands there is what is given', () => {
    const stored = { status: 201, contentType: 'text/x', location: '/elsewhere', body: '{"as":"it was"}' }
    for (const status of ['sent', 'failed', 'canceled'] as const)
      expect(answerFor(messageIn(states[status], { answer: stored }), askers.repeat, t0)).toMatchObject(stored)
  })

  test.each(['sent', 'failed', 'canceled'] as const)(
    'A1 that is missing of one that is %s is a bug, and not made up',
    (status) => {
      expect(() => answerFor(messageIn(states[status]), askers.repeat, t0)).toThrow(/without its answer/)
    },
  )

  test.each(['held', 'scheduled', 'queued', 'sending', 'unknown'] as const)(
    'does not exist of one that is %s',
    (status) => {
      expect(() => finalAnswer(messageIn(states[status]))).toThrow(status)
    },
  )

  test('of one that is sent is the message as it is then', () => {
    const message = messages.sent
    expect(JSON.parse(message.answer?.body ?? '')).toEqual(JSON.parse(JSON.stringify(messageView(message))))
  })
})

describe('Retry-After', () => {
  const secondsOf = (state: State, now: Date): number | null =>
    answerFor(messageIn(state), askers.first, now).retryAfterS

  test.each([
    ['a time that has passed', -5_000, 1],
    ['this moment', 0, 1],
    ['a part of a second', 1, 1],
    ['a whole second', 1_000, 1],
    ['a little more than a second', 1_001, 2],
    ['a minute', 60_000, 60],
    ['an hour', 3_600_000, 3_600],
    ['a year', 31_536_000_000, 3_600],
  ])('for %s is a whole number from 1 to 3600', (_, ms, seconds) => {
    expect(secondsOf({ status: 'scheduled', sendAt: after(ms) }, t0)).toBe(seconds)
    expect(secondsOf({ status: 'queued', last: null, dueAt: after(ms) }, t0)).toBe(seconds)
  })

  test('of one that waits for a person is a minute, whenever it lapses', () => {
    for (const who of everyone)
      for (const now of [t0, after(86_399_000)]) expect(answerFor(messages.held, askers[who], now).retryAfterS).toBe(60)
  })

  test('of one that was approved is that of one that waits by itself', () => {
    const approved = play(messages.held, approve(after(6_000)))
    expect(answerFor(approved, askers.repeat, after(6_000))).toMatchObject({ status: 202, retryAfterS: 1 })
    const later = play(messageIn(states.held, { sendAt: after(66_000) }), approve(after(6_000)))
    expect(answerFor(later, askers.repeat, after(6_000))).toMatchObject({ status: 202, retryAfterS: 60 })
  })

  test('of a call that is running is a second', () => {
    for (const who of everyone) expect(answerFor(messages.sending, askers[who], t0).retryAfterS).toBe(1)
  })
})

describe('what is said of a status', () => {
  test.each<[Status, string]>([
    ['held', 'maybe'],
    ['scheduled', 'maybe'],
    ['queued', 'maybe'],
    ['sending', 'maybe'],
    ['unknown', 'maybe'],
    ['sent', 'yes'],
    ['failed', 'no'],
    ['canceled', 'no'],
  ])('of %s: sent %s', (status, sent) => {
    expect(sentOf(status)).toBe(sent)
  })

  test.each<[string, State, string | null]>([
    ['scheduled', states.scheduled, null],
    ['queued at once', { status: 'queued', last: null, dueAt: t0 }, null],
    ['queued again', states.queued, 'ECONNREFUSED'],
    ['sending', states.sending, null],
    ['unknown', states.unknown, 'UND_ERR_SOCKET'],
    [
      'unknown without a code',
      { status: 'unknown', attempt: { ...ended('unknown'), evidence: { phase: 'begun', detail: 'Cut.' } }, plan: null },
      'begun',
    ],
    ['sent', states.sent, null],
    ['failed', states.failed, 'provider_refused'],
    ['canceled', states.canceled, null],
    ['held', states.held, 'approval'],
    ['declined', { ...states.canceled, reason: 'declined' }, 'declined'],
    ['lapsed', { ...states.canceled, reason: 'lapsed' }, 'lapsed'],
    ['of a conversation that moved', { ...states.canceled, reason: 'conversation_changed' }, 'conversation_changed'],
  ])('of one that is %s, the reason', (_, state, reason) => {
    expect(statusReason(messageIn(state))).toBe(reason)
  })
})

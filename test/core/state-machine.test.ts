import { openAttempt } from '../../src/core/recovery.ts'
import { describe, expect, test } from 'vitest'
import { statuses, type Status } from '../../src/core/message.ts'
import { outcomeKinds } from '../../src/core/outcome.ts'
import type { Effect, Event } from '../../src/core/events.ts'
import { advance, decide } from '../../src/core/state-machine.ts'
import {
  after,
  alarms,
  approve,
  attempt,
  begin,
  cancel,
  decided,
  decline,
  ended,
  entries,
  expire,
  lapse,
  messageIn,
  moved,
  outcomeOf,
  receipt,
  settle,
  look,
  blind,
  states,
  told,
  whatFollows,
} from './fixtures.ts'

/** Of attempt 1, which each state speaks of; attempt 7 is another of the same message. */
const events: Record<string, Event> = {
  begin: begin(2),
  accepted: outcomeOf(attempt(1), 'accepted'),
  rejected: outcomeOf(attempt(1), 'rejected'),
  not_sent: outcomeOf(attempt(1), 'not_sent'),
  unknown: outcomeOf(attempt(1), 'unknown'),
  'other accepted': outcomeOf(attempt(7), 'accepted'),
  'other rejected': outcomeOf(attempt(7), 'rejected'),
  'other not_sent': outcomeOf(attempt(7), 'not_sent'),
  'other unknown': outcomeOf(attempt(7), 'unknown'),
  'lease lapsed': lapse,
  expire,
  cancel,
  approve: approve(),
  decline: decline(),
  'conversation moved': moved(),
  'approved in vain': moved(decided('approved')),
  'looked found': look('found'),
  'looked absent': look('absent'),
  'looked failed': look('failed'),
  'looked proven': look('absent', { absence: 'proven' }),
  replan: { type: 'replan', means: blind, at: after(9_000), random: 0.5 },
  'settle sent': settle('sent'),
  'settle not_sent': settle('not_sent'),
  'settle other': settle('sent', 7),
  'receipt accepted': receipt('accepted'),
  'receipt delivered': receipt('delivered'),
  'receipt undelivered': receipt('undelivered', { attemptId: attempt(7).id }),
}

// · is ignored, ! illegal
const table = `
                    | held     | scheduled | queued   | sending | unknown | sent | failed | canceled
begin               | ·        | sending   | sending  | ·       | ·       | ·    | ·      | ·
accepted            | sent     | sent      | sent     | sent    | sent    | ·    | sent   | sent
rejected            | ·        | ·         | ·        | failed  | failed  | ·    | ·      | ·
not_sent            | ·        | ·         | ·        | queued  | queued  | ·    | ·      | ·
unknown             | ·        | ·         | ·        | unknown | ·       | ·    | ·      | ·
other accepted      | sent     | sent      | sent     | sent    | sent    | ·    | sent   | sent
other rejected      | ·        | ·         | ·        | ·       | ·       | ·    | ·      | ·
other not_sent      | ·        | ·         | ·        | ·       | ·       | ·    | ·      | ·
other unknown       | ·        | ·         | ·        | ·       | ·       | ·    | ·      | ·
lease lapsed        | ·        | ·         | ·        | unknown | ·       | ·    | ·      | ·
expire              | canceled | failed    | failed   | ·       | ·       | ·    | ·      | ·
cancel              | canceled | canceled  | canceled | ·       | ·       | ·    | ·      | ·
approve             | queued   | ·         | ·        | ·       | ·       | ·    | ·      | ·
decline             | canceled | ·         | ·        | ·       | ·       | ·    | ·      | ·
conversation moved  | canceled | canceled  | ·        | ·       | ·       | ·    | ·      | ·
approved in vain    | canceled | canceled  | ·        | ·       | ·       | ·    | ·      | ·
looked found        | !        | !         | sent     | sent    | sent    | ·    | sent   | sent
looked absent       | !        | !         | ·        | ·       | unknown | ·    | ·      | ·
looked failed       | !        | !         | ·        | ·       | unknown | ·    | ·      | ·
looked proven       | !        | !         | ·        | ·       | queued  | ·    | ·      | ·
replan              | ·        | ·         | ·        | ·       | ·       | ·    | ·      | ·
settle sent         | ·        | ·         | ·        | ·       | sent    | ·    | ·      | ·
settle not_sent     | ·        | ·         | ·        | ·       | failed  | ·    | ·      | ·
settle other        | ·        | ·         | ·        | ·       | ·       | ·    | ·      | ·
receipt accepted    | ·        | ·         | sent     | sending | sent    | ·    | sent   | sent
receipt delivered   | ·        | ·         | sent     | sending | sent    | sent | sent   | sent
receipt undelivered | ·        | ·         | sent     | sending | sent    | sent | sent   | sent`

const [head = [], ...body] = table
  .trim()
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))
const words: Record<string, string> = { '·': 'ignored', '!': 'illegal' }
const rows = body.flatMap(([event = '', ...cells]) =>
  cells.map((cell, i) => [event, head[head.length - cells.length + i] as Status, words[cell] ?? cell] as const),
)

describe('every status and every event', () => {
  test('stand in the table', () => {
    expect(new Set(rows.map(([event]) => event))).toEqual(new Set(Object.keys(events)))
    expect(new Set(rows.map(([, status]) => status))).toEqual(new Set(statuses))
    expect(rows).toHaveLength(Object.keys(events).length * statuses.length)
    const types: Record<Event['type'], true> = {
      begin: true,
      outcome: true,
      lease_lapsed: true,
      looked: true,
      replan: true,
      expire: true,
      cancel: true,
      decide: true,
      conversation_moved: true,
      settle: true,
      receipt: true,
    }
    expect(new Set(Object.values(events).map(({ type }) => type))).toEqual(new Set(Object.keys(types)))
  })

  test.each(rows)('%s, of a message that is %s: %s', (name, status, expected) => {
    const message = messageIn(states[status])
    const before = structuredClone(message)
    const event = events[name] as Event
    const decision = decide(message, event)
    expect(whatFollows(decision)).toBe(expected)
    expect(message).toEqual(before)
    expect(decide(message, event)).toEqual(decision)
  })
})

describe('a call', () => {
  test('M1 makes a message `sending` with the attempt that was recorded', () => {
    const decision = decide(messageIn({ status: 'queued', last: null, dueAt: after(0) }), begin(1))
    expect(decision).toMatchObject({
      kind: 'transition',
      next: { status: 'sending', attempt: attempt(1) },
      effects: [],
    })
  })

  test('M1 that follows another moves that one to the time line, with its evidence', () => {
    const decision = decide(messageIn(states.queued), begin(2))
    const last = states.queued.last
    expect(entries(decision)).toEqual([
      {
        type: 'attempt_ended',
        at: last.endedAt,
        attemptId: last.id,
        data: { number: 1, provider: 'fake', startedAt: last.startedAt, outcome: 'not_sent', ...last.evidence },
      },
    ])
  })

  test('that is accepted makes it `sent`, with the id and the time', () => {
    const event = outcomeOf(attempt(), 'accepted')
    expect(decide(messageIn(states.sending), event)).toMatchObject({
      kind: 'transition',
      next: {
        status: 'sent',
        attempt: { ...attempt(), endedAt: event.at, outcome: 'accepted', evidence: event.outcome.evidence },
        providerMessageId: 'SM1',
        sentAt: event.at,
      },
      effects: [],
    })
  })

  test('that is refused for good makes it `failed`, and nothing is due', () => {
    const decision = decide(messageIn(states.sending), outcomeOf(attempt(), 'rejected'))
    expect(decision).toMatchObject({
      next: { status: 'failed', reason: 'provider_refused' },
      effects: [],
    })
  })

  test('that was not sent is due again, once, not later than notAfter', () => {
    const at = after(1_200)
    const outcome = { ...told.not_sent, reason: 'refused_for_now', retryAfterMs: 7_000 } as const
    const event: Event = { ...outcomeOf(attempt(), 'not_sent', at), outcome }
    const dueAt = after(8_200)
    expect(decide(messageIn(states.sending), event)).toMatchObject({
      next: { status: 'queued', dueAt, last: { id: attempt().id, outcome: 'not_sent' } },
      effects: [{ type: 'dispatch_at', at: dueAt }],
    })
    const notAfter = after(5_000)
    expect(decide(messageIn(states.sending, { notAfter }), event)).toMatchObject({
      next: { dueAt: notAfter },
      effects: [{ type: 'dispatch_at', at: notAfter }],
    })
  })

  test('whose credentials are refused waits a minute and raises an alarm', () => {
    const outcome = { ...told.not_sent, reason: 'credentials' } as const
    const decision = decide(messageIn(states.sending), { ...outcomeOf(attempt(), 'not_sent', after(0)), outcome })
    expect(decision).toMatchObject({ next: { status: 'queued', dueAt: after(60_000) } })
    expect(alarms(decision)).toEqual(['provider_credentials'])
  })

  test('whose answer is lost makes it `unknown`: nothing is due', () => {
    const decision = decide(messageIn(states.sending), outcomeOf(attempt(), 'unknown'))
    expect(decision).toMatchObject({
      next: { status: 'unknown', attempt: { id: attempt().id, outcome: 'unknown' } },
      effects: [],
    })
  })

  test('M2 whose lease lapsed makes it `unknown`, with an entry and nothing due', () => {
    const decision = decide(messageIn(states.sending), lapse)
    expect(decision).toMatchObject({
      next: { status: 'unknown', attempt: { outcome: 'unknown', evidence: { phase: 'begun' } } },
    })
    const types: Effect['type'][] = decision.kind === 'transition' ? decision.effects.map(({ type }) => type) : []
    expect(types).toEqual(['record'])
    expect(entries(decision)).toMatchObject([{ type: 'lease_lapsed', attemptId: attempt().id, at: after(5_000) }])
  })
})

describe('while an earlier attempt is unknown', () => {
  const message = messageIn({ status: 'sending', attempt: attempt(2) }, { open: [openAttempt(ended('unknown'))] })
  test.each([
    ['accepted', 'sent'],
    ['rejected', 'unknown'],
    ['not_sent', 'unknown'],
    ['unknown', 'unknown'],
  ] as const)('O2 a later %s leaves it %s', (kind, status) => {
    const decision = decide(message, outcomeOf(attempt(2), kind))
    expect(decision).toMatchObject({ kind: 'transition', next: { status } })
  })
})

test('what was not accepted by notAfter has failed, with an entry', () => {
  for (const [state, last] of [
    [states.queued, ended('not_sent')],
    [states.scheduled, null],
  ] as const) {
    const decision = decide(messageIn(state), expire)
    expect(decision).toMatchObject({ next: { status: 'failed', reason: 'expired', last } })
    expect(entries(decision)).toMatchObject([{ type: 'expired', at: after(86_400_000) }])
  }
})

describe('the next version', () => {
  test('of a message that begins an attempt counts it, and keeps what the one before ended with', () => {
    const queued = messageIn(states.queued, { version: 4, attempts: 1 })
    const next = advance(queued, { status: 'sending', attempt: { ...attempt(2), provider: 'other' } }, {}, after(2_000))
    expect(next).toMatchObject({ version: 5, attempts: 2, open: [], provider: 'other', answer: null })
    expect(next.updatedAt).toEqual(after(2_000))
    expect(queued.version).toBe(4)
  })

  test('of a first attempt has nothing open before it', () => {
    const next = advance(messageIn(states.scheduled), states.sending, {}, after(0))
    expect(next).toMatchObject({ version: 2, attempts: 1, open: [] })
  })

  test.each(statuses.filter((status) => status !== 'sending'))('that is %s begins no attempt', (status) => {
    const next = advance(messageIn(states.sending, { version: 7 }), states[status], {}, after(3_000))
    expect(next).toMatchObject({ version: 8, attempts: 1, open: [], provider: 'fake' })
  })

  test.each([
    ['held', null],
    ['scheduled', null],
    ['queued', null],
    ['sending', null],
    ['unknown', null],
    ['sent', 201],
    ['failed', 422],
    ['canceled', 409],
  ] as const)('that is %s has the answer %s', (status, code) => {
    const next = advance(messageIn(states.sending), states[status], {}, after(3_000))
    expect(next.answer?.status ?? null).toBe(code)
    expect(next.answer?.body ?? `"status":"${status}"`).toContain(`"status":"${status}"`)
  })
})

test('the words for an outcome are four', () => {
  expect(outcomeKinds).toEqual(['accepted', 'rejected', 'not_sent', 'unknown'])
})

/** What is told after a message was settled, told twice, or told by a person (engine.md, D6, E9). */
import { describe, expect, test } from 'vitest'
import type { Message } from '../../src/core/message.ts'
import type { Event } from '../../src/core/events.ts'
import { decide } from '../../src/core/state-machine.ts'
import {
  after,
  alarms,
  applied,
  attempt,
  begin,
  cancel,
  ended,
  entries,
  expire,
  lapse,
  messageIn,
  outcomeOf,
  play,
  settle,
  states,
} from './fixtures.ts'

describe('a late answer', () => {
  test.each([
    ['accepted', 'sent'],
    ['rejected', 'failed'],
  ] as const)('M3 that says %s resolves an unknown attempt as %s, and is recorded', (kind, status) => {
    const decision = decide(messageIn(states.unknown), outcomeOf(attempt(), kind, after(9_000)))
    const outcome = kind === 'accepted' ? 'sent' : 'not_sent'
    const resolution = { by: 'late_answer', at: after(9_000), attemptId: attempt().id, outcome }
    expect(decision).toMatchObject({ next: { status }, changes: { resolution } })
    expect(entries(decision)).toMatchObject([
      { type: 'attempt_ended', attemptId: attempt().id, data: { outcome: 'unknown' } },
      { type: 'late_outcome', attemptId: attempt().id, data: { outcome: kind } },
    ])
    expect(alarms(decision)).toEqual([])
  })

  test('M3 that says "not sent" of the unknown attempt itself lets the message wait for another', () => {
    const decision = decide(messageIn(states.unknown), outcomeOf(attempt(), 'not_sent'))
    expect(decision).toMatchObject({ next: { status: 'queued', last: { outcome: 'not_sent' } } })
    expect(entries(decision)).toMatchObject([
      { type: 'attempt_ended', data: { outcome: 'unknown' } },
      { type: 'late_outcome', data: { outcome: 'not_sent' } },
    ])
  })

  test.each(['rejected', 'not_sent', 'unknown'] as const)(
    'M3 that says %s of another attempt leaves the unknown one unknown, and is recorded',
    (kind) => {
      const decision = decide(messageIn(states.unknown), outcomeOf(attempt(7), kind))
      expect(decision.kind).toBe('ignored')
      expect(entries(decision)).toMatchObject([
        { type: 'late_outcome', attemptId: attempt(7).id, data: { outcome: kind } },
      ])
    },
  )

  test('M4 that says "accepted" corrects a failed message, and raises an alarm', () => {
    const settled = play(messageIn(states.unknown), settle('not_sent'))
    expect(settled).toMatchObject({ state: { status: 'failed', reason: 'resolved_not_sent' }, answer: { status: 422 } })
    const { message, decision } = applied(settled, outcomeOf(attempt(), 'accepted', after(10_000)))
    expect(alarms(decision)).toEqual(['verdict_corrected'])
    expect(entries(decision)).toMatchObject([
      { type: 'attempt_ended' },
      { type: 'late_outcome', attemptId: attempt().id },
    ])
    expect(message).toMatchObject({
      state: { status: 'sent', sentAt: after(10_000) },
      resolution: { by: 'late_answer', outcome: 'sent' },
      answer: { status: 201 },
      version: settled.version + 1,
    })
    expect(JSON.parse(message.answer?.body ?? '')).toMatchObject({ status: 'sent', providerMessageId: 'SM1' })
  })

  test.each<[string, Message]>([
    ['canceled, whose answer said sent: no', play(messageIn(states.queued), cancel)],
    ['expired, whose answer said sent: no', play(messageIn(states.queued), expire)],
    ['queued again, for its attempt was said not to be sent', messageIn(states.queued)],
    ['being sent again, for the attempt before was said not to be sent', play(messageIn(states.queued), begin(2))],
  ])('M4 that says "accepted" raises an alarm at a message that is %s', (_, message) => {
    const decision = decide(message, outcomeOf(attempt(), 'accepted'))
    expect(decision).toMatchObject({ kind: 'transition', next: { status: 'sent' } })
    expect(alarms(decision)).toEqual(['verdict_corrected'])
  })

  test.each<[string, Event[], object[]]>([
    [
      'refused for good',
      [outcomeOf(attempt(2), 'rejected')],
      [{ type: 'attempt_ended', data: { outcome: 'rejected' } }],
    ],
    ['lost', [outcomeOf(attempt(2), 'unknown')], [{ type: 'attempt_ended', data: { outcome: 'unknown' } }]],
    ['running', [], [{ type: 'attempt_started', data: { number: 2, provider: 'fake' } }]],
  ])(
    'that says "accepted" of an earlier attempt moves the present one, which is %s, to the time line',
    (_, second, moved) => {
      const message = play(messageIn(states.queued), begin(2), ...second)
      const decision = decide(message, outcomeOf(attempt(1), 'accepted', after(9_000)))
      const [first, ...others] = entries(decision)
      expect([first]).toMatchObject(moved)
      expect(first?.attemptId).toBe(attempt(2).id)
      expect(others).toMatchObject([{ type: 'late_outcome', attemptId: attempt(1).id }])
    },
  )

  test('D6 of a stale owner is recorded as evidence, also where it is "unknown" still', () => {
    const lapsed = play(messageIn(states.sending), lapse)
    const evidence = { phase: 'answered', httpStatus: 500, detail: 'An answer without a verdict.' } as const
    const event: Event = { ...outcomeOf(attempt(), 'unknown', after(9_000)), outcome: { kind: 'unknown', evidence } }
    const decision = decide(lapsed, event)
    expect(decision.kind).toBe('ignored')
    expect(entries(decision)).toEqual([
      { type: 'late_outcome', at: after(9_000), attemptId: attempt().id, data: { outcome: 'unknown', ...evidence } },
    ])
  })

  test('M4 that says "accepted" of a canceled message makes it sent, with a new answer', () => {
    const canceled = play(messageIn(states.queued), cancel)
    expect(canceled.answer?.status).toBe(409)
    expect(play(canceled, outcomeOf(attempt(), 'accepted'))).toMatchObject({
      state: { status: 'sent' },
      answer: { status: 201 },
    })
  })

  test('M4 of a second attempt that was accepted too says so, and raises an alarm', () => {
    const decision = decide(messageIn(states.sent), outcomeOf(attempt(7), 'accepted'))
    expect(decision.kind).toBe('ignored')
    expect(alarms(decision)).toEqual(['accepted_twice'])
    expect(entries(decision)).toMatchObject([{ type: 'late_outcome', attemptId: attempt(7).id }])
  })

  test.each(['rejected', 'not_sent', 'unknown'] as const)('M4 that says %s never unsends', (kind) => {
    for (const number of [1, 7]) {
      const decision = decide(messageIn(states.sent), outcomeOf(attempt(number), kind))
      expect([decision.kind, alarms(decision)]).toEqual(['ignored', []])
      expect(entries(decision)).toHaveLength(1)
    }
  })
})

test('M1 the lapse of a lease ends the attempt whose lease it was, and no other', () => {
  // The rescuer read attempt 1 as lapsed; before it wrote, that attempt ended and another began.
  const present = play(messageIn(states.sending), outcomeOf(attempt(1), 'not_sent'), begin(2))
  expect(present.state).toMatchObject({ status: 'sending', attempt: { number: 2 } })
  expect(decide(present, lapse)).toMatchObject({ kind: 'ignored', effects: [] })
  expect(decide(present, { ...lapse, attemptId: attempt(2).id })).toMatchObject({ next: { status: 'unknown' } })
})

describe('the same news again', () => {
  test.each([
    ['accepted', states.sent],
    ['rejected', states.failed],
    ['not_sent', states.queued],
    ['not_sent', states.canceled],
    ['unknown', states.unknown],
  ] as const)('of an attempt that is %s changes nothing and leaves no trace', (kind, state) => {
    expect(decide(messageIn(state), outcomeOf(attempt(), kind))).toMatchObject({ kind: 'ignored', effects: [] })
  })

  test.each([
    ['a cancellation', states.canceled, cancel],
    ['a lapse', states.unknown, lapse],
    ['an expiry', states.failed, expire],
    ['a verdict', states.sent, settle('sent')],
    ['a begin', states.sending, begin(1)],
  ])('%s changes nothing and leaves no trace', (_, state, event) => {
    expect(decide(messageIn(state), event)).toMatchObject({ kind: 'ignored', effects: [] })
  })
})

describe('a person', () => {
  const { attempt: open } = states.unknown
  test.each([
    ['sent', { status: 'sent', providerMessageId: 'SM9', sentAt: after(9_000), attempt: open }],
    ['not_sent', { status: 'failed', reason: 'resolved_not_sent', last: open }],
  ] as const)('who settles an unknown attempt as %s settles the message; who and why is kept', (outcome, state) => {
    const decision = decide(messageIn(states.unknown), settle(outcome))
    const kept = { outcome, apiKey: 'key1', evidence: 'Seen in the console.' }
    const resolution = { by: 'operator', at: after(9_000), attemptId: open.id, ...kept }
    expect(decision).toMatchObject({ kind: 'transition', next: state, changes: { resolution } })
    expect(entries(decision)).toEqual([
      { type: 'resolved', at: after(9_000), attemptId: open.id, data: { by: 'operator', ...kept, resend: false } },
    ])
    expect(alarms(decision)).toEqual([])
  })

  test('M5 cancels what waits, and the attempts so far are kept', () => {
    expect(decide(messageIn(states.scheduled), cancel)).toMatchObject({ next: { status: 'canceled', last: null } })
    const decision = decide(messageIn(states.queued), cancel)
    expect(decision).toMatchObject({ next: { status: 'canceled', last: ended('not_sent') } })
    expect(entries(decision)).toEqual([
      { type: 'canceled', at: after(5_000), attemptId: null, data: { apiKey: 'key1' } },
    ])
  })

  test('M5 cannot cancel what may have left', () => {
    for (const status of ['sending', 'unknown', 'sent', 'failed'] as const)
      expect(decide(messageIn(states[status]), cancel)).toEqual({ kind: 'ignored', because: 'too late', effects: [] })
  })
})

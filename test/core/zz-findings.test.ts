/** Where the code does not yet do what the contract says. Each test fails until it does; then it moves to its own file. */
import { describe, expect, test } from 'vitest'
import type { Message } from '../../src/core/message.ts'
import { messageView } from '../../src/core/message-view.ts'
import { timesOf } from '../../src/core/schedule.ts'
import { decide, type Event } from '../../src/core/state-machine.ts'
import {
  after,
  alarms,
  attempt,
  begin,
  cancel,
  entries,
  expire,
  lapse,
  linesAfter,
  messageIn,
  nameOf,
  outcomeOf,
  play,
  smsRequest,
  states,
  t0,
  told,
} from './fixtures.ts'

const queued = messageIn({ status: 'queued', last: null, dueAt: t0 })

const linesOf = (start: Message, ...events: Event[]) => linesAfter(start, ...events).lines

describe('an acceptance that contradicts what was said (api.md, "A verdict that later evidence contradicts"; E9)', () => {
  test.each<[string, Message]>([
    ['canceled, whose answer said sent: no', play(messageIn(states.queued), cancel)],
    ['expired, whose answer said sent: no', play(messageIn(states.queued), expire)],
    ['queued again, for its attempt was said not to be sent', messageIn(states.queued)],
  ])('M4 raises an alarm at a message that is %s', (_, message) => {
    const decision = decide(message, outcomeOf(attempt(), 'accepted'))
    expect(decision).toMatchObject({ kind: 'transition', next: { status: 'sent' } })
    expect(alarms(decision)).toEqual(['verdict_corrected'])
  })
})

describe('what a stale owner learnt about its own attempt (D6; engine.md, the fence)', () => {
  test('is recorded as evidence after its lease lapsed, also where it is "unknown" still', () => {
    const lapsed = play(messageIn(states.sending), lapse)
    const evidence = {
      phase: 'answered',
      httpStatus: 500,
      code: '500',
      detail: 'An answer without a verdict.',
    } as const
    const event: Event = {
      ...outcomeOf(attempt(), 'unknown', after(9_000)),
      outcome: { ...told.unknown, evidence } as never,
    }
    const decision = decide(lapsed, event)
    expect(decision.kind).toBe('ignored')
    expect(entries(decision)).toMatchObject([
      { type: 'late_outcome', attemptId: attempt().id, data: { outcome: 'unknown', httpStatus: 500 } },
    ])
  })
})

describe('the lapse of a lease', () => {
  test('M1 ends the attempt whose lease it was, and no other', () => {
    // rescuer.ts reads attempt 1 as lapsed; before it writes, that attempt ends as not_sent and attempt 2 begins:
    // applyEvent decides again on the present message, whose lease is fresh.
    const present = play(messageIn(states.sending), outcomeOf(attempt(1), 'not_sent'), begin(2))
    expect(present.state).toMatchObject({ status: 'sending', attempt: { number: 2 } })
    const event = { type: 'lease_lapsed' as const, at: after(5_000), attemptId: attempt(1).id }
    expect(decide(present, event).kind).toBe('ignored')
  })
})

describe('the time line (api.md, "Reading": claimed, attempt started, outcome with evidence)', () => {
  test.each<[string, Event[]]>([
    ['refused for good', [begin(2), outcomeOf(attempt(2), 'rejected')]],
    ['lost', [begin(2), outcomeOf(attempt(2), 'unknown')]],
    ['still running', [begin(2)]],
  ])('keeps an attempt that is %s when an earlier one turns out to be accepted', (_, second) => {
    const events = [begin(1), outcomeOf(attempt(1), 'not_sent'), ...second]
    const late = outcomeOf(attempt(1), 'accepted', after(9_000))
    const before = linesOf(queued, ...events)
      .map(nameOf)
      .filter((name) => name.endsWith(' 2'))
    expect(before).toContain('attempt_started 2')
    expect(linesOf(queued, ...events, late).map(nameOf)).toEqual(expect.arrayContaining(before))
  })

  test('gives an attempt the same event ids before and after another attempt follows it', () => {
    const events = [begin(1), outcomeOf(attempt(1), 'not_sent')]
    const idsOf = (lines: ReturnType<typeof linesOf>) =>
      lines.filter(({ attempt: of }) => of?.endsWith('1')).map(({ id }) => id)
    const before = idsOf(linesOf(queued, ...events))
    expect(before).toHaveLength(2)
    expect(idsOf(linesOf(queued, ...events, begin(2)))).toEqual(before)
  })

  test('tells what happened within one millisecond in the order in which it happened', () => {
    const at = after(0)
    const second = { ...attempt(2), startedAt: at }
    const first = { ...attempt(1), startedAt: at }
    const lines = linesOf(queued, { type: 'begin', attempt: first }, outcomeOf(first, 'not_sent', at), {
      type: 'begin',
      attempt: second,
    })
    expect(lines.map(nameOf)).toEqual(['claimed', 'attempt_started 1', 'attempt_ended 1', 'attempt_started 2'])
  })

  test('has event ids with a UUIDv7 inside (api.md, first paragraph)', () => {
    for (const { id } of linesOf(queued, begin(1)))
      expect(id).toMatch(/^evt_[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/)
  })
})

describe('times (api.md, first paragraph: RFC 3339)', () => {
  test.each(['9999-12-31T12:00:00Z', '9999-12-31T23:59:59-23:59'])(
    'shown are RFC 3339 for a message that is scheduled at %s',
    (sendAt) => {
      const request = { ...smsRequest, sendAt }
      const times = timesOf(request, t0)
      const view = messageView(messageIn({ status: 'scheduled', sendAt: times.sendAt ?? t0 }, { request, ...times }))
      for (const time of [view.sendAt, view.notAfter]) expect(time).toMatch(/^\d{4}-\d{2}-\d{2}T/)
    },
  )
})

describe('the detail of a problem (api.md: plain sentences)', () => {
  test('ends what the provider said before it says what to do', () => {
    // Twilio's table has its wordings without a stop, as Twilio has them.
    const evidence = {
      phase: 'answered',
      httpStatus: 400,
      code: '21610',
      detail: 'Attempt to send to unsubscribed recipient',
    } as const
    const event: Event = { ...outcomeOf(attempt(), 'rejected'), outcome: { kind: 'rejected', evidence } }
    const { answer } = play(messageIn(states.sending), event)
    expect(answer?.body).toContain('Attempt to send to unsubscribed recipient. ')
  })
})

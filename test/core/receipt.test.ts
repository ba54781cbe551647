/** What receipts make of a message (receipt.ts, E1 to E4; engine.md, "Acceptance learnt at any time wins"). */
import { describe, expect, test } from 'vitest'
import type { Delivery } from '../../src/core/message.ts'
import { messageView } from '../../src/core/message-view.ts'
import { openAttempt } from '../../src/core/recovery.ts'
import {
  after,
  alarms,
  applied,
  attempt,
  begin,
  ended,
  entries,
  keyed,
  lapse,
  linesAfter,
  messageIn,
  nameOf,
  outcomeOf,
  play,
  receipt,
  settle,
  states,
} from './fixtures.ts'

const sending = messageIn(states.sending)
const unknown = messageIn(states.unknown)
const sent = play(sending, outcomeOf(attempt(), 'accepted'))
const failed = play(sending, outcomeOf(attempt(), 'rejected'))
const delivery = (status: Delivery['status'], ms: number): Delivery => ({
  status,
  at: after(ms),
  code: status === 'undelivered' ? '30005' : null,
})

describe('E1 a receipt proves acceptance', () => {
  test.each(['accepted', 'delivered', 'undelivered'] as const)('%s settles what is unknown', (evidence) => {
    const { message, decision } = applied(unknown, receipt(evidence))
    expect(message).toMatchObject({
      state: { status: 'sent', providerMessageId: 'SM1', sentAt: after(7_000), attempt: { id: attempt().id } },
      resolution: { by: 'receipt', outcome: 'sent', attemptId: attempt().id, at: after(7_000) },
      delivery: evidence === 'accepted' ? null : delivery(evidence, 6_000),
      answer: { status: 201 },
    })
    expect(alarms(decision)).toEqual([])
  })

  test('of an earlier attempt that is open, too: nothing is open after it', () => {
    const twice = messageIn(
      { status: 'unknown', attempt: ended('not_sent', 2), plan: null },
      { open: [openAttempt(ended('unknown'))], attempts: 2 },
    )
    for (const attemptId of [attempt(1).id, null]) {
      const { message, decision } = applied(twice, receipt('accepted', { attemptId }))
      expect(message).toMatchObject({ state: { status: 'sent', attempt: { number: 2 } }, open: [] })
      expect(message.resolution?.attemptId).toBe(attemptId ?? attempt(2).id)
      expect(alarms(decision)).toEqual([])
    }
    // Of the one that was said to be not sent: somebody was wrong.
    expect(alarms(applied(twice, receipt('accepted', { attemptId: attempt(2).id })).decision)).toEqual([
      'verdict_corrected',
    ])
  })

  test.each([
    ['failed', failed],
    ['settled by a person', play(unknown, settle('not_sent'))],
    ['queued again', play(sending, outcomeOf(attempt(), 'not_sent'))],
    ['canceled after a try', messageIn(states.canceled)],
  ])('what is %s is corrected, with a new answer and an alarm', (_, before) => {
    const { message, decision } = applied(before, receipt('delivered'))
    expect(message).toMatchObject({ state: { status: 'sent' }, resolution: { by: 'receipt' }, answer: { status: 201 } })
    expect(message.delivery).toEqual(delivery('delivered', 6_000))
    expect(alarms(decision)).toEqual(['verdict_corrected'])
  })

  test.each([
    ['scheduled', messageIn(states.scheduled)],
    ['queued', messageIn({ status: 'queued', last: null, dueAt: after(0) })],
    ['canceled', messageIn({ status: 'canceled', reason: null, last: null })],
    ['expired', messageIn({ status: 'failed', reason: 'expired', last: null })],
  ])('what is %s and was never begun cannot have been accepted', (_, before) => {
    const { message, decision } = applied(before, receipt('delivered'))
    expect([message, decision.kind, entries(decision)]).toEqual([before, 'ignored', []])
  })
})

describe('E2 the delivery stands beside the status', () => {
  test('the stored answer is what it was; what is shown tells the delivery', () => {
    const message = play(sent, receipt('undelivered'))
    expect(message.answer).toBe(sent.answer)
    expect(message.state).toEqual(sent.state)
    expect(messageView(message)).toMatchObject({
      status: 'sent',
      delivery: { status: 'undelivered', at: after(6_000).toISOString(), code: '30005' },
    })
  })

  test('delivered does not go back to what came before it, whenever that is told', () => {
    const delivered = play(sent, receipt('delivered'))
    for (const late of [
      receipt('accepted', { occurredAt: after(9_000) }),
      receipt('undelivered', { occurredAt: after(5_000) }),
      receipt('undelivered', { occurredAt: after(6_000) }),
    ])
      expect(play(delivered, late)).toBe(delivered)
  })

  test('of two the later one counts, in either order; on a tie it was delivered', () => {
    const [first, second] = [
      receipt('delivered', { occurredAt: after(5_000) }),
      receipt('undelivered', { occurredAt: after(6_000) }),
    ]
    expect(play(sent, first, second).delivery).toEqual(delivery('undelivered', 6_000))
    expect(play(sent, second, first).delivery).toEqual(delivery('undelivered', 6_000))
    const tie = { ...first, occurredAt: second.occurredAt }
    expect([play(sent, tie, second).delivery, play(sent, second, tie).delivery]).toEqual([
      delivery('delivered', 6_000),
      delivery('delivered', 6_000),
    ])
  })
})

describe('E3 while a call runs the proof is kept', () => {
  const proven = play(sending, receipt('delivered', { attemptId: attempt().id }))

  test('it stays sending, and shows the delivery', () => {
    expect(proven).toMatchObject({
      state: states.sending,
      proof: { attemptId: attempt().id, providerMessageId: 'SM1', at: after(6_000) },
      delivery: delivery('delivered', 6_000),
      answer: null,
    })
  })

  test.each([
    ['the answer is lost', outcomeOf(attempt(), 'unknown'), []],
    ['the lease lapses', lapse, []],
    ['the call says no', outcomeOf(attempt(), 'rejected'), ['verdict_corrected']],
    ['nothing was sent, it says', outcomeOf(attempt(), 'not_sent'), ['verdict_corrected']],
  ])('and %s: sent, by receipt', (_, event, expected) => {
    const { message, decision } = applied(proven, event)
    expect(message).toMatchObject({
      state: { status: 'sent', providerMessageId: 'SM1' },
      resolution: { by: 'receipt', attemptId: attempt().id },
      proof: null,
      delivery: delivery('delivered', 6_000),
    })
    expect(alarms(decision)).toEqual(expected)
  })

  test('and it is accepted: nobody had to settle it; the id of the receipt serves where the answer had none', () => {
    const { message, decision } = applied(proven, outcomeOf(attempt(), 'accepted'))
    expect(message).toMatchObject({
      state: { status: 'sent', providerMessageId: 'SM1' },
      resolution: null,
      proof: null,
    })
    expect(alarms(decision)).toEqual([])
    const { outcome, ...event } = outcomeOf(attempt(), 'accepted')
    const without = { ...event, outcome: { ...outcome, providerMessageId: null } }
    expect(play(proven, without)).toMatchObject({ state: { providerMessageId: 'SM1' } })
  })

  test('and another id was accepted: twice', () => {
    const other = play(sending, receipt('accepted', { providerMessageId: 'SM2' }))
    expect(alarms(applied(other, outcomeOf(attempt(), 'accepted')).decision)).toEqual(['accepted_twice'])
  })

  test('of an earlier attempt, while a repeat by key runs that is then refused: sent, without an alarm', () => {
    const first = messageIn({ ...states.unknown, plan: plannedReplay }, { rendered: 'as it was sent' })
    const repeating = play(first, begin(2, keyed))
    expect(repeating.state.status).toBe('sending')
    const { message, decision } = applied(
      play(repeating, receipt('accepted', { attemptId: attempt(1).id })),
      outcomeOf(attempt(2), 'rejected', after(9_000), keyed),
    )
    expect(message).toMatchObject({
      state: { status: 'sent' },
      resolution: { by: 'receipt', attemptId: attempt(1).id },
    })
    expect([alarms(decision), message.open]).toEqual([[], []])
  })
})

const plannedReplay = { step: 'replay', at: after(2_000), givesUpAt: after(3_600_000), steps: 0 } as const

describe('E4 the same receipt again changes nothing, and leaves no line', () => {
  test.each(['accepted', 'delivered', 'undelivered'] as const)('%s', (evidence) => {
    for (const before of [sending, unknown, sent, failed]) {
      const once = play(before, receipt(evidence))
      const again = applied(once, receipt(evidence))
      expect(again.message).toBe(once)
      expect([entries(again.decision), alarms(again.decision)]).toEqual([[], []])
    }
  })

  test('its line has the id that the event gave it', () => {
    const { decision } = applied(sent, receipt('delivered'))
    expect(entries(decision)).toEqual([
      {
        id: receipt('delivered').lineId,
        type: 'receipt',
        at: after(7_000),
        attemptId: null,
        data: {
          provider: 'fake',
          evidence: 'delivered',
          providerMessageId: 'SM1',
          code: null,
          occurredAt: after(6_000),
        },
      },
    ])
    const { lines } = linesAfter(sending, outcomeOf(attempt(), 'accepted'), receipt('delivered'))
    expect(lines.map(nameOf)).toEqual(['claimed', 'attempt_started 1', 'attempt_ended 1', 'receipt'])
  })
})

describe('two acceptances', () => {
  test('a receipt of another id of the provider: it has the message twice', () => {
    const other = applied(sent, receipt('accepted', { providerMessageId: 'SM2' }))
    expect([other.message, alarms(other.decision)]).toEqual([sent, ['accepted_twice']])
    expect(entries(other.decision)).toHaveLength(1)
    const delivered = applied(sent, receipt('delivered', { providerMessageId: 'SM2' }))
    expect([delivered.message.delivery?.status, alarms(delivered.decision)]).toEqual(['delivered', ['accepted_twice']])
  })

  test('an id where none was known is taken in; one that a person wrote down is not compared', () => {
    const state = { ...states.sent, providerMessageId: null }
    const { message, decision } = applied(messageIn(state, { answer: sent.answer }), receipt('accepted'))
    expect([message.state, alarms(decision)]).toEqual([{ ...state, providerMessageId: 'SM1' }, []])
    expect(message.answer).toBe(sent.answer)
    const byPerson = play(unknown, settle('sent'))
    expect(alarms(applied(byPerson, receipt('accepted')).decision)).toEqual([])
  })
})

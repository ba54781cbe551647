/** What holds after any history of events, whatever the order (engine.md: verdict, warrants; product.md). */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isFinal, sentOf, statuses, type Attempt, type Message, type Status } from '../../src/core/message.ts'
import { fold, outcomeKinds, type OutcomeKind } from '../../src/core/outcome.ts'
import type { Event } from '../../src/core/events.ts'
import { after, applied } from './fixtures.ts'
import { eventOf, starts, step, type Step } from './random-histories.ts'

const kinds = fc.constantFrom(...outcomeKinds)

describe('the fold over the outcomes of all attempts', () => {
  const pairs = outcomeKinds.flatMap((a) => outcomeKinds.map((b) => [a, b] as const))
  const strength: readonly OutcomeKind[] = ['not_sent', 'rejected', 'unknown', 'accepted']
  const foldAll = (list: readonly OutcomeKind[]): OutcomeKind | null => list.reduce<OutcomeKind | null>(fold, null)

  test.each(pairs)('O1 of %s and %s is the stronger one, in either order', (a, b) => {
    const stronger = strength.indexOf(a) > strength.indexOf(b) ? a : b
    expect(fold(a, b)).toBe(stronger)
    expect(fold(b, a)).toBe(stronger)
  })

  test.each(outcomeKinds)('O1 of a first attempt that is %s is that', (kind) => {
    expect(fold(null, kind)).toBe(kind)
  })

  test('O1 does not depend on order, repetition or grouping', () => {
    fc.assert(
      fc.property(
        fc.array(kinds, { minLength: 1 }),
        fc.array(kinds, { minLength: 1 }),
        fc.func(fc.nat()),
        (a, b, rank) => {
          const all = [...a, ...b]
          const indices = all.map((_, i) => i).toSorted((x, y) => rank(x) - rank(y))
          expect(foldAll(indices.map((i) => all[i] ?? 'accepted'))).toBe(foldAll(all))
          expect(foldAll([...all, ...all])).toBe(foldAll(all))
          expect(fold(foldAll(a), foldAll(b) ?? 'accepted')).toBe(foldAll(all))
        },
      ),
    )
  })

  test('O2 is "unknown" or "accepted" while one attempt is unknown; "accepted" once one is', () => {
    fc.assert(
      fc.property(fc.array(kinds, { minLength: 1 }), (list) => {
        expect(foldAll(list)).toBe(strength.findLast((kind) => list.includes(kind)))
      }),
    )
  })
})

/** What is known of each attempt, told without the code under test. */
type Knowledge = OutcomeKind | 'running'

interface History {
  readonly message: Message
  readonly begun: readonly Attempt[]
  readonly known: ReadonlyMap<string, Knowledge>
}

/** What must hold of every step: before it, what happened, after it. */
type Rule = (before: History, event: Event, now: History) => boolean

/** The first step that breaks the rule, in words; null if none does. */
function firstBreach(rule: Rule, start: Message, steps: readonly Step[]): string | null {
  const begun = start.state.status === 'sending' ? [start.state.attempt] : []
  let history: History = { message: start, begun, known: new Map(begun.map(({ id }) => [id, 'running'])) }
  for (const [i, asked] of steps.entries()) {
    const event = eventOf(history.message, history.begun, asked, after(10_000 + i * 1_000))
    if (event === undefined) continue
    const { message, decision } = applied(history.message, event)
    if (decision.kind === 'illegal' && event.type !== 'settle') return decision.because
    const began = event.type === 'begin' && decision.kind === 'transition' ? [event.attempt] : []
    const now = { message, begun: [...history.begun, ...began], known: learn(history, event, decision.kind) }
    if (!rule(history, event, now))
      return `step ${i}, ${event.type}: ${history.message.state.status} -> ${message.state.status}`
    history = now
  }
  return null
}

function learn({ known, message }: History, event: Event, kind: string): Map<string, Knowledge> {
  const next = new Map(known)
  if (event.type === 'begin' && kind === 'transition') next.set(event.attempt.id, 'running')
  if (
    event.type === 'lease_lapsed' &&
    message.state.status === 'sending' &&
    message.state.attempt.id === event.attemptId
  )
    next.set(event.attemptId, 'unknown')
  if (event.type === 'settle' && kind === 'transition')
    next.set(event.attemptId, event.outcome === 'sent' ? 'accepted' : 'not_sent')
  if (event.type === 'outcome') {
    const before = known.get(event.attempt.id)
    // An attempt that is settled says nothing new but that it was accepted after all.
    if (before === 'running' || before === 'unknown' || event.outcome.kind === 'accepted')
      next.set(event.attempt.id, before === 'accepted' ? before : event.outcome.kind)
  }
  return next
}

/** A history that breaks the rule, the shortest that was found, with its seed; null if there is none. */
function counterexample(rule: Rule): string | null {
  const property = fc.property(starts, fc.array(step, { maxLength: 40, size: 'max' }), (start, steps) => {
    const breach = firstBreach(rule, start, steps)
    if (breach !== null) throw new Error(breach)
  })
  return fc.defaultReportMessage(fc.check(property, { numRuns: 2_000 })) ?? null
}
const learnt = ({ known }: History): Knowledge[] => [...known.values()]
const statusOf = ({ message }: History): Status => message.state.status

describe('after any history', () => {
  test('M4 what is sent stays sent', () => {
    const rule: Rule = (before, _, now) => statusOf(before) !== 'sent' || now.message === before.message
    expect(counterexample(rule)).toBeNull()
  })

  test('O1 an acceptance is never lost, whenever and of whichever attempt it is told, and none is invented', () => {
    const rule: Rule = (_, __, now) => learnt(now).includes('accepted') === (statusOf(now) === 'sent')
    expect(counterexample(rule)).toBeNull()
  })

  test('O2 while an attempt is unknown the message is unknown or sent: no failure, no cancellation, no sent: no', () => {
    const rule: Rule = (_, __, now) =>
      !learnt(now).includes('unknown') ||
      statusOf(now) === 'sent' ||
      (statusOf(now) === 'unknown' && now.message.answer === null && sentOf(statusOf(now)) === 'maybe')
    expect(counterexample(rule)).toBeNull()
  })

  test('O2 `sent: no` is said only when every attempt is known not to have sent', () => {
    const rule: Rule = (_, __, now) =>
      sentOf(statusOf(now)) !== 'no' || learnt(now).every((known) => known === 'rejected' || known === 'not_sent')
    expect(counterexample(rule)).toBeNull()
  })

  test('M1 `sending` is entered only by a begin, from a message that waits, and names the attempt that runs', () => {
    const rule: Rule = (before, event, now) => {
      const { state } = now.message
      if (state.status !== 'sending') return true
      if (now.known.get(state.attempt.id) !== 'running') return false
      const waited = statusOf(before) === 'scheduled' || statusOf(before) === 'queued'
      return statusOf(before) === 'sending' || (event.type === 'begin' && waited)
    }
    expect(counterexample(rule)).toBeNull()
  })

  test('M1 `sending` is left only by the outcome of its attempt, the lapse of its lease, or an acceptance', () => {
    const rule: Rule = (before, event, now) => {
      const { state } = before.message
      if (state.status !== 'sending' || statusOf(now) === 'sending') return true
      if (event.type === 'lease_lapsed') return event.attemptId === state.attempt.id
      if (event.type !== 'outcome') return false
      return event.attempt.id === state.attempt.id || event.outcome.kind === 'accepted'
    }
    expect(counterexample(rule)).toBeNull()
  })

  test('M2 a lapse makes the message of the attempt that runs `unknown`, and no other', () => {
    const rule: Rule = (before, event, now) => {
      if (event.type !== 'lease_lapsed') return true
      const { state } = before.message
      const runs = state.status === 'sending' && state.attempt.id === event.attemptId
      return runs ? statusOf(now) === 'unknown' : now.message === before.message
    }
    expect(counterexample(rule)).toBeNull()
  })

  test('M3 nothing goes from `unknown` to `sending`, and nothing begins while an attempt runs or is unknown', () => {
    const rule: Rule = (before, event, now) =>
      (statusOf(before) !== 'unknown' || statusOf(now) !== 'sending') &&
      (event.type !== 'begin' ||
        learnt(before).every((known) => known !== 'running' && known !== 'unknown') ||
        now.message === before.message)
    expect(counterexample(rule)).toBeNull()
  })

  test('M5 a message is canceled only while every attempt so far was not sent', () => {
    const rule: Rule = (before, _, now) =>
      statusOf(now) !== 'canceled' ||
      statusOf(before) === 'canceled' ||
      learnt(before).every((known) => known === 'not_sent')
    expect(counterexample(rule)).toBeNull()
  })

  test('a change grows the version by one, and counts attempts as they begin', () => {
    const rule: Rule = (before, _, { message, begun }) => {
      if (message === before.message) return true
      if (message.version !== before.message.version + 1 || message.attempts !== begun.length) return false
      if (message.state.status !== 'sending') return true
      return message.state.attempt.number === message.attempts && message.open.length === 0
    }
    expect(counterexample(rule)).toBeNull()
  })

  test('A1 an answer stands exactly at final messages, and changes only if an acceptance corrects it', () => {
    const rule: Rule = ({ message: before }, _, { message: now }) => {
      if ((now.answer !== null) !== isFinal(now.state.status)) return false
      if (before.answer === null || now.answer === before.answer) return true
      return before.state.status !== 'sent' && now.state.status === 'sent' && now.answer?.status === 201
    }
    expect(counterexample(rule)).toBeNull()
  })

  test('the histories are rich: every status is reached, and so are corrections and third attempts', () => {
    const reached = new Set<string>()
    const note: Rule = (before, _, now) => {
      reached.add(statusOf(before)).add(statusOf(now))
      if (isFinal(statusOf(before)) && now.message !== before.message) reached.add('corrected')
      if (now.begun.length >= 3) reached.add('third attempt')
      return true
    }
    expect(counterexample(note)).toBeNull()
    expect([...reached].toSorted()).toEqual([...statuses, 'corrected', 'third attempt'].toSorted())
  })
})

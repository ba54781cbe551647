/** What holds after any history of events, whatever the order and the provider (engine.md: verdict, warrants; product.md). */
import { describe, expect, test } from 'vitest'
import { isFinal, openAttemptIds, resolutionSources, sentOf, statuses } from '../../src/core/message.ts'
import type { Event } from '../../src/core/events.ts'
import { after } from './fixtures.ts'
import { counterexample, isProof, learnt, statusOf, unknownIds, type History, type Rule } from './histories.ts'
import { providers } from './random-histories.ts'

const windowMs = 23 * 3_600_000

/** The provider is the one that the open attempts went to, knows our key still, and notAfter has not passed. */
function mayRepeat(before: History, event: Event): boolean {
  if (event.type !== 'begin' || providers[before.provider].deduplication === null) return false
  const open = before.begun.filter(({ id }) => before.known.get(id) === 'unknown')
  const first = Math.min(...open.map(({ startedAt }) => startedAt.getTime()))
  const at = event.attempt.startedAt
  return (
    open.every(({ identity }) => identity === event.attempt.identity) &&
    at.getTime() < first + windowMs &&
    at < before.message.notAfter
  )
}

/** Whoever made the last call that was open says that it was not accepted. */
const isFromOwner = (before: History, event: Event): boolean =>
  event.type === 'outcome' &&
  (event.outcome.kind === 'not_sent' || event.outcome.kind === 'rejected') &&
  unknownIds(before).join() === event.attempt.id

const isFromPerson = (before: History, event: Event): boolean =>
  event.type === 'settle' && event.outcome === 'not_sent' && unknownIds(before).join() === event.attemptId

describe('after any history', () => {
  test('M4 what is sent stays sent', () => {
    const rule: Rule = (before, event, now) =>
      statusOf(before) !== 'sent' ||
      now.message === before.message ||
      (event.type === 'receipt' && statusOf(now) === 'sent' && now.message.answer === before.message.answer)
    expect(counterexample(rule)).toBeNull()
  })

  test('O1 an acceptance is never lost, whenever and of whichever attempt it is told, and none is invented', () => {
    const rule: Rule = (_, __, now) => learnt(now).includes('accepted') === (statusOf(now) === 'sent')
    expect(counterexample(rule)).toBeNull()
  })

  test('O2 while an attempt is unknown nobody says failed, canceled or sent: no', () => {
    const rule: Rule = (_, __, now) =>
      unknownIds(now).length === 0 ||
      statusOf(now) === 'sent' ||
      ((statusOf(now) === 'unknown' || statusOf(now) === 'sending') &&
        now.message.answer === null &&
        sentOf(statusOf(now)) === 'maybe')
    expect(counterexample(rule)).toBeNull()
  })

  test('O2 `sent: no` is said only when every attempt is known not to have sent', () => {
    const rule: Rule = (_, __, now) =>
      sentOf(statusOf(now)) !== 'no' || learnt(now).every((known) => known === 'rejected' || known === 'not_sent')
    expect(counterexample(rule)).toBeNull()
  })

  test('U1 M6 the open attempts are exactly those that are unknown, oldest first, until it is sent', () => {
    const rule: Rule = (_, __, now) =>
      statusOf(now) === 'sent'
        ? now.message.open.length === 0
        : openAttemptIds(now.message).join() === unknownIds(now).join()
    expect(counterexample(rule)).toBeNull()
  })

  test('M1 `sending` is entered only by a begin, from a message that waits or is unknown, and names what runs', () => {
    const rule: Rule = (before, event, now) => {
      const { state } = now.message
      if (state.status !== 'sending')
        return learnt(now).every((known) => known !== 'running') || statusOf(now) === 'sent'
      if (now.known.get(state.attempt.id) !== 'running') return false
      return statusOf(before) === 'sending' || (event.type === 'begin' && state.attempt.id === event.attempt.id)
    }
    expect(counterexample(rule)).toBeNull()
  })

  test('M1 `sending` is left only by the outcome of its attempt, the lapse of its lease, or an acceptance', () => {
    const rule: Rule = (before, event, now) => {
      const { state } = before.message
      if (state.status !== 'sending' || statusOf(now) === 'sending') return true
      if (event.type === 'lease_lapsed') return event.attemptId === state.attempt.id
      if (event.type === 'looked') return event.result.kind === 'found'
      return event.type === 'outcome' && (event.attempt.id === state.attempt.id || event.outcome.kind === 'accepted')
    }
    expect(counterexample(rule)).toBeNull()
  })

  test('M2 E3 a lapse makes the message of the attempt that runs `unknown`, or sent if a receipt came, and no other', () => {
    const rule: Rule = (before, event, now) => {
      if (event.type !== 'lease_lapsed') return true
      const { state } = before.message
      const runs = state.status === 'sending' && state.attempt.id === event.attemptId
      return runs ? statusOf(now) === (before.proven.size > 0 ? 'sent' : 'unknown') : now.message === before.message
    }
    expect(counterexample(rule)).toBeNull()
  })

  test('M3 R1 R3 from `unknown` another attempt begins only by key: same provider, in its window, before notAfter', () => {
    const rule: Rule = (before, event, now) =>
      event.type !== 'begin' ||
      now.message === before.message ||
      (unknownIds(before).length === 0 && statusOf(before) !== 'unknown') ||
      (mayRepeat(before, event) && before.message.rendered !== null && now.message.rendered === before.message.rendered)
    expect(counterexample(rule)).toBeNull()
  })

  test('M3 U2 U3 from `unknown` it waits again only by a proven absence, a person with resend, or the owner', () => {
    const rule: Rule = (before, event, now) => {
      if (statusOf(before) !== 'unknown' || statusOf(now) !== 'queued') return true
      if (isFromOwner(before, event)) return true
      const isWarranted = isProof(before, event) || (isFromPerson(before, event) && now.resends > before.resends)
      return isWarranted && before.at < before.message.notAfter
    }
    expect(counterexample(rule)).toBeNull()
  })

  test('U2 from `unknown` it fails only by a proven absence, a person, or the owner', () => {
    const rule: Rule = (before, event, now) =>
      statusOf(before) !== 'unknown' ||
      statusOf(now) !== 'failed' ||
      isFromOwner(before, event) ||
      isProof(before, event) ||
      isFromPerson(before, event)
    expect(counterexample(rule)).toBeNull()
  })

  test('M3 one attempt may have arrived at most, of a provider without keys and proofs, unless a person resends', () => {
    const rule: Rule = (before, event, now) =>
      (before.provider !== 'blind' && before.provider !== 'weak') ||
      event.type !== 'begin' ||
      now.message === before.message ||
      before.doubts.size <= before.resends
    expect(counterexample(rule)).toBeNull()
  })

  test('M5 a message is canceled only while nothing of it was, or may have been, accepted', () => {
    const rule: Rule = (before, _, now) => {
      if (statusOf(now) !== 'canceled' || statusOf(before) === 'canceled') return true
      // A repeat by key may have been refused for good before a person had it sent again.
      const isRefusable = providers[before.provider].deduplication !== null
      return learnt(before).every((known) => known === 'not_sent' || (isRefusable && known === 'rejected'))
    }
    expect(counterexample(rule)).toBeNull()
  })

  test('R3 R4 a plan is there only where it is unknown, of what the provider can do, and ends in time', () => {
    const rule: Rule = (_, __, { message: { state, notAfter }, provider }) => {
      if (state.status !== 'unknown' || state.plan === null) return true
      const { step, at, givesUpAt } = state.plan
      const { deduplication, lookup } = providers[provider]
      if (at >= givesUpAt || state.attempt.identity !== 'fake-identity') return at < givesUpAt
      return step === 'replay' ? deduplication !== null && givesUpAt <= notAfter : lookup !== null
    }
    expect(counterexample(rule)).toBeNull()
  })

  test('a change grows the version by one, and counts attempts as they begin', () => {
    const rule: Rule = (before, _, { message, begun }) => {
      if (message === before.message) return true
      if (message.version !== before.message.version + 1 || message.attempts !== begun.length) return false
      return message.state.status !== 'sending' || message.state.attempt.number === message.attempts
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

  test('the histories are rich: every status, every way of settling, and whatever makes them hard is reached', () => {
    const reached = new Set<string>()
    const note: Rule = (before, event, now) => {
      reached
        .add(statusOf(before))
        .add(statusOf(now))
        .add(now.message.resolution?.by ?? 'unsettled')
      const changed = now.message !== before.message
      if (isFinal(statusOf(before)) && changed) reached.add('corrected')
      if (now.begun.length >= 3) reached.add('third attempt')
      if (before.proven.size > 0 && now.proven.size === 0) reached.add('proven while it ran')
      if (now.message.delivery !== null) reached.add(now.message.delivery.status)
      if (now.message.open.length >= 2) reached.add('two attempts open before the present one')
      if (event.type === 'begin' && changed && unknownIds(before).length > 0) reached.add('repeat by key')
      if (statusOf(now) === 'queued' && isProof(before, event)) reached.add('absence')
      if (now.resends >= 1 && now.begun.length > before.begun.length) reached.add('sent again by a person')
      if (event.type === 'settle' && changed && statusOf(now) === 'unknown') reached.add('one of several settled')
      if (event.type === 'begin' && !changed && statusOf(before) === 'unknown' && before.at >= after(windowMs))
        reached.add('repeat after the window')
      if (statusOf(now) === 'unknown' && before.at >= before.message.notAfter) reached.add('unknown after notAfter')
      const { decision, heldFor, state } = now.message
      if (statusOf(before) === 'held' && statusOf(now) === 'scheduled') reached.add('approved for later')
      if (heldFor !== null && decision !== null && statusOf(now) === 'sent') reached.add('approved and sent')
      if (state.status === 'canceled' && state.reason !== null)
        reached.add(decision === null ? state.reason : `${state.reason}, ${decision.decision}`)
      if (now.begun.some(({ identity }) => identity !== now.means.identity)) reached.add('another provider')
      return true
    }
    expect(counterexample(note)).toBeNull()
    const ofPersons =
      'approved for later;approved and sent;lapsed;declined, declined;conversation_changed;conversation_changed, approved'
    const hard =
      'corrected,third attempt,two attempts open before the present one,repeat by key,absence,sent again by a person,' +
      'proven while it ran,delivered,undelivered,one of several settled,repeat after the window,unknown after notAfter,another provider,unsettled'
    expect([...reached].toSorted()).toEqual(
      [...statuses, ...resolutionSources, ...hard.split(','), ...ofPersons.split(';')].toSorted(),
    )
  })
})

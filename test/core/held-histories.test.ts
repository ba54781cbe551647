/** What holds of messages that wait for a person, after any history (state-machine.ts, M7; conversation.ts, V2; api.md). */
import { expect, test } from 'vitest'
import { leaves } from '../../src/core/conversation.ts'
import { counterexample, statusOf, type Rule } from './histories.ts'

test('M7 a message is held from its claim or never, and is left by a decision, its sender, time or the conversation', () => {
  const rule: Rule = (before, event, now) => {
    if (statusOf(before) !== 'held') return statusOf(now) !== 'held'
    const { state } = now.message
    switch (state.status) {
      case 'held':
        return now.message === before.message
      case 'scheduled':
      case 'queued':
        return event.type === 'decide' && event.decision.decision === 'approved' && event.at < before.message.notAfter
      case 'canceled':
        return (
          (state.reason === 'lapsed' && (event.type === 'expire' || before.at >= before.message.notAfter)) ||
          (state.reason === 'declined' && event.type === 'decide' && event.decision.decision === 'declined') ||
          (state.reason === 'conversation_changed' && event.type === 'conversation_moved') ||
          (state.reason === null && event.type === 'cancel')
        )
      default:
        return false
    }
  }
  expect(counterexample(rule)).toBeNull()
})

test('M7 one person decides, once, while it is held; who decides later changes nothing', () => {
  const rule: Rule = (before, event, now) => {
    const decision = now.message.decision
    if (event.type === 'decide' && statusOf(before) !== 'held') return now.message === before.message
    if (decision === before.message.decision) return true
    const made = event.type === 'decide' || event.type === 'conversation_moved' ? event.decision : null
    return before.message.decision === null && statusOf(before) === 'held' && decision === made
  }
  expect(counterexample(rule)).toBeNull()
})

test('M7 nothing of a message that was held ever begins but after an approval', () => {
  const rule: Rule = (_, __, { message, begun }) =>
    message.heldFor === null || begun.length === 0 || message.decision?.decision === 'approved'
  expect(counterexample(rule)).toBeNull()
})

test('what was declined, has lapsed or was written on an old reading stays canceled, and nothing of it begins', () => {
  const rule: Rule = ({ message: { state }, begun }, _, now) =>
    state.status !== 'canceled' || state.reason === null || (now.message.state === state && begun.length === 0)
  expect(counterexample(rule)).toBeNull()
})

test('V2 a message that waited leaves at the moment in which it is due or begins, and no other change lets one leave', () => {
  const rule: Rule = (before, _, now) => {
    const waited = statusOf(before) === 'held' || statusOf(before) === 'scheduled'
    const goes = statusOf(now) === 'queued' || statusOf(now) === 'sending'
    return leaves(before.message, now.message.state) === (waited && goes)
  }
  expect(counterexample(rule)).toBeNull()
})

/** Between the steps of a recovery there are pauses, and they grow whatever the steps end with (recovery.ts; engine.md, Warrants). */
import { expect, test } from 'vitest'
import type { Event } from '../../src/core/events.ts'
import type { Message } from '../../src/core/message.ts'
import { after, attempt, begin, keyed, lapse, messageIn, outcomeOf, play, states } from './fixtures.ts'

const replay = (number: number): Event => ({ ...begin(number), means: keyed })
const outcome = (number: number, kind: 'unknown' | 'not_sent', at = after(number * 1_000 + 200)): Event => ({
  ...outcomeOf(attempt(number), kind, at),
  means: keyed,
})
const lost = play(messageIn(states.sending, { rendered: '{}' }), outcome(1, 'unknown'))

/** The pause before the step that follows, in milliseconds. */
function pause({ state, updatedAt }: Message): number {
  if (state.status !== 'unknown' || state.plan === null) throw new Error(`${state.status}, and nothing is planned`)
  return state.plan.at.getTime() - updatedAt.getTime()
}

test.each(['unknown', 'not_sent'] as const)('the pause doubles with each replay that ends as %s', (kind) => {
  const pauses = [pause(lost)]
  let message = lost
  for (const number of [2, 3, 4, 5]) {
    message = play(message, replay(number), outcome(number, kind))
    pauses.push(pause(message))
  }
  expect(pauses).toEqual([750, 1_500, 3_000, 6_000, 12_000])
})

test('the pause doubles with each replay that nobody saw the end of', () => {
  const first = play(lost, replay(2), outcome(2, 'not_sent'), replay(3), {
    ...lapse,
    attemptId: attempt(3).id,
    means: keyed,
    at: after(9_000),
  })
  expect(pause(first)).toBe(3_000)
})

test('calls that were not accepted before the first that may have been do not make its replay wait', () => {
  const third = play(messageIn(states.queued), replay(2), outcome(2, 'not_sent'), {
    ...replay(3),
    rendered: '{}',
  } as Event)
  expect(pause(play(third, outcome(3, 'unknown')))).toBe(750)
})

/** An attempt begins only as the next one of what stands there (state-machine.ts, M1; apply-event.ts, Y1). */
import { expect, test } from 'vitest'
import type { Event } from '../../src/core/events.ts'
import { applied, attempt, begin, keyed, messageIn, outcomeOf, play, states } from './fixtures.ts'

const replay = (number: number): Event => ({ ...begin(number), means: keyed })
const outcome = (number: number, kind: 'unknown' | 'not_sent'): Event => ({
  ...outcomeOf(attempt(number), kind),
  means: keyed,
})
const lost = play(messageIn(states.sending, { rendered: '{}' }), outcome(1, 'unknown'))

// Two workers took it; one replayed or called it, and it waits again, perhaps because the provider asked for a pause.
test('D6 an attempt that was prepared before another one ran does not begin after it', () => {
  const replayed = play(lost, replay(2), outcome(2, 'not_sent'))
  expect(applied(replayed, replay(2)).decision.kind).toBe('ignored')
  expect(applied(replayed, replay(3)).message.state).toMatchObject({ status: 'sending', attempt: { number: 3 } })
  const queued = play(messageIn(states.queued), begin(2), outcomeOf(attempt(2), 'not_sent'))
  expect(applied(queued, begin(2)).decision.kind).toBe('ignored')
  expect(applied(queued, begin(3)).decision.kind).toBe('transition')
})

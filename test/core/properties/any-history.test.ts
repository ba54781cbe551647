/** What holds of the state machine as a function, and of the answer to whoever asks in the middle of any history. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { answerFor } from '../../../src/core/answer.ts'
import type { Event } from '../../../src/core/events.ts'
import { isFinal, sentOf, type Message } from '../../../src/core/message.ts'
import { decide } from '../../../src/core/state-machine.ts'
import { after, applied } from '../fixtures.ts'
import { eventOf, firstWorld, grown, history, passed, starts, type Start, type Step } from '../random-histories.ts'

interface Moment {
  readonly message: Message
  readonly event: Event
}

/** Each message of a history, with the event that met it. */
function momentsOf(start: Start, steps: readonly Step[]): Moment[] {
  let world = firstWorld(start)
  return steps.flatMap((given) => {
    world = passed(world, given)
    const event = eventOf(world, given)
    if (event === undefined) return []
    const moment = { message: world.message, event }
    world = grown(world, applied(world.message, event).message, event)
    return [moment]
  })
}

function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value) && !Buffer.isBuffer(value)) {
    Object.freeze(value)
    Object.values(value).forEach(frozen)
  }
  return value
}

const histories = fc.tuple(starts, history)

test('a decision depends on message and event alone, and changes neither', () => {
  fc.assert(
    fc.property(histories, ([start, steps]) => {
      for (const { message, event } of momentsOf(frozen(start), steps)) {
        const before = structuredClone({ message, event })
        const first = decide(frozen(message), frozen(event))
        expect(decide(message, event)).toEqual(first)
        expect({ message, event }).toEqual(before)
      }
    }),
    { numRuns: 300 },
  )
})

test('whoever asks, and whenever, is answered: with what is stored once it is final, and never with another `sent`', () => {
  fc.assert(
    fc.property(histories, fc.boolean(), fc.boolean(), ([start, steps], claimed, async) => {
      for (const { message } of momentsOf(start, steps)) {
        const answer = answerFor(message, { claimed, async }, after(20_000))
        const body = JSON.parse(answer.body) as { sent?: string; status: unknown }
        expect(answer).toMatchObject(isFinal(message.state.status) ? { ...message.answer } : {})
        // A problem says `sent`; a message says its status.
        expect(body.sent ?? sentOf(body.status as Message['state']['status'])).toBe(sentOf(message.state.status))
        expect(answer.status >= 400).toBe(body.sent !== undefined)
        expect(answer.retryAfterS ?? 1).toBeGreaterThan(0)
      }
    }),
    { numRuns: 300 },
  )
})

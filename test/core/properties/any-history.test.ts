/** What holds of the state machine as a function, and of the answer to whoever asks in the middle of any history. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { answerFor } from '../../../src/core/answer.ts'
import { isFinal, sentOf, type Attempt, type Message } from '../../../src/core/message.ts'
import { decide, type Event } from '../../../src/core/state-machine.ts'
import { after, applied } from '../fixtures.ts'
import { eventOf, starts, step, type Step } from '../random-histories.ts'

interface Moment {
  readonly message: Message
  readonly event: Event
}

/** Each message of a history, with the event that met it. */
function momentsOf(start: Message, steps: readonly Step[]): Moment[] {
  const begun: Attempt[] = start.state.status === 'sending' ? [start.state.attempt] : []
  let message = start
  return steps.flatMap((asked, i) => {
    const event = eventOf(message, begun, asked, after(10_000 + i * 1_000))
    if (event === undefined) return []
    const moment = { message, event }
    const { message: next, decision } = applied(message, event)
    if (event.type === 'begin' && decision.kind === 'transition') begun.push(event.attempt)
    message = next
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

const histories = fc.tuple(starts, fc.array(step, { maxLength: 30, size: 'max' }))

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

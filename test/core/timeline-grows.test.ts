/** The time line over any history of events. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Attempt } from '../../src/core/message.ts'
import type { Event } from '../../src/core/events.ts'
import { after, applied, linesAfter } from './fixtures.ts'
import { eventOf, starts, step } from './random-histories.ts'

describe('the time line (engine.md, "Rows": events are append-only and hold what the row cannot)', () => {
  test('T1 only grows: what it told once it tells for good, under the same id', () => {
    fc.assert(
      fc.property(starts, fc.array(step, { maxLength: 12, size: 'max' }), (start, steps) => {
        let message = start
        const events: Event[] = []
        const begun: Attempt[] = start.state.status === 'sending' ? [start.state.attempt] : []
        let told = linesAfter(start).lines
        for (const [i, asked] of steps.entries()) {
          const event = eventOf(message, begun, asked, after(10_000 + i * 1_000))
          if (event === undefined) continue
          const { decision, message: next } = applied(message, event)
          if (event.type === 'begin' && decision.kind === 'transition') begun.push(event.attempt)
          events.push(event)
          const { lines } = linesAfter(start, ...events)
          expect(lines).toEqual(expect.arrayContaining(told))
          told = lines
          message = next
        }
      }),
      { numRuns: 300 },
    )
  })
})

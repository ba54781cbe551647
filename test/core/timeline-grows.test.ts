/** The time line over any history of events. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Event } from '../../src/core/events.ts'
import { applied, linesAfter } from './fixtures.ts'
import { eventOf, firstWorld, grown, passed, starts, step } from './random-histories.ts'

describe('the time line (engine.md, "Rows": events are append-only and hold what the row cannot)', () => {
  test('T1 only grows: what it told once it tells for good, under the same id', () => {
    fc.assert(
      fc.property(starts, fc.array(step, { maxLength: 12, size: 'max' }), (start, steps) => {
        const events: Event[] = []
        let world = firstWorld(start)
        let told = linesAfter(start.message).lines
        for (const given of steps) {
          world = passed(world, given)
          const event = eventOf(world, given)
          if (event === undefined) continue
          events.push(event)
          const { lines } = linesAfter(start.message, ...events)
          expect(lines).toEqual(expect.arrayContaining(told))
          told = lines
          world = grown(world, applied(world.message, event).message, event)
        }
      }),
      { numRuns: 300 },
    )
  })
})

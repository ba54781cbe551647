/** Ids: their form (RFC 9562), their time and their order. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { timeOfUuid } from '../../src/core/ids.ts'
import { newUuid, uuidMaker } from '../../src/new-uuid.ts'

test('an id is a UUIDv7 of the time at which it was made', () => {
  const before = Date.now()
  const uuid = newUuid()
  expect(uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  const madeAt = timeOfUuid(uuid).getTime()
  expect(madeAt).toBeGreaterThanOrEqual(before)
  expect(madeAt).toBeLessThanOrEqual(Date.now() + 1)
})

test('ids sort by the order in which they were made, whatever the clock does, and none comes twice', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: -5, max: 5 }), { minLength: 1, maxLength: 50 }), (steps) => {
      let nowMs = 1_700_000_000_000
      const make = uuidMaker(() => nowMs)
      const made = steps.flatMap((step) => {
        nowMs += step
        return [make(), make(), make()]
      })
      expect(made.toSorted()).toEqual(made)
      expect(new Set(made).size).toBe(made.length)
    }),
  )
})

test('more ids in a millisecond than the counter holds begin the next one early', () => {
  const make = uuidMaker(() => 1_700_000_000_000)
  const made = Array.from({ length: 10_000 }, make)
  expect(made.toSorted()).toEqual(made)
  expect(timeOfUuid(made.at(-1) ?? '').getTime() - 1_700_000_000_000).toBeLessThanOrEqual(3)
})

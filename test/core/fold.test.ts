/** What all attempts together say of a message (core/outcome.ts). */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fold, outcomeKinds, type OutcomeKind } from '../../src/core/outcome.ts'

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

/** The crash matrix in words, for ARCHITECTURE.md and, in short, for the README. It says nothing that time could change. */
import { recoveryOf } from '../../src/core/capabilities.ts'
import { table } from '../support/documents.ts'
import { canMeet, faultNames, kindNames } from './matrix.ts'
import type { World } from './stage.ts'
import { kinds } from './vendors.ts'

const ends = (worlds: readonly World[]): string =>
  ['sent', 'failed', 'unknown'].filter((status) => worlds.some(({ row }) => row?.status === status)).join(', ')

const most = (numbers: readonly number[]): number => numbers.reduce((a, b) => Math.max(a, b), 0)
const mostAccepted = (worlds: readonly World[]): number => most(worlds.map(({ vendor }) => vendor.acceptances.length))
const mostRequests = (worlds: readonly World[]): number => most(worlds.map(({ vendor }) => vendor.requests.length))

/** `sent, unknown ≤1/≤2 (31)` */
const cell = (worlds: readonly World[]): string =>
  worlds.length === 0 ? '' : `${ends(worlds)} ≤${mostAccepted(worlds)}/≤${mostRequests(worlds)} (${worlds.length})`

/** Rows are faults, columns are kinds. */
export const wholeMatrix = (all: readonly World[]): string =>
  table(
    ['the provider', ...kindNames],
    faultNames.map((fault) => [
      fault,
      ...kindNames.map((kind) =>
        canMeet(kind, fault) ? cell(all.filter((world) => world.kind === kind && world.fault === fault)) : '–',
      ),
    ]),
  )

/** Each kind at its worst, over all faults. */
export const shortMatrix = (all: readonly World[]): string =>
  table(
    ['kind of provider', 'lives', 'accepted, at most', 'calls, at most', 'ends', 'waits for a person'],
    kindNames.map((kind) => {
      const worlds = all.filter((world) => world.kind === kind)
      const left = worlds.filter(({ row }) => row?.status === 'unknown').length
      return [
        kind,
        String(worlds.length),
        String(mostAccepted(worlds)),
        String(mostRequests(worlds)),
        ends(worlds),
        left === 0 ? 'never' : whenLeft[recoveryOf(kinds[kind])],
      ]
    }),
  )

/** What the rules of the matrix allow, in words. */
const whenLeft = {
  blind: 'whenever the answer was lost',
  keyed: 'if the answer was lost and the repeat is refused for good',
  lookup: 'never',
  'lookup-weak': 'if the answer was lost and it is never shown',
} as const

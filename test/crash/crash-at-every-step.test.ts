/**
 * The crash matrix (behaviour.md, E and F10; reliability.md, invariants 1, 3, 4, 7, 8, 13): something happens to the
 * gateway at every call that it makes, for every kind of provider and every fault of it. Another one follows, the caller
 * repeats, time passes until nothing is due, and what is told is held against what the provider knows.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { recoveryOf } from '../../src/core/capabilities.ts'
import { useDatabase } from '../support/database.ts'
import { compareSection } from '../support/documents.ts'
import { canMeet, faultNames, kindNames, playMatrix, type Matrix } from './matrix.ts'
import { shortMatrix, wholeMatrix } from './print-matrix.ts'
import { brokenRules, sometimes, sometimesAnywhere } from './rules.ts'
import { openStage, type Stage, type World } from './stage.ts'
import { kinds } from './vendors.ts'

const database = useDatabase()
let stage: Stage
let matrix: Matrix
let all: readonly World[]
beforeAll(async () => {
  stage = await openStage(database.url)
  matrix = await playMatrix(stage)
  all = [...matrix.calm, ...matrix.once, ...matrix.twice]
}, 300_000)
afterAll(async () => stage.close())

const cells = kindNames.flatMap((kind) =>
  faultNames.filter((fault) => canMeet(kind, fault)).map((fault) => ({ kind, fault })),
)

test.each(cells)(
  'F10 $kind, $fault: at most one is accepted, nothing is left in flight, and the truth is told',
  ({ kind, fault }) => {
    const worlds = all.filter((world) => world.kind === kind && world.fault === fault)
    expect(worlds.length).toBeGreaterThan(20)
    expect(worlds.flatMap(brokenRules).slice(0, 3)).toEqual([])
  },
)

test.each(kindNames.flatMap((kind) => Object.keys(sometimes[recoveryOf(kinds[kind])]).map((what) => ({ kind, what }))))(
  'of the kind $kind, some message $what',
  ({ kind, what }) => {
    const happened = sometimes[recoveryOf(kinds[kind])][what]
    expect(all.some((world) => world.kind === kind && happened?.(world) === true)).toBe(true)
  },
)

test.each(Object.keys(sometimesAnywhere))('in some life %s', (what) => {
  expect(all.some((world) => sometimesAnywhere[what]?.(world) === true)).toBe(true)
})

test.each([
  { file: 'ARCHITECTURE.md', print: wholeMatrix },
  { file: 'README.md', print: shortMatrix },
])('$file shows the matrix as it was played (else: npm run docs)', ({ file, print }) => {
  const { written, right } = compareSection({ file, name: 'crashes', text: print(all) })
  expect(written).toBe(right)
})

/**
 * Histories of a whole system on a simulated clock, network, data base and providers (reliability.md, section 1). One
 * seed is one history; what breaks a rule is told line by line.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { playBatch, seedsFrom, told } from './batch.ts'
import { playHistory } from './history.ts'
import { plantedBugs } from './planted-bugs.ts'
import { fixedSeeds, namedSeeds } from './seeds.ts'

const freshMs = 5_000

test.each(namedSeeds)('seed $seed keeps all rules ($showed)', async ({ seed }) => {
  const history = await playHistory(seed)
  expect(history.broken === undefined ? '' : await told(history)).toBe('')
})

test('one seed is one history, line by line', async () => {
  for (let seed = 1; seed <= 5; seed++) {
    const { lines } = await playHistory(seed, true)
    expect(lines.length).toBeGreaterThan(10)
    expect((await playHistory(seed, true)).lines).toEqual(lines)
  }
})

test('the fixed seeds keep all rules, and show all that must be seen now and then', async () => {
  const { failed, unseen, histories } = await playBatch(seedsFrom(fixedSeeds.first), (n) => n >= fixedSeeds.count)
  expect(failed === undefined ? '' : await told(failed)).toBe('')
  expect([histories, unseen]).toEqual([fixedSeeds.count, []])
}, 120_000)

test('fresh seeds keep all rules', async () => {
  const base = Date.now() % 4_294_967_296
  const endsAt = performance.now() + freshMs
  const { failed, histories, aMinute } = await playBatch(seedsFrom(base), () => performance.now() > endsAt)
  process.stdout.write(`simulation: base seed ${base}, ${histories} fresh histories, ${aMinute} a minute\n`)
  expect(failed === undefined ? '' : await told(failed)).toBe('')
}, 60_000)

// The hunt for planted bugs (npm run simulate:mutants) is too long for every run; that each can be planted is not.
test('the text of every planted bug stands once in the source', () => {
  const root = join(import.meta.dirname, '../..')
  const all = plantedBugs.flatMap(({ name, changes }) => changes.map((change) => ({ name, ...change })))
  expect(all.length).toBeGreaterThan(30)
  const times = ({ file, text }: (typeof all)[number]) => readFileSync(join(root, file), 'utf8').split(text).length - 1
  expect(all.filter((one) => times(one) !== 1).map(({ name }) => name)).toEqual([])
})

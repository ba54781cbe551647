/** What a group of claims costs: no more than its members (claim-message.ts). */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Claim } from '../../src/store/claim-message.ts'
import { openDatabase, type Database } from '../../src/store/database.ts'
import { createStore, type Store } from '../../src/store/store.ts'
import { useDatabase } from '../support/database.ts'
import { guardOf, newClaim } from './claims.ts'

const database = useDatabase()
let opened: Database
let store: Store
beforeAll(() => {
  opened = openDatabase(database.url, () => {})
  store = createStore(opened)
})
afterAll(async () => opened.close())

let groups = 0

/** @param contents how many different ones, each of a conversation of its own */
function groupOf(size: number, contents: number, isKnown: boolean): Claim[] {
  const group = isKnown ? 'known' : `group ${groups}`
  groups += 1
  return Array.from({ length: size }, (_, i) => {
    const request = { conversation: `${group} ${i % contents}` }
    const claim = newClaim(`${groups} ${i}`, { request })
    return { ...claim, guard: guardOf(claim) }
  })
}

async function msOf(claims: readonly Claim[]): Promise<number> {
  const started = performance.now()
  const results = await Promise.all(claims.map(async (claim) => store.claimMessage(claim)))
  const ms = performance.now() - started
  expect(results.every(({ kind }) => kind === 'claimed')).toBe(true)
  return ms
}

/** Of several: what else the machine does at the moment makes one longer, and none shorter. */
async function fastest(group: () => Claim[]): Promise<number> {
  const times: number[] = []
  for (let i = 0; i < 7; i++) times.push(await msOf(group()))
  return Math.min(...times)
}

test.each([
  ['that all say the same in one conversation', 1, false],
  ['that all say something else in conversations of their own', 256, false],
  ['that are all seconds of others', 256, true],
])('256 claims in one group %s take no more than ten times as long as 64', async (_, contents, isKnown) => {
  await msOf(groupOf(256, contents, isKnown)) // what is known, and a warm connection
  const few = await fastest(() => groupOf(64, contents, isKnown))
  const many = await fastest(() => groupOf(256, contents, isKnown))
  expect(many / few).toBeLessThan(10)
})

/** The guard against a second message of the same content, on PostgreSQL (claim-message.ts, C4; duplicates.ts; behaviour.md, K1). */
import { guardWindow } from '../../src/core/key-policy.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Claim, ClaimResult } from '../../src/store/claim-message.ts'
import { openDatabase, type Database } from '../../src/store/database.ts'
import { createStore, type Store } from '../../src/store/store.ts'
import { useDatabase } from '../support/database.ts'
import { changeTo, guardOf, newClaim, scope, sentState, type Asked } from './claims.ts'

const database = useDatabase()
const opened: Database[] = []
let stores: readonly [Store, Store]
let store: Store

beforeAll(() => {
  const open = (): Store => {
    const one = openDatabase(database.url, () => {})
    opened.push(one)
    return createStore(one)
  }
  stores = [open(), open()]
  store = stores[0]
})
afterAll(async () => {
  for (const one of opened) await one.close()
})

let names = 0
const newName = (): string => `g-${names++}`
interface Guarded extends Asked {
  readonly refuses?: boolean
  readonly windowS?: number
}
function guarded(text: string, { refuses = false, windowS = 900, ...asked }: Guarded = {}): Claim {
  const claim = newClaim(newName(), {
    ...asked,
    request: { ...asked.request, content: { text } } as NonNullable<Asked['request']>,
  })
  return { ...claim, guard: guardOf(claim, { refuses, windowS }) }
}
const seenAgo = async ({ message }: Claim, seconds: number): Promise<unknown> =>
  database.query(
    `UPDATE duplicate_guards SET first_at = now() - $2 * interval '1 second', seen_at = now() - $2 * interval '1 second' WHERE message_id = $1`,
    [message.id, seconds],
  )
const toldOf = (result: ClaimResult): string | null =>
  result.kind === 'claimed' ? result.message.possibleDuplicateOf : result.kind

test('the window is that of the claim that asks: what was seen before it is no first', async () => {
  const text = newName()
  const first = guarded(text, { windowS: 10 })
  await store.claimMessage(first)
  await seenAgo(first, 100)
  expect(
    await store.findFirstOfContent(scope, first.message.request.to, first.guard?.contentHash ?? '', 99),
  ).toBeUndefined()
  expect(await store.findFirstOfContent(scope, first.message.request.to, first.guard?.contentHash ?? '', 110)).toBe(
    first.message.id,
  )
  expect(await store.claimMessage(guarded(text, { refuses: true, windowS: 110 }))).toEqual({ kind: 'duplicate' })
  const next = guarded(text, { refuses: true, windowS: 99 })
  expect(toldOf(await store.claimMessage(next))).toBeNull()
  expect(toldOf(await store.claimMessage(guarded(text)))).toBe(next.message.id)
})

test('K1 of 20 that must be no second, at once and from two processes, one is made and nothing else is written', async () => {
  const text = newName()
  const conversation = newName()
  const claims = Array.from({ length: 20 }, () =>
    guarded(text, { refuses: true, as: 'queued', request: { conversation } }),
  )
  const results = await Promise.all(claims.map(async (claim, i) => stores[i % 2 === 0 ? 0 : 1].claimMessage(claim)))
  expect(results.filter(({ kind }) => kind === 'claimed')).toHaveLength(1)
  expect(results.filter(({ kind }) => kind === 'duplicate')).toHaveLength(19)
  const ids = claims.map(({ message }) => message.id)
  for (const [table, column] of [
    ['messages', 'id'],
    ['idempotency_keys', 'message_id'],
    ['due_work', 'message_id'],
    ['duplicate_guards', 'message_id'],
  ])
    expect(await database.query(`SELECT 1 FROM ${table} WHERE ${column} = ANY ($1)`, [ids])).toHaveLength(1)
  expect((await store.findConversation(scope, conversation)).version).toBe(1)
})

test('one that refuses and many that do not, at once: it is the first of them, or is refused', async () => {
  for (let round = 0; round < 10; round++) {
    const text = newName()
    const claims = [guarded(text), guarded(text, { refuses: true }), guarded(text), guarded(text)]
    const results = await Promise.all(claims.map(async (claim, i) => stores[i % 2 === 0 ? 0 : 1].claimMessage(claim)))
    const firsts = results.filter((result) => toldOf(result) === null)
    expect(firsts).toHaveLength(1)
    const isFirst = toldOf(results[1] as ClaimResult) === null
    expect(results[1]?.kind).toBe(isFirst ? 'claimed' : 'duplicate')
    const first = claims[results.indexOf(firsts[0] as ClaimResult)]?.message.id
    const others = results.filter((result) => result !== firsts[0] && result.kind === 'claimed')
    expect(new Set(others.map(toldOf))).toEqual(new Set([first]))
  }
})

test('a first that was erased by retention still counts within the window', async () => {
  const text = newName()
  const first = guarded(text)
  const result = await store.claimMessage(first)
  if (result.kind !== 'claimed') throw new Error('it is claimed')
  await store.saveMessage(changeTo(result.message, sentState(result.message)))
  await database.query(`DELETE FROM messages WHERE id = $1`, [first.message.id])
  expect(await store.claimMessage(guarded(text, { refuses: true }))).toEqual({ kind: 'duplicate' })
})

test('the guard knows no content: only its hash stands in the data base', async () => {
  const text = 'a secret that nobody else says'
  await store.claimMessage(guarded(text, { request: { to: '+447700900999' } }))
  const rows = JSON.stringify(await database.query(`SELECT g::text FROM duplicate_guards g`))
  for (const secret of ['secret', '447700900999']) expect(rows).not.toContain(secret)
})

test('guards that no window reaches any more are erased in batches, and no other', async () => {
  await database.query('DELETE FROM duplicate_guards')
  const old = [1, 2, 3].map(() => guarded(newName(), { windowS: 60 }))
  const within = guarded(newName(), { windowS: 60 }) // its own window is over, that of another key may not be
  const young = guarded(newName(), { windowS: 60 })
  for (const claim of [...old, within, young]) await store.claimMessage(claim)
  for (const claim of old) await seenAgo(claim, guardWindow.maxS + 1)
  await seenAgo(within, guardWindow.maxS - 60)
  expect([await store.eraseGuards(2), await store.eraseGuards(2), await store.eraseGuards(2)]).toEqual([2, 1, 0])
  const left = await database.query<{ id: string }>('SELECT message_id AS id FROM duplicate_guards')
  expect(left.map(({ id }) => id).toSorted()).toEqual([within.message.id, young.message.id].toSorted())
})

test('what is held is listed newest first, page by page, and the held ones of others hide none of them', async () => {
  const waits = { as: 'held', message: { account: 'lister' } } as const
  const ids: string[] = []
  for (let i = 0; i < 3; i++) {
    const claim = newClaim(newName(), waits)
    await store.claimMessage(claim)
    ids.unshift(claim.message.id)
  }
  for (const elsewhere of [{ account: 'another' }, { account: 'lister', environment: 'test' }] as const)
    await store.claimMessage(newClaim(newName(), { as: 'held', message: elsewhere }))
  await store.claimMessage(newClaim(newName(), { as: 'queued', message: waits.message }))
  // Older and newer than they are, and more than a list looks at.
  await database.query(
    `INSERT INTO due_work (message_id, task, due_at)
     SELECT (prefix || right(gen_random_uuid()::text, 35))::uuid, 'held', now() + interval '1 day'
     FROM generate_series(1, 5001), (VALUES ('0'), ('f')) AS p (prefix)`,
  )
  const list = async (limit: number, before: string | null, conversation?: string): Promise<string[]> => {
    const filter = conversation === undefined ? {} : { conversation }
    const of = { account: 'lister', environment: 'live' } as const
    return (await store.listMessages(of, { status: 'held', ...filter }, limit, before)).map(({ id }) => id)
  }
  expect([await list(2, null), await list(2, ids[1] ?? ''), await list(2, ids[2] ?? '')]).toEqual([
    ids.slice(0, 2),
    ids.slice(2),
    [],
  ])
  expect(await list(10, null, 'elsewhere')).toEqual([])
})

/** What any store must do of the guard against a second message of the same content (conformance.ts). */
import { expect, test } from 'vitest'
import type { Message } from '../../src/core/message.ts'
import type { Claim, ClaimResult } from '../../src/store/claim-message.ts'
import type { Store } from '../../src/store/store.ts'
import { changeTo, ended, guardOf, newClaim, scope, type Asked } from './claims.ts'

let names = 0

export function guardConformance(open: () => readonly [Store, Store]): void {
  const one = (): Store => open()[0]
  const other = (): Store => open()[1]
  const newName = (): string => `guarded-${names++}`
  const guarded = (text: string, refuses = false, asked: Asked = {}): Claim => {
    const claim = newClaim(newName(), { ...asked, request: { content: { text } } })
    return { ...claim, guard: guardOf(claim, { refuses }) }
  }
  const claimed = (result: ClaimResult): Message => {
    if (result.kind !== 'claimed') throw new Error(`it is claimed, and not ${result.kind}`)
    return result.message
  }
  const firstOf = async (claim: Claim, store = one()): Promise<string | null> =>
    claimed(await store.claimMessage(claim)).possibleDuplicateOf
  const isThere = async ({ message }: Claim): Promise<boolean> =>
    (await other().findKey(scope, [message.idempotencyKey])) !== undefined ||
    (await other().findMessages([message.id])).length > 0

  test('a second one of the same content is claimed, and names the first; so does the third', async () => {
    const text = newName()
    const claims = [guarded(text), guarded(text), guarded(text)]
    const [first] = claims
    const told = [
      await firstOf(claims[0] as Claim),
      await firstOf(claims[1] as Claim, other()),
      await firstOf(claims[2] as Claim),
    ]
    expect(told).toEqual([null, first?.message.id, first?.message.id])
    expect(await other().findMessages([claims[1]?.message.id ?? ''])).toMatchObject([
      { possibleDuplicateOf: first?.message.id },
    ])
  })

  test('one that must be no second is refused whole, and its key is free', async () => {
    const text = newName()
    const first = guarded(text, true)
    expect(await firstOf(first)).toBeNull()
    const second = guarded(text, true, { as: 'queued' })
    expect(await other().claimMessage(second)).toEqual({ kind: 'duplicate' })
    expect(await isThere(second)).toBe(false)
    const { guard: _, ...unguarded } = second
    expect(await other().claimMessage({ ...unguarded, guard: null })).toMatchObject({ kind: 'claimed' })
  })

  test('other words, and the same words by a claim without a guard, are no second', async () => {
    const text = newName()
    await one().claimMessage({ ...guarded(text), guard: null })
    expect(await firstOf(guarded(text, true))).toBeNull()
    expect(await firstOf(guarded(`${text}.`, true))).toBeNull()
  })

  test('in one group each of the same content names the first of them', async () => {
    const [text, another] = [newName(), newName()]
    const claims = [guarded(text), guarded(another), guarded(text), guarded(text), guarded(another)]
    const told = (await Promise.all(claims.map(async (claim) => one().claimMessage(claim)))).map(claimed)
    const ids = claims.map(({ message: { id } }) => id)
    expect(told.map(({ possibleDuplicateOf }) => possibleDuplicateOf)).toEqual([null, null, ids[0], ids[0], ids[1]])
  })

  test.each([
    [
      'failed',
      (message: Message) => {
        if (message.state.status !== 'sending') throw new Error('it is sending')
        const last = ended(message.state.attempt, 'rejected')
        return changeTo(message, { status: 'failed', reason: 'provider_refused', last })
      },
      'sending',
    ],
    ['was canceled', (message: Message) => changeTo(message, { status: 'canceled', reason: null, last: null }), 'held'],
  ] as const)('a first that %s is none: the next takes its place', async (_, end, as) => {
    const text = newName()
    const first = claimed(await one().claimMessage(guarded(text, false, { as })))
    await one().saveMessage(end(first))
    const next = guarded(text, true)
    expect(await firstOf(next, other())).toBeNull()
    expect(await firstOf(guarded(text))).toBe(next.message.id)
  })

  test('of claims of one content at once that must be no second one is made', async () => {
    const text = newName()
    const claims = Array.from({ length: 12 }, () => guarded(text, true))
    const results = await Promise.all(claims.map(async (claim, i) => open()[i % 2 === 0 ? 0 : 1].claimMessage(claim)))
    expect(results.filter(({ kind }) => kind === 'claimed')).toHaveLength(1)
    expect(results.filter(({ kind }) => kind === 'duplicate')).toHaveLength(11)
  })

  test('one of which it is known what it is a second of names that one, and is not refused', async () => {
    const text = newName()
    const first = guarded(text)
    await one().claimMessage(first)
    const held = guarded(text, false, {
      as: 'held',
      message: { heldFor: 'duplicate', possibleDuplicateOf: first.message.id },
    })
    expect(claimed(await other().claimMessage(held))).toMatchObject({
      state: { status: 'held' },
      possibleDuplicateOf: first.message.id,
    })
  })

  test('nothing crosses accounts and environments', async () => {
    const text = newName()
    await one().claimMessage(guarded(text))
    for (const elsewhere of [{ account: 'another' }, { environment: 'test' }] as const)
      expect(await firstOf(guarded(text, true, { message: elsewhere }))).toBeNull()
    expect(await other().claimMessage(guarded(text, true))).toEqual({ kind: 'duplicate' })
  })

  test('a claim that is refused, or whose conversation moved, harms none of its neighbours', async () => {
    const [text, conversation] = [newName(), newName()]
    await one().claimMessage(guarded(text))
    const claims = Array.from({ length: 24 }, (_, i) => {
      if (i % 6 === 2) return guarded(text, true)
      return i % 6 === 4
        ? newClaim(newName(), { request: { conversation }, bound: { ifVersion: 7 } })
        : guarded(newName())
    })
    const results = await Promise.all(claims.map(async (claim) => one().claimMessage(claim)))
    const expected = claims.map((_, i) => (i % 6 === 2 ? 'duplicate' : i % 6 === 4 ? 'conversation_moved' : 'claimed'))
    expect(results.map(({ kind }) => kind)).toEqual(expected)
    for (const [i, claim] of claims.entries()) expect(await isThere(claim)).toBe(expected[i] === 'claimed')
  })
}

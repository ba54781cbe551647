/**
 * What any store must do about conversations, the guard against duplicates and receipts: run on PostgreSQL, and on the data
 * base that the simulation plays (conformance.ts).
 */
import { expect, test } from 'vitest'
import type { Message, State } from '../../src/core/message.ts'
import { advance } from '../../src/core/state-machine.ts'
import { newUuid } from '../../src/new-uuid.ts'
import type { Claim, ClaimResult } from '../../src/store/claim-message.ts'
import type { Receipt } from '../../src/store/receipts.ts'
import type { Store } from '../../src/store/store.ts'
import { newClaim, scope, type Asked } from './claims.ts'

let names = 0
const newName = (): string => `talk-${names++}`
const hashOf = (name: string): string => Buffer.from(name.padEnd(16, '.')).toString('hex').slice(0, 32)

type Bound = Partial<Pick<Claim, 'ifVersion' | 'rechecks' | 'guard'>>

export function talkConformance(open: () => readonly [Store, Store]): void {
  const one = (): Store => open()[0]
  const other = (): Store => open()[1]
  const claimIn = (conversation: string, bound: Bound = {}, as: Asked['as'] = 'sending'): Claim => ({
    ...newClaim(newName(), { as, request: { conversation } }),
    ...bound,
  })
  const held = (claim: Claim): Claim => ({
    ...claim,
    leaseMs: null,
    rechecks: true,
    message: { ...claim.message, attempts: 0, heldFor: 'approval', state: { status: 'held' } },
  })
  const versionOf = async (conversation: string): Promise<number> =>
    (await other().findConversation(scope, conversation)).version
  const taken = (result: ClaimResult): Message => {
    if (result.kind !== 'claimed') throw new Error(`it is claimed, not ${result.kind}`)
    return result.message
  }
  const save = async (message: Message, state: State, leaves = false): Promise<boolean> =>
    one().saveMessage({
      next: advance(message, state, {}, await one().readTime()),
      effects: [],
      leaseMs: null,
      mayHaveDueWork: true,
      leaves,
    })

  test('a version counts claims that go out, messages that leave, and what comes in', async () => {
    const conversation = newName()
    expect(await one().findConversation(scope, conversation)).toEqual({ version: 0, updatedAt: null })
    const waits = taken(await one().claimMessage(held(claimIn(conversation))))
    expect([waits.conversationVersion, await versionOf(conversation)]).toEqual([0, 0])
    taken(await one().claimMessage(claimIn(conversation, {}, 'scheduled')))
    expect(await versionOf(conversation)).toBe(0)
    await Promise.all([one(), other()].map(async (store) => store.claimMessage(claimIn(conversation, {}, 'queued'))))
    expect(await versionOf(conversation)).toBe(2)
    const queued: State = { status: 'queued', last: null, dueAt: await one().readTime() }
    await expect(save(waits, queued, true), 'more was said since its claim').rejects.toThrow('the conversation moved')
    const again = taken(await one().claimMessage(held(claimIn(conversation))))
    expect(again.conversationVersion).toBe(2)
    expect(await save(again, queued, true)).toBe(true)
    expect(await versionOf(conversation)).toBe(3)
  })

  test('of two claims that are based on one version one is made, and the other writes nothing', async () => {
    const conversation = newName()
    const claims = [0, 0].map(() => claimIn(conversation, { ifVersion: 0 }))
    const results = await Promise.all(claims.map(async (claim, i) => open()[i === 0 ? 0 : 1].claimMessage(claim)))
    expect(results.map(({ kind }) => kind).toSorted()).toEqual(['claimed', 'conversation_moved'])
    expect(await versionOf(conversation)).toBe(1)
    const lost = claims[results.findIndex(({ kind }) => kind === 'conversation_moved')]?.message
    expect(await other().findKey(scope, [lost?.idempotencyKey ?? ''])).toBeUndefined()
    const kept = taken(await one().claimMessage(held(claimIn(conversation, { ifVersion: 1 }))))
    expect(kept.conversationVersion).toBe(1)
    const unseen = newName()
    expect(await one().claimMessage(claimIn(unseen, { ifVersion: 1 }))).toEqual({ kind: 'conversation_moved' })
    expect(await versionOf(unseen)).toBe(0)
    expect(await one().claimMessage(held(claimIn(conversation, { ifVersion: 0 })))).toEqual({
      kind: 'conversation_moved',
    })
  })

  test('the guard marks a second one, or refuses it; one that had failed does not count', async () => {
    const contentHash = hashOf(newName())
    const flag: Bound = { guard: { contentHash, windowS: 60, refuses: false } }
    const refuse: Bound = { guard: { contentHash, windowS: 60, refuses: true } }
    const first = taken(await one().claimMessage(claimIn(newName(), flag)))
    expect(first.possibleDuplicateOf).toBeNull()
    const second = taken(await other().claimMessage(claimIn(newName(), flag)))
    expect(second.possibleDuplicateOf).toBe(first.id)
    const refused = claimIn(newName(), refuse)
    expect(await other().claimMessage(refused)).toEqual({ kind: 'duplicate' })
    expect(await other().findKey(scope, [refused.message.idempotencyKey])).toBeUndefined()
    expect(await other().findFirstOfContent(scope, first.request.to, contentHash, 60)).toBe(first.id)
    const queued = taken(await one().claimMessage(claimIn(newName(), { guard: null }, 'queued')))
    expect(queued.possibleDuplicateOf).toBeNull()

    const hash = hashOf(newName())
    const gone = taken(
      await one().claimMessage(
        claimIn(newName(), { guard: { contentHash: hash, windowS: 60, refuses: true } }, 'queued'),
      ),
    )
    await save(gone, { status: 'canceled', reason: null, last: null })
    const next = await other().claimMessage(
      claimIn(newName(), { guard: { contentHash: hash, windowS: 60, refuses: true } }),
    )
    expect(taken(next).possibleDuplicateOf).toBeNull()
    expect(await one().findFirstOfContent(scope, gone.request.to, hash, 60)).toBe(taken(next).id)
  })

  test('of claims of one content at once all but one are marked', async () => {
    const guard = { contentHash: hashOf(newName()), windowS: 60, refuses: false }
    const stores = [one(), one(), one(), other(), other()]
    const made = await Promise.all(stores.map(async (store) => store.claimMessage(claimIn(newName(), { guard }))))
    const marks = made.map((result) => taken(result).possibleDuplicateOf)
    expect(marks.filter((mark) => mark === null)).toHaveLength(1)
    const first = made.map(taken).find(({ possibleDuplicateOf }) => possibleDuplicateOf === null)
    expect(new Set(marks)).toEqual(new Set([null, first?.id]))
  })

  test('what comes in is kept once, and moves its conversation once', async () => {
    const conversation = newName()
    const inbound = {
      ...scope,
      conversation,
      source: 'api',
      eventId: newName(),
      sender: 's',
      text: 't',
      occurredAt: null,
    }
    const told = await Promise.all(
      [one(), other(), one()].map(async (store) => store.recordInbound({ ...inbound, id: newUuid() })),
    )
    expect(told.filter(({ isNew }) => isNew)).toHaveLength(1)
    expect(new Set(told.map((each) => each.inbound.id)).size).toBe(1)
    const more = await other().recordInbound({ ...inbound, id: newUuid(), eventId: newName() })
    expect([more.isNew, more.version, await versionOf(conversation)]).toEqual([true, 2, 2])
    const listed = await one().listInbound(scope, conversation, 10, null)
    expect(listed.map(({ id }) => id)).toEqual([more.inbound.id, told[0]?.inbound.id])
  })

  test('a receipt is kept as it was told first, is left over until it is marked, and finds its environment alone', async () => {
    const message = taken(await one().claimMessage(claimIn(newName())))
    const now = await one().readTime()
    const receipt: Receipt = {
      provider: 'fake',
      eventId: newName(),
      environment: 'live',
      messageId: message.id,
      attemptId: null,
      kind: 'delivered',
      providerMessageId: 'p1',
      code: null,
      occurredAt: new Date(now.getTime() + 3_600_000),
    }
    const [kept, again] = await Promise.all([
      one().keepReceipt(receipt),
      one().keepReceipt({ ...receipt, kind: 'undelivered' }),
    ])
    expect([kept, again].map(({ kind }) => kind)).toEqual([again.kind, kept.kind])
    expect(kept.occurredAt.getTime(), 'nobody tells of the future').toBeLessThan(now.getTime() + 60_000)
    expect((await other().keepReceipt({ ...receipt, code: 'c' })).receivedAt).toEqual(kept.receivedAt)
    const elsewhere = { ...receipt, eventId: newName(), environment: 'test' } as const
    await one().keepReceipt(elsewhere)
    const leftOver = async (): Promise<string[]> =>
      (await other().findUnapplied(new Date(now.getTime() - 60_000), -1_000, 1_000)).map(({ eventId }) => eventId)
    expect(await leftOver()).toContain(receipt.eventId)
    expect(await leftOver()).not.toContain(elsewhere.eventId)
    await one().markApplied(receipt)
    expect(await leftOver()).not.toContain(receipt.eventId)
    expect((await other().keepReceipt(receipt)).appliedAt).not.toBeNull()
  })
}

/**
 * What any store must do about conversations, approvals and the guard: run on PostgreSQL, and on the data base that the
 * simulation plays (conformance.ts).
 */
import { expect, test } from 'vitest'
import { contentHash } from '../../src/core/conversation.ts'
import { newUuid } from '../../src/new-uuid.ts'
import { advance } from '../../src/core/state-machine.ts'
import type { Message, State } from '../../src/core/message.ts'
import type { Claim } from '../../src/store/claim-message.ts'
import type { Inbound } from '../../src/store/conversations.ts'
import { ConversationMoved } from '../../src/store/database-errors.ts'
import type { Store } from '../../src/store/store.ts'
import { changeTo, ended, guardOf, newAttempt, newClaim, scope, sentState, type Asked } from './claims.ts'

let names = 0

export function conversationConformance(open: () => readonly [Store, Store]): void {
  const one = (): Store => open()[0]
  const other = (): Store => open()[1]
  const newName = (): string => `conversing-${names++}`
  const claim = async (asked: Asked, store = one()): Promise<Message> => {
    const result = await store.claimMessage(newClaim(newName(), asked))
    if (result.kind !== 'claimed') throw new Error(`a new key is claimed, and not ${result.kind}`)
    return result.message
  }
  const versionOf = async (conversation: string, of = scope): Promise<number> =>
    (await other().findConversation(of, conversation)).version
  const inbound = (conversation: string, more: Partial<Inbound> = {}): Inbound => ({
    ...scope,
    id: newUuid(),
    conversation,
    source: 'api',
    eventId: newName(),
    sender: '+447700900123',
    text: 'ok',
    occurredAt: null,
    ...more,
  })
  const approved: State = { status: 'queued', last: null, dueAt: new Date(0) }
  /** Of these messages, those that a worker takes now. */
  const taken = async (...messages: readonly Message[]): Promise<string[]> => {
    const ids = (await other().takeDue('dispatch', 1_000)).map(({ id }) => id)
    return ids.filter((id) => messages.some((message) => message.id === id))
  }

  test('a conversation that nobody spoke in is at version 0, since never', async () => {
    expect(await one().findConversation(scope, newName())).toEqual({ version: 0, updatedAt: null })
  })

  test('each claim that goes out makes a version, also several of one conversation in one group', async () => {
    const [busy, quiet] = [newName(), newName()]
    await Promise.all([busy, quiet, busy, busy].map(async (conversation) => claim({ request: { conversation } })))
    await claim({ as: 'queued', request: { conversation: busy } })
    await claim({})
    expect([await versionOf(busy), await versionOf(quiet)]).toEqual([4, 1])
    const { updatedAt } = await other().findConversation(scope, busy)
    expect(updatedAt).toBeInstanceOf(Date)
  })

  test('a held or scheduled one makes none, and is noted with the version that it found if it is checked again', async () => {
    const conversation = newName()
    const waits = (as: 'held' | 'scheduled', rechecks: boolean): Asked => ({
      as,
      request: { conversation },
      bound: { rechecks },
    })
    const first = await claim(waits('held', true))
    expect(await one().findConversation(scope, conversation)).toEqual({ version: 0, updatedAt: null })
    await claim({ request: { conversation } })
    const before = await one().findConversation(scope, conversation)
    const later = [
      await claim(waits('held', true)),
      await claim(waits('scheduled', true)),
      await claim(waits('held', false)),
    ]
    expect([first, ...later].map(({ conversationVersion }) => conversationVersion)).toEqual([0, 1, 1, null])
    expect(await other().findMessages([first.id])).toEqual([first])
    expect(await one().findConversation(scope, conversation)).toEqual(before)
  })

  test.each([0, 3])('one that waited makes a version as it leaves, and only then (found version %i)', async (found) => {
    const conversation = newName()
    for (let i = 0; i < found; i++) await claim({ request: { conversation } })
    const sendAt = new Date(Date.now() + 60_000)
    const waits = { as: 'held', request: { conversation }, bound: { rechecks: true } } as const
    const held = await claim({ ...waits, message: { sendAt } })
    const later = changeTo(held, { status: 'scheduled', sendAt })
    const due = { ...later, effects: [{ type: 'dispatch_at', at: sendAt } as const] }
    expect([await one().saveMessage(due), await versionOf(conversation)]).toEqual([true, found])
    const begun = changeTo(later.next, { status: 'sending', attempt: newAttempt() }, { leaseMs: 60_000 })
    expect([await one().saveMessage(begun), await versionOf(conversation)]).toEqual([true, found + 1])
    expect([await one().saveMessage(begun), await versionOf(conversation)]).toEqual([false, found + 1])
    await one().saveMessage(changeTo(begun.next, sentState(begun.next)))
    const free = await claim({ as: 'scheduled', request: { conversation } })
    await one().saveMessage(changeTo(free, { status: 'sending', attempt: newAttempt() }, { leaseMs: 60_000 }))
    expect(await versionOf(conversation)).toBe(found + 2)
  })

  test.each(['sending', 'held'] as const)(
    'a claim that asks for a version finds it, or leaves nothing behind (%s)',
    async (as) => {
      const conversation = newName()
      const asks = (ifVersion: number): Claim =>
        newClaim(newName(), { as, request: { conversation }, bound: { ifVersion } })
      for (let version = 0; version < 4; version++) {
        const [stale, early] = [asks(version - 1), asks(version + 1)]
        for (const wrong of [stale, early]) {
          expect(await other().claimMessage(wrong)).toEqual({ kind: 'conversation_moved' })
          expect(await one().findKey(scope, [wrong.message.idempotencyKey])).toBeUndefined()
          expect(await one().findMessages([wrong.message.id])).toEqual([])
        }
        expect(await one().claimMessage(asks(version))).toMatchObject({ kind: 'claimed' })
        if (as === 'held') await one().recordInbound(inbound(conversation))
        expect(await versionOf(conversation)).toBe(version + 1)
      }
    },
  )

  test('a repeat of a claim that asked for a version finds its key, and not that it moved', async () => {
    const [conversation, key] = [newName(), newName()]
    const asked = { request: { conversation }, bound: { ifVersion: 0 } }
    expect(await one().claimMessage(newClaim(key, asked))).toMatchObject({ kind: 'claimed' })
    expect(await other().claimMessage(newClaim(key, asked))).toEqual({ kind: 'key_taken' })
  })

  test('of claims at one version at once one is made, and all others are told that it moved', async () => {
    const conversation = newName()
    await claim({ request: { conversation } })
    const claims = Array.from({ length: 12 }, () =>
      newClaim(newName(), { request: { conversation }, bound: { ifVersion: 1 } }),
    )
    const results = await Promise.all(claims.map(async (each, i) => open()[i % 2 === 0 ? 0 : 1].claimMessage(each)))
    expect(results.filter(({ kind }) => kind === 'claimed')).toHaveLength(1)
    expect(results.filter(({ kind }) => kind === 'conversation_moved')).toHaveLength(11)
    expect(await versionOf(conversation)).toBe(2)
  })

  test.each([
    ['another message that went', async (conversation: string) => void (await claim({ request: { conversation } }))],
    ['what came in', async (conversation: string) => void (await one().recordInbound(inbound(conversation)))],
  ])('what waits does not leave after %s: nothing of the change is written', async (_, move) => {
    const conversation = newName()
    const held = await claim({ as: 'held', request: { conversation }, bound: { rechecks: true } })
    await move(conversation)
    const at = new Date()
    const entry = { type: 'approved', at, attemptId: null, data: {} } as const
    const leaves = changeTo(held, approved, {
      effects: [
        { type: 'dispatch_at', at: new Date(0) },
        { type: 'record', entry },
      ],
    })
    await expect(one().saveMessage(leaves)).rejects.toBeInstanceOf(ConversationMoved)
    expect(await other().findMessages([held.id])).toEqual([held])
    expect([await taken(held), await other().findEvents(held.id), await versionOf(conversation)]).toEqual([[], [], 1])
    expect(
      await one().saveMessage(changeTo(held, { status: 'canceled', reason: 'conversation_changed', last: null })),
    ).toBe(true)
    expect(await versionOf(conversation)).toBe(1)
  })

  test('of two that wait on one version the first that leaves goes, and other held ones hinder nobody', async () => {
    const conversation = newName()
    const waits = { as: 'held', request: { conversation }, bound: { rechecks: true } } as const
    const [first, second] = [await claim(waits), await claim(waits)]
    const results = await Promise.allSettled([
      one().saveMessage(changeTo(first, approved)),
      other().saveMessage(changeTo(second, approved)),
    ])
    expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    expect(await versionOf(conversation)).toBe(1)
  })

  test('what is held is due when it lapses, waits in the list until then, and is no dispatch once it ended', async () => {
    const waits = await claim({ as: 'held' })
    const before = await one().countDueWork()
    const over = await claim({ as: 'held', message: { notAfter: new Date(0) } })
    expect((await one().countDueWork()).held - before.held).toBe(1)
    expect(await taken(waits, over)).toEqual([over.id])
    expect(await taken(waits, over), 'it was put off').toEqual([])
    await one().postponeDue('dispatch', over.id, -1_000)
    expect(await taken(waits, over)).toEqual([over.id])
    const ids = await other().findWaitingIds('held', 10_000)
    expect(ids).toEqual(expect.arrayContaining([waits.id, over.id]))
    expect(ids.toSorted()).toEqual(ids)
    await one().saveMessage(changeTo(over, { status: 'canceled', reason: 'lapsed', last: null }))
    await one().saveMessage({ ...changeTo(waits, approved), effects: [{ type: 'dispatch_at', at: new Date(0) }] })
    expect(await other().findWaitingIds('held', 10_000)).not.toEqual(expect.arrayContaining([waits.id]))
    await one().postponeDue('dispatch', over.id, -1_000)
    expect(await taken(waits, over)).toEqual([waits.id])
  })

  test('a decision and why it was canceled are kept with a message', async () => {
    const held = await claim({ as: 'held' })
    const decision = { decision: 'declined', by: 'someone', at: new Date(), from: '::1' } as const
    const next = advance(held, { status: 'canceled', reason: 'declined', last: null }, { decision }, new Date())
    await one().saveMessage({ ...changeTo(held, next.state), next })
    expect(await other().findMessages([held.id])).toEqual([next])
  })

  test('what came in makes a version, once per event id of its source and conversation', async () => {
    const [conversation, another] = [newName(), newName()]
    const told = inbound(conversation)
    const { inbound: kept, ...first } = await one().recordInbound(told)
    expect(first).toEqual({ version: 1, isNew: true })
    expect(kept).toMatchObject({ id: told.id, source: 'api', eventId: told.eventId, sender: told.sender, text: 'ok' })
    await claim({ request: { conversation } })
    const again = await other().recordInbound({ ...told, id: newUuid(), text: 'told otherwise' })
    expect(again).toEqual({ inbound: kept, version: 2, isNew: false })
    expect(await versionOf(conversation)).toBe(2)
    expect(await one().recordInbound({ ...told, id: newUuid(), source: 'fake' })).toMatchObject({
      version: 3,
      isNew: true,
    })
    expect(await one().recordInbound({ ...told, id: newUuid(), conversation: another })).toMatchObject({ version: 1 })
    expect(await one().recordInbound({ ...told, id: newUuid(), account: 'another' })).toMatchObject({ version: 1 })
    expect(await one().recordInbound({ ...told, id: newUuid(), environment: 'test' })).toMatchObject({ version: 1 })
  })

  test('of one event told many times at once one is kept, and each teller gets it', async () => {
    const told = inbound(newName())
    const results = await Promise.all(
      Array.from({ length: 10 }, async (_, i) => open()[i % 2 === 0 ? 0 : 1].recordInbound({ ...told, id: newUuid() })),
    )
    expect(results.filter(({ isNew }) => isNew)).toHaveLength(1)
    expect(new Set(results.map(({ inbound: { id } }) => id)).size).toBe(1)
    expect(await versionOf(told.conversation)).toBe(1)
  })

  test('what came in is listed newest first, page by page, of one conversation of one account', async () => {
    const conversation = newName()
    const ids: string[] = []
    for (let i = 0; i < 5; i++) ids.unshift((await one().recordInbound(inbound(conversation))).inbound.id)
    await one().recordInbound(inbound(newName()))
    await one().recordInbound(inbound(conversation, { account: 'another' }))
    const page = async (before: string | null): Promise<string[]> =>
      (await other().listInbound(scope, conversation, 2, before)).map(({ id }) => id)
    expect([await page(null), await page(ids[1] ?? ''), await page(ids[3] ?? ''), await page(ids[4] ?? '')]).toEqual([
      ids.slice(0, 2),
      ids.slice(2, 4),
      ids.slice(4),
      [],
    ])
  })

  test('a recipient was reached once something was sent to it by that channel, in that account', async () => {
    const to = `+44${newName()}`
    const message = await claim({ request: { to } })
    const reached = async (of: typeof scope | object = {}, channel: 'sms' | 'chat' = 'sms'): Promise<boolean> =>
      other().wasReached({ ...scope, ...of }, channel, to)
    expect(await reached(), 'it is on its way').toBe(false)
    await one().saveMessage(changeTo(message, sentState(message)))
    expect([await reached(), await reached({}, 'chat')]).toEqual([true, false])
    expect([await reached({ account: 'another' }), await reached({ environment: 'test' })]).toEqual([false, false])
    const failed = await claim({ request: { to: `${to}0` } })
    if (failed.state.status !== 'sending') throw new Error('it is sending')
    const last = ended(failed.state.attempt, 'rejected')
    await one().saveMessage(changeTo(failed, { status: 'failed', reason: 'provider_refused', last }))
    expect(await other().wasReached(scope, 'sms', `${to}0`)).toBe(false)
  })

  test('the content of a message is found by its hash, within the window that is asked for', async () => {
    const made = newClaim(newName(), { request: { content: { text: newName() } } })
    const hash = contentHash(made.message.request)
    expect(await one().findFirstOfContent(scope, made.message.request.to, hash, 900)).toBeUndefined()
    await one().claimMessage({ ...made, guard: guardOf(made) })
    expect(await other().findFirstOfContent(scope, made.message.request.to, hash, 900)).toBe(made.message.id)
    expect(
      await other().findFirstOfContent({ ...scope, account: 'another' }, made.message.request.to, hash, 900),
    ).toBeUndefined()
    expect(
      await other().findFirstOfContent({ ...scope, environment: 'test' }, made.message.request.to, hash, 900),
    ).toBeUndefined()
  })
}

/**
 * What any store must do, whatever keeps its rows: run on PostgreSQL, and on the data base that the simulation plays, so
 * that what is proven on the one holds for the other. Two stores stand on one data base; time comes from it alone.
 */
import { expect, test } from 'vitest'
import { fingerprintOf } from '../../src/core/fingerprint.ts'
import type { Effect } from '../../src/core/events.ts'
import type { Message, Plan, State } from '../../src/core/message.ts'
import { advance } from '../../src/core/state-machine.ts'
import type { Change } from '../../src/store/save-message.ts'
import type { Store } from '../../src/store/store.ts'
import { ended, newAttempt, newClaim, scope, sentState, type Asked } from './claims.ts'

const minuteMs = 60_000
let claims = 0

export function storeConformance(open: () => readonly [Store, Store]): void {
  const one = (): Store => open()[0]
  const other = (): Store => open()[1]
  const soon = async (ms: number): Promise<Date> => new Date((await one().readTime()).getTime() + ms)

  const newKey = (): string => `conformance-${claims++}`
  const claimed = async (asked: Asked = {}, key = newKey()): Promise<Message> => {
    const result = await one().claimMessage(newClaim(key, asked))
    if (result.kind !== 'claimed') throw new Error('a new key is claimed')
    return result.message
  }
  type Options = Partial<Omit<Change, 'next' | 'effects'>> & { readonly effects?: Effect[] }
  const change = async (message: Message, state: State, more: Options = {}): Promise<Change> => ({
    next: advance(message, state, {}, await soon(0)),
    effects: [],
    leaseMs: null,
    mayHaveDueWork: true,
    ...more,
  })
  const attemptIn = (message: Message) => {
    if (message.state.status !== 'sending') throw new Error('it is sending')
    return message.state.attempt
  }
  const unknown = (message: Message, plan: Plan | null = null): State => ({
    status: 'unknown',
    attempt: ended(attemptIn(message), 'unknown'),
    plan,
  })
  const planAt = (at: Date): Plan => ({ step: 'look', at, givesUpAt: new Date(at.getTime() + minuteMs), steps: 1 })
  const dispatchAt = (at: Date): Effect => ({ type: 'dispatch_at', at })
  const present = async ({ id }: Message): Promise<Message | undefined> => (await other().findMessages([id]))[0]
  const isTaken = async (task: 'dispatch' | 'reconcile', { id }: Message): Promise<boolean> =>
    (await other().takeDue(task, 1_000)).some((taken) => taken.id === id)
  const isLapsed = async ({ id }: Message, since: Date): Promise<boolean> =>
    (await other().findLapsed(since, 1_000)).some((lapsed) => lapsed.id === id)
  const long = new Date(0)

  test.each(['sending', 'queued', 'scheduled'] as const)(
    'a claim reads back as it was told, by key and by id (%s)',
    async (as) => {
      const key = newKey()
      const message = await claimed({ as, request: { conversation: 'c', reference: 'r' } }, key)
      expect(await present(message)).toEqual(message)
      expect(await other().findKey(scope, ['nothing', key])).toMatchObject({ kind: 'message', key, message })
      expect(await other().findMessage(scope, message.id)).toEqual(message)
      expect(await other().findMessage({ ...scope, account: 'another' }, message.id)).toBeUndefined()
      expect([...(await other().findVersions([message.id]))]).toEqual([[message.id, 1]])
    },
  )

  test('of claims of one key at once one wins; those of other keys all do', async () => {
    const key = newKey()
    const asked = Array.from({ length: 24 }, (_, i) => newClaim(i % 2 === 0 ? key : newKey()))
    const results = await Promise.all(asked.map(async (claim, i) => open()[i % 3 === 0 ? 0 : 1].claimMessage(claim)))
    const won = results.map(({ kind }, i) => ({ kind, same: i % 2 === 0 })).filter(({ kind }) => kind === 'claimed')
    expect([won.filter(({ same }) => same).length, won.filter(({ same }) => !same).length]).toEqual([1, 12])
    expect(results.filter(({ kind }) => kind === 'key_taken')).toHaveLength(11)
  })

  test('a taken second name lets nothing of a claim be written; a free one is a name of the message', async () => {
    const [key, name] = [newKey(), newKey()]
    const message = await claimed({ secondKey: name }, key)
    expect(await other().findKey(scope, [name])).toMatchObject({ kind: 'message', message })
    const late = newClaim(newKey(), { as: 'queued', secondKey: name })
    expect(await other().claimMessage(late)).toEqual({ kind: 'key_taken' })
    expect(await one().findKey(scope, [late.message.idempotencyKey])).toBeUndefined()
    expect(await one().findMessages([late.message.id])).toEqual([])
    expect(await isTaken('dispatch', late.message)).toBe(false)
  })

  test('an intent is held by one message until that has failed, and a taken intent claims no key', async () => {
    const intent = newKey()
    const message = await claimed({ request: { intent } })
    const late = newClaim(newKey(), { request: { intent } })
    expect(await other().claimMessage(late)).toEqual({ kind: 'intent_taken' })
    expect(await other().findKey(scope, [late.message.idempotencyKey])).toBeUndefined()
    expect(await other().findByIntent(scope, intent)).toMatchObject({ id: message.id })
    const both = newClaim(message.idempotencyKey, { request: { intent } })
    expect(await other().claimMessage(both), 'the key is looked at first').toEqual({ kind: 'key_taken' })
    const last = ended(attemptIn(message), 'rejected')
    await one().saveMessage(await change(message, { status: 'failed', reason: 'provider_refused', last }))
    expect(await other().findByIntent(scope, intent)).toBeUndefined()
    expect(await other().claimMessage(late)).toMatchObject({ kind: 'claimed' })
  })

  test('a tombstone takes its key for good, and a name stands for the message behind the other', async () => {
    const [key, name] = [newKey(), newKey()]
    expect([await one().insertTombstone(scope, key, 'k'), await other().insertTombstone(scope, key, 'k')]).toEqual([
      true,
      false,
    ])
    expect(await other().claimMessage(newClaim(key))).toEqual({ kind: 'key_taken' })
    expect(await other().findKey(scope, [key])).toMatchObject({ kind: 'void', key })
    expect(await one().insertName(scope, name, key), 'a tombstone has no message').toBe(false)
    const message = await claimed()
    expect(await one().insertName(scope, name, message.idempotencyKey)).toBe(true)
    expect(await other().insertName(scope, name, message.idempotencyKey)).toBe(false)
    expect(await other().findKey(scope, [name])).toMatchObject({ kind: 'message', message })
  })

  test('the stored answer of a final message is found by each of its names, and by no other account', async () => {
    const [key, name] = [newKey(), newKey()]
    const message = await claimed({}, key)
    await one().insertName(scope, name, key)
    expect(await other().findAnswer(scope, key), 'it is not final').toBeUndefined()
    const saved = await change(message, sentState(message))
    await one().saveMessage(saved)
    const { answer } = saved.next
    const fingerprint = fingerprintOf(message.canonical)
    for (const known of [key, name]) expect(await other().findAnswer(scope, known)).toEqual({ fingerprint, answer })
    expect(await other().findAnswer({ ...scope, account: 'another' }, key)).toBeUndefined()
  })

  test('a change replaces the version that it was made of; of any other nothing is written', async () => {
    const message = await claimed()
    expect(await other().findAnswer(scope, message.idempotencyKey)).toBeUndefined()
    const at = await soon(0)
    const note: Effect = { type: 'record', entry: { type: 'late_outcome', at, attemptId: null, data: { a: 1 } } }
    const sent = await change(message, sentState(message), { effects: [note] })
    const late = await change(message, unknown(message, planAt(at)), { effects: [note, note] })
    expect([await one().saveMessage(sent), await other().saveMessage(late)]).toEqual([true, false])
    expect(await present(message)).toEqual(sent.next)
    expect(await isTaken('reconcile', message)).toBe(false)
    const { answer } = sent.next
    expect(await other().findAnswer(scope, message.idempotencyKey)).toMatchObject({ answer })
    expect(await other().findAnswer({ ...scope, account: 'another' }, message.idempotencyKey)).toBeUndefined()
    expect(await other().findEvents(message.id)).toMatchObject([{ type: 'late_outcome', at, data: { a: 1 } }])
    await one().recordEvents(message.id, [{ type: 'canceled', at, attemptId: null, data: {} }])
    expect((await other().findEvents(message.id)).map(({ type }) => type)).toEqual(['late_outcome', 'canceled'])
  })

  test('of two changes of one message at once one is written', async () => {
    const message = await claimed()
    const changes = [await change(message, sentState(message)), await change(message, unknown(message))]
    const written = await Promise.all(changes.map(async (each) => one().saveMessage(each)))
    expect(written.filter(Boolean)).toHaveLength(1)
    expect(await present(message)).toEqual(changes[written.indexOf(true)]?.next)
  })

  test('what is queued is due at its time, is taken once, put off, and due again when that is over', async () => {
    const message = await claimed()
    const last = ended(attemptIn(message), 'not_sent')
    const past = await soon(-1_000)
    const again = await change(message, { status: 'queued', last, dueAt: past }, { effects: [dispatchAt(past)] })
    await one().saveMessage(again)
    expect([await isTaken('reconcile', message), await isTaken('dispatch', message)]).toEqual([false, true])
    expect(await isTaken('dispatch', message), 'it was taken').toBe(false)
    await one().postponeDue('reconcile', message.id, -1_000)
    expect(await isTaken('dispatch', message), 'that was another task').toBe(false)
    await one().postponeDue('dispatch', message.id, -1_000)
    expect(await isTaken('dispatch', message)).toBe(true)
    const later = await soon(minuteMs)
    const put = { status: 'queued', last, dueAt: later } as const
    await one().saveMessage(await change(again.next, put, { effects: [dispatchAt(later)] }))
    expect(await isTaken('dispatch', message)).toBe(false)
  })

  test('an attempt that a worker began stands in no queue, and is found when its lease has lapsed', async () => {
    const queued = await claimed({ as: 'queued' })
    const begun = await change(queued, { status: 'sending', attempt: newAttempt() }, { leaseMs: minuteMs })
    await one().saveMessage(begun)
    const running = await present(queued)
    const { leaseUntil } = attemptIn(running ?? queued)
    expect(leaseUntil > (await soon(minuteMs / 2)) && leaseUntil <= (await soon(minuteMs))).toBe(true)
    expect([await isTaken('dispatch', queued), await isLapsed(queued, long)]).toEqual([false, false])

    const another = await claimed({ as: 'queued' })
    await one().saveMessage(await change(another, { status: 'sending', attempt: newAttempt() }, { leaseMs: -1_000 }))
    expect([await isTaken('dispatch', another), await isLapsed(another, await soon(minuteMs))]).toEqual([false, true])
  })

  test('a synchronous claim is found by its lease, among those claimed since a time', async () => {
    const [running, lapsed] = [await claimed({ leaseMs: minuteMs }), await claimed({ leaseMs: -1_000 })]
    expect([await isLapsed(running, long), await isLapsed(lapsed, long)]).toEqual([false, true])
    expect(await isLapsed(lapsed, await soon(1_000))).toBe(false)
    await one().saveMessage(await change(lapsed, unknown(lapsed)))
    expect(await isLapsed(lapsed, long)).toBe(false)
  })

  test('what is unknown is due for a step at its time, or for a person and no worker; what ends is due for nobody', async () => {
    const before = await one().countDueWork()
    const [planned, waits] = [await claimed(), await claimed()]
    const withPlan = await change(planned, unknown(planned, planAt(await soon(-1_000))))
    await one().saveMessage(withPlan)
    const withNone = await change(waits, unknown(waits))
    await one().saveMessage(withNone)
    expect(await other().findWaitingIds('unknown', 10_000)).toEqual(expect.arrayContaining([planned.id, waits.id]))
    const { reconciled, unknown: ofPersons } = await other().countDueWork()
    expect([reconciled - before.reconciled, ofPersons - before.unknown]).toEqual([1, 1])
    expect([await isTaken('reconcile', planned), await isTaken('reconcile', waits)]).toEqual([true, false])
    const { state } = withPlan.next
    if (state.status !== 'unknown') throw new Error('it is unknown')
    const sent: State = { status: 'sent', attempt: state.attempt, providerMessageId: null, sentAt: await soon(0) }
    const resolution = { by: 'lookup', at: await soon(0), attemptId: state.attempt.id, outcome: 'sent' } as const
    const next = advance(withPlan.next, sent, { resolution }, await soon(0))
    await one().saveMessage({ next, effects: [], leaseMs: null, mayHaveDueWork: true })
    expect(await present(planned)).toEqual(next)
    expect(await other().findWaitingIds('unknown', 10_000)).not.toContain(planned.id)
  })

  test('a row that no sequence of events makes is refused, and nothing is written', async () => {
    const message = await claimed()
    const wrong = await change(message, { status: 'queued', last: ended(attemptIn(message), 'unknown'), dueAt: long })
    await expect(one().saveMessage(wrong)).rejects.toThrow('queued_was_not_sent')
    expect(await present(message)).toEqual(message)
  })

  test('results that became final long ago are erased; their keys stay, and say what became of them', async () => {
    const [final, waits] = [await claimed(), await claimed()]
    await one().saveMessage(await change(final, sentState(final)))
    expect(await one().eraseResults(await soon(-minuteMs), 1_000)).toBe(0)
    expect(await one().eraseResults(await soon(minuteMs), 1_000)).toBeGreaterThan(0)
    expect([await present(final), (await present(waits))?.id]).toEqual([undefined, waits.id])
    const gone = { kind: 'erased', messageId: final.id, lastStatus: 'sent' }
    expect(await other().findKey(scope, [final.idempotencyKey])).toMatchObject(gone)
    expect(await other().claimMessage(newClaim(final.idempotencyKey))).toEqual({ kind: 'key_taken' })
  })

  test('a sweep remembers how far it has seen, and never less far', async () => {
    const [early, late] = [await soon(0), await soon(minuteMs)]
    expect(await one().findSweepStart('conformance')).toBeNull()
    await one().saveSweep('conformance', late)
    await other().saveSweep('conformance', early)
    expect(await one().findSweepStart('conformance')).toEqual(late)
  })
}

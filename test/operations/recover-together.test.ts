/** Many at once, and two reconcilers on one data base (behaviour.md, F9; engine.md, Warrants). */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Store } from '../../src/store/store.ts'
import * as dispatcher from '../../src/workers/dispatcher.ts'
import { createReconciler } from '../../src/workers/reconciler.ts'
import { useDatabase } from '../support/database.ts'
import { accepted, lost, sms, testGateway, until, type TestGateway } from '../support/gateway.ts'
import { meetingOf } from '../support/sandbox-client.ts'
import { able, alarmsOf, answers, lostMessage, recoverableProvider, shown } from './recovery-steps.ts'
import { heldOutcome, messageIn, timelineOf, told, uuidOf } from './told.ts'

const database = useDatabase()
let gateway: TestGateway
let replica: TestGateway
/** Who takes, takes this message, and has it only when both have read it: the worst that can happen. */
let both: { readonly id: string; readonly meet: () => Promise<void> } | null = null
const wrapStore = (store: Store): Store => ({
  ...store,
  takeDue: async (task, limit) => {
    if (both === null || task !== 'reconcile') return store.takeDue(task, limit)
    const messages = await store.findMessages([uuidOf(both.id)])
    await both.meet()
    return messages
  },
})
const provider = recoverableProvider(able({ key: true }))
/** How often the provider acted, by its key: our message id. */
const acted = new Map<string, number>()
beforeAll(async () => {
  gateway = await testGateway(database.url, { provider, wrapStore })
  replica = await testGateway(database.url, { provider, wrapStore })
})
beforeEach(() => {
  both = null
  provider.calls.length = 0
  acted.clear()
})
afterAll(async () => {
  await gateway.close()
  await replica.close()
})

test('200 replies are lost at once at a provider that acts once on a key: 200 are sent, once each, without a person', async () => {
  provider.answer = ({ messageId, attemptNumber }) => {
    if (!acted.has(messageId)) acted.set(messageId, 1)
    return attemptNumber === 1 ? lost() : accepted(messageId)
  }
  const keys = Array.from({ length: 200 }, (_, nth) => `storm-${nth}`)
  const waiting = keys.map(async (key, nth) =>
    (nth % 2 === 0 ? gateway : replica).send(sms(`text of ${key}`), { key, prefer: 'wait=25' }),
  )
  let over = false
  const all = Promise.all(waiting).finally(() => (over = true))
  const reconcilers = [createReconciler(gateway.deps), createReconciler(replica.deps)]
  await until(async () => {
    for (const { deps } of [gateway, replica]) await (await dispatcher.runOnce(deps)).done // those that found no slot wait for one
    await Promise.all(reconcilers.map(async (each) => (await each.runOnce()).done))
    return over
  }, 28_000)
  const answered = await all
  expect(new Set(answered.map(told))).toEqual(new Set(['201 sent']))
  expect(new Set(answered.map((each) => messageIn(each).providerMessageId)).size).toBe(200)
  expect([acted.size, provider.calls.length]).toEqual([200, 400])
  expect(answered.map((each) => messageIn(each).resolution?.by)).toEqual(keys.map(() => 'provider_replay'))
  expect(await database.query('SELECT task FROM due_work')).toEqual([])
  expect(await alarmsOf(gateway)).toEqual({})
})

test('F9 two replicas step the same message at the same moment: one replay, one attempt, one line in the time line', async () => {
  const id = await lostMessage(gateway, 'both')
  both = { id, meet: meetingOf(2) }
  const replay = heldOutcome()
  provider.answer = async () => replay.promise
  const passes = await Promise.all([gateway, replica].map(async ({ deps }) => createReconciler(deps).runOnce()))
  expect(passes.map(({ taken }) => taken)).toEqual([1, 1])
  await until(() => provider.calls.length === 2)
  replay.resolve(accepted())
  await Promise.all(passes.map(async ({ done }) => done))
  expect(provider.calls).toHaveLength(2)
  expect(await shown(gateway, id)).toMatchObject({ status: 'sent', attempts: 2 })
  expect((await timelineOf(gateway, id)).filter(({ type }) => type === 'warranted')).toHaveLength(1)
})

test('F9 both at once, and the replay is not accepted: the other does not repeat it in its place', async () => {
  const id = await lostMessage(gateway, 'both-lost')
  both = { id, meet: meetingOf(2) }
  answers(provider, lost())
  const passes = await Promise.all([gateway, replica].map(async ({ deps }) => createReconciler(deps).runOnce()))
  await Promise.all(passes.map(async ({ done }) => done))
  expect(provider.calls).toHaveLength(2)
  expect(await shown(gateway, id)).toMatchObject({ status: 'unknown', attempts: 2, plan: { steps: 1 } })
})

/**
 * The owner of the first attempt, or of a look-up, tells what it learnt while others have gone on with the message
 * (engine.md, Verdict; behaviour.md, D6, F6, F9).
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Capabilities } from '../../src/core/capabilities.ts'
import type { LookResult, Outcome } from '../../src/core/outcome.ts'
import { createReconciler } from '../../src/workers/reconciler.ts'
import { useDatabase } from '../support/database.ts'
import {
  accepted,
  fakeProvider,
  lost,
  nothing,
  notSent,
  rejected,
  sms,
  testGateway,
  until,
  type FakeProvider,
  type TestGateway,
} from '../support/gateway.ts'
import { dispatch, lapse, makeDue, rescue, untilStatus } from './steps.ts'
import { heldOutcome, messageIn, present, timelineOf, uuidOf } from './told.ts'

const dayMs = 86_400_000
const withMeans = (means: Partial<Capabilities>): FakeProvider => {
  const plain = fakeProvider('fake')
  return fakeProvider('fake', { capabilities: { ...plain.capabilities, ...means } })
}
const deduplication = {
  keyField: 'key',
  keyFormat: 'message_id',
  lifetimeMs: dayMs,
  marginMs: 1,
  repeat: 'same_response',
} as const
const lookup = { match: 'exact', strength: 'strong', settlingMs: 0, retentionMs: dayMs, marginMs: 1 } as const

const database = useDatabase()
let keyed: TestGateway
let looking: TestGateway
beforeAll(async () => {
  keyed = await testGateway(database.url, { provider: withMeans({ deduplication }) })
  looking = await testGateway(database.url, { provider: withMeans({ lookup }) })
})
afterAll(async () => {
  await keyed.close()
  await looking.close()
})

const taskOf = async (id: string): Promise<unknown> =>
  (await database.query<{ task: string }>('SELECT task FROM due_work WHERE message_id = $1', [uuidOf(id)]))[0]?.task
const due = async (id: string): Promise<unknown> =>
  database.query("UPDATE due_work SET due_at = now() - interval '1 s' WHERE message_id = $1", [uuidOf(id)])

const outcomes = { accepted, lost, rejected, notSent } as const satisfies Readonly<Record<string, () => Outcome>>
/** What the late owner tells, what the replay told, and what becomes of the message and its due work. */
const table = [
  ['accepted', 'accepted', 'sent', undefined],
  ['accepted', 'lost', 'sent', undefined],
  ['accepted', 'rejected', 'sent', undefined],
  ['accepted', 'notSent', 'sent', undefined],
  ['lost', 'accepted', 'sent', undefined],
  ['lost', 'lost', 'unknown', 'reconcile'],
  ['lost', 'rejected', 'unknown', 'unknown'],
  ['lost', 'notSent', 'unknown', 'reconcile'],
  ['rejected', 'accepted', 'sent', undefined],
  ['rejected', 'lost', 'unknown', 'reconcile'],
  ['rejected', 'rejected', 'failed', undefined],
  ['notSent', 'lost', 'unknown', 'reconcile'],
  ['notSent', 'notSent', 'queued', 'dispatch'],
] as const
const moments = ['while the replay runs', 'after the replay ended'] as const

test.each(
  moments.flatMap((moment) => table.map(([late, replay, status, task]) => ({ moment, late, replay, status, task }))),
)(
  'D6 $late, told by the first owner $moment, which tells $replay: $status',
  async ({ moment, late, replay, status, task }) => {
    const [first, second] = [heldOutcome(), heldOutcome()]
    keyed.provider.answer = async ({ attemptNumber }) => (attemptNumber === 1 ? first : second).promise
    const key = `${moment} ${late} ${replay}`.replaceAll(' ', '-')
    const { id } = messageIn(await keyed.send(sms(), { key, prefer: 'wait=0' }))
    await lapse(database, id)
    await rescue(keyed)
    await due(id)
    const { done } = await createReconciler(keyed.deps).runOnce()
    await until(async () => (await present(keyed, id)).status === 'sending')
    const told = async (): Promise<boolean> =>
      (await timelineOf(keyed, id)).some(({ type, data }) => type === 'late_outcome' && data['code'] !== 'lease lapsed')
    if (moment === 'while the replay runs') {
      first.resolve(outcomes[late]())
      await until(told)
      second.resolve(outcomes[replay]())
      await done
    } else {
      second.resolve(outcomes[replay]())
      await done
      first.resolve(outcomes[late]())
      await until(told)
    }
    expect([(await present(keyed, id)).status, await taskOf(id)]).toEqual([status, task])
  },
)

test('D6 news of the attempt before leave the lease of the replay as it is: it lapses if nobody tells of it', async () => {
  const first = heldOutcome()
  keyed.provider.answer = async ({ attemptNumber }) => (attemptNumber === 1 ? first : heldOutcome()).promise
  const { id } = messageIn(await keyed.send(sms(), { key: 'lease', prefer: 'wait=0' }))
  await lapse(database, id)
  await rescue(keyed)
  await due(id)
  await createReconciler(keyed.deps).runOnce()
  await untilStatus(keyed, id, 'sending')
  first.resolve(notSent())
  await until(async () => (await timelineOf(keyed, id)).some(({ type }) => type === 'late_outcome'))
  expect([(await present(keyed, id)).status, await taskOf(id)]).toEqual(['sending', 'lease'])
  await lapse(database, id)
  expect(await rescue(keyed)).toBe(1)
  expect([(await present(keyed, id)).status, await taskOf(id)]).toEqual(['unknown', 'reconcile'])
})

test('F9 two replicas whose look-ups of one message prove an absence at the same moment have it sent again once', async () => {
  looking.provider.answer = ({ attemptNumber }) => (attemptNumber === 1 ? lost() : accepted())
  const { id } = messageIn(await looking.send(sms(), { key: 'two-lookers', prefer: 'wait=0' }))
  await untilStatus(looking, id, 'unknown')
  await lapse(database, id)
  const replicas = [createReconciler(looking.deps), createReconciler(looking.deps)]
  const look = async (): Promise<void> => {
    const shown = Promise.withResolvers<LookResult>()
    looking.provider.show = async () => shown.promise
    const before = looking.provider.looks.length
    const passes = []
    for (const replica of replicas) {
      await due(id)
      passes.push((await replica.runOnce()).done)
    }
    await until(() => looking.provider.looks.length === before + 2)
    shown.resolve(nothing())
    await Promise.all(passes)
  }
  await look()
  expect((await present(looking, id)).status).toBe('unknown')
  await look()
  expect((await present(looking, id)).status).toBe('queued')
  await makeDue(database)
  await dispatch(looking)
  await untilStatus(looking, id, 'sent')
  expect(looking.provider.calls.filter(({ messageId }) => messageId === id)).toHaveLength(2)
  expect((await looking.deps.metrics.alarms.get()).values).toEqual([])
})

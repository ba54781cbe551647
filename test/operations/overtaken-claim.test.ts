/** A claim in doubt whose owner wakes up when others have gone on with the message (send-message.ts, N4; behaviour.md, D6). */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { StoreUnavailable } from '../../src/store/database-errors.ts'
import { createReconciler } from '../../src/workers/reconciler.ts'
import { useDatabase } from '../support/database.ts'
import {
  accepted,
  fakeProvider,
  lost,
  notSent,
  sms,
  testGateway,
  until,
  type FakeProvider,
  type TestGateway,
} from '../support/gateway.ts'
import { lapse, rescue, steerableClock, untilStatus } from './steps.ts'
import { heldOutcome, present, timelineOf } from './told.ts'

const keyed = (): FakeProvider =>
  fakeProvider('fake', {
    capabilities: {
      channels: ['sms'],
      deduplication: {
        keyField: 'k',
        keyFormat: 'message_id',
        lifetimeMs: 86_400_000,
        marginMs: 1,
        repeat: 'same_response',
      },
      lookup: null,
      lateEvidence: 'none',
      acceptance: 'status',
    },
  })
const database = useDatabase()
const { steer, clock } = steerableClock()
const asleep = Promise.withResolvers<void>()
let sleeper: TestGateway
let replica: TestGateway
beforeAll(async () => {
  sleeper = await testGateway(database.url, {
    provider: keyed(),
    clock,
    wrapStore: (store) => ({
      ...store,
      claimMessage: async (claim) => {
        await store.claimMessage(claim)
        throw new StoreUnavailable('doubtful', 'its reply was lost')
      },
      findKey: async (...asked) => {
        await asleep.promise
        return store.findKey(...asked)
      },
    }),
  })
  replica = await testGateway(database.url, { provider: keyed() })
})
afterAll(async () => {
  await sleeper.close()
  await replica.close()
})

test('D6 it does not take the attempt of another for its own: no call, and nothing is told of that attempt', async () => {
  // Its lease is over by then, and so its gate is shut.
  sleeper.provider.answer = (_, gate) => (gate() ? accepted() : notSent())
  const replay = heldOutcome()
  replica.provider.answer = async () => replay.promise
  const sending = sleeper.send(sms(), { key: 'asleep', prefer: 'wait=1' })
  const rows = async (): Promise<{ id: string }[]> => database.query('SELECT id FROM messages')
  await until(async () => (await rows()).length === 1)
  const id = `msg_${(await rows())[0]?.id.replaceAll('-', '')}`
  await lapse(database, id)
  await rescue(replica)
  await database.query("UPDATE due_work SET due_at = now() - interval '1 s'")
  await createReconciler(replica.deps).runOnce()
  await until(() => replica.provider.calls.length === 1)

  steer.lagMs = 60_000
  asleep.resolve()
  await sending
  expect([sleeper.provider.calls.length, (await present(replica, id)).status]).toEqual([0, 'sending'])
  replay.resolve(lost())
  await untilStatus(replica, id, 'unknown')
  const ends = (await timelineOf(replica, id)).filter(({ type }) => type === 'attempt_ended')
  expect(ends.map(({ data }) => data['outcome'])).toEqual(['unknown', 'unknown'])
})

/** Two look-ups prove an absence only if the second began a settling time after the first ended (engine.md, Warrants). */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createReconciler } from '../../src/workers/reconciler.ts'
import { useDatabase } from '../support/database.ts'
import { fakeProvider, lost, nothing, sms, testGateway, type TestGateway } from '../support/gateway.ts'
import { untilStatus } from './steps.ts'
import { messageIn, present, uuidOf } from './told.ts'

const settlingMs = 60_000
const database = useDatabase()
let gateway: TestGateway
const time = { aheadMs: 0 }
beforeAll(async () => {
  const provider = fakeProvider('fake', {
    capabilities: {
      channels: ['sms'],
      deduplication: null,
      lookup: { match: 'exact', strength: 'strong', settlingMs, retentionMs: 86_400_000, marginMs: 3_600_000 },
      lateEvidence: 'none',
      acceptance: 'status',
    },
  })
  gateway = await testGateway(database.url, {
    provider,
    clock: (real) => ({
      ...real,
      now: () => new Date(real.now().getTime() + time.aheadMs),
      mark: () => ({ ...real.mark(), monotonicMs: real.mark().monotonicMs + time.aheadMs }),
    }),
  })
})
afterAll(async () => gateway.close())

test('E9 a look that began too soon proves nothing, however late its answer comes', async () => {
  gateway.provider.answer = () => lost()
  const { id } = messageIn(await gateway.send(sms(), { key: 'slow-look', prefer: 'wait=0' }))
  await untilStatus(gateway, id, 'unknown')
  const reconciler = createReconciler(gateway.deps)
  const look = async (takesMs: number): Promise<string> => {
    gateway.provider.show = () => {
      time.aheadMs += takesMs
      return nothing()
    }
    await database.query("UPDATE due_work SET due_at = now() - interval '1 s' WHERE message_id = $1", [uuidOf(id)])
    await (
      await reconciler.runOnce()
    ).done
    return (await present(gateway, id)).status
  }
  time.aheadMs += settlingMs * 2 // the lease, and a settling time
  expect(await look(0)).toBe('unknown')
  expect(await look(settlingMs), 'it began with the first, and took a settling time').toBe('unknown')
  expect(await look(0), 'it began a settling time after the first').toBe('queued')
})

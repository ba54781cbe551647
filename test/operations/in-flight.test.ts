/** What counts as in flight: a drain waits for it. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import * as dispatcher from '../../src/workers/dispatcher.ts'
import { useDatabase } from '../support/database.ts'
import { accepted, sms, testGateway, until, type TestGateway } from '../support/gateway.ts'
import { lapse, makeDue, rescue, untilStatus } from './steps.ts'
import { attemptIn, heldOutcome, messageIn, type HeldOutcome } from './told.ts'

const database = useDatabase()
let gateway: TestGateway
beforeAll(async () => {
  gateway = await testGateway(database.url)
})
afterAll(async () => gateway.close())

/** A message whose first attempt was given up, and whose second one is running, in the same process. */
async function twoAttempts(
  key: string,
): Promise<{ id: string; first: HeldOutcome; second: HeldOutcome; ids: string[] }> {
  const [first, second] = [heldOutcome(), heldOutcome()]
  gateway.provider.calls.length = 0
  gateway.provider.answer = async ({ attemptNumber }) => (attemptNumber === 1 ? first : second).promise
  const { id } = messageIn(await gateway.send(sms('two'), { key, prefer: 'wait=0' }))
  await lapse(database, id)
  await rescue(gateway)
  const attempt = await attemptIn(gateway, id)
  const verdict = { attempt, outcome: 'not_sent', resend: true, evidence: 'not there' }
  expect((await gateway.post(`/v1/messages/${id}/resolve`, verdict)).statusCode).toBe(200)
  await makeDue(database)
  await dispatcher.runOnce(gateway.deps)
  await until(() => gateway.provider.calls.length === 2)
  return { id, first, second, ids: [attempt, await attemptIn(gateway, id)] }
}

test('F8; in-flight.ts: a call stays in flight until it has ended, also when another attempt of its message ends before', async () => {
  const { id, first } = await twoAttempts('in-flight')
  first.resolve(accepted('late'))
  await untilStatus(gateway, id, 'sent')
  await new Promise((next) => setImmediate(next))
  expect(gateway.deps.inFlight.count()).toBe(1) // the second call still runs: a drain must wait for it
})

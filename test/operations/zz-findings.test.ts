/** What the contract says and the operations do not do yet: each test here fails, and names the rule. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import * as dispatcher from '../../src/workers/dispatcher.ts'
import { useDatabase } from '../support/database.ts'
import { accepted, sms, testGateway, until, type TestGateway } from '../support/gateway.ts'
import { lapse, makeDue, rescue, untilStatus } from './steps.ts'
import { attemptIn, heldOutcome, messageIn, uuidOf } from './told.ts'

const database = useDatabase()
let gateway: TestGateway
beforeAll(async () => {
  gateway = await testGateway(database.url)
})
afterAll(async () => gateway.close())

// apply-event.ts clears no due work for an outcome of a synchronous attempt. After a resend there is some: the new
// attempt's. Left there, a dispatch is taken again every 30 s for good, and a lease is counted as waiting for good.
test.each(['before the second attempt begins', 'while the second attempt runs'])(
  'effects of state-machine.ts, "without dispatch_at nothing is due": acceptance of the first attempt, told %s, clears the due work',
  async (moment) => {
    const [first, second] = [heldOutcome(), heldOutcome()]
    gateway.provider.answer = async ({ attemptNumber }) => (attemptNumber === 1 ? first : second).promise
    const key = moment.replaceAll(' ', '-')
    const { id } = messageIn(await gateway.send(sms('due'), { key, prefer: 'wait=0' }))
    await lapse(database, id)
    await rescue(gateway)
    const verdict = { attempt: await attemptIn(gateway, id), outcome: 'not_sent', resend: true, evidence: 'not there' }
    expect((await gateway.post(`/v1/messages/${id}/resolve`, verdict)).statusCode).toBe(200)
    if (moment.startsWith('while'))
      await until(async () => {
        await makeDue(database)
        const { taken } = await dispatcher.runOnce(gateway.deps)
        return taken === 1
      })
    await until(async () => !moment.startsWith('while') || (await attemptIn(gateway, id)) !== verdict.attempt)
    first.resolve(accepted('late'))
    await untilStatus(gateway, id, 'sent')
    second.resolve(accepted('twice'))
    await gateway.deps.inFlight.idle()
    expect(await database.query('SELECT task FROM due_work WHERE message_id = $1', [uuidOf(id)])).toEqual([])
  },
)

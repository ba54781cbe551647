/** The first attempt tells of acceptance after a person had the message sent again (state-machine.ts, M4; engine.md, Verdict). */
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

// An outcome of a synchronous attempt finds no due work to clear, but for this: the new attempt's. Left there, a dispatch
// would be taken again every 30 s for good, and a lease be counted as waiting for good.
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
    // With both accepted it went out twice, and says so.
    const alarms = async (): Promise<unknown[]> =>
      (await gateway.deps.metrics.alarms.get()).values.map(({ labels }) => labels['alarm'])
    await until(async () => !moment.startsWith('while') || (await alarms()).includes('accepted_twice'))
    expect((await alarms()).includes('accepted_twice')).toBe(moment.startsWith('while'))
    expect(await database.query('SELECT task FROM due_work WHERE message_id = $1', [uuidOf(id)])).toEqual([])
  },
)

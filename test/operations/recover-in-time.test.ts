/** notAfter passes while the gateway looks (behaviour.md, E10): nothing leaves after it, and what is proven is still told. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createReconciler } from '../../src/workers/reconciler.ts'
import { useDatabase } from '../support/database.ts'
import { accepted, found, nothing, sms, testGateway, type TestGateway } from '../support/gateway.ts'
import { able, answers, lostMessage, passingTime, recoverableProvider, shown, takeStep } from './recovery-steps.ts'
import { dispatch, dispatchNothing, makeDue } from './steps.ts'
import { problemIn, timelineOf, told } from './told.ts'

const database = useDatabase()
const time = passingTime()
let gateway: TestGateway
let step: (id: string) => Promise<boolean>
beforeAll(async () => {
  const provider = recoverableProvider(able({ look: true }))
  gateway = await testGateway(database.url, { provider, clock: time.clock })
  const reconciler = createReconciler(gateway.deps)
  step = async (id) => takeStep(database, reconciler, id)
})
beforeEach(() => {
  time.reset()
  gateway.provider.show = () => nothing()
  gateway.provider.calls.length = 0
})
afterAll(async () => gateway.close())

const soon = { ttlSeconds: 60 }

/** Expired: nothing was sent, for certain, and nothing will be. */
async function expectExpired(id: string, key: string): Promise<void> {
  expect((await shown(gateway, id)).status).toBe('failed')
  const answer = await gateway.send(sms('once', soon), { key })
  expect([told(answer), problemIn(answer).sent]).toEqual(['422 message-expired', 'no'])
  await makeDue(database)
  await dispatchNothing(gateway)
  expect([gateway.provider.calls.length, await step(id)]).toEqual([1, false])
}

test('E10 notAfter passes between two looks: the proof makes it expired, not sent again', async () => {
  const id = await lostMessage(gateway, 'looks', soon)
  time.pass(5_100)
  await step(id)
  time.pass(60_000)
  expect(await step(id)).toBe(true)
  await expectExpired(id, 'looks')
  const events = (await timelineOf(gateway, id)).map(({ type }) => type)
  expect(events.slice(-3)).toEqual(['looked', 'resolved', 'expired'])
})

test('E10 notAfter passes between the proof and its dispatch: expired, and no byte leaves', async () => {
  const id = await lostMessage(gateway, 'dispatch', soon)
  for (const ms of [5_100, 1_000]) {
    time.pass(ms)
    await step(id)
  }
  expect((await shown(gateway, id)).status).toBe('queued')
  time.pass(60_000)
  answers(gateway.provider, accepted())
  await makeDue(database)
  await dispatch(gateway)
  await expectExpired(id, 'dispatch')
})

test('E10 after notAfter it is still looked for: what arrived before is found, and told', async () => {
  const id = await lostMessage(gateway, 'found', soon)
  time.pass(3_600_000)
  gateway.provider.show = () => found()
  await step(id)
  expect((await shown(gateway, id)).status).toBe('sent')
  expect(told(await gateway.send(sms('once', soon), { key: 'found' }))).toBe('201 sent')
})

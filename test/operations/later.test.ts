/** Messages for later, and providers that are stopped (behaviour.md, M1, I2, E6, E10; provider-slots.ts, L1, L2). */
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { accepted, fakeProvider, lost, notSent, sms, testGateway, until, type TestGateway } from '../support/gateway.ts'
import { dispatch, dispatchNothing, dueInMs, makeDue, steerableClock, untilStatus } from './steps.ts'
import { isReplay, messageIn, present, problemIn, told } from './told.ts'

const database = useDatabase()
const { steer, clock } = steerableClock()
let gateway: TestGateway
beforeAll(async () => {
  gateway = await testGateway(database.url, { clock, provider: fakeProvider('fake', { concurrency: 4 }) })
})
beforeEach(() => {
  gateway.provider.calls.length = 0
  gateway.provider.answer = () => accepted()
  Object.assign(steer, { aheadMs: 0, lagMs: 0 })
})
afterAll(async () => gateway.close())

test('a scheduled message is answered 202 at once, and goes out when its time has come, not before', async () => {
  const sendAt = new Date(Date.now() + 3_600_000).toISOString()
  const first = await gateway.send(sms('later', { sendAt }), { key: 'scheduled' })
  expect([told(first), isReplay(first)]).toEqual(['202 scheduled', false])
  expect(messageIn(first)).toMatchObject({ sendAt, attempts: 0 })
  expect(Number(first.headers['retry-after'])).toBeGreaterThan(3_500)
  expect(await dueInMs(database, messageIn(first).id)).toBeGreaterThan(3_500_000)
  await dispatchNothing(gateway)
  const meanwhile = await gateway.send(sms('later', { sendAt }), { key: 'scheduled' })
  expect([told(meanwhile), isReplay(meanwhile)]).toEqual(['202 scheduled', true])
  expect(gateway.provider.calls).toEqual([])
  await makeDue(database)
  await dispatch(gateway)
  const again = await gateway.send(sms('later', { sendAt }), { key: 'scheduled' })
  expect([told(again), isReplay(again)]).toEqual(['201 sent', true])
  expect(gateway.provider.calls).toHaveLength(1)
})

test('a delay and a time to live count from the first arrival; a time that has passed means now', async () => {
  const delayed = messageIn(await gateway.send(sms('later', { delaySeconds: 60, ttlSeconds: 90 }), { key: 'delayed' }))
  expect(await dueInMs(database, delayed.id)).toBeGreaterThan(55_000)
  expect(await dueInMs(database, delayed.id)).toBeLessThan(60_100)
  expect(Date.parse(delayed.notAfter) - Date.now()).toBeLessThan(90_100)
  const past = await gateway.send(sms('later', { sendAt: '2020-01-01T00:00:00Z' }), { key: 'past' })
  expect(told(past)).toBe('201 sent')
  await gateway.post(`/v1/messages/${delayed.id}/cancel`)
})

test('I2 without notAfter a message may go out for a day after its time', async () => {
  const sendAt = new Date(Date.now() + 3_600_000).toISOString()
  const { id, notAfter } = messageIn(await gateway.send(sms('later', { sendAt }), { key: 'default' }))
  expect(Date.parse(notAfter)).toBe(Date.parse(sendAt) + 86_400_000)
  await gateway.post(`/v1/messages/${id}/cancel`)
})

test('E10 a scheduled message whose notAfter has passed before its turn is expired, and never called', async () => {
  const { id } = messageIn(await gateway.send(sms('late', { delaySeconds: 60, ttlSeconds: 90 }), { key: 'overdue' }))
  steer.aheadMs = 91_000
  await makeDue(database)
  await dispatch(gateway)
  const again = await gateway.send(sms('late', { delaySeconds: 60, ttlSeconds: 90 }), { key: 'overdue' })
  expect(told(again)).toBe('422 message-expired')
  expect(await present(gateway, id)).toMatchObject({ status: 'failed', statusReason: 'expired', attempts: 0 })
  expect(gateway.provider.calls).toEqual([])
})

test('E10 a message that would expire before it is sent is refused, and claims nothing', async () => {
  const refused = await gateway.send(sms('late', { delaySeconds: 60, ttlSeconds: 30 }), { key: 'backwards' })
  expect([told(refused), problemIn(refused).sent]).toEqual(['400 invalid-request', 'no'])
  expect((await gateway.get('/v1/idempotency-keys/backwards')).statusCode).toBe(404)
})

test('M1 a scheduled message that was canceled, then repeated, is 409 message-canceled, not made anew', async () => {
  const body = sms('m1', { delaySeconds: 60 })
  const { id } = messageIn(await gateway.send(body, { key: 'm1' }))
  const canceled = await gateway.post(`/v1/messages/${id}/cancel`)
  expect(told(canceled)).toBe('200 canceled')
  const again = await gateway.send(body, { key: 'm1' })
  expect([told(again), isReplay(again)]).toEqual(['409 message-canceled', true])
  expect(problemIn(again)).toMatchObject({ sent: 'no', retryable: false, message: { id } })
  expect((await gateway.send(body, { key: 'm1' })).body).toBe(again.body)
  await makeDue(database)
  await dispatchNothing(gateway)
  expect(gateway.provider.calls).toEqual([])
})

test('E6, L2 refused credentials stop the provider: messages wait, one call may try when the pause is over, and all go out', async () => {
  gateway.provider.answer = () => notSent('credentials')
  const first = messageIn(await gateway.send(sms('one'), { key: 'stopped-1', prefer: 'wait=0' }))
  await untilStatus(gateway, first.id, 'queued')
  expect(await dueInMs(database, first.id)).toBeGreaterThan(55_000) // not asked again before the pause is over
  const second = await gateway.send(sms('two'), { key: 'stopped-2', prefer: 'wait=0' })
  expect([told(second), messageIn(second).attempts]).toEqual(['202 queued', 0])
  expect((await gateway.get('/v1/providers')).json()).toMatchObject({ data: [{ name: 'fake', state: 'stopped' }] })
  expect(await gateway.deps.metrics.alarms.get()).toMatchObject({
    values: [{ labels: { alarm: 'provider_credentials' }, value: 1 }],
  })
  await makeDue(database)
  await dispatch(gateway, 2)
  expect(gateway.provider.calls).toHaveLength(1)
  expect(await dueInMs(database, messageIn(second).id)).toBeGreaterThan(1_000) // put off, not lost

  steer.lagMs = 60_000
  await makeDue(database)
  await dispatch(gateway, 2)
  expect(gateway.provider.calls).toHaveLength(2) // the one that tries; refused again, the pause begins again
  steer.lagMs = 0
  await makeDue(database)
  await dispatch(gateway, 2)
  expect(gateway.provider.calls).toHaveLength(2)

  gateway.provider.answer = () => accepted()
  steer.lagMs = 60_000
  await makeDue(database)
  await dispatch(gateway, 2)
  expect((await gateway.get('/v1/providers')).json()).toMatchObject({ data: [{ state: 'ready' }] })
  await makeDue(database)
  await until(async () => {
    await makeDue(database)
    await dispatch(gateway, 0)
    return gateway.provider.calls.length === 4
  })
  for (const key of ['stopped-1', 'stopped-2'])
    expect(told(await gateway.send(sms(key === 'stopped-1' ? 'one' : 'two'), { key }))).toBe('201 sent')
})

test('E6 a lost answer does not start a stopped provider again, for it says nothing of our credentials', async () => {
  gateway.provider.answer = () => notSent('credentials')
  const { id } = messageIn(await gateway.send(sms('one'), { key: 'still-1', prefer: 'wait=0' }))
  await untilStatus(gateway, id, 'queued')
  gateway.provider.answer = () => lost()
  steer.lagMs = 60_000
  await makeDue(database)
  await dispatch(gateway)
  expect((await gateway.get('/v1/providers')).json()).toMatchObject({ data: [{ state: 'stopped' }] })
  gateway.provider.answer = () => accepted()
  await gateway.send(sms('two'), { key: 'still-2', prefer: 'wait=0' })
  await until(() => gateway.deps.slots.inUse('fake') === 0)
  expect((await gateway.get('/v1/providers')).json()).toMatchObject({ data: [{ state: 'ready' }] })
})

test('L1 as many calls run at one time as the provider takes; the others wait in the data base, and are all sent', async () => {
  let running = 0
  let most = 0
  const gate = Promise.withResolvers<void>()
  gateway.provider.answer = async () => {
    most = Math.max(most, ++running)
    await gate.promise
    running -= 1
    return accepted()
  }
  const keys = Array.from({ length: 12 }, (_, i) => `slots-${i}`)
  const answers = keys.map(async (key) => gateway.send(sms(), { key }))
  onTestFinished(() => gate.resolve())
  const waiting = `SELECT 1 FROM messages WHERE idempotency_key LIKE 'slots-%' AND status = 'queued'`
  await until(async () => (await database.query(waiting)).length === 8)
  await dispatchNothing(gateway)
  expect([gateway.provider.calls.length, gateway.deps.slots.inUse('fake')]).toEqual([4, 4])
  gate.resolve()
  await until(async () => {
    await dispatch(gateway, 0)
    return gateway.provider.calls.length === 12
  })
  expect(new Set((await Promise.all(answers)).map(told))).toEqual(new Set(['201 sent']))
  expect([most, gateway.deps.slots.inUse('fake')]).toEqual([4, 0])
})

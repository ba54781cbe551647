/** Canceling: before any call that may have arrived, and never after one (state-machine.ts, M5). */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { accepted, lost, notSent, rejected, sms, testGateway, until, type TestGateway } from '../support/gateway.ts'
import { dispatch, dispatchNothing, dueInMs, lapse, makeDue, rescue, untilStatus } from './steps.ts'
import { heldOutcome, isReplay, messageIn, present, problemIn, timelineOf, told } from './told.ts'

const database = useDatabase()
let gateway: TestGateway
let replica: TestGateway
beforeAll(async () => {
  gateway = await testGateway(database.url)
  replica = await testGateway(database.url)
})
beforeEach(() => {
  gateway.provider.calls.length = 0
  gateway.provider.answer = () => accepted()
  replica.provider.calls.length = 0
})
afterAll(async () => {
  await gateway.close()
  await replica.close()
})

const cancel = async (id: string, from = gateway): ReturnType<TestGateway['post']> =>
  from.post(`/v1/messages/${id}/cancel`)

test('a scheduled message is canceled; again is 200 with the same state, and it is never sent', async () => {
  const { id } = messageIn(await gateway.send(sms('later', { delaySeconds: 60 }), { key: 'scheduled' }))
  const first = await cancel(id)
  const again = await cancel(id, replica)
  expect([told(first), told(again)]).toEqual(['200 canceled', '200 canceled'])
  expect(again.body).toBe(first.body)
  expect(await dueInMs(database, id)).toBeNull()
  await dispatchNothing(gateway)
  const canceled = (await timelineOf(gateway, id)).filter(({ type }) => type === 'canceled')
  expect(canceled).toMatchObject([{ data: { apiKey: 'test' } }])
  expect(gateway.provider.calls).toEqual([])
})

test('a message that was not sent so far is canceled, and its repeats hear 409 message-canceled', async () => {
  gateway.provider.answer = () => notSent('refused_for_now')
  const { id } = messageIn(await gateway.send(sms('retry'), { key: 'retry', prefer: 'wait=0' }))
  await untilStatus(gateway, id, 'queued')
  expect(messageIn(await cancel(id))).toMatchObject({ status: 'canceled', attempts: 1 })
  await makeDue(database)
  await dispatchNothing(gateway)
  const again = await gateway.send(sms('retry'), { key: 'retry' })
  expect([told(again), isReplay(again), problemIn(again).sent]).toEqual(['409 message-canceled', true, 'no'])
  expect(gateway.provider.calls).toHaveLength(1)
})

test.each([
  { status: 'sent', outcome: accepted(), sent: 'yes' },
  { status: 'failed', outcome: rejected(), sent: 'no' },
  { status: 'unknown', outcome: lost(), sent: 'maybe' },
])('M5 one that is $status is not canceled: 409 too-late, and nothing changes', async ({ status, outcome, sent }) => {
  gateway.provider.answer = () => outcome
  const first = await gateway.send(sms('late'), { key: status })
  const id = first.statusCode === 201 ? messageIn(first).id : String(problemIn(first).message?.id)
  const refused = await cancel(id)
  expect(told(refused)).toBe('409 too-late')
  expect(problemIn(refused)).toMatchObject({ sent, message: { id, status }, retryable: false })
  expect((await gateway.send(sms('late'), { key: status })).body).toBe(first.body)
})

test('M5 one that is being called is not canceled, nor after its lease lapsed; the call goes on', async () => {
  const outcome = heldOutcome()
  gateway.provider.answer = async () => outcome.promise
  const { id } = messageIn(await gateway.send(sms('now'), { key: 'now', prefer: 'wait=0' }))
  expect(problemIn(await cancel(id))).toMatchObject({ type: '/problems/too-late', sent: 'maybe' })
  await lapse(database, id)
  await rescue(replica)
  expect(problemIn(await cancel(id, replica))).toMatchObject({ message: { status: 'unknown' }, sent: 'maybe' })
  outcome.resolve(accepted())
  await untilStatus(gateway, id, 'sent')
})

test('what is no message of the caller is 404', async () => {
  expect(told(await cancel(`msg_${'0'.repeat(32)}`))).toBe('404 not-found')
  expect(told(await cancel('msg_1'))).toMatch(/^40[04] /)
})

test('twenty cancels against a dispatch: it is canceled and never called, or called once and never canceled', async () => {
  for (let round = 0; round < 16; round++) {
    const key = `race-${round}`
    gateway.provider.calls.length = 0
    replica.provider.calls.length = 0
    const { id } = messageIn(await gateway.send(sms('race'), { key, prefer: 'respond-async' }))
    const ask = (): Promise<Awaited<ReturnType<typeof cancel>>>[] =>
      Array.from({ length: 20 }, async (_, i) => cancel(id, i % 2 === 0 ? gateway : replica))
    const [early, late] = round % 2 === 0 ? [ask(), []] : [[], ask()]
    const dispatched = dispatch(gateway, 0)
    const answers = await Promise.all([...early, ...late])
    await dispatched
    await until(async () => ['sent', 'canceled'].includes((await present(gateway, id)).status))
    const calls = gateway.provider.calls.length
    const { status } = await present(gateway, id)
    const story = new Set(answers.map(({ statusCode }) => statusCode))
    expect([status, calls, [...story]]).toEqual(status === 'canceled' ? ['canceled', 0, [200]] : ['sent', 1, [409]])
    await makeDue(database)
    await dispatch(gateway, 0)
    expect(gateway.provider.calls).toHaveLength(calls)
    const decisions = (await timelineOf(gateway, id)).filter(({ type }) => type === 'canceled')
    expect(decisions).toHaveLength(status === 'canceled' ? 1 : 0)
  }
})

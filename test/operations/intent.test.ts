/** One intent, one message (behaviour.md, K1). */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { accepted, lost, rejected, sms, testGateway, type TestGateway } from '../support/gateway.ts'
import { dispatch } from './steps.ts'
import { attemptIn, isReplay, messageIn, newApiKey, problemIn, told } from './told.ts'

const database = useDatabase()
let gateway: TestGateway
beforeAll(async () => {
  gateway = await testGateway(database.url)
})
beforeEach(() => {
  gateway.provider.calls.length = 0
  gateway.provider.answer = () => accepted()
})
afterAll(async () => gateway.close())

test('K1 a second key for one intent is 409 possible-duplicate, reworded or not; it names the first and claims nothing', async () => {
  const first = await gateway.send(sms('k1', { intent: 'ship:1' }), { key: 'k1-first' })
  for (const text of ['k1', 'k1, reworded']) {
    const second = await gateway.send(sms(text, { intent: 'ship:1' }), { key: 'k1-second' })
    expect(told(second)).toBe('409 possible-duplicate')
    const { sent, retryable, message } = problemIn(second)
    expect([sent, retryable, message?.id, message?.status]).toEqual(['no', false, messageIn(first).id, 'sent'])
  }
  expect(told(await gateway.get('/v1/idempotency-keys/k1-second'))).toBe('404 key-never-seen')
  const again = await gateway.send(sms('k1', { intent: 'ship:1' }), { key: 'k1-first' })
  expect([again.body, isReplay(again)]).toEqual([first.body, true])
  expect(gateway.provider.calls).toHaveLength(1)
  const otherIntent = await gateway.send(sms('k1', { intent: 'ship:2' }), { key: 'k1-second' })
  expect(told(otherIntent)).toBe('201 sent')
})

test('K1 twenty keys for one intent at once: one call, nineteen refusals that name it', async () => {
  const keys = Array.from({ length: 20 }, (_, i) => `k1-race-${i}`)
  const answers = await Promise.all(keys.map(async (key) => gateway.send(sms('race', { intent: 'race' }), { key })))
  const sent = answers.filter(({ statusCode }) => statusCode === 201)
  const refused = answers.filter(({ statusCode }) => statusCode === 409)
  expect([sent.length, refused.length, gateway.provider.calls.length]).toEqual([1, 19, 1])
  const [winner] = sent
  expect(winner).toBeDefined()
  for (const answer of refused) expect(problemIn(answer).message?.id).toBe(winner && messageIn(winner).id)
})

test('K1 an intent is free once its message has failed', async () => {
  gateway.provider.answer = () => rejected()
  await gateway.send(sms('k1', { intent: 'failed' }), { key: 'k1-failed' })
  gateway.provider.answer = () => accepted()
  const second = await gateway.send(sms('k1', { intent: 'failed' }), { key: 'k1-failed-2' })
  expect(told(second)).toBe('201 sent')
})

test('K1 an intent is free once its message was canceled, and once a person settled that it was not sent', async () => {
  const first = await gateway.send(sms('k1', { intent: 'freed', delaySeconds: 60 }), { key: 'k1-freed' })
  const taken = await gateway.send(sms('k1', { intent: 'freed' }), { key: 'k1-freed-2' })
  expect([told(taken), problemIn(taken).message?.status]).toEqual(['409 possible-duplicate', 'scheduled'])
  await gateway.post(`/v1/messages/${messageIn(first).id}/cancel`)

  gateway.provider.answer = () => lost()
  const second = await gateway.send(sms('k1', { intent: 'freed' }), { key: 'k1-freed-2' })
  expect(told(second)).toBe('504 outcome-unknown')
  const id = String(problemIn(second).message?.id)
  const third = await gateway.send(sms('k1', { intent: 'freed' }), { key: 'k1-freed-3' })
  expect([told(third), problemIn(third).message?.id]).toEqual(['409 possible-duplicate', id])
  const verdict = { attempt: await attemptIn(gateway, id), outcome: 'not_sent', evidence: 'asked the provider' }
  expect((await gateway.post(`/v1/messages/${id}/resolve`, verdict)).statusCode).toBe(200)

  gateway.provider.answer = () => accepted()
  expect(told(await gateway.send(sms('k1', { intent: 'freed' }), { key: 'k1-freed-3' }))).toBe('201 sent')
})

test('K1 an intent is taken by one that waits for a worker, and stays so once it is sent', async () => {
  await gateway.send(sms('k1', { intent: 'async' }), { key: 'k1-async', prefer: 'respond-async' })
  expect(told(await gateway.send(sms('k1', { intent: 'async' }), { key: 'k1-async-2' }))).toBe('409 possible-duplicate')
  await dispatch(gateway)
  expect(told(await gateway.send(sms('k1', { intent: 'async' }), { key: 'k1-async-2' }))).toBe('409 possible-duplicate')
})

test('K1, H1 an intent of one account says nothing to another', async () => {
  const other = await newApiKey(gateway, 'intent-other')
  await gateway.send(sms('k1', { intent: 'mine' }), { key: 'k1-mine' })
  const theirs = await gateway.send(sms('k1', { intent: 'mine' }), { key: 'k1-mine', headers: other.headers })
  expect([told(theirs), isReplay(theirs)]).toEqual(['201 sent', false])
  const second = await gateway.send(sms('k1', { intent: 'mine' }), { key: 'k1-mine-2', headers: other.headers })
  expect([told(second), problemIn(second).message?.id]).toEqual(['409 possible-duplicate', messageIn(theirs).id])
})

/** Routes with more than one provider: E8, another one is asked only after `not_sent`. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Outcome } from '../../src/core/outcome.ts'
import { useDatabase } from '../support/database.ts'
import {
  accepted,
  fakeProvider,
  lost,
  notSent,
  rejected,
  sms,
  testGateway,
  until,
  type TestGateway,
} from '../support/gateway.ts'
import { dispatch, dispatchNothing, dueInMs, makeDue } from './steps.ts'
import { messageIn, told } from './told.ts'

const database = useDatabase()
const first = fakeProvider('first')
const second = fakeProvider('second', { identity: 'second-identity' })
const short = fakeProvider('short', {
  identity: 'short-identity',
  limitBroken: (message) =>
    message.channel === 'sms' && message.content.text.length > 20
      ? { pointer: '/content/text', detail: 'Too long.' }
      : null,
})
let gateway: TestGateway
beforeAll(async () => {
  gateway = await testGateway(database.url, { provider: first, others: [short, second] })
})
afterAll(async () => gateway.close())
beforeEach(async () => {
  await database.query('DELETE FROM due_work')
  for (const provider of [first, second, short]) {
    provider.calls.length = 0
    provider.answer = () => accepted()
    gateway.deps.slots.resume(provider.name)
  }
})

/** Its first attempt has ended. */
const tried = async (key: string): Promise<void> =>
  until(
    async () =>
      (await gateway.get(`/v1/idempotency-keys/${key}`)).json<{ message: { status: string } }>().message.status ===
      'queued',
  )

const calls = (): number[] => [first, short, second].map(({ calls: made }) => made.length)
const longText = 'a text of more than twenty characters'

test.each<[string, string, Outcome]>([
  ['no byte left', 'n1', notSent()],
  ['it refused for now, and asked for an hour', 'n2', notSent('refused_for_now', 3_600_000)],
  ['it refuses our credentials', 'n3', notSent('credentials')],
])(
  'E8 what the first provider did not take, for %s, goes to the next of the route at once',
  async (_, key, outcome) => {
    first.answer = () => outcome
    const answer = await gateway.send(sms(), { key, prefer: 'wait=0' })
    expect(told(answer)).toMatch(/^202 /)
    await dispatch(gateway)
    expect(calls()).toEqual([1, 1, 0])
    const sent = await gateway.send(sms(), { key })
    expect(messageIn(sent)).toMatchObject({ status: 'sent', provider: 'short', attempts: 2 })
  },
)

test.each<[string, Outcome, number]>([
  ['lost', lost(), 504],
  ['refused', rejected(), 422],
])('E8 an answer that is %s never leads to another provider', async (name, outcome, status) => {
  first.answer = () => outcome
  expect((await gateway.send(sms(), { key: `never-${name}` })).statusCode).toBe(status)
  await makeDue(database)
  await dispatchNothing(gateway)
  expect(calls()).toEqual([1, 0, 0])
})

test('a provider whose limits the message breaks is passed over; if all are, the first limit is told', async () => {
  first.answer = () => notSent()
  await gateway.send(sms(longText), { key: 'over', prefer: 'wait=0' })
  await dispatch(gateway)
  expect(calls()).toEqual([1, 0, 1])

  const onlyShort = await testGateway(database.url, { provider: short })
  const refused = await onlyShort.send(sms(longText), { key: 'too-long' })
  expect(refused.json()).toMatchObject({ status: 400, errors: [{ pointer: '/content/text', detail: 'Too long.' }] })
  await onlyShort.close()
})

test('a round that nobody took is followed by a pause, and then by the first again', async () => {
  for (const provider of [first, short, second]) provider.answer = () => notSent()
  await gateway.send(sms(), { key: 'round', prefer: 'wait=0' })
  await dispatch(gateway, 2)
  await dispatchNothing(gateway)
  expect(calls()).toEqual([1, 1, 1])
  first.answer = () => accepted()
  await makeDue(database)
  await dispatch(gateway)
  expect(calls()).toEqual([2, 1, 1])
})

test('a provider that is stopped is passed over while the route has another', async () => {
  gateway.deps.slots.stop(first.name)
  expect((await gateway.send(sms(), { key: 'stopped' })).statusCode).toBe(201)
  expect(calls()).toEqual([0, 1, 0])
})

test('a message that pinned its provider waits for it, whatever the route has', async () => {
  second.answer = () => notSent()
  await gateway.send(sms('pinned', { provider: 'second' }), { key: 'pinned', prefer: 'wait=0' })
  await tried('pinned')
  second.answer = () => accepted()
  await makeDue(database)
  await dispatch(gateway)
  expect(calls()).toEqual([0, 0, 2])
})

test('what a person had sent again goes to the same provider: were they wrong, its key may yet tell', async () => {
  first.answer = () => lost()
  const { id } = (await gateway.send(sms(), { key: 'again' })).json<{ message: { id: string } }>().message
  first.answer = () => accepted()
  const { openAttempts } = (await gateway.get(`/v1/messages/${id}`)).json<{ openAttempts: string[] }>()
  const verdict = { attempt: openAttempts[0], outcome: 'not_sent', evidence: 'not there', resend: true }
  expect((await gateway.post(`/v1/messages/${id}/resolve`, verdict)).statusCode).toBe(200)
  await dispatch(gateway)
  expect(calls()).toEqual([2, 0, 0])
})

/** Its attempts so far, once the one that runs has ended. */
const attemptsOf = async (key: string): Promise<number> => {
  const { message } = (await gateway.get(`/v1/idempotency-keys/${key}`)).json<{
    message: { status: string; attempts: number }
  }>()
  return message.status === 'queued' ? message.attempts : 0
}

test('G4 a provider that asked for a pause is not asked before it is over, whoever was asked meanwhile', async () => {
  first.answer = () => notSent('refused_for_now', 300_000)
  for (const provider of [short, second]) provider.answer = () => notSent()
  await gateway.send(sms(), { key: 'g4', prefer: 'wait=0' })
  await dispatch(gateway, 2)
  expect(calls()).toEqual([1, 1, 1])
  // The round is over; each further one goes past the provider that asked.
  for (let nth = 4; nth <= 8; nth++) {
    await makeDue(database)
    await dispatch(gateway)
    expect(await attemptsOf('g4')).toBe(nth)
  }
  expect(first.calls).toHaveLength(1)
})

test('G4 where all have asked for a pause it waits for the shortest, across whatever was asked last', async () => {
  first.answer = () => notSent('refused_for_now', 300_000)
  short.answer = () => notSent('refused_for_now', 60_000)
  second.answer = () => notSent('refused_for_now', 600_000)
  const sent = await gateway.send(sms(), { key: 'all-paused', prefer: 'wait=0' })
  await dispatch(gateway, 2)
  await makeDue(database)
  await dispatch(gateway)
  expect(calls()).toEqual([1, 1, 1])
  const due = await dueInMs(database, messageIn(sent).id)
  expect(due).toBeGreaterThan(50_000)
  expect(due).toBeLessThanOrEqual(60_000)
})

test('E6 Retry-After holds where the rest of the route is stopped: there is nowhere to fail over to', async () => {
  for (const { name } of [short, second]) gateway.deps.slots.stop(name)
  first.answer = () => notSent('refused_for_now', 300_000)
  const sent = await gateway.send(sms(), { key: 'nowhere', prefer: 'wait=0' })
  await tried('nowhere')
  await dispatchNothing(gateway)
  expect(await dueInMs(database, messageIn(sent).id)).toBeGreaterThan(290_000)
  expect(calls()).toEqual([1, 0, 0])
})

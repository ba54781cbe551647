/** A void key never sends (behaviour.md, N1). */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { accepted, sms, testGateway, until, type TestGateway } from '../support/gateway.ts'
import { heldOutcome, isReplay, messageIn, problemIn, told } from './told.ts'

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

const voidKey = async (key: string): ReturnType<TestGateway['post']> =>
  gateway.post(`/v1/idempotency-keys/${encodeURIComponent(key)}/void`)

test('N1 a voided key never sends, whatever its request says and however often it comes', async () => {
  const voided = await voidKey('n1')
  expect([voided.statusCode, voided.json()]).toEqual([200, { key: 'n1', sent: 'no' }])
  for (const [text, prefer] of [
    ['n1', 'wait=0'],
    ['n1', 'wait=10'],
    ['other', 'respond-async'],
  ] as const) {
    const refused = await gateway.send(sms(text), { key: 'n1', prefer })
    expect(told(refused)).toBe('409 key-void')
    expect(problemIn(refused)).toMatchObject({ sent: 'no', retryable: false })
    expect(isReplay(refused)).toBe(false)
  }
  expect((await voidKey('n1')).json()).toEqual({ key: 'n1', sent: 'no' })
  const found = await gateway.get('/v1/idempotency-keys/n1')
  expect(found.json()).toMatchObject({ key: 'n1', sent: 'no', message: null })
  expect(gateway.provider.calls).toEqual([])
})

test('N1 the quoted form of a voided key is void too', async () => {
  await voidKey('with space')
  expect(told(await gateway.send(sms(), { key: '"with space"' }))).toBe('409 key-void')
})

test('N1 voiding a taken key is 409 with its message, and the message goes on', async () => {
  const outcome = heldOutcome()
  gateway.provider.answer = async () => outcome.promise
  const first = gateway.send(sms(), { key: 'taken' })
  await until(() => gateway.provider.calls.length === 1)
  const refused = await voidKey('taken')
  expect(told(refused)).toBe('409 key-taken')
  expect(problemIn(refused)).toMatchObject({ sent: 'maybe', message: { status: 'sending' } })
  outcome.resolve(accepted())
  expect(told(await first)).toBe('201 sent')
  expect(problemIn(await voidKey('taken'))).toMatchObject({ sent: 'yes', message: { id: messageIn(await first).id } })
})

test('N1 a derived key that was voided stops its reference, with a key of its own or without', async () => {
  const body = sms('n1', { conversation: 'n1', reference: 'r1' })
  const derived = messageIn(await gateway.send(sms('n1', { conversation: 'n1', reference: 'r0' }))).idempotencyKey
  expect(told(await voidKey(derived))).toBe('409 key-taken')
  const { derivedKey } = await import('../../src/core/idempotency.ts')
  await voidKey(derivedKey({ account: 'default', environment: 'live' }, 'n1', 'r1'))
  expect(told(await gateway.send(body))).toBe('409 key-void')
  expect(told(await gateway.send(body, { key: 'n1-own' }))).toBe('409 key-void')
  expect((await gateway.get('/v1/idempotency-keys/n1-own')).statusCode).toBe(404)
  expect(gateway.provider.calls).toHaveLength(1)
})

test('N1 a void and a send at the same moment: one wins, and both are told the same story', async () => {
  for (let round = 0; round < 10; round++) {
    const key = `race-${round}`
    gateway.provider.calls.length = 0
    const [sent, voided] = await Promise.all([gateway.send(sms(), { key }), voidKey(key)])
    const story = `${told(sent)}, ${voided.statusCode}, ${gateway.provider.calls.length} calls`
    expect(['201 sent, 409, 1 calls', '409 key-void, 200, 0 calls']).toContain(story)
  }
})

test('looking a key up has no side effect: unseen, it is 404 and stays free', async () => {
  expect(told(await gateway.get('/v1/idempotency-keys/unseen'))).toBe('404 key-never-seen')
  const first = await gateway.send(sms(), { key: 'unseen' })
  expect(told(first)).toBe('201 sent')
  const found = await gateway.get('/v1/idempotency-keys/unseen')
  expect(found.json()).toMatchObject({ key: 'unseen', source: 'client', sent: 'yes', message: { status: 'sent' } })
})

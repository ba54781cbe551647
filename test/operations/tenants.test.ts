/** Accounts and environments do not meet (behaviour.md, H1; http/auth.ts, U2). */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { accepted, fakeProvider, lost, sms, testGateway, type TestGateway } from '../support/gateway.ts'
import { attemptIn, isReplay, messageIn, newApiKey, problemIn, told, type Asker } from './told.ts'

const database = useDatabase()
let gateway: TestGateway
let testEnvironment: TestGateway
let acme: Asker
let rival: Asker

beforeAll(async () => {
  gateway = await testGateway(database.url)
  testEnvironment = await testGateway(database.url, { provider: fakeProvider('fake', { environment: 'test' }) })
  acme = await newApiKey(gateway, 'acme')
  rival = await newApiKey(gateway, 'rival')
})
beforeEach(() => {
  gateway.provider.calls.length = 0
  gateway.provider.answer = () => accepted()
})
afterAll(async () => {
  await gateway.close()
  await testEnvironment.close()
})

test('H1 one key from two accounts makes two messages, and each repeat finds its own', async () => {
  const body = sms('h1', { conversation: 'c', reference: 'r' })
  const mine = await gateway.send(body, { key: 'h1', headers: acme.headers })
  const theirs = await gateway.send(body, { key: 'h1', headers: rival.headers })
  expect([isReplay(mine), isReplay(theirs)]).toEqual([false, false])
  expect(messageIn(mine).id).not.toBe(messageIn(theirs).id)
  expect((await gateway.send(body, { key: 'h1', headers: rival.headers })).body).toBe(theirs.body)
  const other = await gateway.send(sms('other'), { key: 'h1', headers: rival.headers })
  expect(problemIn(other).message?.id).toBe(messageIn(theirs).id)
  expect(gateway.provider.calls).toHaveLength(2)
})

test('H1 derived keys of two accounts differ', async () => {
  const body = sms('h1', { conversation: 'c', reference: 'derived' })
  const mine = await gateway.send(body, { headers: acme.headers })
  const theirs = await gateway.send(body, { headers: rival.headers })
  expect(messageIn(mine).idempotencyKey).not.toBe(messageIn(theirs).idempotencyKey)
  expect(gateway.provider.calls).toHaveLength(2)
})

test('H1 one key from test and live makes two messages, and neither environment sees the other', async () => {
  const sandboxed = await newApiKey(gateway, 'acme', { environment: 'test' })
  const live = await gateway.send(sms('h1'), { key: 'h1-env', headers: acme.headers })
  const unserved = await gateway.send(sms('h1'), { key: 'h1-env', headers: sandboxed.headers })
  expect(told(unserved)).toBe('422 no-provider')
  const tested = await testEnvironment.send(sms('h1'), { key: 'h1-env', headers: sandboxed.headers })
  expect([told(tested), isReplay(tested)]).toEqual(['201 sent', false])
  expect(messageIn(tested)).toMatchObject({ environment: 'test' })
  const path = `/v1/messages/${messageIn(live).id}`
  expect(told(await testEnvironment.get(path, sandboxed.headers))).toBe('404 not-found')
  expect(told(await gateway.get(path, acme.headers))).toBe('200 sent')
  expect([gateway.provider.calls.length, testEnvironment.provider.calls.length]).toEqual([1, 1])
})

test('H1 what belongs to another account is not there, whatever is asked of it', async () => {
  gateway.provider.answer = () => lost()
  const mine = await gateway.send(sms('h1', { intent: 'mine' }), { key: 'h1-hidden', headers: acme.headers })
  const id = String(problemIn(mine).message?.id)
  const started = (await gateway.get(`/v1/messages/${id}/events`, acme.headers)).json<{ data: { attempt: string }[] }>()
  const attempt = started.data.find((event) => event.attempt !== null)?.attempt
  const headers = { ...rival.headers, 'content-type': 'application/json' }
  const verdict = JSON.stringify({ attempt, outcome: 'not_sent', evidence: 'e' })
  const asked = [
    gateway.get(`/v1/messages/${id}`, rival.headers),
    gateway.get(`/v1/messages/${id}/events`, rival.headers),
    gateway.app.inject({ method: 'POST', url: `/v1/messages/${id}/cancel`, headers: rival.headers }),
    gateway.app.inject({ method: 'POST', url: `/v1/messages/${id}/resolve`, headers, payload: verdict }),
    gateway.get(`/v1/idempotency-keys/h1-hidden`, rival.headers),
  ]
  expect((await Promise.all(asked)).map(({ statusCode }) => statusCode)).toEqual([404, 404, 404, 404, 404])
  const list = await gateway.get('/v1/messages?intent=mine', rival.headers)
  expect(list.json()).toMatchObject({ data: [] })
  expect(told(await gateway.send(sms('h1', { intent: 'mine' }), { key: 'h1-hidden', headers: acme.headers }))).toBe(
    '504 outcome-unknown',
  )
})

test('H1 voiding a key of one account leaves the key of another as it was', async () => {
  const voided = await gateway.app.inject({
    method: 'POST',
    url: '/v1/idempotency-keys/h1-void/void',
    headers: acme.headers,
  })
  expect(voided.statusCode).toBe(200)
  expect(told(await gateway.send(sms('h1'), { key: 'h1-void', headers: acme.headers }))).toBe('409 key-void')
  expect(told(await gateway.send(sms('h1'), { key: 'h1-void', headers: rival.headers }))).toBe('201 sent')
})

test('H1 an API key that was rotated between two tries still finds the result: the scope is the account', async () => {
  const rotated = await newApiKey(gateway, 'acme')
  const first = await gateway.send(sms('h1'), { key: 'h1-rotated', headers: acme.headers })
  const again = await gateway.send(sms('h1'), { key: 'h1-rotated', headers: rotated.headers })
  expect([again.body, isReplay(again)]).toEqual([first.body, true])
  expect(gateway.provider.calls).toHaveLength(1)
})

test('H1 without the scope a repeat is 403 and replays nothing; without a known key it is 401', async () => {
  const first = await gateway.send(sms('h1'), { key: 'h1-rights', headers: acme.headers })
  const reader = await newApiKey(gateway, 'acme', { scopes: ['read', 'resolve'] })
  const forbidden = await gateway.send(sms('h1'), { key: 'h1-rights', headers: reader.headers })
  expect(told(forbidden)).toBe('403 forbidden')
  expect([isReplay(forbidden), forbidden.body.includes(messageIn(first).id)]).toEqual([false, false])
  const forged = acme.headers.authorization.replace(/.$/, 'x')
  const otherEnvironment = acme.headers.authorization.replace('so_live', 'so_test')
  for (const authorization of [forged, otherEnvironment, 'Basic YTpi', ''])
    expect(told(await gateway.send(sms('h1'), { key: 'h1-rights', headers: { authorization } }))).toBe(
      '401 unauthorized',
    )
})

test('resolving needs its own scope', async () => {
  gateway.provider.answer = () => lost()
  const first = await gateway.send(sms('scope'), { key: 'scope' })
  const id = String(problemIn(first).message?.id)
  const sender = await newApiKey(gateway, 'default', { scopes: ['send', 'read'] })
  const answer = await gateway.app.inject({
    method: 'POST',
    url: `/v1/messages/${id}/resolve`,
    headers: sender.headers,
    payload: { attempt: await attemptIn(gateway, id), outcome: 'sent', evidence: 'e' },
  })
  expect(told(answer)).toBe('403 forbidden')
})

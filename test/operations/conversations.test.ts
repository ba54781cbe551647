/** Conversations: K2, the version is checked with the claim and again before a held or scheduled message leaves. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { callerOf, type TestCaller } from '../support/callers.ts'
import { useDatabase } from '../support/database.ts'
import {
  accepted,
  fakeProvider,
  lost,
  notSent,
  rejected,
  sms,
  testGateway,
  type TestGateway,
} from '../support/gateway.ts'
import { dispatch, makeDue } from './steps.ts'

const database = useDatabase()
const provider = fakeProvider('fake')
let gateway: TestGateway
let other: TestGateway
let service: TestCaller
let agent: TestCaller
beforeAll(async () => {
  gateway = await testGateway(database.url, { provider })
  other = await testGateway(database.url, { provider })
  service = await callerOf(gateway, 'service')
  agent = await callerOf(gateway, 'agent', { policy: { requireApproval: 'never', duplicateGuard: { mode: 'off' } } })
})
afterAll(async () => {
  await gateway.close()
  await other.close()
})
let conversation = ''
beforeEach(() => {
  conversation = `ticket ${crypto.randomUUID()}`
  provider.calls.length = 0
  provider.answer = () => accepted()
})

const path = (rest = ''): string => `/v1/conversations/${encodeURIComponent(conversation)}${rest}`
const versionOf = async (): Promise<number> => (await service.get(path())).json<{ version: number }>().version
const inThis = (text = 'hello', more: object = {}): object => sms(text, { conversation, ...more })
let nth = 0
const key = (name = `key-${nth++}`): Record<string, string> => ({ 'idempotency-key': name })
const ifMatch = (version: number): Record<string, string> => ({ ...key(), 'if-match': `"${version}"` })
const hear = async (eventId: string, text = 'ok') =>
  service.post(path('/inbound'), { eventId, from: '+447700900123', text })

test('one that was never heard of is at version 0, and has said nothing', async () => {
  const answer = await service.get(path())
  expect(answer.headers.etag).toBe('"0"')
  expect(answer.json()).toEqual({
    conversation,
    object: 'conversation',
    environment: 'live',
    version: 0,
    updatedAt: null,
    lastMessage: null,
  })
})

test('what goes out and what comes in makes a version each; a repeat makes none', async () => {
  const name = key()
  expect((await service.send(inThis(), name)).statusCode).toBe(201)
  expect((await service.send(inThis(), name)).headers['idempotent-replayed']).toBe('true')
  expect(await versionOf()).toBe(1)
  expect((await hear('e1')).json()).toMatchObject({ version: 2, inbound: { eventId: 'e1', source: 'api', text: 'ok' } })
  const again = await hear('e1', 'told otherwise')
  expect(again.json()).toMatchObject({ version: 2, inbound: { text: 'ok' } })
  expect(again.headers.etag).toBe('"2"')
})

test('J1 one event told 46 times, 5 at once, over two gateways, is heard once', async () => {
  const twin = await callerOf(other, 'service')
  const tell = async (from: TestCaller) => from.post(path('/inbound'), { eventId: 'same', from: 'a', text: 'b' })
  for (let round = 0; round < 9; round++)
    for (const answer of await Promise.all([service, twin, service, twin, service].map(tell)))
      expect(answer.statusCode).toBe(200)
  expect(await versionOf()).toBe(1)
})

test('without an event id the fields that make it that event are its id; content alone is none', async () => {
  const told = { from: 'a', text: 'ok', occurredAt: '2026-12-01T09:00:00.000Z' }
  const first = await service.post(path('/inbound'), told)
  expect((await service.post(path('/inbound'), told)).json()).toEqual(first.json())
  const sameInstant = { ...told, occurredAt: '2026-12-01T10:00:00+01:00' }
  expect((await service.post(path('/inbound'), sameInstant)).json()).toEqual(first.json())
  expect(first.json()).toMatchObject({ version: 1, inbound: { eventId: null } })
  await service.post(path('/inbound'), { ...told, occurredAt: '2026-12-01T09:00:01.000Z' })
  expect(await versionOf()).toBe(2)
  const refused = await service.post(path('/inbound'), { from: 'a', text: 'ok' })
  expect(refused.json()).toMatchObject({ status: 400, errors: [{ pointer: '/eventId' }] })
})

test('an agent does not write what the other side says', async () => {
  expect((await agent.post(path('/inbound'), { eventId: 'x', from: 'a', text: 'b' })).statusCode).toBe(403)
  expect(await versionOf()).toBe(0)
})

test('both directions are one list, newest first, page by page', async () => {
  await service.send(inThis('one'), key())
  await hear('e2', 'two')
  await service.send(inThis('three'), key())
  const told = (entry: { message?: { content: { text: string } }; inbound?: { text: string } }): string =>
    entry.message?.content.text ?? entry.inbound?.text ?? ''
  const page = async (query: string) =>
    (await service.get(path(`/messages${query}`))).json<{
      version: number
      data: object[]
      nextCursor: string | null
    }>()
  const first = await page('?limit=2')
  expect(first.data.map(told)).toEqual(['three', 'two'])
  const second = await page(`?limit=2&cursor=${first.nextCursor}`)
  expect(second).toMatchObject({ version: 3, nextCursor: null })
  expect(second.data.map(told)).toEqual(['one'])
  expect((await service.get(path())).json()).toMatchObject({ lastMessage: { message: { content: { text: 'three' } } } })
})

test('K2 a message goes out at the version that was read, and not at another', async () => {
  await hear('e1')
  const stale = await agent.send(inThis(), ifMatch(0))
  expect(stale.headers.etag).toBe('"1"')
  expect(stale.json()).toMatchObject({
    type: '/problems/conversation-changed',
    status: 412,
    sent: 'no',
    retryable: false,
    conversation: { conversation, version: 1 },
  })
  expect(provider.calls).toHaveLength(0)
  expect((await agent.send(inThis(), ifMatch(1))).statusCode).toBe(201)
  expect(await versionOf()).toBe(2)
})

test('K2 an agent that gives no version is told to read', async () => {
  const answer = await agent.send(inThis(), key())
  expect(answer.json()).toMatchObject({ type: '/problems/conversation-version-required', status: 428, sent: 'no' })
  expect((await agent.send(sms(), key())).statusCode).toBe(428)
})

test('D5 refused for its version, the same key is free for the next try', async () => {
  await hear('e1')
  const name = key('again-after-412')
  expect((await agent.send(inThis(), { ...name, 'if-match': '"0"' })).statusCode).toBe(412)
  expect((await agent.send(inThis(), { ...name, 'if-match': '"1"' })).statusCode).toBe(201)
})

test('a replay is never refused by the version that its own first run moved', async () => {
  const asked: Record<string, string> = { ...key(), 'if-match': '"0"' }
  expect((await agent.send(inThis(), asked)).statusCode).toBe(201)
  const again = await agent.send(inThis(), asked)
  expect([again.statusCode, again.headers['idempotent-replayed']]).toEqual([201, 'true'])
  expect((await agent.send(inThis(), { 'idempotency-key': asked['idempotency-key'] ?? '' })).statusCode).toBe(201)
  expect(provider.calls).toHaveLength(1)
})

test.each([
  ['a wildcard', '*'],
  ['a weak one', 'W/"1"'],
  ['a bare number', '1'],
  ['a list', '"1", "2"'],
  ['no number', '"abc"'],
])('If-Match that is %s is refused as it stands', async (_, value) => {
  const answer = await service.send(inThis(), { ...key(), 'if-match': value })
  expect(answer.json()).toMatchObject({ status: 400, type: '/problems/invalid-request', sent: 'no' })
})

test('If-Match without a conversation is refused', async () => {
  const answer = await service.send(sms(), { ...key(), 'if-match': '"0"' })
  expect(answer.json()).toMatchObject({ status: 400, errors: [{ pointer: '/conversation' }] })
})

test('D1 twenty at one version, over two gateways: one goes out, and the rest are told to read again', async () => {
  const twin = await callerOf(other, 'agent', { policy: { requireApproval: 'never', duplicateGuard: { mode: 'off' } } })
  const answers = await Promise.all(
    Array.from({ length: 20 }, async (_, i) => (i % 2 === 0 ? agent : twin).send(inThis(`text ${i}`), ifMatch(0))),
  )
  expect(answers.map(({ statusCode }) => statusCode).toSorted((a, b) => a - b)).toEqual([
    201,
    ...Array.from({ length: 19 }, () => 412),
  ])
  expect(provider.calls).toHaveLength(1)
  expect(await versionOf()).toBe(1)
})

test.each([
  ['was lost', lost(), 504],
  ['was refused', rejected(), 422],
])('whoever sends again after an answer that %s reads first: the version has moved', async (_, outcome, status) => {
  provider.answer = () => outcome
  expect((await agent.send(inThis(), ifMatch(0))).statusCode).toBe(status)
  expect((await agent.send(inThis('again'), ifMatch(0))).statusCode).toBe(412)
  expect(provider.calls).toHaveLength(1)
})

test('a message that was not taken goes on by itself, whatever is said meanwhile: its version was made at its claim', async () => {
  provider.answer = () => notSent()
  const name: Record<string, string> = { ...ifMatch(0), prefer: 'wait=0' }
  await agent.send(inThis(), name)
  await hear('e1')
  provider.answer = () => accepted()
  await makeDue(database)
  await dispatch(gateway)
  expect((await agent.send(inThis(), { 'idempotency-key': name['idempotency-key'] ?? '' })).statusCode).toBe(201)
})

const later = (version?: number) =>
  service.send(inThis('later', { delaySeconds: 3600 }), version === undefined ? key() : ifMatch(version))
const idOf = (answer: { json(): unknown }): string => (answer.json() as { id: string }).id
const due = async (id: string) => {
  await makeDue(database)
  await dispatch(gateway)
  return (await service.get(`/v1/messages/${id}`)).json<{ status: string; statusReason: string | null }>()
}

test('K2 a scheduled message leaves at the version that its claim found', async () => {
  const answer = await later(0)
  expect(answer.json()).toMatchObject({ status: 'scheduled', conversationVersion: 0 })
  expect(await versionOf()).toBe(0)
  expect(await due(idOf(answer))).toMatchObject({ status: 'sent' })
  expect(await versionOf()).toBe(1)
})

test('K2 a scheduled message whose conversation moved is canceled, and says why', async () => {
  const answer = await later(0)
  await hear('e1')
  expect(await due(idOf(answer))).toMatchObject({ status: 'canceled', statusReason: 'conversation_changed' })
  expect(provider.calls).toHaveLength(0)
  const events = (await service.get(`/v1/messages/${idOf(answer)}/events`)).json<{ data: { type: string }[] }>()
  expect(events.data.map(({ type }) => type)).toEqual(['claimed', 'conversation_changed'])
})

test('other scheduled ones do not count, but the first that leaves does', async () => {
  const [one, two] = [await later(0), await later(0)]
  await makeDue(database)
  await dispatch(gateway, 2)
  const statuses = await Promise.all(
    [one, two].map(async (each) => (await service.get(`/v1/messages/${idOf(each)}`)).json<{ status: string }>().status),
  )
  expect(statuses.toSorted()).toEqual(['canceled', 'sent'])
  expect(provider.calls).toHaveLength(1)
})

test('a scheduled message that named no version goes out whatever was said', async () => {
  const answer = await later()
  await hear('e1')
  expect(await due(idOf(answer))).toMatchObject({ status: 'sent' })
  expect(await versionOf()).toBe(2)
})

test('H1 conversations of two accounts, and of live and test, are not one', async () => {
  await service.send(inThis(), key())
  const elsewhere = await callerOf(gateway, 'service', { account: 'elsewhere' })
  expect((await elsewhere.get(path())).json()).toMatchObject({ version: 0, lastMessage: null })
  const testing = await callerOf(gateway, 'service', { environment: 'test' })
  expect((await testing.get(path('/messages'))).json()).toMatchObject({ version: 0, data: [] })
})

/** The dry run: what POST /v1/messages/check says is what a send then does, and it does nothing itself. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { callerOf, type TestCaller } from '../support/callers.ts'
import { useDatabase } from '../support/database.ts'
import { accepted, fakeProvider, sms, testGateway, type TestGateway } from '../support/gateway.ts'

const database = useDatabase()
const provider = fakeProvider('fake', {
  limitBroken: (message) =>
    message.channel === 'sms' && message.content.text.length > 300
      ? { pointer: '/content/text', detail: 'Too long.' }
      : null,
})
let gateway: TestGateway
let service: TestCaller
let agent: TestCaller
beforeAll(async () => {
  gateway = await testGateway(database.url, { provider })
  service = await callerOf(gateway, 'service')
  agent = await callerOf(gateway, 'agent')
})
afterAll(async () => gateway.close())
beforeEach(() => {
  provider.calls.length = 0
  provider.answer = () => accepted()
})

let nth = 0
const keyed = (more: Record<string, string> = {}): Record<string, string> => ({
  'idempotency-key': `check-${nth++}`,
  ...more,
})
interface Checked {
  verdict: string
  reason: string
  problem: { type: string } | null
  [member: string]: unknown
}
const check = async (by: TestCaller, body: object, headers: Record<string, string>): Promise<Checked> => {
  const answer = await by.post('/v1/messages/check', body, headers)
  expect(answer.statusCode).toBe(200)
  return answer.json<Checked>()
}
/** Rows of all that a send writes. */
const rows = async (): Promise<object[]> =>
  database.query(`SELECT (SELECT count(*) FROM messages) AS messages, (SELECT count(*) FROM idempotency_keys) AS keys,
    (SELECT count(*) FROM duplicate_guards) AS guards, (SELECT sum(version) FROM conversations) AS versions,
    (SELECT count(*) FROM due_work) AS due, (SELECT count(*) FROM events) AS events`)

test('one that would go out at once', async () => {
  const headers = keyed()
  const before = await rows()
  expect(await check(service, sms('€ '.repeat(60), { conversation: 'c1', intent: 'i1' }), headers)).toEqual({
    verdict: 'send',
    reason: 'It would be sent at once.',
    problem: null,
    key: { key: headers['idempotency-key'], source: 'client', message: null },
    provider: 'fake',
    conversation: { conversation: 'c1', version: 0, matches: null },
    intent: { intent: 'i1', message: null },
    duplicate: { mode: 'flag', message: null },
    approval: { required: false, reason: null },
    text: { encoding: 'GSM-7', characters: 180, segments: 2 },
  })
  expect(await rows()).toEqual(before)
  expect(provider.calls).toHaveLength(0)
})

/** What a check says, and what the send does then. */
test.each<[string, 'service' | 'agent', object, Record<string, string>, string, number]>([
  ['goes out', 'service', sms('a'), {}, 'send', 201],
  ['waits for its time', 'service', sms('b', { delaySeconds: 60 }), {}, 'schedule', 202],
  ['is due already', 'service', sms('b1', { sendAt: '2020-01-01T00:00:00Z' }), {}, 'send', 201],
  ['waits for no time', 'service', sms('b2', { delaySeconds: 0 }), {}, 'send', 201],
  ['waits for a person', 'agent', sms('c', { conversation: 'c' }), { 'if-match': '"0"' }, 'hold', 202],
  ['names no version', 'agent', sms('d', { conversation: 'd' }), {}, 'refuse conversation-version-required', 428],
  ['is stale', 'service', sms('e', { conversation: 'e' }), { 'if-match': '"7"' }, 'refuse conversation-changed', 412],
  ['has no provider', 'service', sms('f', { provider: 'none' }), {}, 'refuse no-provider', 422],
  ['is too long', 'service', sms('x'.repeat(301)), {}, 'refuse invalid-request', 400],
  ['is too late', 'service', sms('g', { notAfter: '2020-01-01T00:00:00Z' }), {}, 'refuse invalid-request', 400],
])('one that %s', async (_, by, body, more, expected, status) => {
  const caller = by === 'agent' ? agent : service
  const headers = keyed(more)
  const { verdict, problem } = await check(caller, body, headers)
  expect([verdict, problem?.type.replace('/problems/', '')].filter(Boolean).join(' ')).toBe(expected)
  expect((await caller.send(body, headers)).statusCode).toBe(status)
})

test('one whose key is known is a repeat, or refused if it says something else', async () => {
  const headers = keyed()
  await service.send(sms('known'), headers)
  const { id } = (await service.send(sms('known'), headers)).json<{ id: string }>()
  expect(await check(service, sms('known'), headers)).toMatchObject({ verdict: 'repeat', key: { message: { id } } })
  const other = await check(service, sms('other'), headers)
  expect(other).toMatchObject({ verdict: 'refuse', problem: { type: '/problems/idempotency-key-reused' } })
  await service.post('/v1/idempotency-keys/voided-before/void')
  const voided = await check(service, sms('void'), { 'idempotency-key': 'voided-before' })
  expect(voided).toMatchObject({ verdict: 'refuse', problem: { type: '/problems/key-void' } })
})

test.each([
  ['flag', 'send'],
  ['hold', 'hold'],
  ['refuse', 'refuse'],
  ['off', 'send'],
] as const)('one that looks like a second, with the guard on %s: %s', async (mode, expected) => {
  const caller = await callerOf(gateway, 'service', { policy: { duplicateGuard: { mode } } })
  const body = sms(`second ${mode}`)
  const { id } = (await caller.send(body, keyed())).json<{ id: string }>()
  const checked = await check(caller, body, keyed())
  expect(checked).toMatchObject({
    verdict: expected,
    duplicate: { mode, message: mode === 'off' ? null : { id } },
  })
})

test('one whose intent is taken is refused, and the first is named', async () => {
  const { id } = (await service.send(sms('one', { intent: 'same' }), keyed())).json<{ id: string }>()
  expect(await check(service, sms('two', { intent: 'same' }), keyed())).toMatchObject({
    verdict: 'refuse',
    intent: { intent: 'same', message: { id } },
    problem: { type: '/problems/possible-duplicate' },
  })
})

test('a request that cannot be read is refused as a send of it is', async () => {
  expect((await service.post('/v1/messages/check', { channel: 'sms' }, keyed())).statusCode).toBe(400)
  expect((await service.post('/v1/messages/check', sms('no key'))).statusCode).toBe(400)
  expect(
    (await (await callerOf(gateway, 'service', { scopes: ['read'] })).post('/v1/messages/check', sms())).statusCode,
  ).toBe(403)
})

/** The guard against a second message of the same content by another key, intents, and what a key's policy allows: K1. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { GivenPolicy } from '../../src/core/key-policy.ts'
import { callerOf, type TestCaller } from '../support/callers.ts'
import { useDatabase } from '../support/database.ts'
import { accepted, fakeProvider, rejected, sms, testGateway, type TestGateway } from '../support/gateway.ts'
import { dispatch, makeDue, untilStatus } from './steps.ts'
import { uuidOf } from './told.ts'

const database = useDatabase()
const provider = fakeProvider('fake')
const second = fakeProvider('second', { identity: 'second' })
let gateway: TestGateway
let other: TestGateway
beforeAll(async () => {
  gateway = await testGateway(database.url, { provider, others: [second] })
  other = await testGateway(database.url, { provider, others: [second] })
})
afterAll(async () => {
  await gateway.close()
  await other.close()
})
beforeEach(() => {
  provider.calls.length = 0
  provider.answer = () => accepted()
  second.calls.length = 0
})

const guarded = async (mode: 'off' | 'flag' | 'hold' | 'refuse', on = gateway, more: GivenPolicy = {}) =>
  callerOf(on, 'service', { policy: { duplicateGuard: { mode }, ...more } })
let nth = 0
const send = async (by: TestCaller, body: object, headers: Record<string, string> = {}) =>
  by.send(body, { 'idempotency-key': `guard-${nth++}`, ...headers })
let saying = 0
const text = (): string => `saying ${saying++}`
interface Shown {
  id: string
  status: string
  possibleDuplicateOf: string | null
}

test('K1 a service that says the same under another key is not stopped, but the answer is marked', async () => {
  const service = await callerOf(gateway, 'service')
  const said = sms(text())
  const first = (await send(service, said)).json<Shown>()
  expect(first.possibleDuplicateOf).toBeNull()
  for (let i = 0; i < 2; i++) {
    const answer = await send(service, said)
    expect(answer.statusCode).toBe(201)
    expect(answer.json<Shown>().possibleDuplicateOf).toBe(first.id)
  }
  expect(provider.calls).toHaveLength(3)
  expect((await gateway.get('/metrics')).body).toMatch(/sendonce_possible_duplicates_total\{became="sent"\} [1-9]/)
})

test('K1 what differs in conversation, recipient, channel or text is not the same', async () => {
  const service = await callerOf(gateway, 'service')
  const said = text()
  await send(service, sms(said))
  for (const more of [{ conversation: 'c' }, { to: '+447700900999' }, { content: { text: `${said}.` } }])
    expect((await send(service, sms(said, more))).json<Shown>().possibleDuplicateOf).toBeNull()
  const elsewhere = await callerOf(gateway, 'service', { account: 'elsewhere' })
  expect((await send(elsewhere, sms(said))).json<Shown>().possibleDuplicateOf).toBeNull()
})

test('K1 held: the second one waits for a person, and goes out if they say so', async () => {
  const caller = await guarded('hold')
  const person = await callerOf(gateway, 'person')
  const said = sms(text())
  const first = (await send(caller, said)).json<Shown>()
  const held = await send(caller, said)
  expect([held.statusCode, held.json()]).toMatchObject([
    202,
    { status: 'held', statusReason: 'duplicate', possibleDuplicateOf: first.id },
  ])
  const { id, fingerprint } = held.json<{ id: string; fingerprint: string }>()
  expect((await person.post(`/v1/messages/${id}/approve`, { fingerprint }, { prefer: 'wait=0' })).statusCode).toBe(200)
  await dispatch(gateway)
  expect(provider.calls).toHaveLength(2)
})

test('K1 refused: nothing is claimed, and the first one is named', async () => {
  const caller = await guarded('refuse')
  const said = text()
  const first = (await send(caller, sms(said))).json<Shown>()
  const refused = await send(caller, sms(said, { reference: 'mine', conversation: undefined }), {
    'idempotency-key': 'x',
  })
  expect(refused.json()).toMatchObject({
    type: '/problems/possible-duplicate',
    status: 409,
    sent: 'no',
    retryable: false,
    message: { id: first.id, status: 'sent' },
  })
  expect((await caller.get('/v1/idempotency-keys/x')).statusCode).toBe(404)
  expect(provider.calls).toHaveLength(1)
})

test('K1 off: it goes out, and is not marked', async () => {
  const caller = await guarded('off')
  const said = sms(text())
  await send(caller, said)
  expect((await send(caller, said)).json<Shown>().possibleDuplicateOf).toBeNull()
})

test('K1 what failed or was canceled is not a first one: a new key is what its answer asked for', async () => {
  const caller = await guarded('refuse')
  const said = text()
  provider.answer = () => rejected()
  expect((await send(caller, sms(said))).statusCode).toBe(422)
  provider.answer = () => accepted()
  expect((await send(caller, sms(said))).statusCode).toBe(201)
  const later = text()
  const { id } = (await send(caller, sms(later, { delaySeconds: 600 }))).json<Shown>()
  await caller.post(`/v1/messages/${id}/cancel`)
  expect((await send(caller, sms(later))).statusCode).toBe(201)
})

test('K1 where the first was declined or failed, a second that went out is the first: the guard does not forget it', async () => {
  const caller = await guarded('refuse')
  const asking = await guarded('flag', gateway, { requireApproval: 'always' })
  const person = await callerOf(gateway, 'person')
  const said = sms(text())
  const [declined, approved] = [await send(asking, said), await send(asking, said)]
  const decide = async (answer: { json(): unknown }, word: string) => {
    const { id, fingerprint } = answer.json() as { id: string; fingerprint: string }
    return person.post(`/v1/messages/${id}/${word}`, { fingerprint }, { prefer: 'wait=0' })
  }
  await decide(declined, 'decline')
  await decide(approved, 'approve')
  await dispatch(gateway)
  const refused = await send(caller, said)
  expect(refused.json()).toMatchObject({ status: 409, message: { id: approved.json<Shown>().id, status: 'sent' } })
  expect(provider.calls).toHaveLength(1)
})

test('K1 after the window it is another message', async () => {
  const caller = await guarded('refuse')
  const said = sms(text())
  await send(caller, said)
  await database.query(`UPDATE duplicate_guards SET seen_at = seen_at - interval '901 seconds'`)
  expect((await send(caller, said)).statusCode).toBe(201)
})

test.each([
  ['refuse', 201, 409],
  ['hold', 201, 202],
] as const)('K1 twenty at once over two gateways, guard on %s: one goes out', async (mode, one, rest) => {
  const [here, there] = [await guarded(mode), await guarded(mode, other)]
  const said = sms(text())
  const answers = await Promise.all(Array.from({ length: 20 }, async (_, i) => send(i % 2 === 0 ? here : there, said)))
  const codes = answers.map(({ statusCode }) => statusCode)
  expect(codes.filter((code) => code === one)).toHaveLength(1)
  expect(codes.filter((code) => code === rest)).toHaveLength(19)
  expect(provider.calls).toHaveLength(1)
})

test('a repeat of the first key is a replay, never a duplicate of itself', async () => {
  const caller = await guarded('refuse')
  const said = sms(text())
  const key = { 'idempotency-key': 'itself' }
  expect((await send(caller, said, key)).statusCode).toBe(201)
  expect((await send(caller, said, key)).headers['idempotent-replayed']).toBe('true')
})

test('an agent loop that makes new keys and reads again each time sends one message for one intent', async () => {
  const agent = await callerOf(gateway, 'agent', { policy: { requireApproval: 'never' } })
  const conversation = 'loop'
  const results = []
  for (let i = 0; i < 5; i++) {
    const { version } = (await agent.get(`/v1/conversations/${conversation}`)).json<{ version: number }>()
    const body = sms(`reworded ${i}`, { conversation, intent: 'ship-notice:loop' })
    results.push((await send(agent, body, { 'if-match': `"${version}"` })).statusCode)
  }
  expect(results).toEqual([201, 409, 409, 409, 409])
  expect(provider.calls).toHaveLength(1)
})

test('a key goes by the channels and providers that its policy allows, and by no other', async () => {
  const caller = await callerOf(gateway, 'service', {
    policy: { allowedChannels: ['sms'], allowedProviders: ['second'] },
  })
  expect((await send(caller, sms(text()))).json()).toMatchObject({ provider: 'second' })
  expect(provider.calls).toHaveLength(0)
  const email = { channel: 'email', to: 'a@example.com', content: { subject: 's', text: 't' } }
  for (const body of [email, sms(text(), { provider: 'fake' })]) {
    const refused = await send(caller, body, { 'idempotency-key': 'not-allowed' })
    expect(refused.json()).toMatchObject({ type: '/problems/policy-refused', status: 403, sent: 'no' })
  }
  expect((await send(caller, sms(text()), { 'idempotency-key': 'not-allowed' })).statusCode).toBe(201)
})

test('E8 what is not taken fails over to no provider that the key may not use', async () => {
  const caller = await callerOf(gateway, 'service', { policy: { allowedProviders: ['fake'] } })
  provider.answer = () => ({
    kind: 'not_sent',
    reason: 'not_begun',
    retryAfterMs: null,
    evidence: { phase: 'not_begun', detail: 'refused' },
  })
  const { id } = (await send(caller, sms(text()), { prefer: 'wait=0' })).json<Shown>()
  await untilStatus(gateway, id, 'queued')
  provider.answer = () => accepted()
  await database.query('DELETE FROM due_work WHERE message_id <> $1', [uuidOf(id)])
  await makeDue(database)
  await dispatch(gateway)
  expect((await caller.get(`/v1/messages/${id}`)).json()).toMatchObject({
    status: 'sent',
    provider: 'fake',
    attempts: 2,
  })
  expect(second.calls).toHaveLength(0)
})

test('a replay is given whatever the policy says by now', async () => {
  const caller = await callerOf(gateway, 'service')
  const said = sms(text())
  await send(caller, said, { 'idempotency-key': 'policy-later' })
  const bound = await callerOf(gateway, 'agent', { policy: { allowedChannels: [] } })
  const answer = await send(bound, said, { 'idempotency-key': 'policy-later' })
  expect([answer.statusCode, answer.headers['idempotent-replayed']]).toEqual([201, 'true'])
})

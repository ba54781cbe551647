/** Approvals: L1, one decision and one send, however often, wherever and by whomever "apply" is pressed. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { callerOf, type TestCaller } from '../support/callers.ts'
import { useDatabase } from '../support/database.ts'
import { accepted, fakeProvider, lost, sms, testGateway, until, type TestGateway } from '../support/gateway.ts'
import * as dispatcher from '../../src/workers/dispatcher.ts'
import { dispatch, makeDue } from './steps.ts'
import { uuidOf } from './told.ts'

const database = useDatabase()
const provider = fakeProvider('fake')
let gateway: TestGateway
let other: TestGateway
let agent: TestCaller
let person: TestCaller
let colleague: TestCaller
beforeAll(async () => {
  gateway = await testGateway(database.url, { provider })
  other = await testGateway(database.url, { provider })
  agent = await callerOf(gateway, 'agent')
  person = await callerOf(gateway, 'person')
  colleague = await callerOf(other, 'person')
})
afterAll(async () => {
  await gateway.close()
  await other.close()
})
let conversation = ''
beforeEach(async () => {
  await database.query('DELETE FROM due_work')
  conversation = `ticket ${crypto.randomUUID()}`
  provider.calls.length = 0
  provider.answer = () => accepted()
})

interface Held {
  id: string
  fingerprint: string
  status: string
}
let nth = 0
const propose = async (text = 'May I?', more: object = {}, headers: Record<string, string> = {}): Promise<Held> => {
  const answer = await agent.send(sms(text, { conversation, ...more }), {
    'idempotency-key': `proposal-${nth++}`,
    'if-match': '"0"',
    ...headers,
  })
  expect(answer.statusCode).toBe(202)
  return answer.json<Held>()
}
type Word = 'approve' | 'decline'
const decide = async (by: TestCaller, { id, fingerprint }: Held, word: Word = 'approve', prefer = 'wait=0') =>
  by.post(`/v1/messages/${id}/${word}`, { fingerprint }, { prefer })
const shown = async ({ id }: Held) =>
  (await person.get(`/v1/messages/${id}`)).json<{ status: string; statusReason: string | null; approval: object }>()

test('what an agent sends waits for a person, and says so', async () => {
  const answer = await agent.send(sms('May I?', { conversation }), { 'idempotency-key': 'waits', 'if-match': '"0"' })
  expect([answer.statusCode, answer.headers['retry-after']]).toEqual([202, '60'])
  expect(answer.json()).toMatchObject({
    status: 'held',
    statusReason: 'approval',
    sentBy: agent.id,
    conversationVersion: 0,
    approval: { status: 'pending', reason: 'approval', by: null, at: null },
  })
  const again = await agent.send(sms('May I?', { conversation }), { 'idempotency-key': 'waits', prefer: 'wait=5' })
  expect([again.statusCode, again.json<Held>().status]).toEqual([202, 'held'])
  await makeDue(database)
  expect((await dispatcher.runOnce(gateway.deps)).taken).toBe(0)
  expect(provider.calls).toHaveLength(0)
})

test('approved, it is sent once, and tells who approved it, when and from where', async () => {
  const held = await propose()
  expect((await decide(person, held)).json()).toMatchObject({ status: 'queued', approval: { status: 'approved' } })
  await dispatch(gateway)
  expect(await shown(held)).toMatchObject({ status: 'sent', approval: { status: 'approved', by: person.id } })
  const { data } = (await person.get(`/v1/messages/${held.id}/events`)).json<{
    data: { type: string; data: object }[]
  }>()
  expect(data.map(({ type }) => type)).toEqual(['claimed', 'approved', 'attempt_started', 'attempt_ended'])
  expect(data[1]?.data).toEqual({ apiKey: person.id, from: '127.0.0.1' })
  expect((await agent.get(`/v1/conversations/${encodeURIComponent(conversation)}`)).json()).toMatchObject({
    version: 1,
  })
})

test('L1 pressed twice at once on two gateways: one call, and both get the same answer', async () => {
  const held = await propose()
  const pressed = Promise.all([
    decide(person, held, 'approve', 'wait=10'),
    decide(person, held, 'approve', 'wait=10'),
    decide(colleague, held, 'approve', 'wait=10'),
    decide(colleague, held, 'approve', 'wait=10'),
  ])
  await dispatch(gateway)
  const answers = await pressed
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200, 200])
  expect(new Set(answers.map(({ body }) => body)).size).toBe(1)
  expect(answers[0]?.json()).toMatchObject({ status: 'sent' })
  expect(provider.calls).toHaveLength(1)
})

test('L1 approve against decline: one wins, and the loser is told who and when', async () => {
  const outcomes = new Set<string>()
  for (let round = 0; round < 10; round++) {
    conversation = `race ${crypto.randomUUID()}`
    const held = await propose(`race ${round}`)
    const answers = await Promise.all(
      round % 2 === 0
        ? [decide(person, held), decide(colleague, held, 'decline')]
        : [decide(person, held, 'decline'), decide(colleague, held)],
    )
    expect(answers.map(({ statusCode }) => statusCode).toSorted((a, b) => a - b)).toEqual([200, 409])
    const [won, lost_] = answers[0]?.statusCode === 200 ? answers : answers.toReversed()
    const { approval } = won?.json<{ approval: { status: string; by: string; at: string } }>() ?? {}
    outcomes.add(approval?.status ?? '')
    expect(lost_?.json()).toMatchObject({
      type: '/problems/already-decided',
      decision: { decision: approval?.status, by: approval?.by, at: approval?.at },
    })
  }
  expect(outcomes.size).toBeGreaterThan(0)
})

test('declined, it is never sent, and its sender is told', async () => {
  const held = await propose('no', {}, { 'idempotency-key': 'declined' })
  expect((await decide(person, held, 'decline')).json()).toMatchObject({ status: 'canceled', statusReason: 'declined' })
  expect((await decide(colleague, held, 'decline')).statusCode).toBe(200)
  const repeat = await agent.send(sms('no', { conversation }), { 'idempotency-key': 'declined' })
  expect(repeat.json()).toMatchObject({ type: '/problems/message-canceled', sent: 'no' })
  expect(repeat.json<{ detail: string }>().detail).toContain('A person declined it.')
  expect(provider.calls).toHaveLength(0)
})

test('L1 approved for another fingerprint: refused, and still held', async () => {
  const held = await propose()
  const answer = await decide(person, { ...held, fingerprint: `v1:${'0'.repeat(64)}` })
  expect(answer.json()).toMatchObject({
    status: 409,
    type: '/problems/fingerprint-mismatch',
    message: { status: 'held' },
  })
  expect(await shown(held)).toMatchObject({ status: 'held' })
})

test.each(['approve', 'decline'] as const)('no key may %s what it sent itself', async (word) => {
  const sender = await callerOf(gateway, 'person', { policy: { requireApproval: 'always' } })
  const held = (await sender.send(sms('mine'), { 'idempotency-key': `mine-${word}` })).json<Held>()
  expect((await decide(sender, held, word)).json()).toMatchObject({ status: 403, type: '/problems/forbidden' })
  expect((await decide(person, held, word)).statusCode).toBe(200)
})

test('only the key of a person decides or settles', async () => {
  const held = await propose()
  for (const kind of ['agent', 'service'] as const) {
    const caller = await callerOf(gateway, kind)
    expect((await decide(caller, held)).statusCode).toBe(403)
  }
  const reader = await callerOf(gateway, 'person', { scopes: ['read'] })
  expect((await decide(reader, held)).statusCode).toBe(403)
  const elsewhere = await callerOf(gateway, 'person', { account: 'elsewhere' })
  expect((await decide(elsewhere, held)).statusCode).toBe(404)
  expect(await shown(held)).toMatchObject({ status: 'held' })
})

test('a person settles no unknown outcome of what they sent themselves, but another person does', async () => {
  provider.answer = () => lost()
  const { message } = (await person.send(sms('lost'), { 'idempotency-key': 'own-lost' })).json<{ message: Held }>()
  const { openAttempts } = (await person.get(`/v1/messages/${message.id}`)).json<{ openAttempts: string[] }>()
  const verdict = { attempt: openAttempts[0], outcome: 'not_sent', evidence: 'not there' }
  expect((await person.post(`/v1/messages/${message.id}/resolve`, verdict)).statusCode).toBe(403)
  expect((await colleague.post(`/v1/messages/${message.id}/resolve`, verdict)).statusCode).toBe(200)
})

test('approved again once it is sent, or unknown: the present state, and no second call', async () => {
  provider.answer = () => lost()
  const held = await propose()
  await decide(person, held)
  await dispatch(gateway)
  expect((await decide(person, held)).json()).toMatchObject({ status: 'unknown' })
  expect((await decide(colleague, held)).json()).toMatchObject({ status: 'unknown' })
  expect(provider.calls).toHaveLength(1)
})

test('K2 the conversation moved since the claim: an approval cancels it, and says so', async () => {
  const held = await propose()
  await person.post(`/v1/conversations/${encodeURIComponent(conversation)}/inbound`, {
    eventId: 'e',
    from: 'a',
    text: 'no',
  })
  const answer = await decide(person, held)
  expect(answer.json()).toMatchObject({
    status: 'canceled',
    statusReason: 'conversation_changed',
    approval: { status: 'approved', by: person.id },
  })
  expect((await decide(colleague, held)).json()).toMatchObject({ statusReason: 'conversation_changed' })
  expect((await decide(colleague, held, 'decline')).statusCode).toBe(409)
  expect(provider.calls).toHaveLength(0)
})

test('two held in one conversation: the first that leaves cancels the other', async () => {
  const one = await propose('one')
  const two = await propose('two')
  await decide(person, one)
  expect((await decide(person, two)).json()).toMatchObject({ statusReason: 'conversation_changed' })
  await dispatch(gateway)
  expect(provider.calls).toHaveLength(1)
})

test('L1 of five equal held messages, one approval sends one', async () => {
  const chosen = await propose('the same')
  const equal = [chosen]
  for (let i = 0; i < 4; i++) equal.push(await propose('the same'))
  await decide(person, chosen)
  await dispatch(gateway)
  expect(provider.calls).toHaveLength(1)
  const statuses = await Promise.all(equal.map(async (each) => (await shown(each)).status))
  expect(statuses).toEqual(['sent', 'held', 'held', 'held', 'held'])
})

test('what nobody approves lapses by notAfter', async () => {
  const held = await propose('too late', { ttlSeconds: 60 }, { 'idempotency-key': 'lapses' })
  const past = `now() - interval '1 second'`
  await database.query(`UPDATE messages SET not_after = ${past} WHERE id = $1`, [uuidOf(held.id)])
  const late = await decide(person, held)
  expect(late.json()).toMatchObject({ type: '/problems/too-late', sent: 'no', message: { status: 'canceled' } })
  expect(await shown(held)).toMatchObject({ statusReason: 'lapsed', approval: { status: 'ended' } })
})

test('the dispatcher lapses what is held past notAfter, and leaves alone what is not', async () => {
  const held = await propose('slow')
  await database.query(`UPDATE due_work SET due_at = now() - interval '1 second' WHERE task = 'held'`)
  await dispatch(gateway)
  expect(await shown(held)).toMatchObject({ status: 'held' })
  await database.query(`UPDATE messages SET not_after = now() - interval '1 second' WHERE id = $1`, [uuidOf(held.id)])
  await database.query(`UPDATE due_work SET due_at = now() - interval '1 second' WHERE task = 'held'`)
  await dispatch(gateway)
  expect(await shown(held)).toMatchObject({ status: 'canceled', statusReason: 'lapsed' })
})

test('its sender cancels what is held; a decision then comes too late', async () => {
  const held = await propose()
  expect((await agent.post(`/v1/messages/${held.id}/cancel`)).json()).toMatchObject({ status: 'canceled' })
  expect((await decide(person, held)).json()).toMatchObject({ status: 409, type: '/problems/too-late' })
})

test('what was never held is not decided about', async () => {
  const sent = (await person.send(sms('plain'), { 'idempotency-key': 'plain' })).json<Held>()
  expect((await decide(colleague, sent)).json()).toMatchObject({ status: 409, type: '/problems/not-held' })
})

test('a message that is held and scheduled waits for both', async () => {
  const held = await propose('tomorrow', { delaySeconds: 3600 })
  expect((await decide(person, held)).json()).toMatchObject({ status: 'scheduled' })
  expect(provider.calls).toHaveLength(0)
  await makeDue(database)
  await dispatch(gateway)
  expect(await shown(held)).toMatchObject({ status: 'sent' })
})

test('F1 a gateway that dies between decision and call: another one sends it once', async () => {
  const held = await propose()
  await decide(person, held)
  // The first gateway is gone; the decision stands in the data base.
  await dispatch(other)
  await until(async () => (await shown(held)).status === 'sent')
  await dispatcher.runOnce(gateway.deps)
  expect(provider.calls).toHaveLength(1)
})

test.each([
  ['by-channel', { requireApproval: { channels: ['email' as const] } }, [201, 202]],
  ['never', { requireApproval: 'never' as const }, [201, 201]],
])('a policy asks %s', async (name, policy, expected) => {
  const caller = await callerOf(gateway, 'service', { policy })
  const email = { channel: 'email', to: 'a@example.com', content: { subject: 's', text: 't' } }
  const answers = [
    await caller.send(sms(name), { 'idempotency-key': `sms-${name}` }),
    await caller.send(email, { 'idempotency-key': `email-${name}` }),
  ]
  expect(answers.map(({ statusCode }) => statusCode)).toEqual(expected)
})

test('a policy asks at the first contact, until something was sent there', async () => {
  const caller = await callerOf(gateway, 'service', { policy: { requireApproval: 'first_contact' } })
  const to = '+447700900456'
  const first = await caller.send(sms('hi', { to }), { 'idempotency-key': 'first-contact' })
  expect(first.json()).toMatchObject({ status: 'held' })
  expect((await caller.send(sms('hi there', { to }), { 'idempotency-key': 'second-contact' })).statusCode).toBe(202)
  await decide(person, first.json<Held>())
  await dispatch(gateway)
  expect((await caller.send(sms('now', { to }), { 'idempotency-key': 'third-contact' })).statusCode).toBe(201)
})

test('held ones are listed, and counted', async () => {
  const held = await propose()
  const { data } = (await person.get('/v1/messages?status=held')).json<{ data: Held[] }>()
  expect(data.map(({ id }) => id)).toEqual([held.id])
  expect((await gateway.get('/metrics')).body).toContain('sendonce_held 1')
})

test.each([
  ['a proxy that is trusted', ['127.0.0.0/8'], '203.0.113.7'],
  ['anybody else', [], '127.0.0.1'],
])(
  'where a decision came from is what X-Forwarded-For of %s says, or who connects',
  async (_, trustedProxies, from) => {
    const proxied = await testGateway(database.url, { provider, trustedProxies })
    const decider = await callerOf(proxied, 'person')
    const held = await propose()
    const forwarded = { prefer: 'wait=0', 'x-forwarded-for': '198.51.100.9, 203.0.113.7' }
    await decider.post(`/v1/messages/${held.id}/approve`, { fingerprint: held.fingerprint }, forwarded)
    const { data } = (await person.get(`/v1/messages/${held.id}/events`)).json<{ data: { data: object }[] }>()
    expect(data[1]?.data).toEqual({ apiKey: decider.id, from })
    await proxied.close()
  },
)

/**
 * The data base is lost at the worst moment (reliability.md, faults 17 to 22; behaviour.md, D4; send-message.ts, N4;
 * grouped.ts, G3): a proxy cuts the connection before a statement, or after its commit.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { accepted, lost, sms, testGateway, until, type TestGateway } from '../support/gateway.ts'
import { tcpProxy, type Fault, type TcpProxy } from '../support/tcp-proxy.ts'
import { dispatch, lapse, makeDue, rescue, untilStatus } from '../operations/steps.ts'
import { attemptIn, isReplay, messageIn, newApiKey, present, problemIn, timelineOf, told } from '../operations/told.ts'

const database = useDatabase()
let proxy: TcpProxy
let gateway: TestGateway
/** Another process, whose connections are sound. */
let replica: TestGateway

beforeAll(async () => {
  proxy = await tcpProxy(database.url)
  gateway = await testGateway(proxy.urlOf(database.url))
  replica = await testGateway(database.url)
})
beforeEach(() => {
  gateway.provider.calls.length = 0
  gateway.provider.answer = () => accepted()
})
afterAll(async () => {
  await gateway.close()
  await replica.close()
  await proxy.close()
})

const faults: readonly Fault[] = ['reset before', 'reset after', 'end after']
const named = (...parts: readonly string[]): string => parts.join(' ').replaceAll(' ', '-')

async function rowsOf(key: string): Promise<number> {
  return (await database.query('SELECT 1 FROM messages WHERE idempotency_key = $1', [key])).length
}

test.each(faults)('faults 19 to 21, N4: the claim is cut (%s): one row, one call, 201', async (fault) => {
  const key = named('claim', fault)
  proxy.strike('claim', fault)
  const first = await gateway.send(sms(), { key })
  expect([told(first), isReplay(first)]).toEqual(['201 sent', false])
  expect([proxy.pending(), gateway.provider.calls.length, await rowsOf(key)]).toEqual([0, 1, 1])
  expect(messageIn(first)).toMatchObject({ attempts: 1 })
  const again = await gateway.send(sms(), { key })
  expect([again.body, isReplay(again)]).toEqual([first.body, true])
})

test.each(faults)('faults 19 to 21: an asynchronous claim is cut (%s): queued once, sent once', async (fault) => {
  const key = named('queued', fault)
  proxy.strike('claim', fault)
  const first = await gateway.send(sms(), { key, prefer: 'respond-async' })
  expect([told(first), isReplay(first)]).toEqual(['202 queued', false])
  await dispatch(gateway)
  expect(told(await gateway.send(sms(), { key }))).toBe('201 sent')
  expect([gateway.provider.calls.length, await rowsOf(key)]).toEqual([1, 1])
})

test.each(faults)(
  'K2: a claim that asks for a version is cut (%s): one call, and its own claim moves it once',
  async (fault) => {
    const [key, conversation] = [named('if-match', fault), named('conversation', fault)]
    const send = async (to: string) =>
      gateway.send(sms('v', { conversation }), { key: to, headers: { 'if-match': '"0"' } })
    proxy.strike('claim', fault)
    const first = await send(key)
    expect([told(first), isReplay(first), proxy.pending()]).toEqual(['201 sent', false, 0])
    const again = await send(key)
    expect([again.body, isReplay(again)]).toEqual([first.body, true])
    expect(told(await send(`${key}-other`))).toBe('412 conversation-changed')
    expect([gateway.provider.calls.length, await rowsOf(key), await rowsOf(`${key}-other`)]).toEqual([1, 1, 0])
    expect((await gateway.get(`/v1/conversations/${conversation}`)).headers['etag']).toBe('"1"')
  },
)

test.each(faults)(
  'Z1: an approval is cut (%s): it is 503, the same again is 200, and there is one call',
  async (fault) => {
    const policy = { requireConversationVersion: false }
    const agent = await newApiKey(gateway, 'default', { kind: 'agent', scopes: ['send', 'read'], policy })
    const conversation = named('approval', fault)
    const held = await gateway.send(sms('a', { conversation }), {
      key: named('approval', fault),
      headers: agent.headers,
    })
    expect(told(held)).toBe('202 held')
    const { id, fingerprint } = held.json<{ id: string; fingerprint: string }>()
    const approve = async () => gateway.post(`/v1/messages/${id}/approve`, { fingerprint }, { prefer: 'wait=0' })
    proxy.strike('save', fault)
    expect(told(await approve())).toBe('503 store-unavailable')
    expect(gateway.provider.calls).toEqual([])
    expect(told(await approve())).toBe('200 queued')
    await dispatch(gateway)
    expect([told(await approve()), gateway.provider.calls.length]).toEqual(['200 sent', 1])
    expect((await timelineOf(replica, id)).filter(({ type }) => type === 'approved')).toHaveLength(1)
    expect((await gateway.get(`/v1/conversations/${conversation}`)).headers['etag']).toBe('"1"')
  },
)

test.each(faults)('G3: the claim of a whole group is cut (%s): each goes on, one call a key', async (fault) => {
  proxy.strike('claim', fault)
  const keys = Array.from({ length: 40 }, (_, i) => named('group', fault, String(i % 20)))
  const answers = await Promise.all(keys.map(async (key) => gateway.send(sms(), { key })))
  expect(new Set(answers.map(told))).toEqual(new Set(['201 sent']))
  expect(answers.filter((answer) => !isReplay(answer))).toHaveLength(20)
  expect([proxy.pending(), gateway.provider.calls.length]).toEqual([0, 20])
  expect(new Set(gateway.provider.calls.map(({ messageId }) => messageId)).size).toBe(20)
})

test.each(faults)('F5, B3: the outcome is cut (%s): stored by trying again, 201, one call', async (fault) => {
  const key = named('outcome', fault)
  proxy.strike('save', fault)
  const first = await gateway.send(sms(), { key })
  expect([told(first), proxy.pending()]).toEqual(['201 sent', 0])
  expect(gateway.provider.calls).toHaveLength(1)
  const { id } = messageIn(first)
  expect((await timelineOf(replica, id)).map(({ type }) => type)).toEqual([
    'claimed',
    'attempt_started',
    'attempt_ended',
  ])
})

test.each(faults)(
  'B1: the record of an attempt is cut (%s): called once, now or when it is due again',
  async (fault) => {
    const key = named('attempt', fault)
    const { id } = messageIn(await gateway.send(sms(), { key, prefer: 'respond-async' }))
    proxy.strike('save', fault)
    await dispatch(gateway)
    expect(proxy.pending()).toBe(0)
    const calls = gateway.provider.calls.length
    expect(calls).toBe(fault === 'reset before' ? 0 : 1)
    await makeDue(database)
    await dispatch(replica, calls === 0 ? 1 : 0)
    await untilStatus(replica, id, 'sent')
    expect(gateway.provider.calls.length + replica.provider.calls.length).toBe(1)
    replica.provider.calls.length = 0
  },
)

test('fault 19: the claim was made, and cannot be read back: 503, `sent: maybe`; it is never called on hope', async () => {
  proxy.strike('claim', 'reset after')
  proxy.strike('message-by-key', 'reset before')
  const first = await gateway.send(sms(), { key: 'unreadable' })
  expect(told(first)).toBe('503 store-unavailable')
  expect(problemIn(first)).toMatchObject({ sent: 'maybe', retryable: true })
  expect(first.headers['retry-after']).toBeDefined()
  const { message } = problemIn(await gateway.send(sms(), { key: 'unreadable', prefer: 'wait=0' }))
  expect(message?.status).toBe('sending')
  await lapse(database, String(message?.id))
  expect(await rescue(replica)).toBe(1)
  expect(told(await gateway.send(sms(), { key: 'unreadable' }))).toBe('504 outcome-unknown')
  expect(gateway.provider.calls).toEqual([])
})

test('fault 20: the claim was not made, and its absence cannot be read: 503; the repeat is a first send', async () => {
  proxy.strike('claim', 'reset before')
  proxy.strike('message-by-key', 'reset before')
  expect(told(await gateway.send(sms(), { key: 'absent' }))).toBe('503 store-unavailable')
  expect(gateway.provider.calls).toEqual([])
  const again = await gateway.send(sms(), { key: 'absent' })
  expect([told(again), isReplay(again), gateway.provider.calls.length]).toEqual(['201 sent', false, 1])
})

test('D4: the store is down: 503 with Retry-After, 0 calls, nothing half-made; when it is back, the same key sends', async () => {
  const known = await gateway.send(sms(), { key: 'known' })
  gateway.provider.calls.length = 0
  proxy.shut()
  for (const [body, options] of [
    [sms(), { key: 'down' }],
    [sms(), { key: 'down', prefer: 'respond-async' }],
    [sms(), { key: 'known' }],
    [sms('late', { notAfter: '2020-01-01T00:00:00Z' }), { key: 'down' }],
  ] as const) {
    const refused = await gateway.send(body, options)
    expect(told(refused)).toBe('503 store-unavailable')
    expect(problemIn(refused)).toMatchObject({ sent: 'maybe', retryable: true })
    expect(refused.headers['retry-after']).toBeDefined()
  }
  expect(gateway.provider.calls).toEqual([])
  proxy.open()
  expect(await rowsOf('down')).toBe(0)
  expect(told(await gateway.send(sms(), { key: 'down' }))).toBe('201 sent')
  expect((await gateway.send(sms(), { key: 'known' })).body).toBe(known.body)
  expect(gateway.provider.calls).toHaveLength(1)
})

test('D4: the store goes down during the call: the outcome is stored when it is back, and the caller hears of it', async () => {
  gateway.provider.answer = () => {
    proxy.shut()
    gateway.logged.length = 0
    return accepted('late')
  }
  gateway.logged.length = 0
  const first = gateway.send(sms(), { key: 'down-during' })
  await until(() => gateway.logged.some((line) => line.includes('could not be stored yet')))
  proxy.open()
  expect(told(await first)).toBe('201 sent')
  expect(messageIn(await first)).toMatchObject({ providerMessageId: 'late' })
  expect(gateway.provider.calls).toHaveLength(1)
})

test('D4: every reading and acting route says 503 with Retry-After while the store is down', async () => {
  const { id } = messageIn(await gateway.send(sms(), { key: 'routes' }))
  proxy.shut()
  const verdict = { attempt: `att_${'0'.repeat(32)}`, outcome: 'sent', evidence: 'e' }
  const answers = await Promise.all([
    gateway.get(`/v1/messages/${id}`),
    gateway.get(`/v1/messages/${id}/events`),
    gateway.get('/v1/messages'),
    gateway.get('/v1/idempotency-keys/routes'),
    gateway.post('/v1/idempotency-keys/routes/void'),
    gateway.post(`/v1/messages/${id}/cancel`),
    gateway.post(`/v1/messages/${id}/resolve`, verdict),
    gateway.send(sms(), { key: 'routes', headers: { authorization: `Bearer so_live_unknown_${'x'.repeat(40)}` } }),
  ])
  proxy.open()
  expect(answers.map(told)).toEqual(answers.map(() => '503 store-unavailable'))
  for (const answer of answers) expect(answer.headers['retry-after']).toBeDefined()
})

test.each(faults)('a verdict and a cancel that are cut (%s) are 503, and the same again is 200', async (fault) => {
  gateway.provider.answer = () => lost()
  const unknown = await gateway.send(sms(), { key: named('verdict', fault) })
  const id = String(problemIn(unknown).message?.id)
  const verdict = { attempt: await attemptIn(replica, id), outcome: 'sent', evidence: 'seen' }
  proxy.strike('save', fault)
  expect(told(await gateway.post(`/v1/messages/${id}/resolve`, verdict))).toBe('503 store-unavailable')
  expect(told(await gateway.post(`/v1/messages/${id}/resolve`, verdict))).toBe('200 sent')
  expect((await timelineOf(replica, id)).filter(({ type }) => type === 'resolved')).toHaveLength(1)

  const later = messageIn(await gateway.send(sms('l', { delaySeconds: 60 }), { key: named('cancel', fault) }))
  proxy.strike('save', fault)
  expect(told(await gateway.post(`/v1/messages/${later.id}/cancel`))).toBe('503 store-unavailable')
  expect(told(await gateway.post(`/v1/messages/${later.id}/cancel`))).toBe('200 canceled')
  expect((await present(replica, later.id)).status).toBe('canceled')
})

test('fault 32: a server that has become read-only claims nothing; its connections are dropped, and the new primary serves', async () => {
  const name = new URL(database.url).pathname.slice(1)
  await database.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`)
  const survivor = await testGateway(database.url)
  // Sessions that are open now stay with what is a standby; those opened later reach the new primary.
  await Promise.all(Array.from({ length: 8 }, async () => survivor.deps.store.readTime()))
  await database.query(`ALTER DATABASE ${name} SET default_transaction_read_only = off`)
  const heard: string[] = []
  await until(async () => {
    heard.push(told(await survivor.send(sms(), { key: `failover-${heard.length}` })))
    return heard.at(-1) === '201 sent'
  })
  expect(heard.length).toBeGreaterThan(1)
  expect(new Set(heard.slice(0, -1))).toEqual(new Set(['503 store-unavailable']))
  expect(survivor.provider.calls).toHaveLength(1)
  expect(await rowsOf('failover-0')).toBe(0)
  await survivor.close()
})

test('fault 22: a data base that takes connections and says nothing does not hold the caller: 503 in time, no call', async () => {
  proxy.strike('claim', 'silence')
  const started = performance.now()
  const first = await gateway.send(sms(), { key: 'silence', prefer: 'wait=0' })
  expect(told(first)).toBe('503 store-unavailable')
  expect(problemIn(first)).toMatchObject({ sent: 'maybe', retryable: true })
  expect(performance.now() - started).toBeLessThan(3_000)
  expect(gateway.provider.calls).toEqual([])
  // What was begun for a caller who has gone is carried on: read back, claimed again, and sent once.
  await until(() => gateway.provider.calls.length === 1)
  const again = await gateway.send(sms(), { key: 'silence' })
  expect([told(again), isReplay(again), gateway.provider.calls.length]).toEqual(['201 sent', true, 1])
})

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { accepted, rejected, sms, testGateway, type TestGateway } from '../support/gateway.ts'
import { heldOutcome, isReplay, messageIn, newApiKey, problemIn, told } from './told.ts'

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

const rowsOf = async (key: string): Promise<number> =>
  (await database.query(`SELECT 1 FROM idempotency_keys WHERE key = $1`, [key])).length

test('the first request sends, and a repeat gets the same bytes and sends nothing', async () => {
  const first = await gateway.send(sms('once'), { key: 'once' })
  const again = await gateway.send(sms('once'), { key: 'once' })
  expect(first.statusCode).toBe(201)
  expect(first.headers['idempotent-replayed']).toBeUndefined()
  expect(again.statusCode).toBe(201)
  expect(again.body).toBe(first.body)
  expect(again.headers['idempotent-replayed']).toBe('true')
  expect(gateway.provider.calls).toHaveLength(1)
})

test('E5 the provider is given the message id, never the key of the caller', async () => {
  const answer = await gateway.send(sms('wire'), { key: 'key-on-the-wire' })
  expect(gateway.provider.calls).toMatchObject([{ messageId: messageIn(answer).id, attemptNumber: 1 }])
  expect(JSON.stringify(gateway.provider.calls)).not.toContain('key-on-the-wire')
})

test.each([
  { name: 'sent', outcome: accepted(), status: 201 },
  { name: 'failed', outcome: rejected(), status: 422 },
])(
  'G1 a replay of one that is $name has the status, bytes, Content-Type and Location of the first answer, all else fresh',
  async ({ name, outcome, status }) => {
    gateway.provider.answer = () => outcome
    const first = await gateway.send(sms('g1'), { key: `g1-${name}` })
    const again = await gateway.send(sms('g1'), { key: `g1-${name}` })
    expect(first.statusCode).toBe(status)
    for (const header of ['content-type', 'location', 'idempotency-key'])
      expect(again.headers[header]).toBe(first.headers[header])
    expect([again.statusCode, again.body]).toEqual([first.statusCode, first.body])
    expect([isReplay(first), isReplay(again)]).toEqual([false, true])
    expect(again.headers['x-request-id']).not.toBe(first.headers['x-request-id'])
    expect(again.headers['cache-control']).toBe('no-store')
    expect(again.headers['retry-after']).toBeUndefined()
    expect(gateway.provider.calls).toHaveLength(1)
  },
)

test('G1 Location names the message, and what is there is what was answered', async () => {
  const first = await gateway.send(sms('where'), { key: 'where' })
  const found = await gateway.get(String(first.headers['location']))
  expect(found.json()).toEqual(first.json())
})

test('G2 an answer asked for compressed, and its repeat asked for plain, are the same readable bytes', async () => {
  const first = await gateway.send(sms('gzip'), { key: 'gzip', headers: { 'accept-encoding': 'gzip, br' } })
  const again = await gateway.send(sms('gzip'), { key: 'gzip', headers: { 'accept-encoding': 'identity' } })
  expect(messageIn(first).status).toBe('sent')
  expect(again.body).toBe(first.body)
  expect(again.headers['content-encoding']).toBeUndefined()
})

test('C1, C5 another text under a key is 422, names the first message and what differs, sends nothing and harms nothing', async () => {
  const first = await gateway.send(sms('one', { conversation: 'c1' }), { key: 'c1' })
  const other = await gateway.send(sms('two', { to: '+447700900124', conversation: 'c1' }), { key: 'c1' })
  expect(told(other)).toBe('422 idempotency-key-reused')
  const { id, status } = messageIn(first)
  const { sent, retryable, message, errors } = problemIn(other)
  expect({ sent, retryable }).toEqual({ sent: 'yes', retryable: false })
  expect(message).toMatchObject({ id, status })
  expect(errors?.map(({ pointer }) => pointer).toSorted()).toEqual(['/content/text', '/to'])
  expect(other.body).not.toMatch(/one|two|4477/)
  expect(isReplay(other)).toBe(false)
  const again = await gateway.send(sms('one', { conversation: 'c1' }), { key: 'c1' })
  expect([again.body, isReplay(again)]).toEqual([first.body, true])
  expect(gateway.provider.calls).toHaveLength(1)
})

test('C1 another text is 422 at once while the first is still running, and the first goes on unharmed', async () => {
  const outcome = heldOutcome()
  gateway.provider.answer = async () => outcome.promise
  const first = await gateway.send(sms('one'), { key: 'c1-running', prefer: 'wait=0' })
  const other = await gateway.send(sms('two'), { key: 'c1-running' })
  expect(told(other)).toBe('422 idempotency-key-reused')
  expect(problemIn(other)).toMatchObject({ sent: 'maybe', message: { id: messageIn(first).id, status: 'sending' } })
  const repeat = gateway.send(sms('one'), { key: 'c1-running' })
  outcome.resolve(accepted())
  expect(told(await repeat)).toBe('201 sent')
  expect(gateway.provider.calls).toHaveLength(1)
})

test.each([
  ['to', { to: '+447700900199' }],
  ['from', { from: 'OTHER' }],
  ['channel', { channel: 'chat' }],
  ['sendAt', { sendAt: '2020-01-01T00:00:00Z' }],
  ['notAfter', { notAfter: '2099-01-01T00:00:00Z' }],
])('C2 another %s under the same key is 422', async (name, change) => {
  await gateway.send(sms('c2'), { key: `c2-${name}` })
  expect(told(await gateway.send(sms('c2', change), { key: `c2-${name}` }))).toBe('422 idempotency-key-reused')
})

test('C2 members reordered, white space, escapes and other metadata make the same request', async () => {
  const first = await gateway.send(sms('A text', { metadata: { team: 'one' } }), { key: 'c2' })
  const again = await gateway.send(
    `{ "metadata":{"team":"two"}, "content":{"text":"\\u0041 text"},\n "to":"+447700900123","channel":"sms"}`,
    { key: 'c2' },
  )
  expect([again.body, isReplay(again)]).toEqual([first.body, true])
})

test('B1 conversation and reference make a key that is shown, marked as derived, and finds the message again', async () => {
  const body = sms('secret text', { conversation: 'b1', reference: 'r1' })
  const first = await gateway.send(body)
  const again = await gateway.send(body)
  expect(first.statusCode).toBe(201)
  expect(messageIn(first)).toMatchObject({ keySource: 'derived' })
  const key = messageIn(first).idempotencyKey
  expect(key).toMatch(/^derived:v1:[0-9a-f]{64}$/)
  expect(first.headers).toMatchObject({ 'idempotency-key': `"${key}"`, 'idempotency-key-source': 'derived' })
  expect([again.body, isReplay(again)]).toEqual([first.body, true])
  const echoed = await gateway.send(body, { key: `"${key}"` })
  expect([echoed.body, isReplay(echoed)]).toEqual([first.body, true])
  expect(gateway.provider.calls).toHaveLength(1)
})

test('B1 a repeat that lost its header on the way finds the message, and so does one that gained another', async () => {
  const body = sms('lost', { conversation: 'b1-lost', reference: 'r1' })
  const first = await gateway.send(body, { key: 'b1-had-a-key' })
  for (const key of [{}, { key: 'b1-another-key' }, { key: 'b1-had-a-key' }]) {
    const again = await gateway.send(body, key)
    expect([again.statusCode, again.body, isReplay(again)]).toEqual([201, first.body, true])
  }
  expect(gateway.provider.calls).toHaveLength(1)
  const other = await gateway.send(sms('other', { conversation: 'b1-lost', reference: 'r1' }), { key: 'b1-third' })
  expect(told(other)).toBe('422 idempotency-key-reused')
  expect(await rowsOf('b1-third')).toBe(0)
})

test('B1 a key that was answered with a message never begins another one', async () => {
  const body = sms('named', { conversation: 'b1-named', reference: 'r1' })
  const first = await gateway.send(body)
  expect((await gateway.send(body, { key: 'b1-named' })).body).toBe(first.body)
  const other = await gateway.send(sms('other'), { key: 'b1-named' })
  expect([told(other), problemIn(other).message?.id]).toEqual(['422 idempotency-key-reused', messageIn(first).id])
  const found = await gateway.get('/v1/idempotency-keys/b1-named')
  expect(found.json()).toMatchObject({ sent: 'yes', message: { id: messageIn(first).id } })
  expect(gateway.provider.calls).toHaveLength(1)
})

test('B1 a key of one message and the reference of another: the key decides, and the other is not touched', async () => {
  const [one, two] = [sms('one'), sms('two', { conversation: 'b1-cross', reference: 'r1' })]
  const first = await gateway.send(one, { key: 'b1-cross' })
  const second = await gateway.send(two)
  const crossed = await gateway.send(two, { key: 'b1-cross' })
  expect([told(crossed), problemIn(crossed).message?.id]).toEqual(['422 idempotency-key-reused', messageIn(first).id])
  expect((await gateway.send(one, { key: 'b1-cross' })).body).toBe(first.body)
  expect((await gateway.send(two)).body).toBe(second.body)
  expect(gateway.provider.calls).toHaveLength(2)
})

test('B1 a header gained and a header lost at the same moment make one call', async () => {
  const body = sms('twins', { conversation: 'b1-twins', reference: 'r1' })
  const asked = Array.from({ length: 24 }, async (_, i) =>
    gateway.send(body, i % 3 === 0 ? {} : { key: `b1-twin-${i % 3}` }),
  )
  const answers = await Promise.all(asked)
  expect(new Set(answers.map(({ statusCode, body: bytes }) => `${statusCode} ${bytes}`)).size).toBe(1)
  expect(answers.filter((answer) => !isReplay(answer))).toHaveLength(1)
  expect(gateway.provider.calls).toHaveLength(1)
})

test('B1 parts that collide by concatenation are two messages', async () => {
  const one = await gateway.send(sms('b1', { conversation: 'a:b', reference: 'c' }))
  const two = await gateway.send(sms('b1', { conversation: 'a', reference: 'b:c' }))
  expect([one.statusCode, two.statusCode]).toEqual([201, 201])
  expect(messageIn(one).idempotencyKey).not.toBe(messageIn(two).idempotencyKey)
  expect(gateway.provider.calls).toHaveLength(2)
})

test('B1 without header and reference there is no key: 400, nothing claimed', async () => {
  const count = async (): Promise<unknown> =>
    (await database.query('SELECT count(*)::int AS n FROM idempotency_keys'))[0]
  const before = await count()
  for (const body of [sms('no key'), sms('no key', { conversation: 'b1' }), sms('no key', { reference: 'r' })])
    expect(told(await gateway.send(body))).toBe('400 idempotency-key-required')
  expect(await count()).toEqual(before)
  expect(gateway.provider.calls).toEqual([])
})

test('B1 a derived key that names no message is 400, whatever the body would derive', async () => {
  const fake = `derived:v1:${'0'.repeat(64)}`
  const body = sms('b1', { conversation: 'b1-fake', reference: 'r' })
  for (const asked of [sms('b1'), body])
    expect(told(await gateway.send(asked, { key: fake }))).toBe('400 idempotency-key-invalid')
  expect(gateway.provider.calls).toEqual([])
})

test('B2 two equal texts in one conversation with two references are two messages', async () => {
  for (const reference of ['r1', 'r2'])
    expect(told(await gateway.send(sms('ok', { conversation: 'b2', reference })))).toBe('201 sent')
  expect(gateway.provider.calls).toHaveLength(2)
})

test('D5 a request refused by schema, size, time, provider or right claims nothing: corrected, its key is accepted', async () => {
  const key = 'd5'
  const reader = await newApiKey(gateway, 'default', { scopes: ['read'] })
  const refusals = [
    gateway.send({ ...sms('d5'), colour: 'red' }, { key }),
    gateway.send(sms('x'.repeat(1_100_000)), { key }),
    gateway.send('{"channel":"sms"', { key }),
    gateway.send(sms('d5'), { key, headers: { 'content-type': 'text/plain' } }),
    gateway.send(sms('d5', { notAfter: '2020-01-01T00:00:00Z' }), { key }),
    gateway.send(sms('d5', { provider: 'nobody' }), { key }),
    gateway.send(sms('d5'), { key, headers: reader.headers }),
  ]
  expect((await Promise.all(refusals)).map(told)).toEqual([
    '400 invalid-request',
    '413 payload-too-large',
    '400 invalid-request',
    '415 unsupported-media-type',
    '400 invalid-request',
    '422 no-provider',
    '403 forbidden',
  ])
  expect(await rowsOf(key)).toBe(0)
  expect(gateway.provider.calls).toEqual([])
  const corrected = await gateway.send(sms('d5'), { key })
  expect([told(corrected), isReplay(corrected)]).toEqual(['201 sent', false])
})

test('D1 100 equal requests at once make one call, and every other one is a replay', async () => {
  const answers = await Promise.all(Array.from({ length: 100 }, async () => gateway.send(sms('d1'), { key: 'd1' })))
  expect(new Set(answers.map(({ statusCode, body }) => `${statusCode} ${body}`)).size).toBe(1)
  expect(answers.filter((answer) => !isReplay(answer))).toHaveLength(1)
  expect(gateway.provider.calls).toHaveLength(1)
})

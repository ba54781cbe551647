/** The route of webhooks: whoever comes, with whatever body, before anything is believed (routes/webhooks.ts, H1, H2). */
import { connect } from 'node:net'
import { getExpectedTwilioSignature } from 'twilio/lib/webhooks/webhooks.js'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { AddressInfo } from 'node:net'
import type { IncomingWebhook } from '../../src/providers/provider.ts'
import { eventOf, hook, receivingProvider } from '../operations/receiving.ts'
import { problemIn, told } from '../operations/told.ts'
import { useDatabase } from '../support/database.ts'
import { fakeProvider, testGateway, until, type TestGateway } from '../support/gateway.ts'
import { receiverOf } from '../support/webhooks.ts'

const database = useDatabase()
const seen: IncomingWebhook[] = []
const publicUrl = 'https://hooks.example.com'
const twilio = { adapter: 'twilio', accountSid: `AC${'0'.repeat(32)}`, authToken: '12345', publicUrl }
const curious = receivingProvider('curious', {
  parseWebhook: (request) => {
    seen.push(request)
    return { events: [], replies: [] }
  },
})
let gateway: TestGateway
beforeAll(async () => {
  const others = [
    curious,
    fakeProvider('deaf', { parseWebhook: { lacks: 'its setting webhookSecret is missing' } }),
    fakeProvider('twilio', { parseWebhook: receiverOf(twilio).parseWebhook }),
  ]
  gateway = await testGateway(database.url, { provider: receivingProvider(), others })
})
afterAll(async () => gateway.close())

test.each([
  ['nobody', 'There is no provider of that name.'],
  ['deaf', 'This provider takes no webhooks: its setting webhookSecret is missing.'],
])('%s: 404, and why in a sentence', async (provider, detail) => {
  const answer = await hook(gateway, eventOf('x'), { provider })
  expect([told(answer), problemIn(answer).detail.startsWith(detail)]).toEqual(['404 not-found', true])
})

test.each([
  ['application/x-www-form-urlencoded', 'A=1&B=%20'],
  ['application/json; charset=latin1', '{"a":'],
  ['text/plain', ''],
  ['multipart/form-data', 'not a form'],
  ['what/ever', '\u0000'],
  [undefined, 'no type'],
])('H2 the body of %s is handed on as it came', async (type, payload) => {
  seen.length = 0
  const answer = await gateway.app.inject({
    method: 'POST',
    url: '/v1/providers/curious/webhooks?a=%20b&a=c',
    headers: type === undefined ? {} : { 'content-type': type },
    payload: Buffer.from(payload),
  })
  expect([answer.statusCode, answer.body, answer.headers['cache-control']]).toEqual([200, '', 'no-store'])
  expect(seen.map(({ rawBody, url, query }) => [rawBody.toString(), url, query.getAll('a')])).toEqual([
    [payload, '/v1/providers/curious/webhooks?a=%20b&a=c', [' b', 'c']],
  ])
})

test('a text message that Twilio hands on is answered as it wants to read it: with nothing to say', async () => {
  const url = '/v1/providers/twilio/webhooks'
  const fields = { MessageSid: 'SM1', From: '+447700900123', To: '+447700900000', Body: 'a & b' }
  const answer = await gateway.app.inject({
    method: 'POST',
    url,
    headers: {
      'x-twilio-signature': getExpectedTwilioSignature('12345', publicUrl + url, fields),
      'content-type': 'application/x-www-form-urlencoded',
    },
    payload: new URLSearchParams(fields).toString(),
  })
  const { statusCode, headers, body } = answer
  expect([statusCode, headers['content-type'], body]).toEqual([200, 'text/xml; charset=utf-8', '<Response/>'])
})

test('a body that is too long: 413, whoever sends it; of any other method: 404', async () => {
  const payload = Buffer.alloc(262_145, 'x')
  const long = await gateway.app.inject({ method: 'POST', url: '/v1/providers/curious/webhooks', payload })
  expect([told(long), problemIn(long).detail.slice(0, 29)]).toEqual([
    '413 payload-too-large',
    'A body may have 262144 bytes.',
  ])
  const full = await gateway.app.inject({
    method: 'POST',
    url: '/v1/providers/curious/webhooks',
    payload: payload.subarray(1),
  })
  expect(full.statusCode).toBe(200)
  const get = await gateway.app.inject({ method: 'GET', url: '/v1/providers/curious/webhooks' })
  expect(told(get)).toBe('404 not-found')
})

test('the bodies of callers are read as before', async () => {
  const answer = await gateway.app.inject({
    method: 'POST',
    url: '/v1/messages',
    headers: { 'content-type': 'text/plain', authorization: `Bearer so_live_test_${'k'.repeat(40)}` },
    payload: '{}',
  })
  expect(told(answer)).toBe('415 unsupported-media-type')
})

test('H1 so many of one provider at one time, and no more: 503 before a byte of the body is read; others are let in', async () => {
  await gateway.app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = gateway.app.server.address() as AddressInfo
  // More than there is room for: a knock in between may take a place, and whoever comes then is refused for good.
  const open = Array.from({ length: 96 }, () => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write('POST /v1/providers/curious/webhooks HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf ')
    return socket
  })
  onTestFinished(() => open.forEach((socket) => socket.destroy()))
  const knock = async () => hook(gateway, '', { provider: 'curious' })
  await until(async () => (await knock()).statusCode === 503)
  const refused = await knock()
  expect([told(refused), refused.headers['retry-after']]).toEqual(['503 overloaded', '1'])
  expect((await hook(gateway, [])).statusCode).toBe(200)
  open.forEach((socket) => socket.destroy())
  await until(async () => (await knock()).statusCode === 200)
})

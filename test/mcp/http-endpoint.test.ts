/** /mcp as MCP's transports want it (src/mcp/http-endpoint.ts), on the application that is served. */
import type { InjectOptions, LightMyRequestResponse } from 'fastify'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { strangerIn } from '../../src/mcp/http-endpoint.ts'
import { openApiText } from '../../src/openapi-text.ts'
import { newApiKey } from '../operations/told.ts'
import { useDatabase } from '../support/database.ts'
import { agentKey, fakeGateway, type FakeGateway } from '../support/fake-gateway.ts'
import { apiKey, sms, testGateway, type TestGateway } from '../support/gateway.ts'

const database = useDatabase()
let gateway: TestGateway
let fake: FakeGateway
beforeAll(async () => {
  gateway = await testGateway(database.url)
  fake = await fakeGateway()
})
afterAll(async () => {
  await fake.close()
  await gateway.close()
})

const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
const ask = async (
  headers: Record<string, string> = {},
  { body = list, ...more }: InjectOptions & { body?: unknown } = {},
  key = apiKey,
  { app }: { app: TestGateway['app'] } = gateway,
): Promise<LightMyRequestResponse> =>
  app.inject({
    method: 'POST',
    url: '/mcp',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(key === '' ? {} : { authorization: `Bearer ${key}` }),
      ...headers,
    },
    payload: JSON.stringify(body),
    ...more,
  })

test('without a key, and with one that is not known, there is a 401 problem', async () => {
  for (const key of ['', `so_live_nobody_${'x'.repeat(40)}`]) {
    const answer = await ask({}, {}, key)
    expect(answer.statusCode).toBe(401)
    expect(answer.headers).toMatchObject({ 'www-authenticate': 'Bearer' })
    expect(answer.headers['content-type']).toContain('application/problem+json')
    expect(answer.json()).toMatchObject({ type: '/problems/unauthorized' })
  }
})

test('a request needs no session and gets none: tools are listed without an initialize before it (E2)', async () => {
  const answer = await ask()
  expect(answer.statusCode).toBe(200)
  expect(answer.headers).not.toHaveProperty('mcp-session-id')
  expect(answer.headers).toMatchObject({ 'cache-control': 'no-store' })
  expect(answer.json<{ result: { tools: unknown[] } }>().result.tools).toHaveLength(4)
})

test('a notification is 202 without a body; GET and DELETE are 405 and name POST (E2)', async () => {
  const noted = await ask({}, { body: { jsonrpc: '2.0', method: 'notifications/initialized' } })
  expect([noted.statusCode, noted.body]).toEqual([202, ''])
  for (const method of ['GET', 'DELETE'] as const) {
    const answer = await gateway.app.inject({
      method,
      url: '/mcp',
      headers: { authorization: `Bearer ${apiKey}`, accept: 'text/event-stream' },
    })
    expect([answer.statusCode, answer.headers['allow']]).toEqual([405, 'POST'])
  }
})

test('what is no message of the protocol is refused, and a version that is not spoken too', async () => {
  expect((await ask({}, { body: { hello: 'world' } })).statusCode).toBe(400)
  expect((await ask({}, { payload: '{"jsonrpc":"2.0","jsonrpc":"2.0"}' })).statusCode).toBe(400)
  expect((await ask({ 'content-type': 'text/plain' })).statusCode).toBe(415)
  expect((await ask({ accept: 'text/html' })).statusCode).toBe(406)
  expect((await ask({ 'mcp-protocol-version': '1999-01-01' })).statusCode).toBe(400)
  const unknown = await ask({}, { body: { ...list, method: 'tools/call', params: { name: 'send_twice' } } })
  expect(unknown.json()).toMatchObject({ error: { code: -32_602 } })
})

test.each([
  ['no Origin, as programs come', {}, 200],
  ['a page of this machine', { origin: 'http://localhost:6274' }, 200],
  ['a page of another host', { origin: 'https://evil.example' }, 403],
  ['a page from nowhere', { origin: 'null' }, 403],
  ['a name that was made to mean this machine', { origin: 'http://evil.example:3000', host: 'evil.example:3000' }, 403],
  ['such a name without an Origin', { host: 'evil.example:3000' }, 403],
  ['this machine by its address', { host: '127.0.0.1:3000' }, 200],
  ['this machine by its address, version 6', { host: '[::1]:3000' }, 200],
  ['no name at all', { host: 'a b' }, 403],
])('%s: HTTP (E3)', async (_, headers, status) => {
  expect((await ask(headers)).statusCode).toBe(status)
})

test('the name in PUBLIC_URL is one of ours (E3)', async () => {
  const public_ = { host: 'gateway.example', origin: 'https://gateway.example' }
  expect((await ask(public_, {}, agentKey, fake)).statusCode).toBe(200)
  expect((await ask({ ...public_, origin: 'http://gateway.example' }, {}, agentKey, fake)).statusCode).toBe(403)
})

test('whoever connects from elsewhere may use any name, and still no page of another host (E3)', async () => {
  const host = 'sendonce.internal:3000'
  expect(strangerIn({ host }, '10.0.0.7', null)).toBeNull()
  expect(strangerIn({ host }, '127.0.0.1', null)).toMatch(/^The Host/)
  expect(strangerIn({ host }, '::ffff:127.0.0.1', null)).toMatch(/^The Host/)
  expect(strangerIn({ host, origin: `http://${host}` }, '10.0.0.7', null)).toMatch(/^The Origin/)
})

test('tools act with the key of whoever asks: another account sees nothing, and lacks what its scopes lack (E1)', async () => {
  const sent = await gateway.send(sms('hello'), { key: 'mcp-tenants' })
  const { id } = sent.json<{ id: string }>()
  const get = { ...list, method: 'tools/call', params: { name: 'get_message', arguments: { id } } }
  type Answer = { result: { structuredContent: { message: object | null; problem: { type: string } | null } } }
  const asked = async (headers: { authorization?: string }): Promise<Answer['result']['structuredContent']> =>
    (await ask(headers, { body: get })).json<Answer>().result.structuredContent
  expect(await asked({})).toMatchObject({ message: { id, status: 'sent', said: 'hello' }, problem: null })
  const other = await newApiKey(gateway, 'other')
  expect(await asked(other.headers)).toMatchObject({ message: null, problem: { type: 'not-found' } })
  const mute = await newApiKey(gateway, 'default', { scopes: ['send'] })
  expect(await asked(mute.headers)).toMatchObject({ message: null, problem: { type: 'forbidden' } })
})

test('the OpenAPI document leaves it to the protocol', async () => {
  expect(JSON.parse(await openApiText())).not.toHaveProperty(['paths', '/mcp'])
})

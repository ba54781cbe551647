/** What is no HTTP, or almost: every answer is a problem in form, every connection ends in time, and the gateway serves on. */
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { apiKey, testGateway, until, type TestGateway } from '../support/gateway.ts'
import { exchange, type Reply } from './raw-client.ts'

const database = useDatabase()
let gateway: TestGateway
let port = 0
beforeAll(async () => {
  gateway = await testGateway(database.url)
  await gateway.app.listen({ host: '127.0.0.1', port: 0 })
  port = (gateway.app.server.address() as AddressInfo).port
})
afterAll(async () => gateway.close())

const boundMs = 5_000
const ask = async (request: string): Promise<Reply[]> => exchange(port, request, boundMs)
const said = (reply: Reply | undefined): unknown => [
  reply?.status,
  reply?.headers.get('content-type')?.[0]?.split(';')[0],
]
const problem = 'application/problem+json'

const auth = `Host: gateway\r\nAuthorization: Bearer ${apiKey}\r\n`
const json = '{"channel":"sms","to":"+447700900123","content":{"text":"raw"}}'
const get = (...lines: string[]): string =>
  ['GET /v1/messages HTTP/1.1', `${auth}Connection: close`, ...lines, '', ''].join('\r\n')
/** A POST of a message, whose framing and body are the case's. */
const post = (lines: string[], body: string): string =>
  ['POST /v1/messages HTTP/1.1', `${auth}Content-Type: application/json`, ...lines, '', body].join('\r\n')
const length = `Content-Length: ${json.length}`

/** What is wrong with the one answer that there should be: a problem, in form. */
function wrongWith(replies: Reply[], status: number): string[] {
  const [reply, ...more] = replies
  if (reply === undefined || more.length > 0) return [`${replies.length} answers`]
  if (reply.headers.get('content-type')?.[0]?.split(';')[0] !== problem) return [`no problem: ${reply.status}`]
  const told = JSON.parse(reply.body) as Record<string, unknown>
  const members = ['type', 'title', 'status', 'detail', 'instance', 'retryable'].filter((name) => !(name in told))
  return [
    ...members.map((name) => `without ${name}`),
    ...(reply.status === status && told['status'] === status ? [] : [`${reply.status}: ${reply.body}`]),
    ...(told['instance'] === `urn:uuid:${reply.headers.get('x-request-id')?.join()}` ? [] : ['another request id']),
    ...(reply.headers.get('cache-control')?.join() === 'no-store' ? [] : ['may be cached']),
  ]
}

/** Serves on, and took nothing for a bug of its own. */
async function isWell(): Promise<boolean> {
  const [alive] = await ask('GET /livez HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n')
  return alive?.status === 200 && !gateway.logged.some((line) => /"level":(50|60)/.test(line))
}

describe('what cannot be read is answered with a problem, and the connection ends', () => {
  test.each<[string, number, string]>([
    ['a greeting of TLS', 400, '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
    ['the preface of HTTP/2', 400, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['a word', 400, 'hello\r\n\r\n'],
    ['a method that is none', 400, get().replace('GET', 'G\u00cbT')],
    ['line feeds alone', 400, get().replaceAll('\r\n', '\n')],
    ['a space in the path', 400, get().replace('/v1/', '/v1/ ')],
    ['a header without a colon', 400, get('nocolon')],
    ['a space before the colon', 400, get('X : y')],
    ['a folded header', 400, get('X: y', ' z')],
    ['U+0000 in a header', 400, get('X: y\u0000z')],
    ['a control character in a key', 400, post(['Idempotency-Key: a\u0001b', length], json)],
    ['a very long header', 431, get(`X: ${'y'.repeat(20_000)}`)],
    ['very many headers', 431, get(...Array.from({ length: 3_000 }, () => 'X: y'))],
    ['a very long path', 431, get().replace('messages', 'm'.repeat(20_000))],
    ['no Host', 400, get().replace('Host: gateway\r\n', '')],
    ['two Hosts', 400, get('Host: other')],
    ['two lengths', 400, post([length, 'Content-Length: 1'], json)],
    ['a length that is no number', 400, post(['Content-Length: 1x'], json)],
    ['a negative length', 400, post(['Content-Length: -1'], json)],
    ['a length and chunks', 400, post([length, 'Transfer-Encoding: chunked'], `0\r\n\r\n${json}`)],
    ['chunks and a length', 400, post(['Transfer-Encoding: chunked', length], `0\r\n\r\n${json}`)],
    ['a transfer encoding without an end', 400, post(['Transfer-Encoding: gzip'], json)],
    ['a chunk whose size is none', 400, post(['Transfer-Encoding: chunked'], `zz\r\n${json}\r\n0\r\n\r\n`)],
    ['a second chunk whose size is none', 400, post(['Transfer-Encoding: chunked'], `1\r\n{\r\nzz\r\n${json}`)],
    ['a chunk that is longer than its size', 400, post(['Transfer-Encoding: chunked'], `1\r\n${json}\r\n0\r\n\r\n`)],
    ['a body beyond the limit by its length', 413, post(['Content-Length: 2000000', 'Connection: close'], '{')],
    [
      'a body beyond the limit in chunks',
      413,
      post(['Transfer-Encoding: chunked', 'Connection: close'], `150000\r\n${' '.repeat(0x150000)}\r\n0\r\n\r\n`),
    ],
    ['a path that cannot be decoded', 404, get().replace('/messages', '/messages/%zz')],
    ['a path that is no UTF-8', 404, get().replace('/messages', '/idempotency-keys/%ff')],
  ])('%s: %i', async (_, status, request) => {
    expect(wrongWith(await ask(request), status)).toEqual([])
    expect([await isWell(), gateway.provider.calls]).toEqual([true, []])
  })

  test('CONNECT and an upgrade make no tunnel', async () => {
    expect(await ask(get().replace('GET /v1/messages', 'CONNECT other:443'))).toEqual([])
    const upgrade = get('Upgrade: websocket').replace('Connection: close', 'Connection: upgrade, close')
    expect((await ask(upgrade)).map(said)).toEqual([[200, 'application/json']])
    expect(await isWell()).toBe(true)
  })

  test('an expectation that is not known is not asked for', async () => {
    const replies = await ask(get('Expect: 200-ok'))
    expect(replies.map(said)).toEqual([[200, 'application/json']])
  })

  test('HTTP/1.0 needs no Host', async () => {
    const replies = await ask(`GET /v1/messages HTTP/1.0\r\nAuthorization: Bearer ${apiKey}\r\n\r\n`)
    expect(replies.map(said)).toEqual([[200, 'application/json']])
  })
})

describe('two Idempotency-Key lines', () => {
  test.each([
    ['different ones', ['Idempotency-Key: raw-1', 'Idempotency-Key: raw-2']],
    ['equal ones', ['Idempotency-Key: raw-1', 'idempotency-key: raw-1']],
    ['a second one that is empty', ['Idempotency-Key: raw-1', 'Idempotency-Key:']],
    ['ones apart', ['Idempotency-Key: raw-1', 'X: y', 'IDEMPOTENCY-KEY: "raw-1"']],
  ])('are refused, and nothing is sent: %s', async (_, keys) => {
    const replies = await ask(post([...keys, length, 'Connection: close'], json))
    expect(wrongWith(replies, 400)).toEqual([])
    expect(replies[0]?.body).toContain('/problems/idempotency-key-invalid')
    expect(gateway.provider.calls).toEqual([])
  })

  test('a key in the trailers of a body in chunks is no key', async () => {
    const chunks = `${json.length.toString(16)}\r\n${json}\r\n0\r\nIdempotency-Key: raw-trailer\r\n\r\n`
    const [answer] = await ask(post(['Transfer-Encoding: chunked', 'Connection: close'], chunks))
    expect(answer?.body).toContain('/problems/idempotency-key-required')
  })
})

describe('behind a valid request', () => {
  const send = (key: string, ...lines: string[]): string => post([`Idempotency-Key: ${key}`, length, ...lines], json)

  test.each([
    ['text', 'garbage\r\n\r\n'],
    ['bytes', '\u0000\u00ff\u0016\u0003'],
    ['half a request', 'GET /livez HTTP/1.1\r\nHo:st\u0001'],
  ])('stray bytes change nothing of its answer, and end the connection: %s', async (name, stray) => {
    const replies = await ask(send(`raw-stray-${name.replaceAll(' ', '-')}`) + stray)
    expect(replies.map(said)).toEqual([[201, 'application/json']])
    expect(await isWell()).toBe(true)
  })

  test('a second valid one is answered after it, in order', async () => {
    const before = gateway.provider.calls.length
    const replies = await ask(send('raw-pipeline') + send('raw-pipeline', 'Connection: close'))
    expect(replies.map(said)).toEqual([
      [201, 'application/json'],
      [201, 'application/json'],
    ])
    expect(replies[1]?.body).toBe(replies[0]?.body)
    expect(replies[1]?.headers.get('idempotent-replayed')).toEqual(['true'])
    expect(gateway.provider.calls).toHaveLength(before + 1)
  })

  test('an extra byte of the body is not read as part of it', async () => {
    const [answer] = await ask(send('raw-extra', 'Connection: close') + ' ')
    expect(said(answer)).toEqual([201, 'application/json'])
  })
})

describe('a client that is slow on purpose', () => {
  let slow: TestGateway
  let slowPort = 0
  beforeAll(async () => {
    slow = await testGateway(database.url)
    await slow.app.listen({ host: '127.0.0.1', port: 0 })
    slowPort = (slow.app.server.address() as AddressInfo).port
  })
  afterAll(async () => slow.close())
  const connections = async (): Promise<number> =>
    new Promise((counted) => slow.app.server.getConnections((_, count) => counted(count)))

  const requests = {
    'nothing of a request line': 'GE',
    'half of a header': get().slice(0, 60),
    'a header without its end': get().slice(0, -2),
    'nothing of the body': post([length], ''),
    'half of the body': post([length], json.slice(0, 9)),
    'half of a chunk': post(['Transfer-Encoding: chunked'], '3f\r\n{"chan'),
    'no word at all': '',
  }

  test('is told so and cut in time, though it does not hang up', async () => {
    const { server } = slow.app
    expect([server.headersTimeout, server.requestTimeout]).toEqual([10_000, 30_000])
    Object.assign(server, { headersTimeout: 200, requestTimeout: 200 }) // the same, sooner
    const wrong = Object.entries(requests).map(async ([name, request]) => {
      const replies = await exchange(slowPort, request, boundMs, true)
      return [name, wrongWith(replies, 408)]
    })
    expect(await Promise.all(wrong)).toEqual(Object.keys(requests).map((name) => [name, []]))
    await until(async () => (await connections()) === 0)
  })
})

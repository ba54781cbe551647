/**
 * What proves that no byte was sent: how a call can end, on the undici that is pinned. Each row is one call to a server
 * that misbehaves in one way; what must hold in all rows is asserted below the table. H1 to H4 are those of
 * http-outcome.ts. Where an upgrade of undici changes a row, understand the new row before you accept it.
 */
import { subscribe } from 'node:diagnostics_channel'
import { readdirSync, readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { array, assert as holds, asyncProperty, constantFrom } from 'fast-check'
import { Agent, buildConnector } from 'undici'
import { expect, test, vi } from 'vitest'
import type { Outcome } from '../../src/core/outcome.ts'
import { agentFor, callProvider } from '../../src/providers/http-outcome.ts'
import { type CallResult, judgeCall } from '../../src/providers/judge-answer.ts'
import type { AnswerRules, RenderedRequest, WriteGate } from '../../src/providers/provider.ts'
import { blindCapabilities } from '../support/attempt-context.ts'
import {
  afterRequest,
  atAccept,
  atFirstBytes,
  closes,
  floods,
  http,
  resets,
  says,
  type Script,
  type ScriptedServer,
  scriptedServer,
  silentServer,
  staysSilent,
} from '../support/scripted-server.ts'

/** How often undici said that it writes a request, in this process. */
let written = 0
subscribe('undici:client:sendHeaders', () => (written += 1))

/** For the calls that are to run out of time, and for those that are not, however slow the machine. */
const brief = { connectTimeoutMs: 250, answerTimeoutMs: 250 }
const patient = { connectTimeoutMs: 3000, answerTimeoutMs: 3000 }
const agentOf = (concurrency: number, times = patient) => agentFor({ ...times, concurrency })
const open: WriteGate = () => true
const requestTo = (origin: string, more: Partial<RenderedRequest> = {}): RenderedRequest => ({
  origin,
  method: 'POST',
  path: '/messages',
  headers: { 'content-type': 'application/json' },
  body: '{"x":1}',
  ...more,
})
const copiesIn = (wire: string, path = '/messages'): number => wire.split(`POST ${path} HTTP/1.1\r\n`).length - 1

const rules: AnswerRules = {
  isAccepted: (status) => status === 201,
  messageIdOf: (body) => (body as { id?: string } | undefined)?.id ?? null,
  errorCodeOf: (body) => (body as { code?: string } | undefined)?.code ?? null,
  codes: { busy: { means: 'refused_for_now', statuses: [503], wording: 'Not accepted, try later' } },
}
const created = http('201 Created', '{"id":"m1"}')
const half = http('201 Created', '{"id":"canary', ['content-length: 100'])
const zipped = gzipSync('{"id":"m1"}')

interface Row {
  readonly name: string
  readonly peer?: Script
  readonly to?: (server: ScriptedServer) => string | Promise<string>
  readonly request?: Partial<RenderedRequest>
  readonly gate?: WriteGate
  readonly phase: CallResult['phase']
  readonly code: string | RegExp | null
  readonly outcome: Outcome['kind']
  /** What reached the server: nothing, the hello of a TLS handshake, or the request (once). */
  readonly wire: 'nothing' | 'hello' | 'request'
  readonly id?: string
  /** For time-outs: when it must end, give or take 250 ms. */
  readonly afterMs?: number
}
const notBegun = { phase: 'not_begun', outcome: 'not_sent', wire: 'nothing' } as const
const begun = { phase: 'begun', outcome: 'unknown', wire: 'request' } as const
const answered = { phase: 'answered', wire: 'request' } as const
const accepted = { ...answered, outcome: 'accepted' } as const
const tls = (server: ScriptedServer): string => server.tlsOrigin
const shutServer = (server: ScriptedServer): Promise<string> => server.close().then(() => server.origin)
const noSuchName = /^(ENOTFOUND|EAI_AGAIN|connect time-out)$/ // the last where the resolver itself does not answer
const alert = Buffer.from([0x15, 3, 3, 0, 2, 2, 40]) // TLS: fatal, handshake failure
const invalid = { ...notBegun, code: 'UND_ERR_INVALID_ARG' }

// prettier-ignore
const rows: readonly Row[] = [
  // Before the connection stands
  { name: 'a refused connection', to: shutServer, ...notBegun, code: 'ECONNREFUSED' },
  { name: 'a name that is not found', to: () => 'http://nobody.invalid', ...notBegun, code: noSuchName },
  { name: 'a reset at accept', peer: atAccept(resets), ...notBegun, code: 'ECONNRESET' },
  // A listening socket with a full backlog is not to be had reliably: connecting hangs in the handshake instead.
  { name: 'a handshake that is not answered', to: tls, peer: atFirstBytes(staysSilent), ...notBegun, wire: 'hello', code: 'connect time-out', afterMs: 250 },
  { name: 'a close in the handshake', to: tls, peer: atFirstBytes(closes), ...notBegun, wire: 'hello', code: 'ECONNRESET' },
  { name: 'a reset in the handshake', to: tls, peer: atFirstBytes(resets), ...notBegun, wire: 'hello', code: 'ECONNRESET' },
  { name: 'a refused handshake', to: tls, peer: atFirstBytes(says(alert, closes)), ...notBegun, wire: 'hello', code: /HANDSHAKE_FAILURE/ },
  { name: 'plain HTTP in the handshake', to: tls, peer: atFirstBytes(says(created, closes)), ...notBegun, wire: 'hello', code: 'ERR_SSL_WRONG_VERSION_NUMBER' },
  // What undici or we refuse
  { name: 'a header with CR LF', request: { headers: { to: 'a\r\nx: canary' } }, ...invalid },
  { name: 'a header beyond latin-1', request: { headers: { to: '漢字' } }, ...invalid },
  { name: 'a path with CR LF', request: { path: '/messages\r\nx: y' }, ...invalid },
  { name: 'a path with a blank', request: { path: '/a b' }, ...invalid },
  { name: 'an origin that is none', to: () => 'ftp://127.0.0.1', ...invalid },
  { name: 'a shut gate', gate: () => false, ...notBegun, code: 'write gate shut' },
  { name: 'a gate that throws', gate: () => { throw new RangeError('canary') }, ...notBegun, code: 'RangeError' },
  // Nothing was read
  { name: 'a FIN at accept', peer: atAccept(closes), ...begun, code: 'UND_ERR_SOCKET' },
  { name: 'a close at accept, unread', peer: atAccept((socket) => socket.destroy()), ...begun, wire: 'nothing', code: 'UND_ERR_SOCKET' },
  { name: 'a close after the request', peer: afterRequest(closes), ...begun, code: 'UND_ERR_SOCKET' },
  { name: 'a reset after the request', peer: afterRequest(resets), ...begun, code: 'ECONNRESET' },
  { name: 'no answer', peer: afterRequest(staysSilent), ...begun, code: 'answer time-out', afterMs: 250 },
  { name: 'another protocol', peer: afterRequest(says('SSH-2.0-canary\r\n')), ...begun, code: 'HTTPParserError' },
  { name: 'a cut status line', peer: afterRequest(says('HTTP/1.1 20', closes)), ...begun, code: 'UND_ERR_SOCKET' },
  { name: 'a cut header', peer: afterRequest(says('HTTP/1.1 201 Created\r\nx: canary', closes)), ...begun, code: 'UND_ERR_SOCKET' },
  { name: 'headers beyond 16 KiB', peer: afterRequest(says(http('201 Created', '', [`x: ${'y'.repeat(20_000)}`]))), ...begun, code: 'UND_ERR_HEADERS_OVERFLOW' },
  { name: 'two lengths', peer: afterRequest(says(http('201 Created', '{}', ['content-length: 2', 'content-length: 3']))), ...begun, code: 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH' },
  { name: 'status 099', peer: afterRequest(says(http('099 Nothing'))), ...begun, code: 'ERR_ASSERTION' },
  // 1xx
  { name: 'a 100 Continue that nobody asked for', peer: afterRequest(says(`HTTP/1.1 100 Continue\r\n\r\n${created}`)), ...begun, code: 'UND_ERR_SOCKET' },
  { name: 'an upgrade that nobody asked for', peer: afterRequest(says('HTTP/1.1 101 Go\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n')), ...begun, code: 'UND_ERR_SOCKET' },
  { name: 'a flood of 102', peer: afterRequest(floods('HTTP/1.1 102 Processing\r\n\r\n')), ...begun, code: 'answer time-out', afterMs: 250 },
  { name: 'a flood of 103', peer: afterRequest(floods('HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n')), ...begun, code: 'answer time-out', afterMs: 250 },
  { name: 'a thousand 103, then 201', peer: afterRequest(says('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(1000) + created)), ...accepted, id: 'm1', code: null },
  // Something was read
  { name: '201 with its body', peer: afterRequest(says(created)), ...accepted, id: 'm1', code: null },
  { name: '201 of HTTP/1.0', peer: afterRequest(says('HTTP/1.0 201 Created\r\n\r\n{"id":"m1"}', closes)), ...accepted, id: 'm1', code: null },
  { name: '201 whose body stalls', peer: afterRequest(says(half)), ...accepted, code: 'answer time-out', afterMs: 250 },
  { name: '201 whose body is cut', peer: afterRequest(says(half, closes)), ...accepted, code: 'UND_ERR_SOCKET' },
  { name: '201 whose body is reset', peer: afterRequest(says(half, resets)), ...accepted, code: 'ECONNRESET' },
  { name: '201 whose chunks are cut', peer: afterRequest(says(http('201 Created', '5\r\n{"id"\r\n', ['transfer-encoding: chunked']), closes)), ...accepted, code: 'UND_ERR_SOCKET' },
  { name: '201 without a length, cut', peer: afterRequest(says('HTTP/1.1 201 Created\r\n\r\n{"id":', closes)), ...accepted, code: null },
  { name: '201 with a body beyond 64 KiB', peer: afterRequest(says(http('201 Created', `{"id":"${'y'.repeat(70_000)}"}`))), ...accepted, code: 'UND_ERR_RES_EXCEEDED_MAX_SIZE' },
  { name: '201 with a gzip body, not unpacked', peer: afterRequest(says(http('201 Created', '', ['content-encoding: gzip', `content-length: ${zipped.length}`]), says(zipped))), ...accepted, code: null },
  { name: '201 with a header __proto__', peer: afterRequest(says(http('201 Created', '{"id":"m1"}', ['__proto__: x']))), ...accepted, id: 'm1', code: null },
  { name: '307, not followed', peer: afterRequest(says(http('307 Go', '', ['location: /messages'])), says(created)), ...answered, outcome: 'unknown', code: null },
  { name: '503 of a proxy', peer: afterRequest(says(http('503 Busy', '<p>canary', ['retry-after: 1']))), ...answered, outcome: 'unknown', code: null },
  { name: "503 with the provider's code, cut behind it", peer: afterRequest(says(http('503 Busy', '{"code":"busy"}', ['content-length: 99']), closes)), ...answered, outcome: 'unknown', code: 'UND_ERR_SOCKET' },
  { name: "503 with the provider's code", peer: afterRequest(says(http('503 Busy', '{"code":"busy"}'))), ...answered, outcome: 'not_sent', code: null },
]

test.each(rows)('$name is $phase, $outcome', async (row) => {
  const server = await scriptedServer(row.peer ?? atAccept(staysSilent))
  const origin = await (row.to ?? ((peer) => peer.origin))(server)
  const times = row.afterMs === undefined ? patient : brief
  const agent = agentOf(2, times)
  const writtenBefore = written
  const gate = vi.fn<WriteGate>(row.gate ?? open)
  const startMs = performance.now()
  const result = await callProvider(agent, requestTo(origin, row.request), times, gate)
  const tookMs = performance.now() - startMs
  if (row.afterMs !== undefined && row.phase !== 'not_begun') await server.drained() // we hang up: no slot stays taken
  await agent.destroy()
  await server.drained()
  await server.close()

  expect(result.phase).toBe(row.phase)
  expect(result.code ?? '').toMatch(row.code ?? /^$/)
  const outcome = judgeCall(result, rules, blindCapabilities('status'))
  expect(outcome).toMatchObject({ kind: row.outcome, evidence: { phase: row.phase } })
  expect(outcome.kind === 'accepted' ? outcome.providerMessageId : null).toBe(row.id ?? null)
  expect(JSON.stringify(outcome.evidence)).not.toContain('canary')
  // H1, H4: undici wrote it once if it had begun, else never; the wire agrees.
  expect(written - writtenBefore).toBe(row.phase === 'not_begun' ? 0 : 1)
  expect(copiesIn(server.received())).toBe(row.wire === 'request' ? 1 : 0)
  expect(server.received().slice(0, 1)).toBe({ nothing: '', hello: '\x16', request: 'P' }[row.wire])
  // H2: the gate is asked once, and only where bytes could follow.
  expect(gate).toHaveBeenCalledTimes(row.phase === 'not_begun' && row.gate === undefined ? 0 : 1)
  // H3: time-outs are ours, and exact.
  const lateMs = tookMs - (row.afterMs ?? tookMs)
  expect(lateMs > -5 && lateMs < 250).toBe(true)
  // A body that did not come whole is marked, and no proof where the body is the verdict; none is long.
  const { body, complete } = result.phase === 'answered' ? result.answer : { body: '', complete: false }
  expect(complete).toBe(result.phase === 'answered' && result.code === null)
  expect(complete || judgeCall(result, rules, blindCapabilities('body')).kind !== 'accepted').toBe(true)
  expect(body.length).toBeLessThanOrEqual(64 * 1024)
})

test('a call given up behind a busy connection never reaches the server, also after the first call has ended', async () => {
  const { server, last } = await silentServer()
  const agent = agentOf(1)
  const call = (path: string, times = patient) => callProvider(agent, requestTo(server.origin, { path }), times, open)
  const first = call('/first')
  expect(await call('/given-up', brief)).toEqual({ phase: 'not_begun', code: 'connect time-out' })
  last().write(created)
  expect(await first).toMatchObject({ phase: 'answered', code: null })
  const third = call('/third') // queued behind the one given up: once it is written, that one's turn is over
  await vi.waitUntil(() => copiesIn(server.received(), '/third') === 1)
  last().write(created)
  expect(await third).toMatchObject({ phase: 'answered' })
  await agent.destroy()
  await server.drained()
  expect(server.received()).not.toContain('given-up')
  expect(copiesIn(server.received(), '/first')).toBe(1)
  await server.close()
})

test('a connection that comes up after its call was given up carries nothing', async () => {
  const server = await scriptedServer(afterRequest(says(created)))
  const connector = buildConnector({})
  const held: (() => void)[] = []
  const late = new Agent({ connect: (to, done) => connector(to, (...args) => held.push(() => done(...args))) })
  let asked = false
  const result = await callProvider(late, requestTo(server.origin), brief, () => (asked = true))
  expect(result).toEqual({ phase: 'not_begun', code: 'connect time-out' })
  expect(held).toHaveLength(1)
  for (const comesUp of held) comesUp()
  await server.drained() // the connection is dropped at once: it is not kept for others
  expect({ asked, received: server.received() }).toEqual({ asked: false, received: '' })
  await late.destroy()
  await server.close()
})

const closings: [string, (socket: Socket) => void][] = [
  ['ended', (socket) => socket.end()],
  ['closed', (socket) => socket.destroy()],
  ['reset', (socket) => socket.resetAndDestroy()],
]
/** The first call is answered on a connection that stays; the second is written as `closing` happens to it. */
async function secondOnKeptConnection(closing: (socket: Socket) => void, when: 'idle' | 'as it is written') {
  const { server, last } = await silentServer()
  const agent = agentOf(1)
  const first = callProvider(agent, requestTo(server.origin, { path: '/first' }), patient, open)
  await vi.waitUntil(() => copiesIn(server.received(), '/first') === 1)
  last().write(created)
  await first
  const closed = new Promise((resolve) => agent.once('disconnect', resolve))
  if (when === 'idle') {
    closing(last())
    await closed
  }
  const second = callProvider(agent, requestTo(server.origin, { path: '/second' }), patient, () => {
    if (when === 'as it is written') closing(last()) // in the turn of the write: the client cannot know of it
    return true
  })
  if (when === 'idle') {
    await vi.waitUntil(() => copiesIn(server.received(), '/second') === 1)
    last().write(created)
  }
  const result = await second
  await agent.destroy()
  await server.drained()
  await server.close()
  return { result, copies: copiesIn(server.received(), '/second'), connections: server.connections() }
}

test.each(closings)('a kept connection %s as the next call is written: begun, not written again', async (_, act) => {
  const { result, copies, connections } = await secondOnKeptConnection(act, 'as it is written')
  expect(result.phase).toBe('begun')
  expect(copies).toBeLessThanOrEqual(1)
  expect(connections).toBe(1)
})

test.each(closings)('a kept connection %s while idle is not used again: the call goes out once', async (_, act) => {
  const { result, copies, connections } = await secondOnKeptConnection(act, 'idle')
  expect({ phase: result.phase, copies, connections }).toEqual({ phase: 'answered', copies: 1, connections: 2 })
})

const peers = { answers: says(created), closes, resets, cuts: says(half, closes), 'is silent': staysSilent }
const fates = [...Object.keys(peers), 'finds its gate shut'] as (keyof typeof peers | 'finds its gate shut')[]

test('many calls at once: each is told what happened to itself, and none is written twice', async () => {
  const history = array(constantFrom(...fates), { minLength: 12, maxLength: 40 })
  const check = async (calls: readonly (typeof fates)[number][]): Promise<void> => {
    const server = await scriptedServer(({ socket, onRequest }) =>
      onRequest((_, request) => peers[calls[Number(/\d+/.exec(request)?.[0])] as keyof typeof peers](socket)),
    )
    const agent = agentOf(4)
    const writtenBefore = written
    const short = { connectTimeoutMs: 100, answerTimeoutMs: 60 }
    const results = await Promise.all(
      calls.map((fate, n) =>
        callProvider(agent, requestTo(server.origin, { path: `/${n}` }), short, () => fate !== 'finds its gate shut'),
      ),
    )
    await agent.destroy()
    await server.drained()
    await server.close()
    const told = results.map(({ phase }) => phase)
    const arrived = calls.map((_, n) => copiesIn(server.received(), `/${n}`))
    expect(told.map((phase, n) => phase === 'not_begun' && arrived[n] !== 0)).not.toContain(true)
    expect(told.map((phase, n) => phase !== 'not_begun' && calls[n] === 'finds its gate shut')).not.toContain(true)
    expect(Math.max(...arrived)).toBeLessThanOrEqual(1)
    expect(told.filter((phase) => phase !== 'not_begun')).toHaveLength(written - writtenBefore)
  }
  await holds(asyncProperty(history, check), { numRuns: 8 })
})

test('nothing in src retries, follows or fetches by itself (H4)', () => {
  const forbidden = /RetryAgent|RetryHandler|RedirectHandler|interceptors\.(retry|redirect)|\bfetch\s*\(/
  const root = join(import.meta.dirname, '../../src')
  const sources = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.includes('generated'))
    .map((name) => ({ name, found: forbidden.exec(readFileSync(join(root, name), 'utf8'))?.[0] }))
  expect(sources.map(({ name }) => name)).toContain(join('providers', 'http-outcome.ts'))
  expect(sources.filter(({ found }) => found !== undefined)).toEqual([])
})

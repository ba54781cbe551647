/**
 * The sandbox: a provider that can be told by its recipient to fail (magic.ts), over real HTTP, so that the gateway's
 * own calls meet what they would meet outside. It is `blind`: it knows no keys, and what is sent twice is accepted twice
 * and counted twice. It shares no state with a gateway, also when it runs in the same process.
 *
 * S1. What a request did is in the ledger, on disk, before the first byte of an answer.
 * S2. Which request of a message is its first is read from the ledger, so a restart does not play a fault again.
 * S3. The sandbox breaks a connection where a recipient asks for it and nowhere else: it closes no idle one, for a
 *     request that crosses such a close is lost without anybody having asked.
 */
import { randomUUID } from 'node:crypto'
import { once, setMaxListeners } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { channels, type Channel } from '../core/message-content.ts'
import { openLedger, type Ledger } from './ledger.ts'
import { accepted, magicFor, sandboxErrors, type Behaviour, type SandboxError } from './magic.ts'

export interface SandboxOptions {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  readonly ledgerFile: string
  /** How long `slow` takes to accept. */
  readonly slowMs?: number
}

export interface Sandbox {
  readonly url: string
  /** Breaks open connections, forgets what it still meant to answer, and lets the process end. */
  close(): Promise<void>
}

/** An e-mail with attachments of 20 MiB, in base64, and room. */
const maxBodyBytes = 32 * 1024 * 1024
/** How much later than the caller's time-out a late reply comes. */
const lateByMs = 1000
/** How long a caller waits that does not say so. */
const defaultAnswerTimeoutMs = 5000

export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const ledger = await openLedger(options.ledgerFile)
  const closing = new AbortController()
  setMaxListeners(0, closing.signal) // one a waiting request, and there may be many
  const stage: Stage = { ledger, slowMs: options.slowMs ?? 3000, closing: closing.signal }

  const server = createServer((request, response) => {
    handle(stage, request, response).catch((error: unknown) => {
      if (response.headersSent) response.destroy()
      else if (!response.destroyed) answerError(response, 'internal_error', { message: messageOf(error) })
    })
  })
  server.keepAliveTimeout = 0
  try {
    await listen(server, options)
  } catch (error) {
    await ledger.close()
    throw error
  }

  let closed: Promise<void> | undefined
  async function close(): Promise<void> {
    const ended = once(server, 'close')
    server.close()
    server.closeAllConnections()
    closing.abort()
    await ended
    await ledger.close()
  }
  return { url: urlOf(server.address() as AddressInfo), close: () => (closed ??= close()) }
}

async function listen(server: Server, { host, port }: SandboxOptions): Promise<void> {
  try {
    server.listen(port, host)
    await once(server, 'listening')
  } catch (cause) {
    const taken = (cause as NodeJS.ErrnoException).code === 'EADDRINUSE'
    const why = taken ? 'the port is taken' : messageOf(cause)
    throw new Error(`The sandbox cannot listen on ${host}:${port}: ${why}`, { cause })
  }
}

const urlOf = ({ address, family, port }: AddressInfo): string =>
  `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`

/** What a request is played on. */
interface Stage {
  readonly ledger: Ledger
  readonly slowMs: number
  readonly closing: AbortSignal
}

async function handle(stage: Stage, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [path = '', query = ''] = (request.url ?? '').split('?', 2)
  switch (`${request.method} ${path}`) {
    case 'POST /v1/send':
      return handleSend(stage, request, response)
    case 'GET /ledger': {
      const messageId = new URLSearchParams(query).get('messageId') ?? undefined
      return answer(response, 200, { data: await stage.ledger.rows(messageId) })
    }
    case 'DELETE /ledger':
      await stage.ledger.clear()
      return answer(response, 204)
    case 'GET /livez':
      return answer(response, 200, { status: 'ok' })
    default:
      request.resume()
      return answerError(response, 'invalid_request', { status: 404, message: 'There is nothing at this path.' })
  }
}

interface SendRequest {
  readonly messageId: string
  readonly provider: string
  readonly channel: Channel
  readonly to: string
}

async function handleSend(stage: Stage, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await readBody(request)
  if (body === undefined)
    return answerError(response, 'invalid_request', { status: 413, message: 'The body is too long.' })
  const asked = sendRequestFrom(body)
  if (asked === undefined) return answerError(response, 'invalid_request')

  const magic = magicFor(asked.channel, asked.to)?.behaviour
  const isFirst = stage.ledger.requestCountOf(asked.messageId) === 0
  const behaviour = magic !== undefined && (isFirst || magic.hits === 'every_request') ? magic : accepted
  await recordAs(stage, asked, behaviour.accepts)
  await answerAs(stage, behaviour.answers, request, response)
}

/** The body, or `undefined` if it is too long. Reads to the end whatever comes: closing on bytes unread would reset the connection under the answer. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length <= maxBodyBytes) chunks.push(chunk)
    else chunks.length = 0
  }
  return length > maxBodyBytes ? undefined : Buffer.concat(chunks).toString('utf8')
}

/** `from` and `content` are taken and not looked at: the sandbox keeps nothing that was said. */
function sendRequestFrom(body: string): SendRequest | undefined {
  let asked: Record<string, unknown> | null
  try {
    asked = JSON.parse(body) as Record<string, unknown> | null
  } catch {
    return undefined // not JSON: answered as any other request that cannot be read
  }
  const messageId = asked?.['messageId']
  const provider = asked?.['provider']
  const to = asked?.['to']
  const channel = channels.find((name) => name === asked?.['channel'])
  if (typeof messageId !== 'string' || messageId === '' || typeof provider !== 'string') return undefined
  if (typeof to !== 'string' || channel === undefined) return undefined
  return { messageId, provider, channel, to }
}

async function recordAs(stage: Stage, asked: SendRequest, accepts: Behaviour['accepts']): Promise<void> {
  const { messageId, provider, to } = asked
  await stage.ledger.record({ messageId, provider, to, requested: true, accepted: accepts === 'at_once' })
  if (accepts !== 'later') return
  // A caller that hangs up meanwhile changes nothing: the provider has the message and goes on with it.
  await delay(stage.slowMs, undefined, { signal: stage.closing })
  await stage.ledger.record({ messageId, provider, to, requested: false, accepted: true })
}

async function answerAs(
  stage: Stage,
  answers: Behaviour['answers'],
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  switch (answers) {
    case 'created':
      return answer(response, 201, created())
    case 'late':
      await delay(answerTimeoutMsOf(request) + lateByMs, undefined, { signal: stage.closing })
      return answer(response, 201, created())
    case 'cut': {
      const text = JSON.stringify(created())
      response.writeHead(201, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
      response.write(text.slice(0, text.length / 2), () => response.destroy())
      return
    }
    case 'nothing':
      request.socket.destroy()
      return
    case 'garbage':
      request.socket.write('\u0000\u0001 this is no HTTP\r\n\r\n', () => request.socket.destroy())
      return
    case 'rate_limited':
      response.setHeader('retry-after', '1')
      return answerError(response, answers)
    case 'recipient_refused':
    case 'invalid_request':
    case 'unavailable':
    case 'internal_error':
      return answerError(response, answers)
  }
}

const created = (): { id: string } => ({ id: `sbx_${randomUUID().replaceAll('-', '')}` })

function answerTimeoutMsOf(request: IncomingMessage): number {
  const value = request.headers['x-answer-timeout-ms']
  return typeof value === 'string' && /^\d{1,7}$/.test(value) ? Number(value) : defaultAnswerTimeoutMs
}

function answer(response: ServerResponse, status: number, body?: object): void {
  if (body === undefined) {
    response.writeHead(status).end()
    return
  }
  const text = JSON.stringify(body)
  response
    .writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
    .end(text)
}

function answerError(
  response: ServerResponse,
  code: SandboxError,
  differing: { readonly status?: number; readonly message?: string } = {},
): void {
  const { status, message } = { ...sandboxErrors[code], ...differing }
  answer(response, status, { error: { code, message } })
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

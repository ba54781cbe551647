/**
 * The sandbox: a provider that can be told by its recipient to fail (magic.ts), over real HTTP, so that the gateway's
 * own calls meet what they would meet outside. It plays every kind of provider, with the same faults: without a key it
 * is blind, and what is sent twice is accepted twice and counted twice; with one it deduplicates; and it can be asked
 * what it accepted. It shares no state with a gateway, also when it runs in the same process.
 *
 * S1. What a request did is in the ledger, on disk, before the first byte of an answer.
 * S2. Which request of a message is its first is read from the ledger, so a restart does not play a fault again.
 * S3. The sandbox breaks a connection where a recipient asks for it and nowhere else: it closes no idle one, for a
 *     request that crosses such a close is lost without anybody having asked.
 * S4. Under one key (of one provider) one request at most is accepted; each repeat of it gets that acceptance's id in a
 *     clean 201, whatever fault the first answer had. A key is looked at and claimed in one turn, before any wait.
 * S5. An acceptance has one id, made when it is accepted: the same in every answer and in every look-up.
 * S6. What is told later (receipts.ts) is told of an acceptance that is on disk, and changes no answer.
 */
import { randomUUID } from 'node:crypto'
import { once, setMaxListeners } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { openLedger, type Ledger } from './ledger.ts'
import {
  accepted,
  magicFor,
  sandboxErrors,
  type Accepting,
  type Behaviour,
  type ReceiptPlan,
  type SandboxError,
} from './magic.ts'
import { receiptSender, type ReceiptSender } from './receipts.ts'
import { answerTimeoutMsOf, lookUpFrom, readBody, sendRequestFrom, type SendRequest } from './requests.ts'
import type { Acceptance, LedgerEntry } from './tally.ts'

export interface SandboxOptions {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  readonly ledgerFile: string
  /** How long `slow` takes to accept. */
  readonly slowMs?: number
  /** How old an acceptance is when a look-up with `consistency=eventual` first shows it. */
  readonly eventualDelayMs?: number
  /** What receipts are signed with; without it none are told. */
  readonly receiptSecret?: string | null
  /** How long after its acceptance a message is told of. */
  readonly receiptDelayMs?: number
}

export interface Sandbox {
  readonly url: string
  /** Breaks open connections, forgets what it still meant to answer, and lets the process end. */
  close(): Promise<void>
}

/** How much later than the caller's time-out a late reply comes. */
const lateByMs = 1000

export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const ledger = await openLedger(options.ledgerFile)
  const closing = new AbortController()
  setMaxListeners(0, closing.signal) // one a waiting request, and there may be many
  const { slowMs = 3000, eventualDelayMs = 2000, receiptSecret = null, receiptDelayMs = 100 } = options
  const receipts = receiptSender(receiptSecret, receiptDelayMs, closing.signal)
  const stage: Stage = { ledger, slowMs, eventualDelayMs, receipts, closing: closing.signal }

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
  readonly eventualDelayMs: number
  readonly receipts: ReceiptSender
  readonly closing: AbortSignal
}

async function handle(stage: Stage, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [path = '', query = ''] = (request.url ?? '').split('?', 2)
  switch (`${request.method} ${path}`) {
    case 'POST /v1/send':
      return handleSend(stage, request, response)
    case 'GET /v1/messages':
      return handleLookUp(stage, query, response)
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

async function handleSend(stage: Stage, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await readBody(request)
  if (body === undefined)
    return answerError(response, 'invalid_request', { status: 413, message: 'The body is too long.' })
  const asked = sendRequestFrom(request.headers, body)
  if (asked === undefined) return answerError(response, 'invalid_request')

  // From here to the entry in the ledger nothing may be awaited (S4).
  const found = asked.claim === undefined ? 'free' : stage.ledger.keyStateOf(asked.provider, asked.claim)
  if (found === 'free') return run(stage, asked, request, response)
  await record(stage, asked, { requested: true, accepted: false })
  return typeof found === 'string' ? answerError(response, found) : answerCreated(response, found)
}

async function run(
  stage: Stage,
  asked: SendRequest,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const behaviour = behaviourFor(stage, asked)
  if (behaviour.accepts === 'never') {
    await record(stage, asked, { requested: true, accepted: false, claim: asked.claim })
    return answerError(response, behaviour.answers)
  }
  const acceptance = await accept(stage, asked, behaviour.accepts)
  await tellOf(stage, asked, acceptance, behaviour.receipt)
  return answerAs(stage, behaviour.answers, acceptance, request, response)
}

function behaviourFor(stage: Stage, { channel, to, messageId }: SendRequest): Behaviour {
  const magic = magicFor(channel, to)?.behaviour
  const isFirst = stage.ledger.requestCountOf(messageId) === 0
  return magic !== undefined && (isFirst || magic.hits === 'every_request') ? magic : accepted
}

async function accept(stage: Stage, asked: SendRequest, accepts: Accepting['accepts']): Promise<Acceptance> {
  const { claim } = asked
  if (accepts === 'later') {
    await record(stage, asked, { requested: true, accepted: false, claim: claim && { ...claim, isRunning: true } })
    // A caller that hangs up meanwhile changes nothing: the provider has the message and goes on with it.
    await delay(stage.slowMs, undefined, { signal: stage.closing })
  }
  const acceptance = { id: `sbx_${randomUUID().replaceAll('-', '')}`, acceptedAt: new Date().toISOString() }
  await record(stage, asked, { requested: accepts === 'at_once', accepted: true, acceptance, claim })
  return acceptance
}

/** Waits only for a receipt that comes before the answer; no fault of its receiver keeps the answer back for long. */
async function tellOf(
  { receipts, closing }: Stage,
  { messageId, provider, receiptUrl }: SendRequest,
  acceptance: Acceptance,
  plan: ReceiptPlan | undefined,
): Promise<void> {
  if (plan === undefined || receiptUrl === undefined) return
  const told = receipts.tell(receiptUrl, { messageId, provider, acceptance }, plan)
  if (plan.comes === 'before_answer')
    await Promise.race([told, delay(mostReceiptMs, undefined, { signal: closing, ref: false })])
}

/** Less than callers wait for an answer. */
const mostReceiptMs = 2_000

function record(
  stage: Stage,
  asked: SendRequest,
  did: Omit<LedgerEntry, 'messageId' | 'provider' | 'to'>,
): Promise<void> {
  const { messageId, provider, to } = asked
  return stage.ledger.record({ messageId, provider, to, ...did })
}

/** Not counted anywhere: to ask what was accepted changes nothing. */
async function handleLookUp(stage: Stage, query: string, response: ServerResponse): Promise<void> {
  const asked = lookUpFrom(query)
  if (asked === undefined) return answerError(response, 'invalid_request')
  const { provider, reference, isEventual } = asked
  const shownUntil = isEventual ? Date.now() - stage.eventualDelayMs : Infinity
  const acceptances = await stage.ledger.acceptancesOf(provider, reference)
  const shown = acceptances.filter(({ acceptedAt }) => Date.parse(acceptedAt) <= shownUntil)
  return answer(response, 200, { data: shown.map(({ id, acceptedAt }) => ({ id, reference, acceptedAt })) })
}

async function answerAs(
  stage: Stage,
  answers: Accepting['answers'],
  acceptance: Acceptance,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  switch (answers) {
    case 'created':
      return answerCreated(response, acceptance)
    case 'late':
      await delay(answerTimeoutMsOf(request) + lateByMs, undefined, { signal: stage.closing })
      return answerCreated(response, acceptance)
    case 'cut': {
      const text = JSON.stringify(createdFrom(acceptance))
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
    case 'recipient_refused':
    case 'invalid_request':
    case 'key_reused':
    case 'key_in_use':
    case 'rate_limited':
    case 'unavailable':
    case 'internal_error':
      return answerError(response, answers)
  }
}

const createdFrom = ({ id }: Acceptance): object => ({ id })

const answerCreated = (response: ServerResponse, acceptance: Acceptance): void =>
  answer(response, 201, createdFrom(acceptance))

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
  if (code === 'rate_limited' || code === 'key_in_use') response.setHeader('retry-after', '1')
  answer(response, status, { error: { code, message } })
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/**
 * The one place that calls providers over HTTP, and says how far a call got: by phase and not by error code. What an
 * answer that was read means is judge-answer.ts's, with the adapter's own table.
 *
 * H1. `not_begun` is said only if `onRequestStart` never let this call through, and then it never will: it is shut in
 *     the same turn in which we stop waiting. (undici publishes `sendHeaders` and writes right after it, in one turn;
 *     test/providers/undici-phase.test.ts holds the phase against both.)
 * H2. The gate is asked in `onRequestStart`, after connecting and in the same turn as the write; a shut gate writes
 *     0 bytes. (Throwing inside the `sendHeaders` channel stops nothing.)
 * H3. Time-outs are this file's own timers: undici's are late by up to a second, and do not run for a call that waits
 *     in its queue; there, calls given up pile up behind connections that never come.
 * H4. No retry, no redirect, no decompression: one `dispatch`, at most one request on the wire.
 */
import { Socket } from 'node:net'
import { Agent, buildConnector, type Dispatcher } from 'undici'
import type { CallResult } from './judge-answer.ts'
import type { CallSettings, HttpAnswer, RenderedRequest, WriteGate } from './provider.ts'

/** Thrown by a connector that will never make this connection: nothing was sent, and that is for good. */
export class CallRefused extends Error {
  readonly code: string
  constructor(code: string, detail: string) {
    super(detail)
    this.name = 'CallRefused'
    this.code = code
  }
}

/** Answers are small; what is longer is cut and judged by its status line. */
const maxAnswerBytes = 64 * 1024

/** Of every connector: our own time-outs (H3), and one request at a time on a connection. */
export const connectorOptions = { timeout: 0, allowH2: false } as const

/** One agent a provider. Its callers hold the number of concurrent calls at `concurrency`. */
export function agentFor(settings: CallSettings, connect = buildConnector(connectorOptions)): Agent {
  return new Agent({
    connections: settings.concurrency,
    pipelining: 1,
    allowH2: false,
    connect: connectorWithin(settings.connectTimeoutMs, connect),
    // A server may ask for more; but what a network on the way has dropped in silence makes the next call unknown.
    keepAliveMaxTimeout: 30_000,
    headersTimeout: 0,
    bodyTimeout: 0,
    maxResponseSize: maxAnswerBytes,
    maxHeaderSize: 16 * 1024,
  })
}

/** Connects within our own, exact time. */
function connectorWithin(timeoutMs: number, connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) => {
    const socket: unknown = connect(options, (...connected) => {
      clearTimeout(timer)
      callback(...connected)
    })
    const timer = setTimeout(() => {
      if (socket instanceof Socket) socket.destroy(new Error('connect time-out'))
    }, timeoutMs)
    if (socket instanceof Socket) socket.once('close', () => clearTimeout(timer))
  }
}

/** Makes one call; resolves when it has ended or its time is over, and never rejects. */
export function callProvider(
  agent: Dispatcher,
  request: RenderedRequest,
  times: Pick<CallSettings, 'connectTimeoutMs' | 'answerTimeoutMs'>,
  gate: WriteGate,
): Promise<CallResult> {
  return new Promise((resolve) => {
    const call = { begun: false }
    let ended = false
    let controller: Dispatcher.DispatchController | undefined
    let status: number | undefined
    let headers: HttpAnswer['headers'] = {}
    const chunks: Buffer[] = []

    const end = (code: string | null, complete: boolean, refused?: string): void => {
      if (ended) return
      ended = true
      clearTimeout(timer)
      if (status !== undefined) {
        const body = Buffer.concat(chunks).toString('utf8')
        const answer = {
          status,
          headers,
          body,
          complete,
          retryAfterMs: retryAfterMs(headers['retry-after'], Date.now()),
        }
        resolve({ phase: 'answered', answer, code })
      } else if (call.begun) resolve({ phase: 'begun', code: code ?? 'no answer' })
      else resolve({ phase: 'not_begun', code: code ?? 'no answer', ...(refused === undefined ? {} : { refused }) })
    }
    const timeOut = (code: string): void => {
      if (ended) return
      end(code, false)
      controller?.abort(new Error(code))
    }
    let timer = setTimeout(timeOut, times.connectTimeoutMs, 'connect time-out')

    try {
      agent.dispatch(
        {
          origin: request.origin,
          path: request.path,
          method: request.method,
          headers: request.headers,
          body: request.body,
        },
        {
          onRequestStart(started) {
            controller = started
            if (ended || call.begun) started.abort(new Error('given up before it began'))
            else if (!gate()) {
              end('write gate shut', false)
              started.abort(new Error('write gate shut'))
            } else {
              call.begun = true
              clearTimeout(timer)
              // After a blocked event loop the answer may lie there unread: look once before saying that there is none.
              timer = setTimeout(() => setImmediate(timeOut, 'answer time-out'), times.answerTimeoutMs)
            }
          },
          onResponseStart(_, statusCode, answerHeaders) {
            if (statusCode < 200) return // an interim answer says nothing of the outcome
            status = statusCode
            headers = answerHeaders
          },
          onResponseData(_, chunk) {
            chunks.push(chunk)
          },
          onResponseEnd() {
            end(null, true)
          },
          onResponseError(_, error) {
            end(codeOf(error), false, error instanceof CallRefused ? error.message : undefined)
          },
        },
      )
    } catch (error) {
      end(codeOf(error), false) // undici refused the request itself: an invalid header or path
    }
  })
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'error'
  const { code } = error as NodeJS.ErrnoException
  return typeof code === 'string' ? code : error.name
}

/**
 * `Retry-After` as milliseconds from `nowMs`: seconds or an HTTP date (RFC 9110, 10.2.3). Null if absent or unreadable.
 * Capped at a day: a provider must not park a message for longer than messages live by default.
 */
function retryAfterMs(value: HttpAnswer['headers'][string], nowMs: number): number | null {
  if (typeof value !== 'string') return null
  const isDate = /^[A-Z][a-z]{2,8},? .*\d{2}:\d{2}:\d{2}/.test(value)
  const waitMs = /^\d{1,9}(\.\d+)?$/.test(value) ? Number(value) * 1000 : isDate ? Date.parse(value) - nowMs : NaN
  return Number.isNaN(waitMs) ? null : Math.min(Math.max(waitMs, 0), 86_400_000)
}

/**
 * What is no request, or never becomes one: a raw answer is all that there can be, and then the connection ends.
 *
 * R1. A good request before it on the same connection is answered first, and undisturbed.
 * R2. Whoever breaks off or trickles a body is answered too: nothing else would ever end that connection.
 */
import { STATUS_CODES, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { problemType } from '../core/answer.ts'
import { problemBody, type ProblemType } from '../core/problems.ts'
import type { Deps } from '../deps.ts'
import { occurrence } from './problem-answers.ts'

/** Node's codes; every other one is an invalid request. */
const clientErrors: Readonly<Record<string, ProblemType>> = {
  HPE_HEADER_OVERFLOW: 'header-too-large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request-timeout',
}

/** How long a client may take to read the answer and to hang up. */
const lingerMs = 1_000

export function answerClientError({ newUuid, clock }: Deps, error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed || socket.writableEnded) return
  const { _httpMessage: pending } = socket as { _httpMessage?: ServerResponse | null }
  if (pending !== undefined && pending !== null && (pending.req.complete || pending.headersSent)) {
    pending.once('close', () => socket.destroy()) // what came behind a good request is no request
    return
  }
  const type = clientErrors[error.code ?? ''] ?? 'invalid-request'
  const requestId = newUuid()
  const problem = problemBody(type, occurrence(requestId), 'The request cannot be read.')
  const body = JSON.stringify(problem)
  socket.end(
    [
      `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
      `X-Request-Id: ${requestId}`,
      'Cache-Control: no-store',
      `Content-Type: ${problemType}`,
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Connection: close',
      '',
      body,
    ].join('\r\n'),
  )
  // Only our half is closed by that, and the client's is not ours to wait for.
  const cancel = clock.after(lingerMs, () => socket.destroy())
  socket.once('close', cancel)
}

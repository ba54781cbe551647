/**
 * How requests to the sandbox are read. What is done with them is in server.ts.
 *
 * R1. What cannot be read gives `undefined`: the caller answers `invalid_request`, and nothing is counted or remembered.
 * R2. The digest of a request is over its body as it came: a repeat under a key is the same bytes or another request.
 */
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { channels, type Channel } from '../core/message-content.ts'
import type { KeyClaim } from './tally.ts'

/** An e-mail with attachments of 20 MiB, in base64, and room. */
const maxBodyBytes = 32 * 1024 * 1024
/** How long a caller waits that does not say so. */
const defaultAnswerTimeoutMs = 5000

export interface SendRequest {
  readonly messageId: string
  readonly provider: string
  readonly channel: Channel
  readonly to: string
  /** Where the caller wants to be told what becomes of it; undefined: nowhere. */
  readonly receiptUrl: string | undefined
  /** Undefined where the request has no key. */
  readonly claim: KeyClaim | undefined
}

export interface LookUp {
  readonly provider: string
  readonly reference: string
  /** Shown is only what was accepted some time ago. */
  readonly isEventual: boolean
}

/** The body, or `undefined` if it is too long. Reads to the end whatever comes: closing on bytes unread would reset the connection under the answer. */
export async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length <= maxBodyBytes) chunks.push(chunk)
    else chunks.length = 0
  }
  return length > maxBodyBytes ? undefined : Buffer.concat(chunks)
}

/** `from` and `content` are taken and not looked at: the sandbox keeps nothing that was said. */
export function sendRequestFrom(headers: IncomingMessage['headers'], body: Buffer): SendRequest | undefined {
  let asked: Record<string, unknown> | null
  try {
    asked = JSON.parse(body.toString('utf8')) as Record<string, unknown> | null
  } catch {
    return undefined // not JSON: answered as any other request that cannot be read
  }
  const messageId = asked?.['messageId']
  const provider = asked?.['provider']
  const to = asked?.['to']
  const channel = channels.find((name) => name === asked?.['channel'])
  if (typeof messageId !== 'string' || messageId === '' || typeof provider !== 'string') return undefined
  if (typeof to !== 'string' || channel === undefined) return undefined

  const url = headers['x-receipt-url']
  const receiptUrl = typeof url === 'string' ? url : undefined
  const key = headers['idempotency-key']
  if (key === undefined) return { messageId, provider, channel, to, receiptUrl, claim: undefined }
  // Visible ASCII has no space: node joins a header that came twice by ', ', so that two keys are no key.
  if (typeof key !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(key)) return undefined
  const digest = createHash('sha256').update(body).digest('hex')
  return { messageId, provider, channel, to, receiptUrl, claim: { key, digest } }
}

export function lookUpFrom(query: string): LookUp | undefined {
  const parameters = new URLSearchParams(query)
  const provider = parameters.get('provider')
  const reference = parameters.get('reference')
  const consistency = parameters.get('consistency')
  if (!provider || !reference) return undefined // absent or empty
  if (consistency !== null && consistency !== 'eventual') return undefined
  return { provider, reference, isEventual: consistency === 'eventual' }
}

export function answerTimeoutMsOf(request: IncomingMessage): number {
  const value = request.headers['x-answer-timeout-ms']
  return typeof value === 'string' && /^\d{1,7}$/.test(value) ? Number(value) : defaultAnswerTimeoutMs
}

/**
 * What the sandbox tells later: a webhook for a message that it accepted, signed as Standard Webhooks, to the address
 * that came with the request. Whose recipient gets which is the table's (magic.ts).
 *
 * P1. Once, or twice where a recipient asks for it, under one event id; told again while it is not acknowledged, a few
 *     times, and then never again: a receipt is news, and nothing rests on it.
 * P2. Nothing here keeps the process from ending, and `closing` ends all of it.
 * P3. Bounded: beyond so many that are on their way the next ones are not told.
 */
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import type { ReceiptPlan } from './magic.ts'
import type { Acceptance } from './tally.ts'

/** Pauses before each time that it is told, in ms. */
const pausesMs = [0, 1_000, 5_000]
const answerTimeoutMs = 5_000
const mostOnTheWay = 10_000

export interface Told {
  readonly messageId: string
  readonly provider: string
  readonly acceptance: Acceptance
}

export interface ReceiptSender {
  /** Resolves when it was acknowledged, or given up. Never rejects. */
  tell(url: string, told: Told, plan: ReceiptPlan): Promise<void>
}

/** @param secret `whsec_` and base64; null: no receipt is ever told */
export function receiptSender(secret: string | null, delayMs: number, closing: AbortSignal): ReceiptSender {
  if (secret === null) return { tell: async () => {} }
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const agents = { http: new HttpAgent({ keepAlive: true, maxSockets: 16 }), https: new HttpsAgent({ maxSockets: 16 }) }
  closing.addEventListener('abort', () => {
    agents.http.destroy()
    agents.https.destroy()
  })
  let onTheWay = 0

  async function post(url: URL, id: string, body: string): Promise<boolean> {
    const seconds = String(Math.floor(Date.now() / 1000))
    const signature = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64')
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'webhook-id': id,
      'webhook-timestamp': seconds,
      'webhook-signature': `v1,${signature}`,
    }
    const signal = AbortSignal.any([closing, AbortSignal.timeout(answerTimeoutMs)])
    const options = { method: 'POST', headers, signal }
    const asked =
      url.protocol === 'https:'
        ? httpsRequest(url, { ...options, agent: agents.https })
        : httpRequest(url, { ...options, agent: agents.http })
    asked.on('socket', (socket) => socket.unref())
    asked.end(body)
    const [answer] = (await once(asked, 'response')) as [IncomingMessage]
    answer.resume()
    await once(answer, 'end')
    return answer.statusCode !== undefined && answer.statusCode >= 200 && answer.statusCode < 300
  }

  async function untilAcknowledged(url: URL, id: string, body: string): Promise<void> {
    for (const pauseMs of pausesMs) {
      await delay(pauseMs, undefined, { signal: closing, ref: false })
      if (await post(url, id, body).catch(() => false)) return
    }
  }

  return {
    async tell(to, { messageId, provider, acceptance }, { status, comes, times }) {
      const url = URL.parse(to)
      if ((url?.protocol !== 'http:' && url?.protocol !== 'https:') || onTheWay >= mostOnTheWay) return
      const { id } = acceptance
      const eventId = `evt_${id}_${status}`
      const code = status === 'undelivered' ? 'unreachable' : null
      const data = { id, messageId, provider, status, code }
      onTheWay++
      try {
        if (comes === 'after_answer') await delay(delayMs, undefined, { signal: closing, ref: false })
        const body = JSON.stringify({ type: `message.${status}`, timestamp: new Date().toISOString(), data })
        await Promise.all(Array.from({ length: times }, async () => untilAcknowledged(url, eventId, body)))
      } catch {
        // The sandbox is closing: what was still to be told is not.
      } finally {
        onTheWay--
      }
    },
  }
}

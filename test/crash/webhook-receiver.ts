/** A receiver of webhooks as Standard Webhooks wants it: it verifies, acts once on one webhook-id, and can be gone for a while. */
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { onTestFinished } from 'vitest'
import { until } from '../support/gateway.ts'
import { selfSigned } from '../support/self-signed.ts'

const identity = selfSigned()
/** Of every receiver here: whoever calls must trust it. */
export const receiverCertificate = identity.cert

export interface Received {
  readonly id: string
  readonly timestamp: string
  readonly signature: string
  readonly path: string
  readonly body: string
  /** Signed with one of the secrets that the receiver knows, now. */
  readonly verified: boolean
}

/** What becomes of a request whose body was read, and acted upon. */
export type Manner =
  /** 204. */
  | 'answers'
  /** The connection ends without an answer. */
  | 'loses its reply'
  /** As above, and from then on nobody listens. */
  | 'loses its reply and is gone'
  /** It is a proxy that answers: a 503 that nobody documented. */
  | 'answers 503'
  /** It answers when it is told to. */
  | 'holds its answer'

export interface Receiver {
  readonly url: string
  readonly received: Received[]
  /** How often it acted, by webhook-id. */
  readonly effects: ReadonlyMap<string, number>
  /** It listens again, at the same address. */
  comeBack(): Promise<void>
  /** Answers what it holds. */
  answerAll(): void
}

/** @param manners of the n-th request; the last one of all that follow */
export async function webhookReceiver(secrets: readonly string[], ...manners: readonly Manner[]): Promise<Receiver> {
  const received: Received[] = []
  const effects = new Map<string, number>()
  const held: ServerResponse[] = []
  const handle = (path: string, headers: IncomingHttpHeaders, body: string, response: ServerResponse): void => {
    const given = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
    const { 'webhook-id': id = '', 'webhook-timestamp': timestamp = '', 'webhook-signature': signature = '' } = given
    const verified = secrets.some((secret) => isVerified(secret, body, given))
    received.push({ id, timestamp, signature, path, body, verified })
    if (verified && !effects.has(id)) effects.set(id, 1)
    const manner = manners[Math.min(received.length, manners.length) - 1] ?? 'answers'
    switch (manner) {
      case 'answers':
        response.writeHead(204).end()
        return
      case 'answers 503':
        response.writeHead(503, { 'content-type': 'text/html' }).end('<h1>503 Service Unavailable</h1>')
        return
      case 'holds its answer':
        held.push(response)
        return
      case 'loses its reply and is gone':
        server.close()
        response.socket?.destroy()
        server.closeAllConnections()
        return
      case 'loses its reply':
        response.socket?.destroy()
    }
  }
  const listen = async (port: number): Promise<Server> => {
    const listening = createServer(identity, (request, response) => {
      let body = ''
      request.on('data', (chunk: Buffer) => (body += chunk.toString()))
      request.on('end', () => handle(request.url ?? '', request.headers, body, response))
    }).listen(port, '127.0.0.1')
    await until(() => listening.listening)
    return listening
  }
  let server = await listen(0)
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `https://127.0.0.1:${port}/hooks?of=ours`,
    received,
    effects,
    comeBack: async () => {
      server = await listen(port)
    },
    answerAll: () => held.splice(0).forEach((response) => response.writeHead(204).end()),
  }
}

function isVerified(secret: string, body: string, headers: Record<string, string>): boolean {
  try {
    new Webhook(secret).verify(body, headers)
    return true
  } catch {
    return false // what is not signed is not acted upon
  }
}

/** A caller's HTTP: one request, and whatever becomes of it. Never rejects. */
import { Agent, request } from 'node:http'

export interface Ask {
  readonly method: 'POST' | 'GET'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
  readonly giveUpMs: number
}

export type Got =
  | {
      readonly end: 'answer'
      readonly status: number
      readonly headers: Readonly<Record<string, string | string[] | undefined>>
      readonly body: string
    }
  | { readonly end: 'no answer'; readonly code: string }
  | { readonly end: 'gave up' }

const agent = new Agent({ keepAlive: true, maxSockets: 256 })

export function ask({ method, url, headers, body, giveUpMs }: Ask): Promise<Got> {
  return new Promise((resolve) => {
    const length =
      body === null ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const asked = request(url, { method, headers: { ...headers, ...length }, agent })
    const timer = setTimeout(() => {
      resolve({ end: 'gave up' })
      asked.destroy()
    }, giveUpMs)
    const fail = (error: NodeJS.ErrnoException): void => {
      clearTimeout(timer)
      resolve({ end: 'no answer', code: error.code ?? error.name })
    }
    asked.once('error', fail)
    asked.once('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.once('error', fail)
      response.once('end', () => {
        clearTimeout(timer)
        const { statusCode = 0, headers: told } = response
        resolve({ end: 'answer', status: statusCode, headers: told, body: Buffer.concat(chunks).toString('utf8') })
      })
    })
    asked.end(body ?? undefined)
  })
}

export const closeConnections = (): void => agent.destroy()

/** One run of a fuzz against a gateway: sends what is asked, remembers what it was told of, and counts what was seen. */
import type { AddressInfo } from 'node:net'
import * as dispatcher from '../../src/workers/dispatcher.ts'
import type { TestGateway } from '../support/gateway.ts'
import type { Document, Operation } from './document.ts'
import { mediaOf, wrongWith, type Problem } from './oracle.ts'
import { exchange, type Reply } from './raw-client.ts'
import type { Asked } from './requests.ts'

/** Longer than any wait that is asked for; what takes longer hangs. */
const boundMs = 20_000

interface Told {
  readonly id?: string
  readonly object?: string
  readonly status?: string
  readonly fingerprint?: string
  readonly nextCursor?: string | null
  readonly data?: readonly { readonly id: string; readonly attempt?: string | null }[]
}

export interface Session {
  /** What is wrong with the answers, in words. @param twins how many equal ones are sent at once */
  ask(asked: Asked, twins: number): Promise<string[]>
  /** `sendMessage 201`, `voidKey 409 key-taken`: how often. */
  readonly seen: ReadonlyMap<string, number>
  /** Messages that a person had sent again. */
  readonly resent: ReadonlySet<string>
}

export function startSession(gateway: TestGateway, document: Document, apiKeys: readonly string[]): Session {
  const { port } = gateway.app.server.address() as AddressInfo
  const operations = new Map(document.operations.map((operation) => [operation.operationId, operation]))
  const seen = new Map<string, number>()
  const resent = new Set<string>()
  /** What placeholders stand for; an empty list is filled with what is well-formed and nobody knows. */
  const known = {
    apiKey: [...apiKeys],
    message: [`msg_${'0'.repeat(32)}`],
    waiting: [] as string[],
    unknown: [] as string[],
    attempt: [] as string[],
    held: [] as string[],
    /** Of what is held, in the same order. */
    fingerprint: [] as string[],
    key: ['fuzz-0'],
    cursor: [Buffer.from(`msg_${'0'.repeat(32)}`).toString('base64url')],
    /** Made in this run: those that it asks with are not revoked. */
    madeKey: ['0'],
    keyCursor: [Buffer.from('2026-12-01T09:00:00.000Z 0').toString('base64url')],
  }

  const filled = (text: string): string =>
    text.replaceAll(/\{\{(\w+) (\d+)\}\}/g, (_, kind: keyof typeof known, n: string) => {
      const list = known[kind]
      const value = list[Number(n) % Math.max(list.length, 1)]
      if (value !== undefined) return value
      if (kind === 'fingerprint') return `v1:${'0'.repeat(64)}`
      return kind === 'attempt' ? `att_${'0'.repeat(32)}` : (known.message[0] ?? '')
    })

  const judge = (asked: Asked, reply: Reply): string[] => {
    const operation: Operation | undefined = operations.get(asked.operation)
    const problem =
      mediaOf(reply) === 'application/problem+json' && reply.body !== ''
        ? (JSON.parse(reply.body) as Problem)
        : undefined
    const name = [asked.operation, reply.status, problem?.type?.replace('/problems/', '')].filter(Boolean).join(' ')
    seen.set(name, (seen.get(name) ?? 0) + 1)
    return wrongWith(document, operation, asked, reply)
  }

  const learn = async (asked: Asked, reply: Reply): Promise<void> => {
    const key = /^"((?:[^"\\]|\\.)*)"$/.exec(reply.headers.get('idempotency-key')?.[0] ?? '')?.[1]
    if (key !== undefined) known.key.push(encodeURIComponent(key.replaceAll(/\\(.)/g, '$1')))
    if (!mediaOf(reply).endsWith('json') || reply.body === '') return // HEAD has none
    const { id, object, status, fingerprint, nextCursor } = JSON.parse(reply.body) as Told
    if (asked.operation.includes('ApiKey')) {
      if (id !== undefined && object === 'api_key') known.madeKey.push(id)
      if (typeof nextCursor === 'string') known.keyCursor.push(nextCursor)
      return
    }
    if (id !== undefined) known.message.push(id)
    if (id !== undefined && status === 'scheduled') known.waiting.push(id)
    if (id !== undefined && status === 'held' && fingerprint !== undefined && !known.held.includes(id)) {
      known.held.push(id)
      known.fingerprint.push(fingerprint)
    }
    if (id !== undefined && asked.operation === 'resolveMessage' && asked.body?.includes('"resend":true') === true)
      resent.add(id)
    if (typeof nextCursor === 'string') known.cursor.push(nextCursor)
    const { type, message } = JSON.parse(reply.body) as Problem
    if (type === '/problems/outcome-unknown' && message !== undefined) await learnAttempt(message.id)
  }

  const learnAttempt = async (id: string): Promise<void> => {
    if (known.unknown.includes(id)) return
    const events = (await gateway.get(`/v1/messages/${id}/events`)).json<Told>().data ?? []
    const attempt = events.find((event) => typeof event.attempt === 'string')?.attempt
    if (typeof attempt !== 'string') return
    known.unknown.push(id)
    known.attempt.push(attempt)
  }

  const ask = async (template: Asked, twins: number): Promise<string[]> => {
    const asked = {
      ...template,
      target: filled(template.target),
      headers: template.headers.map(filled),
      body: template.body === null ? null : filled(template.body),
    }
    const bytes = bytesOf(asked)
    const work = Promise.all(Array.from({ length: twins }, async () => exchange(port, bytes, boundMs)))
    const wrong: string[] = []
    for (const replies of await whileDispatching(gateway, work)) {
      const [reply] = replies
      if (reply === undefined || replies.length > 1) wrong.push(`${replies.length} answers to one request`)
      else {
        wrong.push(...judge(asked, reply))
        await learn(asked, reply)
      }
    }
    return wrong
  }
  return { ask, seen, resent }
}

/** Passes of the dispatcher as long as somebody waits: what is queued is what they wait for. */
async function whileDispatching<T>({ deps }: TestGateway, work: Promise<T>): Promise<T> {
  const answered = work.then(
    () => true,
    () => true,
  )
  const soon = async (): Promise<boolean> => new Promise((later) => setTimeout(() => later(false), 10))
  do await (await dispatcher.runOnce(deps)).done
  while (!(await Promise.race([answered, soon()])))
  return work
}

function bytesOf({ method, target, headers, body, bodyEncoding, chunked }: Asked): Uint8Array {
  const content = body === null ? null : Buffer.from(body, bodyEncoding)
  const framing = content === null ? [] : [chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${content.length}`]
  const head = [`${method} ${target} HTTP/1.1`, ...headers, ...framing, 'Connection: close', '', ''].join('\r\n')
  if (content === null) return Buffer.from(head, 'latin1')
  const chunk =
    content.length === 0 ? [] : [Buffer.from(`${content.length.toString(16)}\r\n`), content, Buffer.from('\r\n')]
  return Buffer.concat([Buffer.from(head, 'latin1'), ...(chunked ? [...chunk, Buffer.from('0\r\n\r\n')] : [content])])
}

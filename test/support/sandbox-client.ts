/** A sandbox as its callers see it: in this process or in one of its own, and asked over sockets, byte by byte. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { expect, onTestFinished } from 'vitest'
import { magics, type Magic } from '../../src/sandbox/magic.ts'
import { startSandbox, type Sandbox, type SandboxOptions } from '../../src/sandbox/server.ts'

export const patience = { timeout: 4000, interval: 10 }

export async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sendonce-sandbox-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

export async function newSandbox(
  differing: Partial<SandboxOptions> = {},
): Promise<{ sandbox: Sandbox; ledgerFile: string }> {
  const ledgerFile = differing.ledgerFile ?? join(await newFolder(), 'ledger.jsonl')
  const sandbox = await startSandbox({ host: '127.0.0.1', port: 0, slowMs: 100, ...differing, ledgerFile })
  onTestFinished(() => sandbox.close())
  return { sandbox, ledgerFile }
}

/** All who come wait for the last of `size`. */
export function meetingOf(size: number): () => Promise<void> {
  const all = Promise.withResolvers<void>()
  let missing = size
  return () => {
    missing -= 1
    if (missing === 0) all.resolve()
    return all.promise
  }
}

/**
 * One request over a socket of its own: every byte that came back until the connection ended. Those that `meet` write
 * their bodies in one turn, once the sandbox has asked each for it, so that one in this process reads all in the next.
 */
export function exchange(
  url: string,
  request: string,
  headers: readonly string[] = [],
  body = '',
  meet?: () => Promise<void>,
): Promise<string> {
  const { hostname, port, host } = new URL(url)
  const expects = meet === undefined ? [] : ['expect: 100-continue']
  const head = [`${request} HTTP/1.1`, `host: ${host}`, 'connection: close', ...expects, ...headers]
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname)
    let bytes = ''
    const keep = (chunk: string): void => void (bytes += chunk)
    socket.setEncoding('latin1')
    socket.on('error', () => undefined) // a reset is one of the ways to end; 'close' follows
    socket.on('close', () => resolve(bytes))
    socket.write(`${[...head, `content-length: ${Buffer.byteLength(body)}`].join('\r\n')}\r\n\r\n`)
    if (meet === undefined) {
      socket.on('data', keep)
      socket.write(body)
      return
    }
    socket.once('data', () => {
      socket.on('data', keep)
      void meet().then(() => socket.write(body))
    })
  })
}

interface Given {
  readonly messageId?: string
  readonly provider?: string
  readonly key?: string
  readonly text?: string
  readonly headers?: readonly string[]
  readonly meet?: () => Promise<void>
}

/** To a number, as by a provider that is given no key, unless something else is said. */
export function sendTo(url: string, to: string, given: Given = {}): Promise<string> {
  const { messageId = 'msg_1', provider = 'sandbox-blind', key, text = 'hello', headers = [], meet } = given
  const body = { messageId, provider, channel: 'sms', to, from: 'ACME', content: { text } }
  const keyHeader = key === undefined ? [] : [`idempotency-key: ${key}`]
  return exchange(
    url,
    'POST /v1/send',
    ['content-type: application/json', ...keyHeader, ...headers],
    JSON.stringify(body),
    meet,
  )
}

export const numberOf = (name: Magic['name']): string => magics.find((magic) => magic.name === name)?.number ?? ''
export const statusOf = (bytes: string): number => Number(/^HTTP\/1\.1 (\d{3}) /.exec(bytes)?.[1])
export const bodyOf = (bytes: string): unknown => JSON.parse(bytes.slice(bytes.indexOf('\r\n\r\n') + 4))
export const errorFor = (code: string): object => ({ error: { code, message: expect.any(String) as string } })

export async function countsOf(url: string, messageId = 'msg_1'): Promise<string> {
  const { data } = bodyOf(await exchange(url, `GET /ledger?messageId=${messageId}`)) as {
    data: { requestCount: number; acceptedCount: number }[]
  }
  return data.map((row) => `${row.requestCount} asked, ${row.acceptedCount} accepted`).join()
}

export function expectCreated(bytes: string): void {
  expect(statusOf(bytes)).toBe(201)
  expect(bodyOf(bytes)).toEqual({ id: expect.stringMatching(/^sbx_[0-9a-f]{32}$/) as string })
}

export function spawnMain(
  env: Readonly<Record<string, string>>,
): ChildProcess & { stdout: Readable; stderr: Readable } {
  const main = join(import.meta.dirname, '../../src/sandbox/main.ts')
  const child = spawn(process.execPath, [main], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

export async function urlPrintedBy(child: ChildProcess & { stdout: Readable }): Promise<string> {
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  return /SANDBOX_URL=(\S+)/.exec(line)?.[1] ?? line
}

/** What a look-up shows of a message; `more` is added to its query. */
export async function lookUp(url: string, provider: string, messageId = 'msg_1', more = ''): Promise<unknown> {
  const bytes = await exchange(url, `GET /v1/messages?provider=${provider}&reference=${messageId}${more}`)
  expect(statusOf(bytes)).toBe(200)
  return bodyOf(bytes)
}

/** Real processes, really killed (behaviour.md, F2, F3, N2): the embedded PostgreSQL lives on, and the next gateway attaches. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { until } from '../support/gateway.ts'
import { dataFolder, startGateway, type Running } from '../support/process.ts'

const apiKey = `so_live_crash_${'k'.repeat(40)}`

/** A provider that takes requests and answers when it is told to. */
async function provider(): Promise<{ url: string; requests: string[]; answerAll: () => void }> {
  const requests: string[] = []
  const held: (() => void)[] = []
  const server: Server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      requests.push(body)
      held.push(() => response.writeHead(201, { 'content-type': 'application/json' }).end('{"sid":"SM1"}'))
    })
  }).listen(0, '127.0.0.1')
  await until(() => server.listening)
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, requests, answerAll: () => held.splice(0).forEach((answer) => answer()) }
}

async function configured(providerUrl: string): Promise<Record<string, string>> {
  const folder = await dataFolder()
  const config = {
    providers: {
      twilio: {
        adapter: 'twilio',
        accountSid: `AC${'0'.repeat(32)}`,
        authToken: 't',
        from: '+15005550006',
        baseUrl: providerUrl,
        connectTimeoutMs: 500,
        answerTimeoutMs: 3_000,
      },
    },
    routes: { sms: ['twilio'] },
  }
  await writeFile(join(folder, 'config.yaml'), JSON.stringify(config))
  return {
    SENDONCE_DATA_DIR: folder,
    SENDONCE_CONFIG: join(folder, 'config.yaml'),
    SENDONCE_DATABASE: 'embedded',
    SENDONCE_BOOTSTRAP_KEY: apiKey,
    SENDONCE_LEASE_MARGIN_MS: '200',
    SENDONCE_SWEEP_MS: '100',
  }
}

const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', 'idempotency-key': 'crash-1' }
const body = JSON.stringify({ channel: 'sms', to: '+447700900123', content: { text: 'once' } })
const send = async ({ url }: Running, prefer = 'wait=10'): Promise<Response> =>
  fetch(`${url}/v1/messages`, { method: 'POST', headers: { ...headers, prefer }, body })

test('F3 killed while the provider holds its answer: one call, unknown, and a person settles it in one call', async () => {
  const vendor = await provider()
  const env = await configured(vendor.url)
  const first = await startGateway({ env })
  const lost = send(first).catch(() => 'no answer')
  await until(() => vendor.requests.length === 1)
  first.child.kill('SIGKILL')
  expect(await lost).toBe('no answer')

  const second = await startGateway({ env })
  vendor.answerAll()
  await until(async () => (await send(second, 'wait=0')).status === 504, 15_000)
  const repeat = await send(second, 'wait=0')
  const problem = (await repeat.json()) as { type: string; sent: string; retryable: boolean; message: { id: string } }
  expect([problem.type, problem.sent, problem.retryable]).toEqual(['/problems/outcome-unknown', 'maybe', false])

  const timeline = await fetch(`${second.url}/v1/messages/${problem.message.id}/events`, { headers })
  const { data } = (await timeline.json()) as { data: { type: string; attempt: string | null }[] }
  const attempt = data.find(({ type }) => type === 'attempt_started')?.attempt
  const resolved = await fetch(`${second.url}/v1/messages/${problem.message.id}/resolve`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ attempt, outcome: 'sent', providerMessageId: 'SM1', evidence: 'seen in the console' }),
  })
  expect(resolved.status).toBe(200)
  const settled = await send(second)
  expect(settled.status).toBe(201)
  expect(settled.headers.get('idempotent-replayed')).toBe('true')
  expect(vendor.requests).toHaveLength(1)
  second.child.kill('SIGTERM')
  expect(await second.exited).toBe(0)
})

test('N2 a second gateway on one data folder names DATABASE_URL and exits; the first goes on', async () => {
  const vendor = await provider()
  const env = await configured(vendor.url)
  const first = await startGateway({ env })
  await expect(startGateway({ env })).rejects.toThrow(/serves another gateway already.*DATABASE_URL/)
  const answer = send(first)
  await until(() => vendor.requests.length === 1)
  vendor.answerAll()
  expect((await answer).status).toBe(201)
})

/** What the sandbox tells later, read as any receiver of Standard Webhooks would, with their own package (receipts.ts, P1 to P3). */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { expect, onTestFinished, test } from 'vitest'
import { magics, type Magic } from '../../src/sandbox/magic.ts'
import { until } from '../support/gateway.ts'
import {
  bodyOf,
  newFolder,
  newSandbox,
  numberOf,
  sendTo,
  spawnMain,
  statusOf,
  urlPrintedBy,
} from '../support/sandbox-client.ts'

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

interface Receipt {
  readonly type: string
  readonly timestamp: string
  readonly data: Readonly<Record<string, string | null>>
}

interface Receiver {
  readonly url: string
  readonly told: { readonly id: string; readonly receipt: Receipt; readonly answeredBefore: boolean }[]
}

/** @param answer to the n-th request; null: never */
async function newReceiver(
  answer: (nth: number) => number | null = () => 200,
  sent: { done: boolean } = { done: false },
): Promise<Receiver> {
  const told: Receiver['told'] = []
  let nth = 0
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString()
      const receipt = new Webhook(secret).verify(body, request.headers as Record<string, string>) as Receipt
      told.push({ id: String(request.headers['webhook-id']), receipt, answeredBefore: sent.done })
      const status = answer(nth++)
      if (status !== null) response.writeHead(status).end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`, told }
}

const withUrl = ({ url }: Receiver): { headers: string[] } => ({ headers: [`x-receipt-url: ${url}`] })

/** How many receipts come of the first request, and what they say. */
const expected: Record<Magic['name'], string> = {
  reject: '',
  'rate-limited': '',
  unavailable: '',
  'refuse-connection': 'delivered', // the port is the adapter's to dial
  'lost-reply': '',
  'late-reply': '',
  'half-answer': '',
  garbage: '',
  'error-after': '',
  'error-before': '',
  slow: 'delivered',
  'duplicate-receipt': 'delivered delivered',
  'receipt-first': 'delivered',
  undelivered: 'undelivered',
  'receipt-settles': 'delivered',
}

test.for(magics)('$name is told of as the table says, signed, and about its own message', async ({ name, number }) => {
  const receiver = await newReceiver()
  const { sandbox } = await newSandbox({ receiptSecret: secret, receiptDelayMs: 10, slowMs: 20 })
  const headers = [...withUrl(receiver).headers, 'x-answer-timeout-ms: 20']
  const bytes = await sendTo(sandbox.url, number, { messageId: 'msg_7', headers })
  // One more, whose receipt comes after all of the first's.
  await sendTo(sandbox.url, '+447700900123', { messageId: 'msg_8', ...withUrl(receiver) })
  await until(() => receiver.told.some(({ receipt }) => receipt.data['messageId'] === 'msg_8'))
  const of = receiver.told.filter(({ receipt }) => receipt.data['messageId'] === 'msg_7')
  expect(of.map(({ receipt }) => receipt.data['status']).join(' ')).toBe(expected[name])
  expect(new Set(of.map(({ id }) => id)).size).toBe(expected[name] === '' ? 0 : 1)
  for (const { receipt } of of) {
    const { status, code, id, provider } = receipt.data
    expect(receipt.type).toBe(`message.${status}`)
    expect([provider, code]).toEqual(['sandbox-blind', status === 'undelivered' ? 'unreachable' : null])
    expect(Math.abs(Date.parse(receipt.timestamp) - Date.now())).toBeLessThan(10_000)
    expect(statusOf(bytes) === 201 ? bodyOf(bytes) : { id }).toEqual({ id })
  }
})

test('receipt-first: told before its answer, though the receiver never answers', async () => {
  const sent = { done: false }
  const receiver = await newReceiver(() => null, sent)
  const { sandbox } = await newSandbox({ receiptSecret: secret })
  const bytes = await sendTo(sandbox.url, numberOf('receipt-first'), withUrl(receiver))
  sent.done = true
  expect(statusOf(bytes)).toBe(201)
  expect(receiver.told[0]?.answeredBefore).toBe(false)
})

test('P1 told again while it is not acknowledged, under the same id', async () => {
  const receiver = await newReceiver((nth) => (nth === 0 ? 503 : 204))
  const { sandbox } = await newSandbox({ receiptSecret: secret, receiptDelayMs: 1 })
  await sendTo(sandbox.url, '+447700900123', withUrl(receiver))
  await until(() => receiver.told.length === 2)
  expect(receiver.told[0]?.id).toBe(receiver.told[1]?.id)
})

test('S4 under a key it is told once, however often it is asked', async () => {
  const receiver = await newReceiver()
  const { sandbox } = await newSandbox({ receiptSecret: secret, receiptDelayMs: 1 })
  const keyed = { key: 'k', provider: 'sandbox-keyed', ...withUrl(receiver) }
  for (let i = 0; i < 3; i++) await sendTo(sandbox.url, '+447700900123', keyed)
  await sendTo(sandbox.url, '+447700900123', { messageId: 'msg_8', ...withUrl(receiver) })
  await until(() => receiver.told.some(({ receipt }) => receipt.data['messageId'] === 'msg_8'))
  expect(receiver.told.map(({ receipt }) => receipt.data['messageId'])).toEqual(['msg_1', 'msg_8'])
})

test.each(['not a URL', 'ftp://127.0.0.1/x', 'http://127.0.0.1:1/nobody'])(
  'an address that leads nowhere (%s) changes no answer',
  async (url) => {
    const { sandbox } = await newSandbox({ receiptSecret: secret })
    const bytes = await sendTo(sandbox.url, numberOf('receipt-first'), { headers: [`x-receipt-url: ${url}`] })
    expect(statusOf(bytes)).toBe(201)
  },
)

test('without a secret, or without an address, nothing is told', async () => {
  const receiver = await newReceiver()
  const { sandbox: silent } = await newSandbox({ receiptDelayMs: 1 })
  const { sandbox } = await newSandbox({ receiptSecret: secret, receiptDelayMs: 1 })
  await sendTo(silent.url, '+447700900123', withUrl(receiver))
  await sendTo(sandbox.url, '+447700900123')
  await sendTo(sandbox.url, '+447700900123', { messageId: 'msg_8', ...withUrl(receiver) })
  await until(() => receiver.told.length > 0)
  expect(receiver.told.map(({ receipt }) => receipt.data['messageId'])).toEqual(['msg_8'])
})

test('P2 SIGTERM ends a sandbox at once whose receipts nobody answers', async () => {
  const receiver = await newReceiver(() => null)
  const child = spawnMain({ SANDBOX_PORT: '0', SENDONCE_DATA_DIR: await newFolder(), SANDBOX_WEBHOOK_SECRET: secret })
  const url = await urlPrintedBy(child)
  for (let i = 0; i < 40; i++) await sendTo(url, '+447700900123', { messageId: `msg_${i}`, ...withUrl(receiver) })
  await until(() => receiver.told.length > 0)
  const began = performance.now()
  child.kill('SIGTERM')
  const [code] = (await once(child, 'exit')) as [number | null]
  expect([code, performance.now() - began < 2_000]).toEqual([0, true])
})

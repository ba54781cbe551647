/** The sandbox as a provider that deduplicates by a key; without a key it is what server.test.ts says. */
import { once } from 'node:events'
import { appendFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { magics, sandboxErrors, type Magic } from '../../src/sandbox/magic.ts'
import {
  bodyOf,
  countsOf,
  errorFor,
  exchange,
  expectCreated,
  lookUp,
  meetingOf,
  newFolder,
  newSandbox,
  numberOf,
  patience,
  sendTo,
  spawnMain,
  statusOf,
  urlPrintedBy,
} from '../support/sandbox-client.ts'

const keyed = { provider: 'sandbox-keyed', key: 'order-42' }
const somebody = '+447700900123'

function expectError(bytes: string, code: 'key_reused' | 'key_in_use'): void {
  expect(statusOf(bytes)).toBe(409)
  expect(bodyOf(bytes)).toEqual({ error: { code, message: sandboxErrors[code].message } })
  expect(/^retry-after: (.*)\r$/m.exec(bytes)?.[1]).toBe(code === 'key_in_use' ? '1' : undefined)
}

/** How an answer ended, in a word. */
function endOf(bytes: string): string {
  if (bytes === '') return 'no byte'
  if (!bytes.startsWith('HTTP/')) return 'no HTTP'
  return bytes.endsWith('}') ? String(statusOf(bytes)) : `${statusOf(bytes)}, cut`
}

/** How the first request under a key ends, what it left accepted, and how each repeat of it ends. */
const expected: Record<Magic['name'], { first: string; acceptedByFirst: number; repeat: string }> = {
  reject: { first: '400', acceptedByFirst: 0, repeat: '400' },
  'rate-limited': { first: '429', acceptedByFirst: 0, repeat: '201' },
  unavailable: { first: '503', acceptedByFirst: 0, repeat: '201' },
  'refuse-connection': { first: '201', acceptedByFirst: 1, repeat: '201' },
  'lost-reply': { first: 'no byte', acceptedByFirst: 1, repeat: '201' },
  'late-reply': { first: '201', acceptedByFirst: 1, repeat: '201' },
  'half-answer': { first: '201, cut', acceptedByFirst: 1, repeat: '201' },
  garbage: { first: 'no HTTP', acceptedByFirst: 1, repeat: '201' },
  'error-after': { first: '500', acceptedByFirst: 1, repeat: '201' },
  'error-before': { first: '500', acceptedByFirst: 0, repeat: '201' },
  slow: { first: '201', acceptedByFirst: 1, repeat: '201' },
  'duplicate-receipt': { first: '201', acceptedByFirst: 1, repeat: '201' },
  'receipt-first': { first: '201', acceptedByFirst: 1, repeat: '201' },
  undelivered: { first: '201', acceptedByFirst: 1, repeat: '201' },
  'receipt-settles': { first: 'no byte', acceptedByFirst: 1, repeat: '201' },
}

test.for(magics)(
  'under a key $name is accepted once at most, and its repeats get one clean answer (S4, S5)',
  async ({ name }) => {
    const { sandbox } = await newSandbox()
    const send = (): Promise<string> =>
      sendTo(sandbox.url, numberOf(name), { ...keyed, headers: ['x-answer-timeout-ms: 50'] })
    const { first, acceptedByFirst, repeat } = expected[name]

    const begun = send() // not awaited: the repeat of a late reply comes before the reply
    await expect.poll(() => countsOf(sandbox.url), patience).toBe(`1 asked, ${acceptedByFirst} accepted`)
    const repeats = [await send(), await send()]
    const firstBytes = await begun
    expect([firstBytes, ...repeats].map(endOf)).toEqual([first, repeat, repeat])

    const acceptedCount = repeat === '201' ? 1 : 0
    expect(await countsOf(sandbox.url)).toBe(`3 asked, ${acceptedCount} accepted`)
    const { data } = (await lookUp(sandbox.url, keyed.provider)) as { data: { id: string }[] }
    expect(data).toHaveLength(acceptedCount)
    const created = [firstBytes, ...repeats].filter((bytes) => endOf(bytes) === '201')
    for (const bytes of created) expect(bodyOf(bytes)).toEqual({ id: data[0]?.id })
  },
)

test('a key with another request is key_reused, whether its own was accepted or not, and accepts nothing', async () => {
  const { sandbox } = await newSandbox()
  expectCreated(await sendTo(sandbox.url, somebody, keyed))
  expectError(await sendTo(sandbox.url, somebody, { ...keyed, text: 'hello!' }), 'key_reused')
  expectError(await sendTo(sandbox.url, somebody, { ...keyed, messageId: 'msg_2' }), 'key_reused')
  expect(await countsOf(sandbox.url)).toBe('2 asked, 1 accepted')
  expect(await countsOf(sandbox.url, 'msg_2')).toBe('1 asked, 0 accepted')

  const refused = { ...keyed, key: 'refused' }
  expect(statusOf(await sendTo(sandbox.url, numberOf('unavailable'), { ...refused, messageId: 'msg_3' }))).toBe(503)
  expectError(await sendTo(sandbox.url, somebody, { ...refused, messageId: 'msg_3' }), 'key_reused')
  expect(await countsOf(sandbox.url, 'msg_3')).toBe('2 asked, 0 accepted')
})

test('a request is the same by its bytes: another order of members is another request', async () => {
  const { sandbox } = await newSandbox()
  const send = (body: string): Promise<string> =>
    exchange(sandbox.url, 'POST /v1/send', ['idempotency-key: order-42'], body)
  expectCreated(await send('{"messageId":"msg_1","provider":"p","channel":"sms","to":"t"}'))
  expectError(await send('{"provider":"p","messageId":"msg_1","channel":"sms","to":"t"}'), 'key_reused')
  expect(await countsOf(sandbox.url)).toBe('2 asked, 1 accepted')
})

test('a key of one provider is nothing to another, and neither is the same text under another key', async () => {
  const { sandbox } = await newSandbox()
  const answers = [
    await sendTo(sandbox.url, somebody, keyed),
    await sendTo(sandbox.url, somebody, { ...keyed, provider: 'sandbox-other' }),
    await sendTo(sandbox.url, somebody, { ...keyed, key: 'Order-42' }),
    await sendTo(sandbox.url, somebody, { provider: keyed.provider }),
  ]
  for (const bytes of answers) expectCreated(bytes)
  expect(new Set(answers.map((bytes) => (bodyOf(bytes) as { id: string }).id)).size).toBe(4)
  expect(await countsOf(sandbox.url)).toBe('4 asked, 4 accepted')
})

test('while its first request runs a key is in use, for the same request alone', async () => {
  const { sandbox } = await newSandbox({ slowMs: 600_000 })
  const running = sendTo(sandbox.url, numberOf('slow'), keyed)
  await expect.poll(() => countsOf(sandbox.url), patience).toBe('1 asked, 0 accepted')
  expectError(await sendTo(sandbox.url, numberOf('slow'), keyed), 'key_in_use')
  expectError(await sendTo(sandbox.url, numberOf('slow'), { ...keyed, text: 'hello!' }), 'key_reused')
  expect(await countsOf(sandbox.url)).toBe('3 asked, 0 accepted')
  expect(await lookUp(sandbox.url, keyed.provider)).toEqual({ data: [] })

  await sandbox.close()
  expect(await running).toBe('')
})

test('a slow request whose caller hung up is accepted once, and its repeat is told so', async () => {
  const { sandbox } = await newSandbox()
  const { port, hostname } = new URL(sandbox.url)
  const body = '{"messageId":"msg_1","provider":"p","channel":"chat","to":"sandbox:slow"}'
  const head = `POST /v1/send HTTP/1.1\r\nhost: sandbox\r\nidempotency-key: k\r\ncontent-length: ${body.length}\r\n\r\n`
  const socket = connect(Number(port), hostname)
  socket.write(`${head}${body}`)
  await expect.poll(() => countsOf(sandbox.url), patience).toMatch(/^1 asked/)
  socket.destroy()

  await expect.poll(() => countsOf(sandbox.url), patience).toBe('1 asked, 1 accepted')
  expectCreated(await exchange(sandbox.url, 'POST /v1/send', ['idempotency-key: k'], body))
  expect(await countsOf(sandbox.url)).toBe('2 asked, 1 accepted')
})

test.each([
  ['undelivered', ['201']],
  ['lost-reply', ['201', 'no byte']],
  ['slow', ['201', '409']],
] as const)('of many requests to %s under one key in one instant one is accepted (S4)', async (name, mayEnd) => {
  const { sandbox } = await newSandbox()
  const meet = meetingOf(21)
  // Another message goes first, so that a write is on its way when the others look at their key.
  const [, ...answers] = await Promise.all([
    sendTo(sandbox.url, somebody, { messageId: 'msg_other', meet }),
    ...Array.from({ length: 20 }, () => sendTo(sandbox.url, numberOf(name), { ...keyed, meet })),
  ])

  const { data } = (await lookUp(sandbox.url, keyed.provider)) as { data: { id: string }[] }
  expect(data).toHaveLength(1)
  expect(await countsOf(sandbox.url)).toBe('20 asked, 1 accepted')
  const created = answers.filter((bytes) => endOf(bytes) === '201')
  for (const bytes of created) expect(bodyOf(bytes)).toEqual({ id: data[0]?.id })
  // How many come while a slow one still runs is the machine's business: none need.
  const ends = answers.map(endOf)
  expect(ends).toContain('201')
  expect(new Set([...ends, ...mayEnd])).toEqual(new Set(mayEnd))
})

test.each([
  ['empty', ''],
  ['too long', 'k'.repeat(256)],
  ['two words', 'order 42'],
  ['not ASCII', 'ordé'],
  ['two headers', 'a\r\nidempotency-key: b'],
])('a key that is %s is 400, and the request is not counted', async (_, key) => {
  const { sandbox } = await newSandbox()
  const bytes = await sendTo(sandbox.url, somebody, { ...keyed, key })
  expect(statusOf(bytes)).toBe(400)
  expect(bodyOf(bytes)).toEqual(errorFor('invalid_request'))
  expect(bodyOf(await exchange(sandbox.url, 'GET /ledger'))).toEqual({ data: [] })
})

test('a key of 255 bytes is taken, and every visible character', async () => {
  const { sandbox } = await newSandbox()
  const visible = String.fromCodePoint(...Array.from({ length: 94 }, (_, index) => 0x21 + index))
  for (const key of ['k'.repeat(255), visible, 'k'])
    expectCreated(await sendTo(sandbox.url, somebody, { ...keyed, key }))
  expect(await countsOf(sandbox.url)).toBe('3 asked, 3 accepted')
})

test('a request that cannot be read leaves its key free', async () => {
  const { sandbox } = await newSandbox()
  expect(statusOf(await exchange(sandbox.url, 'POST /v1/send', ['idempotency-key: order-42'], '{}'))).toBe(400)
  expectCreated(await sendTo(sandbox.url, somebody, keyed))
})

test('keys outlive a restart; what was running at its end may be run again', async () => {
  const { sandbox, ledgerFile } = await newSandbox({ slowMs: 600_000 })
  const id = bodyOf(await sendTo(sandbox.url, somebody, keyed))
  const slow = { ...keyed, key: 'slow', messageId: 'msg_slow' }
  const running = sendTo(sandbox.url, numberOf('slow'), slow)
  await expect.poll(() => countsOf(sandbox.url, 'msg_slow'), patience).toBe('1 asked, 0 accepted')
  await sandbox.close()
  await running
  await appendFile(ledgerFile, '{"messageId":"msg_torn"')

  const again = await newSandbox({ ledgerFile })
  expect(bodyOf(await sendTo(again.sandbox.url, somebody, keyed))).toEqual(id)
  expectError(await sendTo(again.sandbox.url, somebody, { ...keyed, text: 'hello!' }), 'key_reused')
  expect(await countsOf(again.sandbox.url)).toBe('3 asked, 1 accepted')

  expectError(await sendTo(again.sandbox.url, somebody, slow), 'key_reused')
  expectCreated(await sendTo(again.sandbox.url, numberOf('slow'), slow))
  expectCreated(await sendTo(again.sandbox.url, numberOf('slow'), slow))
  expect(await countsOf(again.sandbox.url, 'msg_slow')).toBe('4 asked, 1 accepted')
})

test('DELETE /ledger forgets keys and what was accepted', async () => {
  const { sandbox } = await newSandbox()
  const id = bodyOf(await sendTo(sandbox.url, somebody, keyed))
  expect(statusOf(await exchange(sandbox.url, 'DELETE /ledger'))).toBe(204)
  expect(await lookUp(sandbox.url, keyed.provider)).toEqual({ data: [] })

  const bytes = await sendTo(sandbox.url, somebody, { ...keyed, text: 'hello!' })
  expectCreated(bytes)
  expect(bodyOf(bytes)).not.toEqual(id)
  expect(await countsOf(sandbox.url)).toBe('1 asked, 1 accepted')
})

test('kill -9 right after a lost reply hides no acceptance: its repeat gets the id that the look-up shows', async () => {
  const env = { SENDONCE_DATA_DIR: join(await newFolder(), 'data'), SANDBOX_PORT: '0' }
  const killed = spawnMain(env)
  const url = await urlPrintedBy(killed)
  const send = (to: string, index: number): Promise<string> =>
    sendTo(to, numberOf('lost-reply'), { ...keyed, key: `key-${index}`, messageId: `msg_${index}` })
  const lost = await Promise.all(Array.from({ length: 20 }, (_, index) => send(url, index)))
  killed.kill('SIGKILL')
  await once(killed, 'exit')
  expect(new Set(lost)).toEqual(new Set(['']))

  const nextUrl = await urlPrintedBy(spawnMain(env))
  for (let index = 0; index < 20; index += 1) {
    const { data } = (await lookUp(nextUrl, keyed.provider, `msg_${index}`)) as { data: { id: string }[] }
    expect(bodyOf(await send(nextUrl, index))).toEqual({ id: data[0]?.id })
    expect(await countsOf(nextUrl, `msg_${index}`)).toBe('2 asked, 1 accepted')
  }
})

import { once } from 'node:events'
import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { channels } from '../../src/core/message-content.ts'
import { magicFor, magicRecipient, magics } from '../../src/sandbox/magic.ts'
import { startSandbox } from '../../src/sandbox/server.ts'
import {
  bodyOf,
  countsOf,
  errorFor,
  exchange,
  expectCreated,
  newFolder,
  newSandbox,
  numberOf,
  patience,
  sendTo,
  spawnMain,
  statusOf,
  urlPrintedBy,
} from '../support/sandbox-client.ts'

test('every magic recipient has an address on each channel but webhook, and each is found by it (G1)', () => {
  const addresses = magics.flatMap((magic) =>
    channels.flatMap((channel) => {
      const to = magicRecipient(channel, magic)
      if (to === null) return []
      expect(magicFor(channel, to)).toBe(magic)
      return [`${channel} ${to}`]
    }),
  )
  expect(new Set(addresses).size).toBe(magics.length * 4)
  expect(magicFor('email', 'lost-reply@sandbox.test')?.name).toBe('lost-reply')
  expect(magicFor('push', 'sandbox:slow')?.name).toBe('slow')
  expect(magicFor('sms', 'sandbox:slow')).toBeUndefined()
  expect(magicFor('webhook', 'https://slow.sandbox.test/')).toBeUndefined()
})

test('an ordinary recipient is accepted at once, and each further request is accepted again and counted', async () => {
  const { sandbox } = await newSandbox()
  expectCreated(await sendTo(sandbox.url, '+447700900123'))
  expectCreated(await sendTo(sandbox.url, '+447700900123'))
  expect(bodyOf(await exchange(sandbox.url, 'GET /ledger'))).toEqual({
    data: [{ messageId: 'msg_1', provider: 'sandbox-blind', to: '+447700900123', acceptedCount: 2, requestCount: 2 }],
  })
})

test.each(['refuse-connection', 'duplicate-receipt', 'receipt-first', 'undelivered'] as const)(
  '%s is accepted at once',
  async (name) => {
    const { sandbox } = await newSandbox()
    expectCreated(await sendTo(sandbox.url, numberOf(name)))
    expect(await countsOf(sandbox.url)).toBe('1 asked, 1 accepted')
  },
)

test('reject is refused with the documented error, however often it is asked (G2)', async () => {
  const { sandbox } = await newSandbox()
  for (const asked of [1, 2]) {
    const bytes = await sendTo(sandbox.url, numberOf('reject'))
    expect(statusOf(bytes)).toBe(400)
    expect(bodyOf(bytes)).toEqual(errorFor('recipient_refused'))
    expect(await countsOf(sandbox.url)).toBe(`${asked} asked, 0 accepted`)
  }
})

test.each([
  ['rate-limited', 429, 'rate_limited', 0],
  ['unavailable', 503, 'unavailable', 0],
  ['error-before', 500, 'internal_error', 0],
  ['error-after', 500, 'internal_error', 1],
] as const)('%s answers %i %s with %i accepted, then accepts', async (name, status, code, acceptedCount) => {
  const { sandbox } = await newSandbox()
  const bytes = await sendTo(sandbox.url, numberOf(name))
  expect(statusOf(bytes)).toBe(status)
  expect(bodyOf(bytes)).toEqual(errorFor(code))
  expect(/^retry-after: (.*)\r$/m.exec(bytes)?.[1]).toBe(name === 'rate-limited' ? '1' : undefined)
  expect(await countsOf(sandbox.url)).toBe(`1 asked, ${acceptedCount} accepted`)

  expectCreated(await sendTo(sandbox.url, numberOf(name)))
  expect(await countsOf(sandbox.url)).toBe(`2 asked, ${acceptedCount + 1} accepted`)
})

test('lost-reply accepts and ends the connection without a byte; a second request is a double in the ledger', async () => {
  const { sandbox } = await newSandbox()
  expect(await sendTo(sandbox.url, numberOf('lost-reply'))).toBe('')
  expect(await countsOf(sandbox.url)).toBe('1 asked, 1 accepted')
  expectCreated(await sendTo(sandbox.url, numberOf('lost-reply')))
  expect(await countsOf(sandbox.url)).toBe('2 asked, 2 accepted')
})

test('half-answer accepts and cuts its 201 within the body', async () => {
  const { sandbox } = await newSandbox()
  const bytes = await sendTo(sandbox.url, numberOf('half-answer'))
  const body = bytes.slice(bytes.indexOf('\r\n\r\n') + 4)
  expect(statusOf(bytes)).toBe(201)
  expect(body.length).toBeGreaterThan(0)
  expect(Number(/^content-length: (\d+)/m.exec(bytes)?.[1])).toBeGreaterThan(body.length)
  expect(await countsOf(sandbox.url)).toBe('1 asked, 1 accepted')
})

test('garbage accepts and answers bytes that are no HTTP', async () => {
  const { sandbox } = await newSandbox()
  const bytes = await sendTo(sandbox.url, numberOf('garbage'))
  expect(bytes).toContain('this is no HTTP')
  expect(bytes).not.toMatch(/^HTTP/)
  expect(await countsOf(sandbox.url)).toBe('1 asked, 1 accepted')
})

test('late-reply accepts, and answers a second after the time that the caller waits', async () => {
  const { sandbox } = await newSandbox()
  const startedAt = performance.now()
  expectCreated(await sendTo(sandbox.url, numberOf('late-reply'), { headers: ['x-answer-timeout-ms: 50'] }))
  expect(performance.now() - startedAt).toBeGreaterThan(1000)
  expect(await countsOf(sandbox.url)).toBe('1 asked, 1 accepted')
})

test('slow counts the request when it comes, and the acceptance and the answer later', async () => {
  const { sandbox, ledgerFile } = await newSandbox()
  expectCreated(await sendTo(sandbox.url, numberOf('slow')))
  const lines = (await readFile(ledgerFile, 'utf8')).trimEnd().split('\n')
  expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
    { messageId: 'msg_1', requested: true, accepted: false },
    { messageId: 'msg_1', requested: false, accepted: true },
  ])
})

test('slow accepts also for a caller that hung up', async () => {
  const { sandbox } = await newSandbox()
  const { port, hostname } = new URL(sandbox.url)
  const body = '{"messageId":"msg_1","provider":"p","channel":"chat","to":"sandbox:slow","content":{"text":"hello"}}'
  const socket = connect(Number(port), hostname)
  socket.write(`POST /v1/send HTTP/1.1\r\nhost: sandbox\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
  await expect.poll(() => countsOf(sandbox.url), patience).toMatch(/^1 asked/)
  socket.destroy()
  await expect.poll(() => countsOf(sandbox.url), patience).toBe('1 asked, 1 accepted')
})

test('of many requests of one message at once one meets the fault (L2)', async () => {
  const { sandbox } = await newSandbox()
  const answers = await Promise.all(Array.from({ length: 20 }, () => sendTo(sandbox.url, numberOf('unavailable'))))
  expect(answers.map(statusOf).filter((status) => status === 503)).toHaveLength(1)
  expect(await countsOf(sandbox.url)).toBe('20 asked, 19 accepted')
})

test('what was seen outlives a restart, a torn last line included, and the fault is not played again (S2)', async () => {
  const { sandbox, ledgerFile } = await newSandbox()
  await sendTo(sandbox.url, numberOf('lost-reply'))
  await sandbox.close()
  await appendFile(ledgerFile, '{"messageId":"msg_torn"')

  const again = await newSandbox({ ledgerFile })
  expect(await countsOf(again.sandbox.url)).toBe('1 asked, 1 accepted')
  expectCreated(await sendTo(again.sandbox.url, numberOf('lost-reply')))
  expect(await countsOf(again.sandbox.url)).toBe('2 asked, 2 accepted')
})

test('DELETE /ledger forgets everything; a message then has its first request again', async () => {
  const { sandbox } = await newSandbox()
  await sendTo(sandbox.url, numberOf('unavailable'))
  expect(statusOf(await exchange(sandbox.url, 'DELETE /ledger'))).toBe(204)
  expect(bodyOf(await exchange(sandbox.url, 'GET /ledger'))).toEqual({ data: [] })
  expect(statusOf(await sendTo(sandbox.url, numberOf('unavailable')))).toBe(503)
})

test.each(['', '{', 'null', '[]', '{}', '{"messageId":"m","provider":"p","channel":"fax","to":"t"}'])(
  'a body that cannot be read (%j) is 400 and is not counted',
  async (body) => {
    const { sandbox } = await newSandbox()
    const bytes = await exchange(sandbox.url, 'POST /v1/send', [], body)
    expect(statusOf(bytes)).toBe(400)
    expect(bodyOf(bytes)).toEqual(errorFor('invalid_request'))
    expect(bodyOf(await exchange(sandbox.url, 'GET /ledger'))).toEqual({ data: [] })
  },
)

test('a body of 32 MiB is read, a longer one is 413', async () => {
  const { sandbox } = await newSandbox()
  const start = '{"messageId":"msg_1","provider":"p","channel":"email","to":"a@example.org","content":{"text":"'
  const longest = `${start}${'x'.repeat(32 * 1024 * 1024 - start.length - 3)}"}}`
  expectCreated(await exchange(sandbox.url, 'POST /v1/send', [], longest))
  const bytes = await exchange(sandbox.url, 'POST /v1/send', [], `${longest} `)
  expect(statusOf(bytes)).toBe(413)
  expect(bodyOf(bytes)).toEqual(errorFor('invalid_request'))
})

test('GET /livez is 200; what is not there is 404', async () => {
  const { sandbox } = await newSandbox()
  expect(statusOf(await exchange(sandbox.url, 'GET /livez'))).toBe(200)
  for (const request of ['GET /', 'GET //', 'GET /v1/send', 'POST /ledger'])
    expect(statusOf(await exchange(sandbox.url, request))).toBe(404)
})

test('close ends connections on which nothing was said, and may be called twice', async () => {
  const { sandbox } = await newSandbox()
  const { port, hostname } = new URL(sandbox.url)
  const silent = connect(Number(port), hostname)
  await once(silent, 'connect')
  await Promise.all([sandbox.close(), sandbox.close(), once(silent.resume(), 'close')])
  expect(silent.bytesRead).toBe(0)
})

test('a port that is taken is said in one clear line', async () => {
  const { sandbox } = await newSandbox()
  const port = Number(new URL(sandbox.url).port)
  const second = startSandbox({ host: '127.0.0.1', port, ledgerFile: join(await newFolder(), 'ledger.jsonl') })
  await expect(second).rejects.toThrow(`The sandbox cannot listen on 127.0.0.1:${port}: the port is taken`)
})

test('by itself it prints its address, loses nothing to kill -9, and SIGTERM ends it with 0 although an answer is due', async () => {
  const env = { SENDONCE_DATA_DIR: join(await newFolder(), 'data'), SANDBOX_PORT: '0' }
  const killed = spawnMain(env)
  const url = await urlPrintedBy(killed)
  await Promise.all(
    Array.from({ length: 50 }, (_, index) => sendTo(url, '+447700900123', { messageId: `msg_${index}` })),
  )
  killed.kill('SIGKILL')
  await once(killed, 'exit')

  const next = spawnMain(env)
  const nextUrl = await urlPrintedBy(next)
  const { data } = bodyOf(await exchange(nextUrl, 'GET /ledger')) as { data: object[] }
  expect(data).toHaveLength(50)

  const late = sendTo(nextUrl, numberOf('late-reply'), {
    messageId: 'msg_late',
    headers: ['x-answer-timeout-ms: 600000'],
  })
  await expect.poll(() => countsOf(nextUrl, 'msg_late'), patience).toBe('1 asked, 1 accepted')
  next.kill('SIGTERM')
  expect(await once(next, 'exit')).toEqual([0, null])
  expect(await late).toBe('')
})

test.each(['port', 'folder'])(
  'by itself it says in one line that the %s cannot be had, and ends with 1',
  async (which) => {
    const { sandbox, ledgerFile } = await newSandbox()
    await writeFile(ledgerFile, '')
    const child = spawnMain({
      SANDBOX_PORT: which === 'port' ? new URL(sandbox.url).port : '0',
      SENDONCE_DATA_DIR: which === 'folder' ? ledgerFile : await newFolder(),
    })
    const [lines, exit] = await Promise.all([child.stderr.toArray(), once(child, 'exit')])
    expect(exit).toEqual([1, null])
    expect(lines.join('')).toMatch(/^The sandbox cannot (listen on|use its ledger) [^\n]+\n$/)
  },
)

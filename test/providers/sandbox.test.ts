import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Value } from 'typebox/value'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { channels, type Channel, type MessageRequest } from '../../src/core/message-content.ts'
import type { Outcome } from '../../src/core/outcome.ts'
import { agentFor, callProvider } from '../../src/providers/http-outcome.ts'
import { judgeCall } from '../../src/providers/judge-answer.ts'
import { sandboxAdapters, type SandboxSettings } from '../../src/providers/sandbox.ts'
import { magicRecipient, magics, sandboxErrors, type Magic } from '../../src/sandbox/magic.ts'
import { startSandbox, type Sandbox } from '../../src/sandbox/server.ts'
import { attemptContext, blindCapabilities } from '../support/attempt-context.ts'

const sandbox = sandboxAdapters[0] ?? expect.unreachable()

let folder: string
let server: Sandbox
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sendonce-adapter-'))
  server = await startSandbox({ host: '127.0.0.1', port: 0, ledgerFile: join(folder, 'ledger.jsonl'), slowMs: 50 })
})
afterAll(async () => {
  await server.close()
  await rm(folder, { recursive: true, force: true })
})

const settingsWith = (given: Partial<SandboxSettings> = {}): SandboxSettings =>
  Value.Parse(sandbox.settings, Value.Default(sandbox.settings, { baseUrl: server.url, ...given })) as SandboxSettings

const contents = {
  sms: { text: 'hello' },
  email: { subject: 'hello', text: 'hello' },
  chat: { text: 'hello' },
  push: { title: 'hello', body: 'hello' },
  webhook: { type: 'hello', data: null },
} as const satisfies { [C in Channel]: Extract<MessageRequest, { channel: C }>['content'] }

const messageTo = (channel: Channel, to: string): MessageRequest =>
  ({ channel, to, content: contents[channel] }) as MessageRequest

/**
 * Two attempts of one message, whatever the first ended with. Only `late-reply` is to meet its time-out, on its first
 * attempt: a short one elsewhere would test the speed of the machine.
 */
async function twoAttempts(channel: Channel, to: string, firstTimeoutMs = 20_000): Promise<[Outcome, Outcome]> {
  const agent = agentFor(settingsWith({ connectTimeoutMs: 20_000 }))
  onTestFinished(() => agent.destroy())
  const messageId = `msg_${channel}_${to}`
  const attempt = async (attemptNumber: number): Promise<Outcome> => {
    const answerTimeoutMs = attemptNumber === 1 ? firstTimeoutMs : 20_000
    const settings = settingsWith({ connectTimeoutMs: 20_000, answerTimeoutMs })
    const context = attemptContext({ messageId, attemptNumber })
    const request = sandbox.render(messageTo(channel, to), settings, context)
    const result = await callProvider(agent, request, settings, () => true)
    return judgeCall(result, sandbox.answers, blindCapabilities('status'))
  }
  return [await attempt(1), await attempt(2)]
}

const acceptedWithId = { kind: 'accepted', providerMessageId: expect.stringMatching(/^sbx_[0-9a-f]{32}$/) as string }
const created = { ...acceptedWithId, evidence: { phase: 'answered', httpStatus: 201 } }
const begun = { kind: 'unknown', evidence: { phase: 'begun' } }
const timedOut = { kind: 'unknown', evidence: { phase: 'begun', code: 'answer time-out' } }
const error500 = { kind: 'unknown', evidence: { phase: 'answered', httpStatus: 500, code: 'internal_error' } }
const refused = { kind: 'rejected', evidence: { phase: 'answered', httpStatus: 400, code: 'recipient_refused' } }
const notSent = (httpStatus: number, code: string, retryAfterMs: number | null): object => ({
  kind: 'not_sent',
  reason: 'refused_for_now',
  retryAfterMs,
  evidence: { phase: 'answered', httpStatus, code },
})

/** What each recipient's first and second attempt end with, and how often its message was then accepted. */
const expected: Record<Magic['name'], { first: object; second: object; acceptedCount: number }> = {
  reject: { first: refused, second: refused, acceptedCount: 0 },
  'rate-limited': { first: notSent(429, 'rate_limited', 1000), second: created, acceptedCount: 1 },
  unavailable: { first: notSent(503, 'unavailable', null), second: created, acceptedCount: 1 },
  'refuse-connection': {
    first: { kind: 'not_sent', reason: 'not_begun', evidence: { phase: 'not_begun', code: 'ECONNREFUSED' } },
    second: created,
    acceptedCount: 1,
  },
  'lost-reply': { first: begun, second: created, acceptedCount: 2 },
  'late-reply': { first: timedOut, second: created, acceptedCount: 2 },
  'half-answer': {
    first: { kind: 'accepted', providerMessageId: null, evidence: { phase: 'answered', httpStatus: 201 } },
    second: created,
    acceptedCount: 2,
  },
  garbage: { first: begun, second: created, acceptedCount: 2 },
  'error-after': { first: error500, second: created, acceptedCount: 2 },
  'error-before': { first: error500, second: created, acceptedCount: 1 },
  slow: { first: created, second: created, acceptedCount: 2 },
  'duplicate-receipt': { first: created, second: created, acceptedCount: 2 },
  'receipt-first': { first: created, second: created, acceptedCount: 2 },
  undelivered: { first: created, second: created, acceptedCount: 2 },
  'receipt-settles': { first: begun, second: created, acceptedCount: 2 },
}

async function acceptedCountOf(to: string, channel: Channel): Promise<number | undefined> {
  const ledger = await fetch(`${server.url}/ledger`)
  const { data } = (await ledger.json()) as { data: { messageId: string; to: string; acceptedCount: number }[] }
  return data.find((row) => row.to === to && row.messageId.startsWith(`msg_${channel}_`))?.acceptedCount
}

const withAddresses = magics.flatMap((magic) =>
  channels.flatMap((channel) => {
    const to = magicRecipient(channel, magic)
    return to === null ? [] : [{ channel, to, name: magic.name }]
  }),
)

test.for(withAddresses)('$channel to $name ends as its table says, twice', async ({ channel, to, name }) => {
  const [first, second] = await twoAttempts(channel, to, name === 'late-reply' ? 100 : undefined)
  expect(first).toMatchObject(expected[name].first)
  expect(second).toMatchObject(expected[name].second)
  expect((await acceptedCountOf(to, channel)) ?? 0).toBe(expected[name].acceptedCount)
})

test.for(channels)('an ordinary recipient on %s is accepted', async (channel) => {
  const [first] = await twoAttempts(channel, 'somebody')
  expect(first).toMatchObject(created)
})

test('the closed port is dialled by the first attempt to refuse-connection only', () => {
  const settings = settingsWith({ refusedUrl: 'http://127.0.0.1:2' })
  const originOf = (to: string, attemptNumber: number): string =>
    sandbox.render(messageTo('sms', to), settings, attemptContext({ attemptNumber })).origin
  expect(originOf('+15005550004', 1)).toBe('http://127.0.0.1:2')
  expect(originOf('+15005550004', 2)).toBe(server.url)
  expect(originOf('+447700900123', 1)).toBe(server.url)
})

test('a request carries message id, provider and time-out, and traceparent where there is one', () => {
  const settings = settingsWith({ baseUrl: 'http://sandbox.example/base/' })
  const message: MessageRequest = { channel: 'sms', to: '+447700900123', from: 'ACME', content: { text: 'hello' } }
  const context = attemptContext()
  const request = sandbox.render(message, settings, context)
  expect(request).toMatchObject({ origin: 'http://sandbox.example', method: 'POST', path: '/base/v1/send' })
  expect(request.headers).toEqual({ 'content-type': 'application/json', 'x-answer-timeout-ms': '5000' })
  expect(JSON.parse(request.body ?? '')).toEqual({ messageId: 'msg_1', provider: 'sandbox-blind', ...message })

  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  expect(sandbox.render(message, settings, { ...context, traceparent }).headers).toMatchObject({ traceparent })
})

test.each([
  ['sms', '🎈'.repeat(1600), undefined],
  ['sms', 'x'.repeat(1601), '/content/text'],
  ['chat', 'x'.repeat(1601), undefined],
] as const)('a text on %s is limited to 1600 characters for sms alone, by code point', (channel, text, pointer) => {
  const message: MessageRequest = { channel, to: 'somebody', content: { text } }
  expect(sandbox.limitBroken(message, settingsWith())?.pointer).toBe(pointer)
})

test('every error that the sandbox documents is in the table of the adapter, under its status', () => {
  expect(Object.keys(sandbox.answers.codes).toSorted()).toEqual(Object.keys(sandboxErrors).toSorted())
  for (const [code, { status }] of Object.entries(sandboxErrors))
    expect(sandbox.answers.codes[code]?.statuses).toContain(status)
})

test("an error body that is not the sandbox's own proves nothing, whatever its status", () => {
  for (const body of ['', 'Bad Gateway', '{"error":"rate_limited"}', '{"error":{"code":"rate_limited"}}']) {
    const answer = { status: 429, headers: {}, body, complete: true, retryAfterMs: null }
    expect(
      judgeCall({ phase: 'answered', answer, code: null }, sandbox.answers, blindCapabilities('status')).kind,
    ).toBe('unknown')
  }
})

test('settings are strict and have defaults', () => {
  expect(settingsWith({ baseUrl: 'http://sandbox.example' })).toEqual({
    baseUrl: 'http://sandbox.example',
    connectTimeoutMs: 1000,
    answerTimeoutMs: 5000,
    concurrency: 64,
    refusedUrl: 'http://127.0.0.1:1',
  })
  expect(Value.Check(sandbox.settings, { ...settingsWith(), apiKey: 'unknown' })).toBe(false)
  expect(Value.Check(sandbox.settings, { ...settingsWith(), concurrency: 0 })).toBe(false)
})

test('one that listens elsewhere after a restart is known by its ledger; without one, by its address', () => {
  const identityAt = (baseUrl: string, ledger?: string): readonly string[] =>
    sandbox.identity({ ...settingsWith({ baseUrl }), ...(ledger === undefined ? {} : { ledger }) })
  expect(identityAt('http://127.0.0.1:1', 'host /data')).toEqual(identityAt('http://127.0.0.1:2', 'host /data'))
  expect(identityAt('http://127.0.0.1:1', 'host /data')).not.toEqual(identityAt('http://127.0.0.1:1', 'host /other'))
  expect(identityAt('http://127.0.0.1:1')).not.toEqual(identityAt('http://127.0.0.1:2'))
})

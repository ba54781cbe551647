import { Ajv } from 'ajv'
import { expect, test } from 'vitest'
import { recoveryOf } from '../../src/core/capabilities.ts'
import type { ChatRequest, MessageRequest } from '../../src/core/message-content.ts'
import { capabilitiesOf, httpProvider } from '../../src/providers/http-provider.ts'
import { type CallResult, judgeCall } from '../../src/providers/judge-answer.ts'
import { slack, type SlackSettings } from '../../src/providers/slack.ts'
import { attemptContext, wholeRequest } from '../support/attempt-context.ts'
import { afterRequest, http, says, scriptedServer } from '../support/scripted-server.ts'

const settings: SlackSettings = {
  token: 'xoxb-1-secret',
  baseUrl: 'https://slack.com',
  connectTimeoutMs: 3000,
  answerTimeoutMs: 10_000,
  concurrency: 64,
}
const chat = (text: string, more: Partial<ChatRequest> = {}, threadId?: string): ChatRequest => ({
  channel: 'chat',
  to: 'C024BE91L',
  content: { text, ...(threadId === undefined ? {} : { threadId }) },
  ...more,
})
const attempt = attemptContext({ messageId: 'msg_0198', traceparent: '00-trace-01' })
const ts = '1503435956.000247'

interface Answer {
  readonly status: number
  readonly body: string
  readonly complete?: boolean
  readonly retryAfterMs?: number
}
function judged({ status, body, complete = true, retryAfterMs }: Answer) {
  const answer = { status, body, complete, headers: {}, retryAfterMs: retryAfterMs ?? null }
  const result: CallResult = { phase: 'answered', answer, code: null }
  return judgeCall(result, slack.answers, capabilitiesOf(slack, settings))
}
const refusal = (error: string, status = 200, more: Partial<Answer> = {}): Answer => ({
  status,
  body: JSON.stringify({ ok: false, error, needed: 'canary' }),
  ...more,
})

test('200 with ok and its ts is accepted', () => {
  const body = JSON.stringify({ ok: true, channel: 'C1H9RESGL', ts, message: { text: 'x', ts } })
  expect(judged({ status: 200, body })).toMatchObject({ kind: 'accepted', providerMessageId: ts })
})

test.each([
  ['invalid_auth', 200, 'credentials'],
  ['account_inactive', 200, 'credentials'],
  ['token_revoked', 200, 'credentials'],
  ['missing_scope', 200, 'credentials'],
  ['invalid_auth', 401, 'credentials'],
  ['ratelimited', 429, 'refused_for_now'],
  ['rate_limited', 200, 'refused_for_now'],
  ['team_added_to_org', 200, 'refused_for_now'],
])('%s under %i is not sent', (error, status, reason) => {
  expect(judged(refusal(error, status, { retryAfterMs: 30_000 }))).toMatchObject({
    kind: 'not_sent',
    reason,
    retryAfterMs: 30_000,
  })
})

test.each(['channel_not_found', 'not_in_channel', 'is_archived', 'msg_too_long', 'no_text', 'no_permission'])(
  '%s is rejected in words of Slack, which are not those of the answer',
  (error) => {
    const outcome = judged(refusal(error))
    expect(outcome).toMatchObject({ kind: 'rejected', evidence: { httpStatus: 200, code: error } })
    expect(outcome.evidence.detail).toBe(slack.answers.codes[error]?.wording)
    expect(JSON.stringify(outcome)).not.toContain('canary')
  },
)

test.each([
  ['internal_error', refusal('internal_error')],
  ['internal_error of a 500', refusal('internal_error', 500)],
  ['fatal_error', refusal('fatal_error')],
  ['request_timeout', refusal('request_timeout')],
  ['a code in no table', refusal('new_error')],
  ['the name of a member of every object', refusal('constructor')],
  ['the code of a refusal under a 500', refusal('channel_not_found', 500)],
  ['the code of a refusal under a 429', refusal('channel_not_found', 429)],
  ['a limit under a 503', refusal('ratelimited', 503)],
  ...[400, 401, 403, 404, 429, 500, 502, 503, 504].map(
    (status) => [`a bare ${status}`, { status, body: '<html>upstream</html>' }] as const,
  ),
  ['a bare 200', { status: 200, body: 'ok' }],
  ['a cut 200', { status: 200, body: '{"ok":tr', complete: false }],
  ['a refusal that was cut', refusal('channel_not_found', 200, { complete: false })],
  ['ok without a ts', { status: 200, body: '{"ok":true}' }],
  ['a ts without ok', { status: 200, body: JSON.stringify({ ts }) }],
  ['ok as a word', { status: 200, body: JSON.stringify({ ok: 'true', ts }) }],
  ['ok under a 201', { status: 201, body: JSON.stringify({ ok: true, ts }) }],
  ['an error without ok', { status: 200, body: '{"error":"channel_not_found"}' }],
  ['ok: false without an error', { status: 200, body: '{"ok":false}' }],
  ['null', { status: 200, body: 'null' }],
] as const)('%s is unknown', (_name, answer) => {
  expect(judged(answer).kind).toBe('unknown')
})

test('a code that is not listed is shown as such; every listed one has its words and statuses', () => {
  expect(judged(refusal('new_error')).evidence).toMatchObject({ code: 'new_error', unrecognised: true })
  for (const [code, { wording, statuses }] of Object.entries(slack.answers.codes)) {
    expect(code).toMatch(/^[a-z_]+$/)
    expect(wording).toMatch(/\.$/)
    expect(statuses).toContain(200)
  }
})

const takes = (message: MessageRequest) => slack.limitBroken(message, settings)

test.each(['C024BE91L', 'U012A3CDE', 'D0G9QPY56', '#general', 'general-2_x', '一般'])('%s may be a recipient', (to) => {
  expect(takes(chat('x'.repeat(40_000), { to }, ts))).toBeNull()
})

test.each([
  ['an empty text', chat(' \n'), '/content/text'],
  ['a text of 40,001 characters', chat('x'.repeat(40_001)), '/content/text'],
  ['half a character', chat('\ud83d'), '/content/text'],
  ['a name in capitals', chat('x', { to: 'General' }), '/to'],
  ['two names', chat('x', { to: 'general,random' }), '/to'],
  ['an id with a line break after it', chat('x', { to: 'C024BE91L\n' }), '/to'],
  ['a sender', chat('x', { from: 'Sendonce' }), '/from'],
  ['a thread that is no ts', chat('x', {}, '1503435956'), '/content/threadId'],
  ['a thread with a line break after it', chat('x', {}, `${ts}\n`), '/content/threadId'],
])('%s breaks a limit', (_name, message, pointer) => {
  expect(takes(message)).toMatchObject({ pointer })
})

const rendered = (message: MessageRequest, own: Partial<SlackSettings> = {}) => {
  const request = wholeRequest(slack, message, { ...settings, ...own }, attempt)
  return { ...request, json: JSON.parse(request.body) as unknown }
}

test.each(['a"},"channel":"C2', '<@U1> & <!channel>', 'line\r\nline', 'ñ 漢字 👩‍👩‍👧‍👦 \u202e\u2028'])(
  'the text %j survives, with our reference beside it',
  (text) => {
    const metadata = { event_type: 'sendonce', event_payload: { reference: 'msg_0198' } }
    expect(rendered(chat(text))).toMatchObject({ method: 'POST', path: '/api/chat.postMessage' })
    expect(rendered(chat(text)).json).toEqual({ channel: 'C024BE91L', text, metadata })
    expect(rendered(chat(text, {}, ts)).json).toEqual({ channel: 'C024BE91L', text, thread_ts: ts, metadata })
  },
)

test('the request carries the token and nothing of the trace', () => {
  expect(rendered(chat('x')).headers).toEqual({
    'content-type': 'application/json; charset=utf-8',
    authorization: 'Bearer xoxb-1-secret',
  })
  expect(rendered(chat('x'), { baseUrl: 'http://127.0.0.1:8080/prefix/' })).toMatchObject({
    origin: 'http://127.0.0.1:8080',
    path: '/prefix/api/chat.postMessage',
  })
})

const look = { messageId: 'msg_0198', createdAt: attempt.createdAt, startedAt: new Date('2026-07-01T13:00:00Z') }
const read = (body: unknown) => slack.lookup?.read(body, look)
const posted = (reference: unknown, at = ts, event_type = 'sendonce') => ({
  ts: at,
  metadata: { event_type, event_payload: { reference } },
})
const history = (messages: unknown, more: object = {}) => ({ ok: true, messages, has_more: false, ...more })

test('it is asked for the recent messages of the conversation, or of the thread', () => {
  const path = (message: ChatRequest) => slack.lookup?.render(message, settings, look).path
  const oldest = (attempt.createdAt.getTime() - 60_000) / 1000
  const query = `oldest=${oldest.toFixed(6)}&include_all_metadata=true&limit=30`
  expect(path(chat('x'))).toBe(`/api/conversations.history?channel=C024BE91L&${query}`)
  expect(path(chat('x', {}, ts))).toBe(`/api/conversations.replies?channel=C024BE91L&ts=${ts}&${query}`)
  expect(path(chat('x', { to: '#a&b=c' }))).toContain('channel=%23a%26b%3Dc&')
})

test('only messages with exactly our metadata count', () => {
  const others = [
    { ts },
    { ts, metadata: null },
    posted('msg_01'),
    posted(['msg_0198']),
    posted('msg_0198', ts, 'other'),
  ]
  expect(read(history(others))).toEqual({ count: 0, providerMessageId: null })
  expect(read(history([...others, posted('msg_0198')]))).toEqual({ count: 1, providerMessageId: ts })
  const two = [posted('msg_0198', '2.000000'), posted('msg_0198', '1.000000')]
  expect(read(history(two))).toEqual({ count: 2, providerMessageId: '2.000000' })
  expect(read(history(two, { has_more: true }))).toMatchObject({ count: 2 })
})

test.each([
  [undefined],
  [null],
  [{ ok: false, error: 'missing_scope' }],
  [{ ok: true }],
  [{ ok: true, messages: {} }],
  [{ messages: [] }],
  [history([], { has_more: true })],
])('a look-up that is answered with %j told nothing', (body) => {
  expect(read(body)).toBeNull()
})

test('not to be found proves nothing', () => {
  expect(recoveryOf(capabilitiesOf(slack, settings))).toBe('lookup-weak')
})

test('over HTTP: a refusal in a 200, an acceptance, and what was accepted is found', async () => {
  const message = { ok: true, ts, channel: 'C024BE91L' }
  const server = await scriptedServer(
    afterRequest(
      says(http('200 OK', JSON.stringify({ ok: false, error: 'not_in_channel' }))),
      says(http('200 OK', JSON.stringify(message))),
      says(http('200 OK', JSON.stringify(history([posted('msg_0198')])))),
      says(http('429 Too Many Requests', '{"ok":false,"error":"ratelimited"}', ['retry-after: 30'])),
    ),
  )
  const provider = httpProvider('slack', 'live', slack, { ...settings, baseUrl: server.origin })
  const send = async () => provider.send(chat('x'), attempt, () => true, null)
  expect(await send()).toMatchObject({ kind: 'rejected', evidence: { code: 'not_in_channel' } })
  expect(await send()).toMatchObject({ kind: 'accepted', providerMessageId: ts })
  expect(await provider.look(chat('x'), look)).toMatchObject({ kind: 'found', count: 1, providerMessageId: ts })
  expect(await send()).toMatchObject({ kind: 'not_sent', reason: 'refused_for_now', retryAfterMs: 30_000 })
  await provider.close()
  await server.close()
})

test('another token or another server is another provider', () => {
  const identity = (own: Partial<SlackSettings>) => slack.identity({ ...settings, ...own })
  expect(identity({})).not.toEqual(identity({ token: 'xoxb-2' }))
  expect(identity({})).not.toEqual(identity({ baseUrl: 'https://slack-gov.com' }))
})

test('a message of another channel is a bug, not an answer', () => {
  const sms: MessageRequest = { channel: 'sms', to: '+447900900123', content: { text: 't' } }
  expect(() => rendered(sms)).toThrow(TypeError)
  expect(() => takes(sms)).toThrow(TypeError)
})

test('settings are strict, bounded and filled with defaults', () => {
  const valid = (own: object): boolean => new Ajv({ useDefaults: true }).validate(slack.settings, own)
  const filled: object = { token: 'xoxb-1-secret' }
  expect(valid(filled)).toBe(true)
  expect(filled).toEqual(settings)
  expect(valid({})).toBe(false)
  expect(valid({ token: '' })).toBe(false)
  expect(valid({ token: 'a b' })).toBe(false)
  expect(valid({ token: 'a\r\nx: y' })).toBe(false)
  expect(valid({ token: 'x', baseUrl: 'slack.com' })).toBe(false)
  expect(valid({ token: 'x', channel: 'general' })).toBe(false)
})

import { expect, test } from 'vitest'
import type { ChatRequest } from '../../src/core/message-content.ts'
import { line, type LineSettings } from '../../src/providers/line.ts'
import { answersFromBetween, judgedBy, mistakesIn, providerOf, type Answer } from '../support/adapters.ts'
import { attemptContext, wholeRequest } from '../support/attempt-context.ts'
import { afterRequest, http, resets, says, scriptedServer } from '../support/scripted-server.ts'

const settings: LineSettings = {
  channelAccessToken: 'token',
  baseUrl: 'https://api.line.me',
  connectTimeoutMs: 3000,
  answerTimeoutMs: 10_000,
  concurrency: 64,
}
const to = `U${'4af4980629'.repeat(3)}00`
const chat = (text: string, more: Partial<ChatRequest> = {}): ChatRequest => ({
  channel: 'chat',
  to,
  content: { text },
  ...more,
})
const messageId = 'msg_019500000000700080000000000000aa'
const uuid = '01950000-0000-7000-8000-0000000000aa'
const attempt = attemptContext({ messageId, traceparent: '00-trace-01' })
const judged = judgedBy(line)
const sentMessages = [{ id: '461230966842064897', quoteToken: 'IStG5h1Tz7b' }]
const ofLine = { 'x-line-request-id': '123e4567-e89b-12d3-a456-426655440001' }
const acceptedBefore = { ...ofLine, 'x-line-accepted-request-id': '123e4567-e89b-12d3-a456-426655440000' }
/** LINE's error body and header; the message repeats the receiver. */
const refusal = (status: number, message = `about ${to}`, more: Partial<Answer> = {}): Answer => ({
  status,
  body: { message, details: [{ message: 'May not be empty', property: 'messages[0].text' }] },
  headers: ofLine,
  ...more,
})

test('200 with the message it sent is accepted', () => {
  expect(judged({ status: 200, body: { sentMessages } })).toMatchObject({
    kind: 'accepted',
    providerMessageId: '461230966842064897',
  })
})

test.each<[string, unknown, string | null]>([
  ['with the message', { message: 'The retry key is already accepted', sentMessages }, '461230966842064897'],
  ['without the message', { message: 'The retry key is already accepted' }, null],
  ['with a body that was cut', '{"message":"The re', null],
])('409 that names the accepted request, %s, is accepted', (_name, body, providerMessageId) => {
  const answer = { status: 409, body, headers: acceptedBefore, complete: typeof body !== 'string' }
  const outcome = judged(answer)
  expect(outcome).toMatchObject({ kind: 'accepted', providerMessageId, evidence: { code: 'retry_key_accepted' } })
})

test.each<[string, Answer, string]>([
  ['401', refusal(401), 'credentials'],
  ['403', refusal(403, 'Access to this API is not available for your account'), 'credentials'],
  ['429 of the month', refusal(429, 'You have reached your monthly limit.'), 'credentials'],
  ['429 of the rate', refusal(429, 'The API rate limit has been exceeded. Try again later.'), 'refused_for_now'],
  ['429 of another message', refusal(429), 'refused_for_now'],
])('%s is not sent', (_name, answer, reason) => {
  expect(judged(answer)).toMatchObject({ kind: 'not_sent', reason })
})

test('a month that is used up is told from a rate that is', () => {
  expect(judged(refusal(429, 'You have reached your monthly limit.')).evidence).toMatchObject({
    code: 'monthly_limit',
    detail: 'You have reached your monthly limit.',
  })
  expect(judged(refusal(429)).evidence.code).toBe('429')
  expect(judged(refusal(429, 'x', { retryAfterMs: 7000 }))).toMatchObject({ retryAfterMs: 7000 })
})

test.each([400, 413])('%i is rejected in words of LINE, which are not those of the answer', (status) => {
  const outcome = judged(refusal(status))
  expect(outcome).toMatchObject({ kind: 'rejected', evidence: { httpStatus: status, code: String(status) } })
  expect(outcome.evidence.detail).toBe(line.answers.codes[status]?.wording)
  expect(JSON.stringify(outcome)).not.toContain(to)
  expect(outcome.evidence).not.toHaveProperty('unrecognised')
})

test.each([404, 410, 415, 422])('%i, which is not listed, is rejected, and shown as unrecognised', (status) => {
  expect(judged(refusal(status))).toMatchObject({ kind: 'rejected', evidence: { unrecognised: true } })
})

test.each<readonly [string, Answer]>([
  ...answersFromBetween,
  ['200 with a cut body', { status: 200, body: '{"sentMessages":[{"id":"46', complete: false, headers: ofLine }],
  ['200 without a message', { status: 200, body: { sentMessages: [] }, headers: ofLine }],
  ['200 with {}', { status: 200, body: {}, headers: ofLine }],
  ['200 whose id is no string', { status: 200, body: { sentMessages: [{ id: 7 }] }, headers: ofLine }],
  ['202 with a message', { status: 202, body: { sentMessages }, headers: ofLine }],
  ['409 that names no accepted request', refusal(409, 'The retry key is already accepted')],
  ['409 with an empty name of one', refusal(409, 'x', { headers: { ...ofLine, 'x-line-accepted-request-id': '' } })],
  ['500', refusal(500)],
  ...[400, 403, 429, 500].map(
    (status) =>
      [`${status} that names an accepted request`, refusal(status, 'x', { headers: acceptedBefore })] as const,
  ),
  ['503', refusal(503)],
  ['408', refusal(408)],
  ['a refusal that was cut', refusal(400, 'x', { body: '{"message":"The re', complete: false })],
  ...[400, 401, 403, 429].map(
    (status) => [`a ${status} with LINE's body and not its header`, refusal(status, 'x', { headers: {} })] as const,
  ),
  ['an error body without a message', refusal(400, 'x', { body: { details: [] } })],
  ['an error body whose message is no text', refusal(400, 'x', { body: { message: 7 } })],
])('%s is unknown', (_name, answer) => {
  expect(judged(answer).kind).toBe('unknown')
})

const takes = (message: ChatRequest) => line.limitBroken(message, settings)

test.each([to, `C${to.slice(1)}`, `R${to.slice(1)}`])('%s may be a receiver', (receiver) => {
  expect(takes(chat('x', { to: receiver }))).toBeNull()
})

test.each([
  ['an empty text', chat(''), '/content/text'],
  ['a text of 5001 characters', chat('x'.repeat(5001)), '/content/text'],
  ['a text of 2501 emoji', chat('🍎'.repeat(2501)), '/content/text'],
  ['a text with half a character', chat('\ud83d'), '/content/text'],
  ['a LINE id', chat('x', { to: 'ada' }), '/to'],
  ['a receiver of 31 digits', chat('x', { to: to.slice(0, -1) }), '/to'],
  ['a receiver of 33 digits', chat('x', { to: `${to}0` }), '/to'],
  ['a receiver in upper case', chat('x', { to: to.toUpperCase() }), '/to'],
  ['a receiver of another kind', chat('x', { to: `X${to.slice(1)}` }), '/to'],
  ['a receiver with a line break after it', chat('x', { to: `${to}\n` }), '/to'],
  ['a sender', chat('x', { from: 'Shop' }), '/from'],
  ['a thread', chat('x', { content: { text: 'x', threadId: '1' } }), '/content/threadId'],
])('%s breaks a limit', (_name, message, pointer) => {
  expect(takes(message)).toMatchObject({ pointer })
})

test('the limit is named, and what just keeps it is taken', () => {
  expect(takes(chat('🍎'.repeat(2500)))).toBeNull()
  expect(takes(chat('🍎'.repeat(2501)))?.detail).toMatch(/at most 5000 characters.* has 5002/)
})

const rendered = (message: ChatRequest, own: LineSettings = settings, at = attempt) =>
  wholeRequest(line, message, own, at)

test.each(['hello', 'line\r\nline', 'ñ 漢字 👩‍👩‍👧‍👦 \u202eright to left', '"quotes" \\ \u2028'])(
  'the text %j survives',
  (text) => {
    expect(JSON.parse(rendered(chat(text)).body)).toEqual({ to, messages: [{ type: 'text', text }] })
  },
)

test('the key is the UUID of the message, and nothing of the message stands in a header', () => {
  expect(rendered(chat('x')).headers).toEqual({
    'content-type': 'application/json',
    accept: 'application/json',
    'user-agent': 'Sendonce',
    'x-line-retry-key': uuid,
    authorization: 'Bearer token',
  })
  expect(() => rendered(chat('x'), settings, { ...attempt, messageId: 'msg_1' })).toThrow(TypeError)
})

test('every attempt sends the same bytes under the same key; another message has another', () => {
  const later = { ...attempt, attemptNumber: 7, startedAt: new Date('2026-07-02T00:00:00Z'), traceparent: null }
  expect(rendered(chat('x'), settings, later)).toEqual(rendered(chat('x')))
  const other = { ...attempt, messageId: messageId.replace('aa', 'ab') }
  expect(rendered(chat('x'), settings, other).headers['x-line-retry-key']).toBe(uuid.replace('aa', 'ab'))
  const ofOthers = { ...chat('x'), reference: 'order-42', conversation: 'c', metadata: { a: 'b' } }
  expect(rendered(ofOthers, settings, { ...attempt, account: 'other' })).toEqual(rendered(chat('x')))
})

test('two tokens or two places are two providers', () => {
  const identities = [{}, { channelAccessToken: 'other' }, { baseUrl: 'https://line.example' }, {}].map(
    (more) => providerOf({ adapter: 'line', channelAccessToken: 'token', ...more }).identity,
  )
  expect(new Set(identities).size).toBe(3)
  expect(identities[0]).toBe(identities[3])
})

test('a path in baseUrl is kept in front', () => {
  const { origin, path } = rendered(chat('x'), { ...settings, baseUrl: 'http://127.0.0.1:8080/prefix/' })
  expect([origin, path]).toEqual(['http://127.0.0.1:8080', '/prefix/v2/bot/message/push'])
})

test.each([
  [{}, ['.channelAccessToken: is missing']],
  [{ channelAccessToken: '' }, ['.channelAccessToken: must match pattern']],
  [{ channelAccessToken: 'a\r\nX: y' }, ['.channelAccessToken: must match pattern']],
  [{ channelAccessToken: 'a', from: 'Shop' }, ['.from: is not a setting of this adapter']],
  [{ channelAccessToken: 'a', concurrency: 0 }, ['.concurrency: must be >= 1']],
  [{ channelAccessToken: 'a' }, []],
])('settings %j', (given, mistakes) => {
  const found = mistakesIn({ adapter: 'line', ...given })
  expect(found.map((mistake) => mistake.replace(/ pattern .*/, ' pattern'))).toEqual(mistakes)
})

test('an answer is lost; the same bytes under the same key are refused, and that is acceptance', async () => {
  const conflict = JSON.stringify({ message: 'The retry key is already accepted', sentMessages })
  const headers = Object.entries(acceptedBefore).map(([name, value]) => `${name}: ${value}`)
  const server = await scriptedServer(afterRequest(resets, says(http('409 Conflict', conflict, headers))))
  const provider = providerOf({ adapter: 'line', channelAccessToken: 'token', baseUrl: server.origin })
  const kept = provider.render(chat('x'), attempt)
  const send = (attemptNumber: number) => provider.send(chat('x'), { ...attempt, attemptNumber }, () => true, kept)
  expect(await send(1)).toMatchObject({ kind: 'unknown', evidence: { phase: 'begun' } })
  expect(await send(2)).toMatchObject({ kind: 'accepted', providerMessageId: '461230966842064897' })
  const requests = server.received().split(/(?=POST )/)
  expect(requests).toHaveLength(2)
  expect(new Set(requests).size).toBe(1)
  await server.close()
})

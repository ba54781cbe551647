import { Ajv } from 'ajv'
import { expect, test } from 'vitest'
import type { ChatRequest, MessageRequest } from '../../src/core/message-content.ts'
import { type CallResult, judgeCall } from '../../src/providers/judge-answer.ts'
import { twilio, type TwilioSettings } from '../../src/providers/twilio.ts'
import { attemptContext, blindCapabilities, wholeRequest } from '../support/attempt-context.ts'

const settings: TwilioSettings = {
  accountSid: `AC${'0'.repeat(32)}`,
  authToken: 'secret:with:colons',
  from: '+15005550006',
  baseUrl: 'https://api.twilio.com',
  connectTimeoutMs: 3000,
  answerTimeoutMs: 10_000,
  concurrency: 64,
}
const { from: _, ...withoutSender } = settings
const onWhatsapp = { ...settings, whatsappFrom: 'whatsapp:+14155238886' }
const messagingServiceSid = `MG${'a'.repeat(32)}`
const sid = `SM${'b'.repeat(32)}`
const sms = (text: string, more: Partial<MessageRequest> = {}): MessageRequest =>
  ({ channel: 'sms', to: '+4915112345678', content: { text }, ...more }) as MessageRequest
const chat = (text: string, more: Partial<ChatRequest> = {}): ChatRequest => ({
  channel: 'chat',
  to: 'whatsapp:+4915112345678',
  content: { text },
  ...more,
})
const attempt = attemptContext({ traceparent: '00-trace-01' })

interface Answer {
  readonly status: number
  readonly body: string
  readonly complete?: boolean
  readonly retryAfterMs?: number
}
function judged({ status, body, complete = true, retryAfterMs }: Answer) {
  const result: CallResult = {
    phase: 'answered',
    answer: { status, body, complete, headers: {}, retryAfterMs: retryAfterMs ?? null },
    code: null,
  }
  return judgeCall(result, twilio.answers, blindCapabilities('status'))
}
/** Twilio's error body; its `message` repeats the recipient, as Twilio's does. */
const refusal = (status: number, code: number, more: Partial<Answer> = {}): Answer => ({
  status,
  body: JSON.stringify({ code, message: 'about +4915112345678', more_info: 'https://www.twilio.com/docs', status }),
  ...more,
})

test.each([
  ['201 with its sid', { status: 201, body: JSON.stringify({ sid, status: 'queued' }) }, { providerMessageId: sid }],
  ['201 with a cut body', { status: 201, body: '{"sid":"SM', complete: false }, { providerMessageId: null }],
  ['201 with a page', { status: 201, body: '<html>' }, { providerMessageId: null }],
  ['201 whose sid is no string', { status: 201, body: '{"sid":7}' }, { providerMessageId: null }],
])('%s is accepted', (_name, answer, expected) => {
  expect(judged(answer)).toMatchObject({ kind: 'accepted', ...expected })
})

test.each([
  ['401 with 20003', refusal(401, 20003), 'credentials'],
  ['401 with a code that is not listed', refusal(401, 29999), 'credentials'],
  ['403 with 20403 (account suspended)', refusal(403, 20403), 'credentials'],
  ['404 with 20404 (no such account)', refusal(404, 20404), 'credentials'],
  ['429 with 20429', refusal(429, 20429), 'refused_for_now'],
  ['429 with 21611 (the queue of the sender is full)', refusal(429, 21611), 'refused_for_now'],
  ['429 with 63018 (the channel has its own limit)', refusal(429, 63018), 'refused_for_now'],
  ['429 with 63038 (the day has its limit)', refusal(429, 63038), 'refused_for_now'],
])('%s is not sent', (_name, answer, reason) => {
  expect(judged(answer)).toMatchObject({ kind: 'not_sent', reason })
})

test('Retry-After of a 429 of Twilio is kept', () => {
  expect(judged(refusal(429, 20429, { retryAfterMs: 7000 }))).toMatchObject({ kind: 'not_sent', retryAfterMs: 7000 })
})

test.each([
  [400, 21211],
  [400, 21408],
  [400, 21610],
  [400, 21614],
  [400, 21617],
  [400, 21910],
  [400, 63003],
  [400, 63007],
  [400, 63016],
])('%i with %i is rejected in words of Twilio, which are not those of the answer', (status, code) => {
  const outcome = judged(refusal(status, code))
  expect(outcome).toMatchObject({ kind: 'rejected', evidence: { httpStatus: status, code: String(code) } })
  expect(outcome.evidence.detail).toBe(twilio.answers.codes[code]?.wording)
  expect(JSON.stringify(outcome)).not.toContain('4915112345678')
  expect(outcome.evidence).not.toHaveProperty('unrecognised')
})

test.each([
  ['a code in no table', refusal(400, 29999)],
  ['a listed code under another status', refusal(422, 21211)],
  ['a 403 about what we do not know', refusal(403, 29999)],
])('%s is rejected, and shown as unrecognised', (_name, answer) => {
  expect(judged(answer)).toMatchObject({ kind: 'rejected', evidence: { unrecognised: true } })
})

test.each([
  ...[408, 409, 425, 429].map((status) => [`${status} with a code in no table`, refusal(status, 29999)] as const),
  ...[400, 401, 403, 404, 429, 500, 502, 503, 504].map(
    (status) => [`a bare ${status}`, { status, body: '<html>upstream</html>' }] as const,
  ),
  ['500 with 20500', refusal(500, 20500)] as const,
  ['503 with 20503', refusal(503, 20503)] as const,
  ['500 with the code of a refusal', refusal(500, 21211)] as const,
  ['429 with the code of a refusal', refusal(429, 21211)] as const,
  ['a refusal that was cut', refusal(400, 21211, { complete: false })] as const,
  ['200 with a sid', { status: 200, body: JSON.stringify({ sid }) }] as const,
  ['202 with a sid', { status: 202, body: JSON.stringify({ sid }) }] as const,
  ['204', { status: 204, body: '' }] as const,
  ['307', { status: 307, body: '' }] as const,
  ['an error body of another status', { ...refusal(400, 21211), status: 403 }] as const,
  ['an error body without a status', { status: 400, body: '{"code":21211,"message":"x"}' }] as const,
  ['an error body without a message', { status: 400, body: '{"code":21211,"status":400}' }] as const,
  ['a code that is no integer', { status: 400, body: '{"code":"21211","message":"x","status":400}' }] as const,
  ['an error body in a list', { status: 400, body: '[{"code":21211,"message":"x","status":400}]' }] as const,
  ['null', { status: 400, body: 'null' }] as const,
])('%s is unknown', (_name, answer) => {
  expect(judged(answer).kind).toBe('unknown')
})

test('the code table holds only codes that say what they mean, each under a status', () => {
  for (const [code, rule] of Object.entries(twilio.answers.codes)) {
    expect(code).toMatch(/^\d{5}$/)
    expect(rule.wording).not.toBe('')
    expect(rule.statuses).not.toEqual([])
    const open = rule.means === 'unknown'
    expect(rule.statuses.filter((status) => status >= 500 !== open)).toEqual([])
  }
})

const takes = (message: MessageRequest, given = settings) => twilio.limitBroken(message, given)
const longest = 'ü'.repeat(1600)
const withFrom = (from: string) => sms('x', { from })

test.each(['+15005550006', '12345', 'Sendonce', 'Abc & Co_1', messagingServiceSid])('%s may be a sender', (from) => {
  expect(takes(withFrom(from), withoutSender)).toBeNull()
})

test.each([
  ['an empty text', sms(''), '/content/text'],
  ['a text of 1601 characters', sms(`${longest}x`), '/content/text'],
  ['a text of 801 emoji', sms('👍'.repeat(801)), '/content/text'],
  ['a text with half a character', sms('\ud83d'), '/content/text'],
  ['a recipient without +', sms('x', { to: '015112345678' }), '/to'],
  ['a recipient on another channel', sms('x', { to: 'whatsapp:+4915112345678' }), '/to'],
  ['a recipient with a line break after it', sms('x', { to: '+4915112345678\n' }), '/to'],
  ['a sender of 12 characters', withFrom('TwelveLetter'), '/from'],
  ['a sender of digits only', withFrom('1234567890'), '/from'],
  ['a sender with a line break', withFrom('Send\nonce'), '/from'],
  ['a messaging service cut short', withFrom(messagingServiceSid.slice(0, -1)), '/from'],
])('%s breaks a limit', (_name, message, pointer) => {
  expect(takes(message)).toMatchObject({ pointer })
})

test.each([
  ['an SMS from a WhatsApp number', sms('x', { from: 'whatsapp:+14155238886' }), '/from'],
  ['a chat message to a bare number', chat('x', { to: '+4915112345678' }), '/to'],
  ['a chat message to another channel', chat('x', { to: 'messenger:4915112345678' }), '/to'],
  ['a WhatsApp number with a line break after it', chat('x', { to: 'whatsapp:+4915112345678\n' }), '/to'],
  ['a WhatsApp number that begins with 0', chat('x', { to: 'whatsapp:+0151' }), '/to'],
  ['a WhatsApp number in capitals', chat('x', { to: 'WhatsApp:+4915112345678' }), '/to'],
  ['a WhatsApp message from a bare number', chat('x', { from: '+14155238886' }), '/from'],
  ['a WhatsApp message from a name', chat('x', { from: 'Sendonce' }), '/from'],
  ['a WhatsApp message in a thread', chat('x', { content: { text: 'x', threadId: '1' } }), '/content/threadId'],
  ['an empty WhatsApp message', chat(''), '/content/text'],
  ['a WhatsApp message of 1601 characters', chat(`${longest}x`), '/content/text'],
])('%s breaks a limit', (_name, message, pointer) => {
  expect(takes(message, onWhatsapp)).toMatchObject({ pointer })
})

test('WhatsApp has a sender of its own: that of the message, else whatsappFrom, else the messaging service', () => {
  expect(takes(chat(longest), onWhatsapp)).toBeNull()
  expect(takes(chat('x'))).toMatchObject({ pointer: '/from' }) // the number for SMS is none
  expect(takes(chat('x'), { ...settings, messagingServiceSid })).toBeNull()
  const both = { ...onWhatsapp, messagingServiceSid }
  expect(formOf(rendered(chat('a & b'), both).body)).toEqual([
    ['To', 'whatsapp:+4915112345678'],
    ['From', 'whatsapp:+14155238886'],
    ['Body', 'a & b'],
  ])
  expect(senderIn(chat('x', { from: 'whatsapp:+447700900123' }), both)).toEqual([['From', 'whatsapp:+447700900123']])
  expect(senderIn(chat('x', { from: messagingServiceSid }), onWhatsapp)).toEqual([
    ['MessagingServiceSid', messagingServiceSid],
  ])
  expect(senderIn(chat('x'), { ...settings, messagingServiceSid })).toEqual([
    ['MessagingServiceSid', messagingServiceSid],
  ])
  expect(senderIn(sms('x'), both)).toEqual([['From', '+15005550006']])
})

test('a WhatsApp message asks for its status callbacks as an SMS does', () => {
  const callbackIn = (message: MessageRequest) =>
    new URLSearchParams(rendered(message, { ...onWhatsapp, publicUrl: 'https://a.example' }).body).get('StatusCallback')
  expect(callbackIn(chat('x'))).toMatch(/^https:\/\/a\.example\/.*[?]message=msg_1&attempt=att_1$/)
  expect(callbackIn(chat('x'))).toBe(callbackIn(sms('x')))
})

test('a message needs a sender from somewhere', () => {
  expect(takes(sms('x'), withoutSender)).toMatchObject({ pointer: '/from' })
  expect(takes(sms('x'), { ...withoutSender, messagingServiceSid })).toBeNull()
  expect(takes(sms(longest))).toBeNull()
})

const rendered = (message: MessageRequest, own = settings) => wholeRequest(twilio, message, own, attempt)
const formOf = (body: string) => [...new URLSearchParams(body)]
const senderIn = (message: MessageRequest, own: TwilioSettings) =>
  formOf(rendered(message, own).body).filter(([name]) => name !== 'To' && name !== 'Body')

test.each([
  'a&Body=b&To=%2B1',
  'a=b+c d%20e%',
  'line\r\nline\n\ttab',
  'ñ ü 漢字 👩‍👩‍👧‍👦 \u202eright to left',
  '"quotes" <tags> ; \\ \u00a0',
])('the text %j survives the form encoding', (text) => {
  const { body } = rendered(sms(text))
  expect(formOf(body)).toEqual([
    ['To', '+4915112345678'],
    ['From', '+15005550006'],
    ['Body', text],
  ])
  expect(body).toMatch(/^[\w.*%+=&-]+$/)
})

test('the sender is that of the message, else the configured number, else the messaging service', () => {
  const both = { ...settings, messagingServiceSid }
  expect(senderIn(withFrom('Sendonce'), both)).toEqual([['From', 'Sendonce']])
  expect(senderIn(withFrom(messagingServiceSid), both)).toEqual([['MessagingServiceSid', messagingServiceSid]])
  expect(senderIn(withFrom('MGMT'), both)).toEqual([['From', 'MGMT']])
  expect(senderIn(sms('x'), both)).toEqual([['From', '+15005550006']])
  expect(senderIn(sms('x'), { ...withoutSender, messagingServiceSid })).toEqual([
    ['MessagingServiceSid', messagingServiceSid],
  ])
})

test('the request signs in as the account, or as the API key; the trace context stays here', () => {
  const login = (own: TwilioSettings) =>
    Buffer.from((rendered(sms('x'), own).headers['authorization'] ?? '').replace('Basic ', ''), 'base64').toString()
  const apiKeySid = `SK${'c'.repeat(32)}`
  expect(login(settings)).toBe(`${settings.accountSid}:secret:with:colons`)
  expect(login({ ...settings, apiKeySid })).toBe(`${apiKeySid}:secret:with:colons`)
  expect(rendered(sms('x'), { ...settings, apiKeySid }).path).toContain(settings.accountSid)
  expect(Object.keys(rendered(sms('x')).headers)).toEqual(['content-type', 'accept', 'authorization'])
})

test.each([
  ['https://api.twilio.com', 'https://api.twilio.com', ''],
  ['https://api.twilio.com/', 'https://api.twilio.com', ''],
  ['http://127.0.0.1:8080/prefix', 'http://127.0.0.1:8080', '/prefix'],
  ['http://host/a/b//', 'http://host', '/a/b'],
])('with base URL %s the call goes to %s%s', (baseUrl, origin, prefix) => {
  expect(rendered(sms('x'), { ...settings, baseUrl })).toMatchObject({
    origin,
    method: 'POST',
    path: `${prefix}/2010-04-01/Accounts/${settings.accountSid}/Messages.json`,
  })
})

test('a message of another channel is a bug, not an answer', () => {
  const email: MessageRequest = { channel: 'email', to: 'a@b.c', content: { subject: 's', text: 't' } }
  expect(() => rendered(email)).toThrow(TypeError)
})

const ajv = new Ajv({ useDefaults: true })
const valid = (own: object): boolean => ajv.validate(twilio.settings, own)

test('settings are strict, bounded and filled with defaults', () => {
  const least = { accountSid: settings.accountSid, authToken: 'x' }
  const filled: object = { ...least }
  expect(valid(filled)).toBe(true)
  expect(filled).toEqual({
    ...least,
    baseUrl: 'https://api.twilio.com',
    connectTimeoutMs: 3000,
    answerTimeoutMs: 10_000,
    concurrency: 64,
  })
  expect(valid({ ...least, authToken: '' })).toBe(false)
  expect(valid({ ...least, accountSid: `SK${'0'.repeat(32)}` })).toBe(false)
  expect(valid({ ...least, messagingServiceSid: 'MG1' })).toBe(false)
  expect(valid({ ...least, from: 'longer than it may be' })).toBe(false)
  expect(valid({ ...least, whatsappFrom: '+14155238886' })).toBe(false)
  expect(valid({ ...least, whatsappFrom: 'whatsapp:+14155238886' })).toBe(true)
  expect(valid({ ...least, baseUrl: 'https://user:pass@host' })).toBe(false)
  expect(valid({ ...least, answerTimeoutMs: 0 })).toBe(false)
  expect(valid({ ...least, authTokn: 'x' })).toBe(false)
})

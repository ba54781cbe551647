import { createHmac } from 'node:crypto'
import { Ajv } from 'ajv'
import { expect, test } from 'vitest'
import { recoveryOf } from '../../src/core/capabilities.ts'
import type { EmailRequest, MessageRequest, SmsRequest } from '../../src/core/message-content.ts'
import { govukNotify, type GovukNotifySettings } from '../../src/providers/govuk-notify.ts'
import { capabilitiesOf } from '../../src/providers/http-provider.ts'
import { type CallResult, judgeCall } from '../../src/providers/judge-answer.ts'
import { checkProvider } from '../../src/providers/registry.ts'
import { attemptContext, wholeRequest } from '../support/attempt-context.ts'

const serviceId = '26785a09-ab16-4eb0-8407-a37497a57506'
const secret = '3d844edf-8d35-48ac-975b-e847b4f122b0'
const smsTemplateId = 'f33517ff-2a88-4f6e-b855-c550268ce08a'
const emailTemplateId = '9d751e0e-f929-4891-82a1-a3e1c3c18ee3'
const senderId = '8e222534-7f05-4972-86e3-17c5d9f894e2'
const settings: GovukNotifySettings = {
  apiKey: `my_test-key-${serviceId}-${secret}`,
  smsTemplateId,
  smsTextPlaceholder: 'text',
  emailTemplateId,
  emailSubjectPlaceholder: 'subject',
  emailTextPlaceholder: 'text',
  highVolume: false,
  baseUrl: 'https://api.notifications.service.gov.uk',
  connectTimeoutMs: 3000,
  answerTimeoutMs: 15_000,
  concurrency: 64,
}
const sms = (text: string, more: Partial<SmsRequest> = {}): SmsRequest => ({
  channel: 'sms',
  to: '+447900900123',
  content: { text },
  ...more,
})
const email = (content: Partial<EmailRequest['content']> = {}, more: Partial<EmailRequest> = {}): EmailRequest => ({
  channel: 'email',
  to: 'amala@example.com',
  content: { subject: 'Hello', text: 'How are you?', ...content },
  ...more,
})
const attempt = attemptContext({ messageId: 'msg_0198', traceparent: '00-trace-01' })

const at = new Date('2026-07-01T22:30:00Z')
interface Answer {
  readonly status: number
  readonly body: string
  readonly complete?: boolean
  readonly retryAfterMs?: number
}
function judged({ status, body, complete = true, retryAfterMs }: Answer) {
  const answer = { status, body, complete, headers: {}, retryAfterMs: retryAfterMs ?? null }
  const result: CallResult = { phase: 'answered', answer, code: null }
  return judgeCall(result, govukNotify.answers, capabilitiesOf(govukNotify, settings), at)
}
const refusal = (status: number, error: string, more: Partial<Answer> = {}): Answer => ({
  status,
  body: JSON.stringify({ status_code: status, errors: [{ error, message: 'about +447900900123' }] }),
  ...more,
})
const id = '740e5834-3a29-46b4-9a6f-16142fde533a'

test('201 with its id is accepted', () => {
  const body = JSON.stringify({ id, reference: 'msg_0198', content: { body: 'x' } })
  expect(judged({ status: 201, body })).toMatchObject({ kind: 'accepted', providerMessageId: id })
})

test.each([
  ['401', refusal(401, 'AuthError'), 'credentials', null],
  ['403, as the server calls it', refusal(403, 'AuthError'), 'credentials', null],
  ['403, as the documents call it', refusal(403, 'BadRequestError'), 'credentials', null],
  ['the limit a minute', refusal(429, 'RateLimitError'), 'refused_for_now', 60_000],
  ['the limit a minute with Retry-After', refusal(429, 'RateLimitError', { retryAfterMs: 7 }), 'refused_for_now', 7],
  ['the limit a day, until midnight', refusal(429, 'TooManyRequestsError'), 'refused_for_now', 5_400_000],
])('%s is not sent', (_name, answer, reason, retryAfterMs) => {
  const outcome = judged(answer)
  expect(outcome).toMatchObject({ kind: 'not_sent', reason, retryAfterMs })
  expect(outcome.evidence).not.toHaveProperty('unrecognised')
})

test.each(['ValidationError', 'BadRequestError'])('400 with %s is rejected in words that are not its own', (error) => {
  const outcome = judged(refusal(400, error))
  expect(outcome).toMatchObject({ kind: 'rejected', evidence: { httpStatus: 400, code: error } })
  expect(JSON.stringify(outcome)).not.toContain('447900900123')
  expect(outcome.evidence).not.toHaveProperty('unrecognised')
})

test.each([
  ['a type in no table', refusal(400, 'InvalidPhoneError')],
  ['a listed type under another status', refusal(404, 'ValidationError')],
  ['a 403 of a type in no table', refusal(403, 'NewError')],
])('%s is rejected, and shown as unrecognised', (_name, answer) => {
  expect(judged(answer)).toMatchObject({ kind: 'rejected', evidence: { unrecognised: true } })
})

test.each([
  ...[400, 401, 403, 404, 429, 500, 502, 503, 504].map(
    (status) => [`a bare ${status}`, { status, body: '<html>upstream</html>' }] as const,
  ),
  ['500 of Notify', refusal(500, 'Exception')] as const,
  ['500 as in the description, a list', { status: 500, body: '[{"error":"Exception","message":"x"}]' }] as const,
  ['500 with the type of a refusal', refusal(500, 'ValidationError')] as const,
  ['429 with the type of a refusal', refusal(429, 'ValidationError')] as const,
  ['503 with the type of a limit', refusal(503, 'RateLimitError')] as const,
  ['408 of Notify', refusal(408, 'ValidationError')] as const,
  ['a refusal that was cut', refusal(400, 'ValidationError', { complete: false })] as const,
  ['201 with a cut body', { status: 201, body: '{"id":"74', complete: false }] as const,
  ['201 without an id', { status: 201, body: '{"reference":"msg_0198"}' }] as const,
  ['201 with a page', { status: 201, body: '<html>' }] as const,
  ['200 with an id', { status: 200, body: JSON.stringify({ id }) }] as const,
  ['an error body of another status', { ...refusal(400, 'ValidationError'), status: 403 }] as const,
  [
    'an error body without a status',
    { status: 400, body: '{"errors":[{"error":"ValidationError","message":"x"}]}' },
  ] as const,
  ['an error body without errors', { status: 400, body: '{"status_code":400,"errors":[]}' }] as const,
  ['an error without a message', { status: 400, body: '{"status_code":400,"errors":[{"error":"X"}]}' }] as const,
  ['errors that are no list', { status: 400, body: '{"status_code":400,"errors":{"error":"X"}}' }] as const,
  ['null', { status: 400, body: 'null' }] as const,
])('%s is unknown', (_name, answer) => {
  expect(judged(answer).kind).toBe('unknown')
})

const takes = (message: MessageRequest, own: Partial<GovukNotifySettings> = {}) =>
  govukNotify.limitBroken(message, { ...settings, ...own })
const longest = '👍'.repeat(918)

test.each([
  ['an empty text', sms(' \n'), '/content/text'],
  ['a text of 919 characters', sms(`${longest}x`), '/content/text'],
  ['half a character', sms('\ud83d'), '/content/text'],
  ['a number of 15 digits', sms('x', { to: '+123456789012345' }), '/to'],
  ['a number with a line break after it', sms('x', { to: '+447900900123\n' }), '/to'],
  ['a sender that is no id', sms('x', { from: 'Sendonce' }), '/from'],
  ['an e-mail without text', { ...email(), content: { subject: 's', html: '<p>x' } }, '/content/html'],
  ['an e-mail with HTML besides', email({ html: '<p>x' }), '/content/html'],
  ['an e-mail with an empty text', email({ text: ' ' }), '/content/text'],
  [
    'an attachment',
    email({ attachments: [{ filename: 'a', contentType: 'a/b', content: '' }] }),
    '/content/attachments',
  ],
  ['a header', email({ headers: { 'x-a': 'b' } }), '/content/headers'],
  ['a copy', email({}, { cc: ['a@b.cd'] }), '/cc'],
  ['a blind copy', email({}, { bcc: ['a@b.cd'] }), '/bcc'],
  ['a reply-to address', email({}, { replyTo: 'a@b.cd' }), '/replyTo'],
  ['a sender of an e-mail', email({}, { from: 'a@b.cd' }), '/from'],
  ['an address of 251 characters', email({}, { to: `${'a'.repeat(245)}@b.com` }), '/to'],
  ['an e-mail of more than 2,000,000 bytes', email({ text: 'ü'.repeat(999_998) }), '/content/text'],
  ['half a character in an e-mail', email({ text: '\ud83d' }), '/content/text'],
  ['half a character in a subject', email({ subject: '\ud83d' }), '/content/subject'],
])('%s breaks a limit', (_name, message, pointer) => {
  expect(takes(message)).toMatchObject({ pointer })
})

test('what is within the limits is taken; without a template a channel is not', () => {
  expect(takes(sms(longest, { from: senderId }))).toBeNull()
  expect(takes(email({ text: 'ü'.repeat(999_997), attachments: [], headers: {} }, { cc: [], bcc: [] }))).toBeNull()
  const { smsTemplateId: _sms, emailTemplateId: _email, ...without } = settings
  expect(govukNotify.limitBroken(sms('x'), without)).toMatchObject({ pointer: '/channel' })
  expect(govukNotify.limitBroken(email(), without)).toMatchObject({ pointer: '/channel' })
  expect(capabilitiesOf(govukNotify, { ...without, smsTemplateId }).channels).toEqual(['sms'])
  expect(capabilitiesOf(govukNotify, { ...without, emailTemplateId }).channels).toEqual(['email'])
})

const rendered = (message: MessageRequest, own: Partial<GovukNotifySettings> = {}) => {
  const request = wholeRequest(govukNotify, message, { ...settings, ...own }, attempt)
  return { ...request, json: JSON.parse(request.body) as unknown }
}

test.each(['a"},"reference":"other', 'line\r\nline\ttab', 'ñ 漢字 👩‍👩‍👧‍👦 \u202e', '((text)) \\ \u2028'])(
  'the text %j survives, as the value of a placeholder',
  (text) => {
    expect(rendered(sms(text))).toMatchObject({ method: 'POST', path: '/v2/notifications/sms' })
    expect(rendered(sms(text)).json).toEqual({
      phone_number: '+447900900123',
      template_id: smsTemplateId,
      personalisation: { text },
      reference: 'msg_0198',
    })
    const names = { emailSubjectPlaceholder: 'title', emailTextPlaceholder: 'the body' }
    expect(rendered(email({ subject: text, text }), names)).toMatchObject({ path: '/v2/notifications/email' })
    expect(rendered(email({ subject: text, text }), names).json).toEqual({
      email_address: 'amala@example.com',
      template_id: emailTemplateId,
      personalisation: { title: text, 'the body': text },
      reference: 'msg_0198',
    })
  },
)

test('a sender is that of the message, else the configured one; a reply-to address is the configured one', () => {
  const own = { smsSenderId: emailTemplateId, emailReplyToId: senderId }
  expect(rendered(sms('x', { from: senderId }), own).json).toHaveProperty('sms_sender_id', senderId)
  expect(rendered(sms('x'), own).json).toHaveProperty('sms_sender_id', emailTemplateId)
  expect(rendered(email(), own).json).toHaveProperty('email_reply_to_id', senderId)
})

test('each call has a token of its time, made of the key; the trace context stays here', () => {
  const { headers } = rendered(sms('x'))
  expect(Object.keys(headers)).toEqual(['content-type', 'accept', 'authorization'])
  const [head = '', claims = '', signature] = (headers['authorization'] ?? '').replace('Bearer ', '').split('.')
  const read = (part: string): unknown => JSON.parse(Buffer.from(part, 'base64url').toString())
  expect(read(head)).toEqual({ typ: 'JWT', alg: 'HS256' })
  expect(read(claims)).toEqual({ iss: serviceId, iat: Math.floor(attempt.startedAt.getTime() / 1000) })
  expect(signature).toBe(createHmac('sha256', secret).update(`${head}.${claims}`).digest('base64url'))
})

test.each([
  ['https://api.notifications.service.gov.uk/', 'https://api.notifications.service.gov.uk', ''],
  ['http://127.0.0.1:8080/prefix//', 'http://127.0.0.1:8080', '/prefix'],
])('with base URL %s the call goes to %s%s', (baseUrl, origin, prefix) => {
  expect(rendered(sms('x'), { baseUrl })).toMatchObject({ origin, path: `${prefix}/v2/notifications/sms` })
})

const look = { messageId: 'msg_0198', createdAt: attempt.createdAt, startedAt: at }
const read = (body: unknown) => govukNotify.lookup?.read(body, look)
const row = (reference: string | null, rowId = id) => ({ id: rowId, reference })
const page = (...notifications: unknown[]) => ({ notifications, links: { current: 'https://x' } })

test('it is asked by our reference, and only rows of exactly that count', () => {
  const request = govukNotify.lookup?.render(sms('x'), settings, look)
  expect(request).toMatchObject({ method: 'GET', path: '/v2/notifications?reference=msg_0198', body: null })
  expect(read(page())).toEqual({ count: 0, providerMessageId: null })
  expect(read(page(row('msg_01'), row(null), row('msg_0198')))).toEqual({ count: 1, providerMessageId: id })
  expect(read(page(row('msg_0198', 'a'), row('msg_0198', 'b')))).toEqual({ count: 2, providerMessageId: 'a' })
  expect(read(page(row('MSG_0198'), row('msg_01980'), null, 7))).toEqual({ count: 0, providerMessageId: null })
})

test.each([undefined, null, [[]], {}, { notifications: [] }, { notifications: {}, links: { current: 'x' } }, 'x'])(
  'a look-up that is answered with %j told nothing',
  (body) => {
    expect(read(body)).toBeNull()
  },
)

test('its absence is believed, but not of a service whose messages go through a queue first', () => {
  const usual = capabilitiesOf(govukNotify, settings)
  expect(recoveryOf(usual)).toBe('lookup')
  expect(recoveryOf(capabilitiesOf(govukNotify, { ...settings, highVolume: true }))).toBe('lookup-weak')
  // Past the 30 s after which its server gives up, and our own time-out.
  expect(usual.lookup?.settlingMs).toBeGreaterThan(30_000 + settings.answerTimeoutMs)
})

test('another key or another server is another provider', () => {
  const identity = (own: Partial<GovukNotifySettings>) => govukNotify.identity({ ...settings, ...own })
  expect(identity({})).not.toEqual(identity({ apiKey: `live-${serviceId}-${senderId}` }))
  expect(identity({})).not.toEqual(identity({ baseUrl: 'https://example.com' }))
  expect(identity({})).toEqual(identity({ smsTemplateId: senderId, concurrency: 1 }))
})

test('a message of another channel is a bug, not an answer', () => {
  const chat: MessageRequest = { channel: 'chat', to: 'C1', content: { text: 't' } }
  expect(() => rendered(chat)).toThrow(TypeError)
  expect(() => takes(chat)).toThrow(TypeError)
})

test('settings are strict, bounded and filled with defaults', () => {
  const valid = (own: object): boolean => new Ajv({ useDefaults: true }).validate(govukNotify.settings, own)
  const { apiKey } = settings
  const filled: object = { apiKey, smsTemplateId, emailTemplateId }
  expect(valid(filled)).toBe(true)
  expect(filled).toEqual(settings)
  expect(valid({ apiKey, smsTemplateId })).toBe(true)
  expect(valid({ apiKey: `${serviceId}-${secret}`, emailTemplateId })).toBe(true)
  expect(valid({ apiKey })).toBe(false)
  expect(valid({ apiKey: secret, smsTemplateId })).toBe(false)
  expect(valid({ apiKey: `${apiKey}\n`, smsTemplateId })).toBe(false)
  expect(valid({ apiKey, smsTemplateId: 'welcome' })).toBe(false)
  expect(valid({ apiKey, smsTemplateId, smsSenderId: 'Sendonce' })).toBe(false)
  expect(valid({ apiKey, smsTemplateId, baseUrl: 'https://user@host' })).toBe(false)
  expect(valid({ apiKey, smsTemplateId, templateId: 'x' })).toBe(false)
  expect(checkProvider({ adapter: 'govuk-notify', apiKey })).toHaveProperty('mistakes.0', '.smsTemplateId: is missing')
  expect(checkProvider({ adapter: 'govuk-notify', apiKey, smsTemplateId })).toMatchObject({ channels: ['sms'] })
})

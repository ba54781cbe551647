import { expect, test } from 'vitest'
import type { EmailRequest } from '../../src/core/message-content.ts'
import { resend, type ResendSettings } from '../../src/providers/resend.ts'
import {
  answersFromBetween,
  email,
  judgedBy,
  manyOf,
  mistakesIn,
  providerOf,
  recipient,
  spoiledEmails,
  type Answer,
} from '../support/adapters.ts'
import { attemptContext, wholeRequest } from '../support/attempt-context.ts'
import { afterRequest, http, resets, says, scriptedServer } from '../support/scripted-server.ts'

const settings: ResendSettings = {
  apiKey: 're_secret',
  from: 'Shop <shop@example.com>',
  baseUrl: 'https://api.resend.com',
  connectTimeoutMs: 3000,
  answerTimeoutMs: 10_000,
  concurrency: 64,
}
const { from: _, ...withoutSender } = settings
const attempt = attemptContext({ messageId: 'msg_0190', traceparent: '00-trace-01' })
const judged = judgedBy(resend)
const id = '49a3999c-0ce1-4ea6-ab68-afcd6dc2e794'
/** Resend's error body, as recorded by its own library; the message repeats the recipient. */
const refusal = (statusCode: number, name: string, more: Partial<Answer> = {}): Answer => ({
  status: statusCode,
  body: { statusCode, message: `about ${recipient}`, name },
  ...more,
})
const keyUnknown = { message: 'API key is invalid' }

test('200 with its id is accepted', () => {
  expect(judged({ status: 200, body: { id } })).toMatchObject({ kind: 'accepted', providerMessageId: id })
})

test.each<[string, Answer, string]>([
  ['401 missing_api_key', refusal(401, 'missing_api_key'), 'credentials'],
  ['403 invalid_api_key', refusal(403, 'invalid_api_key'), 'credentials'],
  ['401 restricted_api_key', refusal(401, 'restricted_api_key'), 'credentials'],
  ['403 restricted_api_key', refusal(403, 'restricted_api_key'), 'credentials'],
  ['403 suspended_api_key', refusal(403, 'suspended_api_key'), 'credentials'],
  ['403 invalid_permission', refusal(403, 'invalid_permission'), 'credentials'],
  ['404 not_found', refusal(404, 'not_found'), 'credentials'],
  ['405 method_not_allowed', refusal(405, 'method_not_allowed'), 'credentials'],
  ['429 daily_quota_exceeded', refusal(429, 'daily_quota_exceeded'), 'credentials'],
  ['429 monthly_quota_exceeded', refusal(429, 'monthly_quota_exceeded'), 'credentials'],
  ['429 rate_limit_exceeded', refusal(429, 'rate_limit_exceeded'), 'refused_for_now'],
  ['401 of a name that is not listed', refusal(401, 'new_name'), 'credentials'],
])('%s is not sent', (_name, answer, reason) => {
  expect(judged(answer)).toMatchObject({ kind: 'not_sent', reason })
})

test.each([400, 401])('an unknown key, refused by %i under the name of any mistake, is about us', (statusCode) => {
  const body = { statusCode, name: 'validation_error', ...keyUnknown }
  const outcome = judged({ status: statusCode, body })
  expect(outcome).toMatchObject({ kind: 'not_sent', reason: 'credentials', evidence: { code: 'invalid_api_key' } })
  expect(outcome.evidence).not.toHaveProperty('unrecognised')
})

test('those words under another name are not', () => {
  const body = { statusCode: 500, name: 'application_error', ...keyUnknown }
  expect(judged({ status: 500, body }).evidence.code).toBe('application_error')
})

test('Retry-After of a 429 of Resend is kept', () => {
  const outcome = judged(refusal(429, 'rate_limit_exceeded', { retryAfterMs: 7000 }))
  expect(outcome).toMatchObject({ kind: 'not_sent', retryAfterMs: 7000 })
})

test.each<[number, string]>([
  [400, 'validation_error'],
  [403, 'validation_error'],
  [422, 'validation_error'],
  [400, 'invalid_idempotency_key'],
  [422, 'invalid_attachment'],
  [422, 'invalid_from_address'],
  [422, 'invalid_parameter'],
  [422, 'missing_required_field'],
  [451, 'security_error'],
])('%i %s is rejected in words of Resend, which are not those of the answer', (status, name) => {
  const outcome = judged(refusal(status, name))
  expect(outcome).toMatchObject({ kind: 'rejected', evidence: { httpStatus: status, code: name } })
  expect(outcome.evidence.detail).toBe(resend.answers.codes[name]?.wording)
  expect(JSON.stringify(outcome)).not.toContain(recipient)
  expect(outcome.evidence).not.toHaveProperty('unrecognised')
})

test.each<[string, Answer]>([
  ['a name in no table', refusal(422, 'missing_required_parameter')],
  ['a listed name under another status', refusal(404, 'missing_required_field')],
  ['a 403 of a name in no table', refusal(403, 'new_name')],
])('%s is rejected, and shown as unrecognised', (_name, answer) => {
  expect(judged(answer)).toMatchObject({ kind: 'rejected', evidence: { unrecognised: true } })
})

test('the first request still runs: ask again, after the pause it asked for', () => {
  const outcome = judged(refusal(409, 'concurrent_idempotent_requests', { retryAfterMs: 2000 }))
  expect(outcome).toMatchObject({ kind: 'unknown', retryAfterMs: 2000 })
  expect(outcome).not.toHaveProperty('isReplayPointless')
})

test('another payload under our key is an alarm, and never "not sent"', () => {
  expect(judged(refusal(409, 'invalid_idempotent_request'))).toMatchObject({
    kind: 'unknown',
    isKeyConflict: true,
    isReplayPointless: true,
  })
})

test.each<readonly [string, Answer]>([
  ...answersFromBetween,
  ['200 with a cut body', { status: 200, body: '{"id":"49a3', complete: false }],
  ['200 with a page', { status: 200, body: '<html>' }],
  ['200 whose id is no string', { status: 200, body: { id: 7 } }],
  ['200 whose id is empty', { status: 200, body: { id: '' } }],
  ['201 with an id', { status: 201, body: { id } }],
  ['202 with an id', { status: 202, body: { id } }],
  ['a refusal that was cut', refusal(422, 'missing_required_field', { complete: false })],
  ['an error body of another status', { ...refusal(422, 'missing_required_field'), status: 403 }],
  ['an error body without a status', { status: 422, body: { name: 'missing_required_field', message: 'x' } }],
  ['an error body without a message', { status: 422, body: { statusCode: 422, name: 'missing_required_field' } }],
  ['an error body without a name', { status: 422, body: { statusCode: 422, message: 'x' } }],
  ['the edge, which misses a User-Agent', { status: 403, body: 'error code: 1010' }],
  ['500 application_error', refusal(500, 'application_error')],
  ['500 internal_server_error', refusal(500, 'internal_server_error')],
  ['503 service_unavailable', refusal(503, 'service_unavailable')],
  ['409 of a name in no table', refusal(409, 'resource_locked')],
  ['429 of a name in no table', refusal(429, 'new_name')],
  ['429 with the name of a refusal', refusal(429, 'validation_error')],
  ['500 with the name of a refusal', refusal(500, 'validation_error')],
])('%s is unknown', (_name, answer) => {
  expect(judged(answer).kind).toBe('unknown')
})

test('the code table holds only codes that say what they mean, each under a status', () => {
  for (const [code, rule] of Object.entries(resend.answers.codes)) {
    expect(code).toMatch(/^[a-z_]+$/)
    expect(rule.wording).not.toBe('')
    expect(rule.statuses).not.toEqual([])
    expect(rule.statuses.filter((status) => status >= 500 !== (rule.means === 'unknown'))).toEqual([])
  }
})

const takes = (message: EmailRequest, own: ResendSettings = settings) => resend.limitBroken(message, own)
const attached = (bytes: number) =>
  email({}, { attachments: [{ filename: 'a', contentType: 'a/b', content: 'A'.repeat(bytes) }] })

test.each([...spoiledEmails, ['40 MB and a little of attachments', attached(40 * 1024 * 1024), '/content'] as const])(
  '%s breaks a limit',
  (_name, message, pointer) => {
    expect(takes(message)).toMatchObject({ pointer })
  },
)

test('limits are named, and what just keeps them is taken', () => {
  expect(takes(email({ cc: manyOf(25), bcc: manyOf(24) }))).toBeNull()
  expect(takes(email({ cc: manyOf(50) }))?.detail).toContain('at most 50 recipients')
  expect(takes(attached(40 * 1024 * 1024 - 100))).toBeNull()
  expect(takes(attached(41 * 1024 * 1024))?.detail).toContain('40 MB')
  expect(takes(email(), withoutSender)).toMatchObject({ pointer: '/from' })
  for (const from of [
    'a@example.com',
    'Shop <a@example.com>',
    '"Shop, Ltd." <a@example.com>',
    'Ünal Ö <a@example.com>',
  ])
    expect(takes(email({ from }), withoutSender)).toBeNull()
})

const rendered = (message: EmailRequest, own: ResendSettings = settings, at = attempt) =>
  wholeRequest(resend, message, own, at)
const bodyOf = (message: EmailRequest) => JSON.parse(rendered(message).body) as unknown

test('everything of a message stands in the body, and nothing of it in a header', () => {
  const attachments = [{ filename: 'invoice.pdf', contentType: 'application/pdf', content: 'aGk=' }]
  const message = email(
    { from: 'me@example.com', cc: ['c@example.com'], bcc: ['b@example.com'], replyTo: 'r@example.com' },
    { subject: 'Ñ 漢字 👍', html: '<p>\r\n</p>', headers: { 'X-Ticket': '991' }, attachments },
  )
  expect(bodyOf(message)).toEqual({
    from: 'me@example.com',
    to: [recipient],
    cc: ['c@example.com'],
    bcc: ['b@example.com'],
    reply_to: 'r@example.com',
    subject: 'Ñ 漢字 👍',
    text: 'On its way.',
    html: '<p>\r\n</p>',
    headers: { 'X-Ticket': '991' },
    attachments: [{ filename: 'invoice.pdf', content_type: 'application/pdf', content: 'aGk=' }],
  })
  expect(rendered(message).headers).toEqual({
    'content-type': 'application/json',
    accept: 'application/json',
    'user-agent': 'Sendonce',
    'idempotency-key': 'msg_0190',
    authorization: 'Bearer re_secret',
  })
})

test('what a message leaves out is left out, but for the sender', () => {
  const { from, to, subject, text } = { ...settings, ...email(), ...email().content }
  expect(bodyOf(email())).toEqual({ from, to: [to], subject, text })
  expect(() => rendered(email(), withoutSender)).toThrow(TypeError)
})

test('every attempt sends the same bytes under the key of the message', () => {
  const later = { ...attempt, attemptNumber: 7, startedAt: new Date('2026-07-02T00:00:00Z'), traceparent: null }
  expect(rendered(email(), settings, later)).toEqual(rendered(email()))
  expect(rendered(email(), settings, { ...attempt, messageId: 'msg_2' }).headers['idempotency-key']).toBe('msg_2')
  const ofOthers = { ...email(), reference: 'order-42', conversation: 'c', metadata: { a: 'b' } }
  expect(rendered(ofOthers, settings, { ...attempt, account: 'other' })).toEqual(rendered(email()))
})

test('two keys or two places are two providers', () => {
  const identities = [{}, { apiKey: 're_other' }, { baseUrl: 'https://eu.example' }, {}].map(
    (more) => providerOf({ adapter: 'resend', apiKey: 're_secret', ...more }).identity,
  )
  expect(new Set(identities).size).toBe(3)
  expect(identities[0]).toBe(identities[3])
  expect(identities.join()).not.toContain('re_')
})

test('a path in baseUrl is kept in front', () => {
  const { origin, path } = rendered(email(), { ...settings, baseUrl: 'http://127.0.0.1:8080/prefix/' })
  expect([origin, path]).toEqual(['http://127.0.0.1:8080', '/prefix/emails'])
  expect(rendered(email()).path).toBe('/emails')
})

test.each([
  [{}, ['.apiKey: is missing']],
  [{ apiKey: '' }, ['.apiKey: must match pattern']],
  [{ apiKey: 're_a\r\nX: y' }, ['.apiKey: must match pattern']],
  [{ apiKey: 're_a', from: 'Shop' }, ['.from: must match pattern']],
  [{ apiKey: 're_a', from: 'Shop\n<shop@example.com>' }, ['.from: must match pattern']],
  [{ apiKey: 're_a', baseUrl: 'ftp://x' }, ['.baseUrl: must match pattern']],
  [{ apiKey: 're_a', retries: 3 }, ['.retries: is not a setting of this adapter']],
  [{ apiKey: 're_a', from: 'Shop <shop@example.com>' }, []],
])('settings %j', (given, mistakes) => {
  const found = mistakesIn({ adapter: 'resend', ...given })
  expect(found.map((mistake) => mistake.replace(/ pattern .*/, ' pattern'))).toEqual(mistakes)
})

test('an answer is lost; the same bytes under the same key find out what became of it', async () => {
  const server = await scriptedServer(
    afterRequest(
      resets,
      says(http('409 Conflict', JSON.stringify(refusal(409, 'concurrent_idempotent_requests').body))),
      says(http('200 OK', JSON.stringify({ id }))),
    ),
  )
  const provider = providerOf({ adapter: 'resend', apiKey: 're_secret', from: 'a@example.com', baseUrl: server.origin })
  const kept = provider.render(email(), attempt)
  const send = (attemptNumber: number) => provider.send(email(), { ...attempt, attemptNumber }, () => true, kept)
  expect(await send(1)).toMatchObject({ kind: 'unknown', evidence: { phase: 'begun' } })
  expect(await send(2)).toMatchObject({ kind: 'unknown', evidence: { code: 'concurrent_idempotent_requests' } })
  expect(await send(3)).toMatchObject({ kind: 'accepted', providerMessageId: id })
  const requests = server.received().split(/(?=POST )/)
  expect(requests).toHaveLength(3)
  expect(new Set(requests).size).toBe(1)
  await server.close()
})

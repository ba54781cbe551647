import { expect, test } from 'vitest'
import type { EmailRequest } from '../../src/core/message-content.ts'
import { postmark, type PostmarkSettings } from '../../src/providers/postmark.ts'
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

const settings: PostmarkSettings = {
  serverToken: 'token',
  from: 'Shop <shop@example.com>',
  messageStream: 'outbound',
  baseUrl: 'https://api.postmarkapp.com',
  connectTimeoutMs: 3000,
  answerTimeoutMs: 10_000,
  concurrency: 64,
}
const { from: _, ...withoutSender } = settings
const messageId = 'msg_019500000000700080000000000000aa'
const attempt = attemptContext({ messageId, traceparent: '00-trace-01' })
const judged = judgedBy(postmark)
const id = 'b7bc2f4a-e38e-4336-af7d-e6c392c2f817'
const success = {
  To: recipient,
  SubmittedAt: '2026-07-01T08:00:00.3011205-04:00',
  MessageID: id,
  ErrorCode: 0,
  Message: 'OK',
}
/** Postmark's error body; the message repeats the recipient. */
const refusal = (status: number, code: unknown, more: Partial<Answer> = {}): Answer => ({
  status,
  body: { ErrorCode: code, Message: `about ${recipient}` },
  ...more,
})

test('200 with error code 0 and its id is accepted', () => {
  expect(judged({ status: 200, body: success })).toMatchObject({ kind: 'accepted', providerMessageId: id })
})

test.each<[string, Answer, string]>([
  ['401 with 10', refusal(401, 10), 'credentials'],
  ['401 with a code that is not listed', refusal(401, 9999), 'credentials'],
  ['422 with 405 (no credits)', refusal(422, 405), 'credentials'],
  ['422 with 412 (account is pending)', refusal(422, 412), 'credentials'],
  ['422 with 413 (account may not send)', refusal(422, 413), 'credentials'],
  ['429 with 429', refusal(429, 429), 'refused_for_now'],
])('%s is not sent', (_name, answer, reason) => {
  expect(judged(answer)).toMatchObject({ kind: 'not_sent', reason })
})

test.each([300, 400, 401, 402, 403, 406, 409, 410, 411])(
  '422 with %i is rejected in words of Postmark, which are not those of the answer',
  (code) => {
    const outcome = judged(refusal(422, code))
    expect(outcome).toMatchObject({ kind: 'rejected', evidence: { httpStatus: 422, code: String(code) } })
    expect(outcome.evidence.detail).toBe(postmark.answers.codes[code]?.wording)
    expect(JSON.stringify(outcome)).not.toContain(recipient)
    expect(outcome.evidence).not.toHaveProperty('unrecognised')
  },
)

test.each<[string, Answer]>([
  ['a code in no table', refusal(422, 1235)],
  ['a listed code under another status', refusal(404, 300)],
])('%s is rejected, and shown as unrecognised', (_name, answer) => {
  expect(judged(answer)).toMatchObject({ kind: 'rejected', evidence: { unrecognised: true } })
})

test.each<readonly [string, Answer]>([
  ...answersFromBetween,
  ['200 with another error code', { status: 200, body: { ...success, ErrorCode: 406 } }],
  ['200 without an error code', { status: 200, body: { MessageID: id } }],
  ['200 whose error code is a text', { status: 200, body: { ...success, ErrorCode: '0' } }],
  ['200 without an id', { status: 200, body: { ErrorCode: 0, Message: 'OK' } }],
  ['200 with a cut body', { status: 200, body: '{"ErrorCode":0,"MessageID":"b7', complete: false }],
  ['200 with a page', { status: 200, body: '<html>' }],
  ['202 with error code 0', { status: 202, body: success }],
  ['422 with error code 0', refusal(422, 0)],
  ['422 whose error code is a text', refusal(422, '300')],
  ['422 without a message', { status: 422, body: { ErrorCode: 300 } }],
  ['a refusal that was cut', refusal(422, 300, { complete: false })],
  ['413 with the code of an account', refusal(413, 413)],
  ['429 with the code of a refusal', refusal(429, 300)],
  ['500 with the code of a refusal', refusal(500, 300)],
  ['500 with a code in no table', refusal(500, 9999)],
  ['503 with 100 (maintenance)', refusal(503, 100)],
])('%s is unknown', (_name, answer) => {
  expect(judged(answer).kind).toBe('unknown')
})

test('a 200 with another error code shows it', () => {
  expect(judged({ status: 200, body: { ...success, ErrorCode: 406 } }).evidence).toMatchObject({ code: '406' })
})

test('the code table holds only codes that say what they mean, each under a status', () => {
  for (const [code, rule] of Object.entries(postmark.answers.codes)) {
    expect(code).toMatch(/^\d+$/)
    expect(rule.wording).not.toBe('')
    expect(rule.statuses).toHaveLength(1)
    expect(rule.statuses.filter((status) => status >= 500 !== (rule.means === 'unknown'))).toEqual([])
  }
})

const takes = (message: EmailRequest, own: PostmarkSettings = settings) => postmark.limitBroken(message, own)
const megabyte = 1024 * 1024
const attached = (bytes: number) =>
  email({}, { attachments: [{ filename: 'a', contentType: 'a/b', content: 'A'.repeat(bytes) }] })

test.each([
  ...spoiledEmails,
  ['a subject of 2001 characters', email({}, { subject: 'x'.repeat(2001) }), '/content/subject'] as const,
  ['a subject of 1001 emoji', email({}, { subject: '👍'.repeat(1001) }), '/content/subject'] as const,
  ['a sender of 256 characters', email({ from: `${'x'.repeat(237)} <shop@example.com>` }), '/from'] as const,
  ['more than 5 MB of text', email({}, { text: 'ü'.repeat(2.5 * megabyte + 1) }), '/content/text'] as const,
  ['more than 5 MB of HTML', email({}, { html: 'x'.repeat(5 * megabyte + 1) }), '/content/html'] as const,
  ['more than 10 MB of attachments', attached(10 * megabyte), '/content'] as const,
  [
    'metadata in a header',
    email({}, { headers: { 'X-PM-Metadata-sendonce': 'x' } }),
    '/content/headers/X-PM-Metadata-sendonce',
  ] as const,
])('%s breaks a limit', (_name, message, pointer) => {
  expect(takes(message)).toMatchObject({ pointer })
})

test('limits are named, and what just keeps them is taken', () => {
  expect(takes(email({ cc: manyOf(25), bcc: manyOf(24) }))).toBeNull()
  expect(takes(email({ cc: manyOf(50) }))?.detail).toContain('at most 50 recipients')
  expect(takes(email({}, { subject: '👍'.repeat(1000) }))).toBeNull()
  expect(takes(email({ from: `${'x'.repeat(236)} <shop@example.com>` }))).toBeNull()
  expect(takes(email({}, { text: 'ü'.repeat(2.5 * megabyte) }))).toBeNull()
  expect(takes(attached(10 * megabyte - 100))).toBeNull()
  expect(takes(attached(11 * megabyte))?.detail).toContain('10 MB')
  expect(takes(email(), withoutSender)).toMatchObject({ pointer: '/from' })
})

const rendered = (message: EmailRequest, own: PostmarkSettings = settings, at = attempt) =>
  wholeRequest(postmark, message, own, at)
const bodyOf = (message: EmailRequest) => JSON.parse(rendered(message).body) as unknown

test('everything of a message stands in the body with our reference, and nothing of it in a header', () => {
  const attachments = [{ filename: 'invoice.pdf', contentType: 'application/pdf', content: 'aGk=' }]
  const message = email(
    {
      from: 'me@example.com',
      cc: ['c@example.com', 'd@example.com'],
      bcc: ['b@example.com'],
      replyTo: 'r@example.com',
    },
    { subject: 'Ñ 漢字 👍', html: '<p>\r\n</p>', headers: { 'X-Ticket': '991' }, attachments },
  )
  expect(bodyOf(message)).toEqual({
    From: 'me@example.com',
    To: recipient,
    Cc: 'c@example.com,d@example.com',
    Bcc: 'b@example.com',
    ReplyTo: 'r@example.com',
    Subject: 'Ñ 漢字 👍',
    TextBody: 'On its way.',
    HtmlBody: '<p>\r\n</p>',
    MessageStream: 'outbound',
    Metadata: { sendonce: messageId },
    Headers: [{ Name: 'X-Ticket', Value: '991' }],
    Attachments: [{ Name: 'invoice.pdf', ContentType: 'application/pdf', Content: 'aGk=' }],
  })
  expect(rendered(message).headers).toEqual({
    'content-type': 'application/json',
    accept: 'application/json',
    'user-agent': 'Sendonce',
    'x-postmark-server-token': 'token',
  })
})

test('what a message leaves out is left out, but for the sender and the stream', () => {
  expect(bodyOf(email({ cc: [], bcc: [] }))).toEqual({
    From: settings.from,
    To: recipient,
    Subject: 'Order 42',
    TextBody: 'On its way.',
    MessageStream: 'outbound',
    Metadata: { sendonce: messageId },
  })
  expect(() => rendered(email(), withoutSender)).toThrow(TypeError)
  expect(rendered(email(), { ...settings, messageStream: 'news' }).body).toContain('"MessageStream":"news"')
})

test('every attempt sends the same bytes; another message has another reference', () => {
  const later = { ...attempt, attemptNumber: 7, startedAt: new Date('2026-07-02T00:00:00Z'), traceparent: null }
  expect(rendered(email(), settings, later)).toEqual(rendered(email()))
  expect(rendered(email(), settings, { ...attempt, messageId: 'msg_2' }).body).toContain('{"sendonce":"msg_2"}')
  const ofOthers = { ...email(), reference: 'order-42', conversation: 'c', metadata: { a: 'b' } }
  expect(rendered(ofOthers, settings, { ...attempt, account: 'other' })).toEqual(rendered(email()))
})

test('two tokens or two places are two providers', () => {
  const identities = [{}, { serverToken: 'other' }, { baseUrl: 'https://pm.example' }, {}].map(
    (more) => providerOf({ adapter: 'postmark', serverToken: 'token', ...more }).identity,
  )
  expect(new Set(identities).size).toBe(3)
  expect(identities[0]).toBe(identities[3])
})

const look = { messageId, createdAt: attempt.createdAt, startedAt: attempt.startedAt }

test('the look-up goes by our reference, in the stream of the message; a path in baseUrl is kept in front', () => {
  const own = { ...settings, baseUrl: 'http://127.0.0.1:8080/prefix/', messageStream: 'news' }
  expect(rendered(email(), own)).toMatchObject({ origin: 'http://127.0.0.1:8080', path: '/prefix/email' })
  expect(postmark.lookup?.render(email(), own, look)).toEqual({
    origin: 'http://127.0.0.1:8080',
    method: 'GET',
    path: `/prefix/messages/outbound?count=50&offset=0&messagestream=news&metadata_sendonce=${messageId}`,
    headers: { accept: 'application/json', 'user-agent': 'Sendonce' },
    body: null,
  })
})

const ours = { MessageID: id, Metadata: { sendonce: messageId }, Status: 'Sent' }
const others = { MessageID: 'x', Metadata: { sendonce: 'msg_2' } }
const shown = (...Messages: unknown[]) => ({ TotalCount: Messages.length, Messages })

test.each<[string, unknown, unknown]>([
  ['nothing', shown(), { count: 0, providerMessageId: null }],
  ['ours', shown(ours), { count: 1, providerMessageId: id }],
  ['ours twice', shown(ours, { ...ours, MessageID: 'y' }), { count: 2, providerMessageId: id }],
  ['another', shown(others), null],
  ['ours and another', shown(ours, others), null],
  ['one without metadata', shown({ MessageID: 'x' }), null],
  ['a page of many', { TotalCount: 70, Messages: [ours] }, null],
  ['another beyond its count', { TotalCount: 1, Messages: [ours, others] }, null],
  ['none of one', { TotalCount: 1, Messages: [] }, null],
  ['no count', { Messages: [] }, null],
  ['no list', { TotalCount: 0 }, null],
  ['an error', { ErrorCode: 700, Message: 'x' }, null],
  ['what is no JSON', undefined, null],
])('a look-up that shows %s', (_name, body, told) => {
  expect(postmark.lookup?.read(body, look)).toEqual(told)
})

test.each([
  [{}, ['.serverToken: is missing']],
  [{ serverToken: '' }, ['.serverToken: must match pattern']],
  [{ serverToken: 'a\r\nX: y' }, ['.serverToken: must match pattern']],
  [{ serverToken: 'a', from: 'Shop' }, ['.from: must match pattern']],
  [{ serverToken: 'a', messageStream: 'a b' }, ['.messageStream: must match pattern']],
  [{ serverToken: 'a', accountToken: 'b' }, ['.accountToken: is not a setting of this adapter']],
  [{ serverToken: 'a', from: 'shop@example.com', messageStream: 'news' }, []],
])('settings %j', (given, mistakes) => {
  const found = mistakesIn({ adapter: 'postmark', ...given })
  expect(found.map((mistake) => mistake.replace(/ pattern .*/, ' pattern'))).toEqual(mistakes)
})

test('an answer is lost; the search finds what became of it, once it shows', async () => {
  const json = (body: unknown) => says(http('200 OK', JSON.stringify(body)))
  const server = await scriptedServer(
    afterRequest(resets, json(shown()), says(http('503 Busy')), json(shown(others)), json(shown(ours))),
  )
  const provider = providerOf({
    adapter: 'postmark',
    serverToken: 'token',
    from: 'a@example.com',
    baseUrl: server.origin,
  })
  const sent = await provider.send(email(), attempt, () => true, null)
  expect(sent).toMatchObject({ kind: 'unknown', evidence: { phase: 'begun' } })
  const told = []
  for (const _look of [1, 2, 3, 4]) told.push(await provider.look(email(), look))
  expect(told.map(({ kind }) => kind)).toEqual(['absent', 'failed', 'failed', 'found'])
  expect(told[3]).toMatchObject({ count: 1, providerMessageId: id })
  const requests = server.received().split(/(?=POST |GET )/)
  expect(requests.map((request) => request.split(' ')[0])).toEqual(['POST', 'GET', 'GET', 'GET', 'GET'])
  expect(requests[1]).toContain('x-postmark-server-token: token')
  await server.close()
})

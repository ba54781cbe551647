/** What the Resend adapter sends and reads, against Resend's own OpenAPI description (resend/resend-openapi). */
import { expect, test } from 'vitest'
import type { EmailRequest } from '../../src/core/message-content.ts'
import { resend, type ResendSettings } from '../../src/providers/resend.ts'
import { email, manyOf, providerOf } from '../support/adapters.ts'
import { attemptContext, wholeRequest } from '../support/attempt-context.ts'
import { checker, describedBy, vendor, type VendorAnswer, type VendorRequest } from '../support/vendor.ts'

const { absent, why, read } = describedBy('resend.yaml')
const attempt = attemptContext({ messageId: 'msg_019500000000700080000000000000aa' })
const open = (): boolean => true

const refused = (statusCode: number, name: string, message = name): VendorAnswer => ({
  status: statusCode,
  body: { statusCode, name, message },
})

/** Resend as documented: the description, a key that is known, and one answer for one key. */
async function fakeResend() {
  const description = read()
  const post = description.paths['/emails']?.post
  const check = checker(description, ['SendEmailRequest', 'Attachment'])
  const schemaOf = (content: Record<string, { schema: { $ref: string } }> | undefined) =>
    content?.['application/json']?.schema ?? {}
  const first = new Map<string, { body: string; answer: VendorAnswer }>()
  const sent: unknown[] = []

  function act({ method, path, headers, body }: VendorRequest): VendorAnswer {
    if (headers['user-agent'] === undefined) return { status: 403, body: 'error code: 1010' }
    if (path !== '/emails') return refused(404, 'not_found')
    if (method !== 'POST') return refused(405, 'method_not_allowed')
    if (headers.authorization === undefined) return refused(401, 'missing_api_key')
    if (headers.authorization !== 'Bearer re_secret') return refused(401, 'validation_error', 'API key is invalid')
    const parameter = post?.parameters?.find(({ name }) => name === 'Idempotency-Key')
    const key = headers['idempotency-key']
    if (typeof key !== 'string' || check(parameter?.schema ?? { not: {} }, key).length > 0 || key === '')
      return refused(400, 'invalid_idempotency_key')
    const before = first.get(key)
    if (before !== undefined) return before.body === body ? before.answer : refused(409, 'invalid_idempotent_request')
    const errors = check(schemaOf(post?.requestBody.content), JSON.parse(body))
    if (errors.length > 0) return refused(422, 'missing_required_field', errors.join())
    sent.push(JSON.parse(body))
    const answer = { status: 200, body: { id: `id-${sent.length}` } }
    expect(check(schemaOf(post?.responses['200']?.content), answer.body)).toEqual([])
    first.set(key, { body, answer })
    return answer
  }
  const server = await vendor(act)
  const made = (more: object = {}) =>
    providerOf({
      adapter: 'resend',
      apiKey: 're_secret',
      from: 'Shop <a@example.com>',
      baseUrl: server.origin,
      ...more,
    })
  return { ...server, act, sent, made }
}

const whole: EmailRequest = email(
  { from: 'b@example.com', cc: manyOf(20), bcc: manyOf(20), replyTo: 'r@example.com' },
  {
    html: '<p>',
    headers: { 'X-Ticket': '991' },
    attachments: [{ filename: 'a.pdf', contentType: 'application/pdf', content: 'aGk=' }],
  },
)

test.skipIf(absent)(`every request that the adapter makes is accepted${why}`, async () => {
  const { made, sent } = await fakeResend()
  for (const [nth, message] of [email(), whole, email({}, { text: 'ñ 👍\r\n' })].entries())
    expect(await made().send(message, { ...attempt, messageId: `msg_${nth}` }, open, null)).toMatchObject({
      kind: 'accepted',
      providerMessageId: `id-${nth + 1}`,
    })
  expect(sent).toHaveLength(3)
})

test.skipIf(absent)(`a wrong request is refused by the same description${why}`, async () => {
  const { act } = await fakeResend()
  const own = { apiKey: 're_secret', from: 'a@example.com', baseUrl: 'http://x' } as ResendSettings
  const right = wholeRequest(resend, whole, own, attempt)
  const { body } = right
  const wrong = [
    { ...right, body: body.replace('"subject"', '"Subject"') },
    { ...right, body: body.replace('"reply_to"', '"replyTo"') },
    { ...right, body: body.replace('"content_type"', '"contentType"') },
    { ...right, body: body.replace('["ada', '[7,"ada') },
    { ...right, headers: { ...right.headers, 'idempotency-key': 'k'.repeat(257) } },
    { ...right, headers: { ...right.headers, 'idempotency-key': undefined } },
    { ...right, headers: { ...right.headers, 'user-agent': undefined } },
    { ...right, path: '/email' },
    { ...right, method: 'GET' },
  ]
  expect(wrong.map((request) => act(request).status)).toEqual([422, 422, 422, 422, 400, 400, 403, 404, 405])
  expect(act(right).status).toBe(200)
})

test.skipIf(absent)(`a lost answer is replayed under its key: one e-mail, and its id${why}`, async () => {
  const { made, sent, loseNextAnswer } = await fakeResend()
  const provider = made()
  const kept = provider.render(whole, attempt)
  loseNextAnswer()
  expect(await provider.send(whole, attempt, open, kept)).toMatchObject({ kind: 'unknown' })
  const again = await provider.send(whole, { ...attempt, attemptNumber: 2 }, open, kept)
  expect(again).toMatchObject({ kind: 'accepted', providerMessageId: 'id-1' })
  expect(sent).toHaveLength(1)
})

test.skipIf(absent)(`another body under the key is a conflict, and nothing is sent${why}`, async () => {
  const { made, sent } = await fakeResend()
  expect(await made().send(email(), attempt, open, null)).toMatchObject({ kind: 'accepted' })
  expect(await made().send(whole, attempt, open, null)).toMatchObject({ kind: 'unknown', isKeyConflict: true })
  expect(sent).toHaveLength(1)
})

test.skipIf(absent)(`a key that Resend does not know stops the provider, a wrong address the same${why}`, async () => {
  const { made, origin } = await fakeResend()
  for (const more of [{ apiKey: 're_other' }, { baseUrl: `${origin}/v1` }])
    expect(await made(more).send(email(), attempt, open, null)).toMatchObject({ reason: 'credentials' })
})

test.skipIf(absent)(`the default base URL is the server of the description${why}`, () => {
  expect(resend.settings.properties['baseUrl']).toMatchObject({ default: read().servers[0]?.url })
})

/** The webhook adapter: what it signs and sends, refereed by the specification's vector and two published verifiers. */
import { Ajv } from 'ajv'
import { array, assert as holds, constantFrom, integer, jsonValue, property, string, tuple } from 'fast-check'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import { Webhook as SvixWebhook } from 'svix'
import { expect, test } from 'vitest'
import { canonicalJson } from '../../src/core/fingerprint.ts'
import type { MessageRequest, WebhookRequest } from '../../src/core/message-content.ts'
import { judgeCall } from '../../src/providers/judge-answer.ts'
import type { AttemptContext } from '../../src/providers/provider.ts'
import { checkProvider } from '../../src/providers/registry.ts'
import { signatures } from '../../src/providers/standard-webhooks.ts'
import { webhook, type WebhookSettings } from '../../src/providers/webhook.ts'
import { attemptContext, blindCapabilities, wholeRequest } from '../support/attempt-context.ts'
import { words } from '../support/words.ts'

const secretOf = (bytes: number, fill = 7): string => `whsec_${Buffer.alloc(bytes, fill).toString('base64')}`
/** Of the specification's own tests. */
const signingSecret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const settings: WebhookSettings = {
  signingSecret,
  allowPrivateAddresses: false,
  deduplicates: false,
  connectTimeoutMs: 3000,
  answerTimeoutMs: 15_000,
  concurrency: 64,
}
const to = 'https://receiver.example/hooks/1?token=a%20b'
const event = (data: unknown = { id: 7 }, more: Partial<WebhookRequest> = {}): WebhookRequest => ({
  channel: 'webhook',
  to,
  content: { type: 'order.shipped', data },
  ...more,
})
const rendered = (message: MessageRequest, attempt: Partial<AttemptContext> = {}, own: Partial<WebhookSettings> = {}) =>
  wholeRequest(webhook, message, { ...settings, ...own }, attemptContext(attempt))

/** What the verifiers read from a body that both accept. They share their cryptography, which is not node's. */
function verified(secret: string, body: string, headers: Readonly<Record<string, string>>): unknown {
  new SvixWebhook(secret).verify(body, { ...headers })
  return new StandardWebhook(secret).verify(body, { ...headers })
}
const now = (): Partial<AttemptContext> => ({ startedAt: new Date() })

test("the specification's vector has the signature that is published for it", () => {
  const content = 'msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}'
  expect(signatures(signingSecret, content)).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
})

test('a request is a POST of type, timestamp and data, with id, time of the attempt and signature', () => {
  expect(rendered(event())).toEqual({
    origin: 'https://receiver.example',
    method: 'POST',
    path: '/hooks/1?token=a%20b',
    headers: {
      'content-type': 'application/json',
      'user-agent': 'Sendonce',
      'webhook-id': 'msg_1',
      'webhook-timestamp': '1782907201',
      'webhook-signature': expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/) as string,
    },
    body: '{"type":"order.shipped","timestamp":"2026-07-01T12:00:00.250Z","data":{"id":7}}',
  })
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  expect(rendered(event(), { traceparent }).headers).toMatchObject({ traceparent })
})

test('published verifiers accept every request, whatever its data and the length of its secret', () => {
  const secret = integer({ min: 24, max: 64 }).map((bytes) => secretOf(bytes, bytes))
  const check = (data: unknown, type: string, each: string): void => {
    const { body, headers } = rendered(event(undefined, { content: { type, data } }), now(), { signingSecret: each })
    expect(verified(each, body, headers)).toEqual({
      type,
      timestamp: '2026-07-01T12:00:00.250Z',
      data: JSON.parse(JSON.stringify(data)) as unknown,
    })
  }
  holds(property(jsonValue(), string({ minLength: 1, unit: 'binary' }), secret, check))
})

test.each([
  ['body', { body: (text: string) => text.replace('7', '8') }],
  ['body, by one blank', { body: (text: string) => `${text} ` }],
  ['id', { 'webhook-id': () => 'msg_2' }],
  ['time', { 'webhook-timestamp': (text: string) => String(Number(text) + 1) }],
  ['signature', { 'webhook-signature': (text: string) => text.replace(/,./, ',!') }],
])('a change in the %s is found', (_, changes: Partial<Record<string, (text: string) => string>>) => {
  const { body, headers } = rendered(event(), now())
  const changed = Object.entries(headers).map(([name, text]) => [name, changes[name]?.(text) ?? text])
  expect(() => verified(signingSecret, body, headers)).not.toThrow()
  expect(() =>
    verified(signingSecret, changes['body']?.(body) ?? body, Object.fromEntries(changed) as Record<string, string>),
  ).toThrow('No matching signature found')
})

const old = secretOf(32)
test.each([
  ['a list', [signingSecret, old]],
  ['one text with a blank between them', `${signingSecret} ${old}`],
  ['a list of such texts', [signingSecret, `${old} ${secretOf(64)}`]],
])('while secrets are changed, given as %s, receivers with the new and with the old one accept', (_, several) => {
  const { body, headers } = rendered(event(), now(), { signingSecret: several })
  for (const secret of [signingSecret, old]) expect(verified(secret, body, headers)).toMatchObject({ data: { id: 7 } })
  expect(() => verified(secretOf(24), body, headers)).toThrow('No matching signature found')
  expect(headers['webhook-signature']).toMatch(/^v1,[^ ,]+( v1,[^ ,]+){1,2}$/)
})

/** The same JSON as `value`, the members of its objects the other way round. */
function turned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(turned)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([name, member]) => [name, turned(member)]),
  )
}

test('two attempts have the same id and the same bytes of body, in whatever order the data is read again (W1)', () => {
  holds(
    property(jsonValue(), (data) => {
      const first = rendered(event(data))
      const again = { attemptNumber: 2, startedAt: new Date('2026-07-01T12:05:00Z') }
      for (const stored of [turned(data), JSON.parse(canonicalJson(data)) as unknown]) {
        const second = rendered(event(stored), again)
        expect(second.body).toBe(first.body)
        expect(second.headers['webhook-id']).toBe(first.headers['webhook-id'])
        expect(second.headers['webhook-signature']).not.toBe(first.headers['webhook-signature'])
      }
    }),
  )
})

test.each([
  ['https://receiver.example', 'https://receiver.example', '/'],
  ['https://receiver.example?a=1', 'https://receiver.example', '/?a=1'],
  ['https://receiver.example/#part', 'https://receiver.example', '/'],
  ['https://Receiver.Example:443/A/', 'https://receiver.example', '/A/'],
  ['https://receiver.example:8443/', 'https://receiver.example:8443', '/'],
  [
    "https://r.example/a/../b//./c/%2e%2E/d;x='y'?q='[a]|'".replace('|', '%7C'),
    'https://r.example',
    "/a/../b//./c/%2e%2E/d;x='y'?q='[a]%7C'",
  ],
  ['https://r.example/a@b:c?to=https://x.example/?y', 'https://r.example', '/a@b:c?to=https://x.example/?y'],
  ['https://[2606:4700::1111]/x', 'https://[2606:4700::1111]', '/x'],
])('%s goes to %s as %s: path and query exactly as asked (W2)', (asked, origin, path) => {
  expect(webhook.limitBroken(event(null, { to: asked }), settings)).toBeNull()
  expect(rendered(event(null, { to: asked }))).toMatchObject({ origin, path })
})

test.each([
  ...words(`
    receiver.example /hooks ftp://receiver.example/ https:// https:///x https:receiver.example/
    https://receiver.example\\@127.0.0.1/ https://receiver.example/é https://receiver.example/"
    https://256.1.1.1/ https://receiver.example:99999/ https://[::1/ https://%zz/
    https://receiver.example/%zz https://receiver.example/?% https://receiver.example/^ https://receiver.example/{}|
    https://user:secret@receiver.example/ https://user@receiver.example/ https://@receiver.example/
    https://receiver.example@127.0.0.1/ https://127.0.0.1/ https://0x7f.1/ https://2130706433/x?y https://[::1]/
    https://[::ffff:10.0.0.1]/ https://169.254.169.254/latest/meta-data/ https://10.0.0.1:8443/`),
  ...['a b', 'a\r\nx: y', '\n', '\t'].map((end) => `https://receiver.example/${end}`),
])('%j is refused as a receiver, before anything is claimed', (asked) => {
  expect(webhook.limitBroken(event(null, { to: asked }), settings)).toMatchObject({ pointer: '/to' })
})

test('an address inside may be named where the settings allow it; one of a metadata service never', () => {
  const inside = { ...settings, allowPrivateAddresses: true }
  const limits = ['https://10.0.0.1/', 'https://[::1]/', 'https://169.254.169.254/'].map((asked) =>
    webhook.limitBroken(event(null, { to: asked }), inside),
  )
  expect(limits).toEqual([null, null, { pointer: '/to', detail: expect.any(String) as string }])
})

test('what a caller wrote gets into no header and no second request line (W2)', () => {
  const hostile = constantFrom(
    '\r\n',
    '\n',
    '\0',
    'POST / HTTP/1.1',
    '"',
    '\\',
    '\u2028',
    '}{',
    '.',
    'webhook-id: 1',
    '👍',
  )
  const text = array(hostile, { minLength: 1, maxLength: 6 }).map((parts) => parts.join(''))
  holds(
    property(tuple(text, text, text), ([type, name, value]) => {
      const { body, headers, path } = rendered(event(null, { content: { type, data: { [name]: value } } }), now())
      expect(body).not.toMatch(/[\r\n\0]/)
      expect(Object.values(headers).join(' ')).toMatch(/^[\x21-\x7e ]+$/)
      expect(path).toBe('/hooks/1?token=a%20b')
      expect(verified(signingSecret, body, headers)).toMatchObject({ type, data: { [name]: value } })
    }),
  )
})

test('a sender is refused, for a webhook cannot carry one; another channel is a bug', () => {
  expect(webhook.limitBroken(event(null, { from: 'ACME' }), settings)).toMatchObject({ pointer: '/from' })
  const email: MessageRequest = { channel: 'email', to: 'a@b.c', content: { subject: 's', text: 't' } }
  expect(() => rendered(email)).toThrow(TypeError)
  expect(() => rendered(event(null, { to: 'no URL' }))).toThrow(TypeError)
})

const judged = (status: number, body = '', complete = true) =>
  judgeCall(
    { phase: 'answered', answer: { status, body, complete, headers: {}, retryAfterMs: 7000 }, code: null },
    webhook.answers,
    blindCapabilities('status'),
  )

test.each([200, 201, 202, 204, 207, 299])('%i is acceptance, by its status line alone', (status) => {
  expect(judged(status)).toMatchObject({ kind: 'accepted', providerMessageId: null })
  expect(judged(status, '{"id":"cut', false)).toMatchObject({ kind: 'accepted', providerMessageId: null })
})

test('410 is the one refusal', () => {
  expect(judged(410)).toMatchObject({ kind: 'rejected', evidence: { httpStatus: 410, code: 'gone' } })
  expect(judged(410, '<html>', false)).toMatchObject({ kind: 'rejected' })
})

test('every other answer proves nothing, whatever its body says', () => {
  const others = Array.from({ length: 300 }, (_, n) => 300 + n).filter((status) => status !== 410)
  const bodies = ['', '<html>', '{"error":{"code":"gone","message":"not accepted"}}']
  const kinds = others.flatMap((status) => bodies.map((body) => judged(status, body).kind))
  expect(new Set(kinds)).toEqual(new Set(['unknown']))
})

const ajv = new Ajv({ useDefaults: true, allowUnionTypes: true })
const valid = (own: object): boolean => ajv.validate(webhook.settings, own)

test('settings are strict, bounded and filled with defaults', () => {
  const filled: object = { signingSecret }
  expect(valid(filled)).toBe(true)
  expect(filled).toEqual(settings)
  expect(valid({})).toBe(false)
  expect(valid({ signingSecret, answerTimeoutMs: 0 })).toBe(false)
  expect(valid({ signingSecret, allowPrivateAddresses: 'yes' })).toBe(false)
  expect(valid({ signingSecret, baseUrl: 'https://receiver.example' })).toBe(false)
})

test('a secret is whsec_ and the base64 of 24 to 64 bytes, each of several', () => {
  const lengths = Array.from({ length: 80 }, (_, n) => n)
  expect(lengths.filter((bytes) => valid({ signingSecret: secretOf(bytes) }))).toEqual(lengths.slice(24, 65))
  expect(valid({ signingSecret: [signingSecret, secretOf(64)] })).toBe(true)
  expect(valid({ signingSecret: `${signingSecret} ${secretOf(64)}` })).toBe(true)
  const wrong = [
    signingSecret.slice(6),
    `${signingSecret}=`,
    `${signingSecret} `,
    `${signingSecret}\n`,
    `${signingSecret} x`,
  ]
  for (const each of [...wrong, '', secretOf(16), secretOf(25).replace('=', ''), `whpk_${signingSecret.slice(6)}`]) {
    expect(valid({ signingSecret: each })).toBe(false)
    expect(valid({ signingSecret: [signingSecret, each] })).toBe(false)
  }
  expect(valid({ signingSecret: [] })).toBe(false)
})

test('a wrong secret is one mistake, in a line that does not repeat it', () => {
  const checked = checkProvider({ adapter: 'webhook', signingSecret: 'whsec_hunter2' })
  const mistakes = 'mistakes' in checked ? checked.mistakes : []
  expect(mistakes).toHaveLength(1)
  expect(mistakes[0]).toMatch(/^\.signingSecret: /)
  expect(mistakes[0]).not.toContain('hunter2')
})

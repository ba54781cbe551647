/** What webhooks tell: each vendor's documented events, the ids that name them, and who takes webhooks at all. */
import { describe, expect, test } from 'vitest'
import { getExpectedTwilioSignature } from 'twilio/lib/webhooks/webhooks.js'
import type { ParsedWebhook, Provider, WebhookEvent } from '../../src/providers/provider.ts'
import { twilio as twilioAdapter, type TwilioSettings } from '../../src/providers/twilio.ts'
import { attemptContext, wholeRequest } from '../support/attempt-context.ts'
import { byLine, bySlack, bySvix, notifySettings, parsedBy, receiverOf, type Told } from '../support/webhooks.ts'

const nothing = { events: [], replies: [] }
const now = new Date('2026-12-01T09:00:00Z')
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const message = `msg_${'0'.repeat(31)}1`
const password = 'p'.repeat(16)
const publicUrl = 'https://hooks.example.com'

const account = { adapter: 'twilio', accountSid: `AC${'0'.repeat(32)}`, authToken: '12345' }
const providers = {
  twilio: receiverOf({ ...account, publicUrl }),
  resend: receiverOf({ adapter: 'resend', apiKey: 're_1', webhookSecret: secret }),
  postmark: receiverOf({ adapter: 'postmark', serverToken: 't', webhookUser: 'u', webhookPassword: password }),
  notify: receiverOf({
    ...notifySettings,
    webhookBearerToken: '1234567890',
  }),
  slack: receiverOf({ adapter: 'slack', token: 'xoxb-1', signingSecret: 's1' }),
  line: receiverOf({ adapter: 'line', channelAccessToken: 't', channelSecret: 'c1' }),
}

const from = (provider: Provider, told: Told): ParsedWebhook => parsedBy(provider, told, now)
function onlyEvent(parsed: ParsedWebhook): WebhookEvent {
  if (!('events' in parsed) || parsed.events[0] === undefined) throw new Error(JSON.stringify(parsed))
  expect(parsed.events).toHaveLength(1)
  return parsed.events[0]
}
const inShort = ({ kind, code }: WebhookEvent): string => (code === null ? kind : `${kind} ${code}`)

const callback = `/v1/providers/twilio-eu/webhooks?message=${message}&attempt=att_${'0'.repeat(32)}`
const byTwilio = (fields: Record<string, string>, url = callback): Told => ({
  url,
  headers: {
    'x-twilio-signature': getExpectedTwilioSignature('12345', publicUrl + url, fields),
    'i-twilio-idempotency-token': Math.random().toString(),
  },
  body: new URLSearchParams(fields).toString(),
})

describe('Twilio', () => {
  test.each([
    ['accepted', 'accepted'],
    ['queued', 'accepted'],
    ['scheduled', 'accepted'],
    ['sending', 'accepted'],
    ['sent', 'accepted'],
    ['delivered', 'delivered'],
    ['read', 'delivered'],
    ['undelivered', 'undelivered 30005'],
    ['failed', 'undelivered 30005'],
    ['canceled', 'undelivered 30005'],
  ])('%s: %s', (status, expected) => {
    const told = byTwilio({ MessageSid: 'SM1', MessageStatus: status, ErrorCode: '30005', To: '+44' })
    const event = onlyEvent(from(providers.twilio, told))
    expect(inShort(event)).toBe(expected)
    expect(event).toMatchObject({
      messageId: message,
      attemptId: `att_${'0'.repeat(32)}`,
      providerMessageId: 'SM1',
      at: null,
    })
  })

  test.each(['received', 'receiving', 'partially_delivered', 'constructor', ''])('%j is no news of ours', (status) => {
    const told = byTwilio({ MessageSid: 'SM1', MessageStatus: status, To: '+44' })
    expect(from(providers.twilio, told)).toEqual(nothing)
  })

  test('the event is what was signed, whatever the header of repeats says; another status is another event', () => {
    const idOf = (fields: Record<string, string>): string =>
      onlyEvent(from(providers.twilio, byTwilio({ MessageSid: 'SM1', MessageStatus: 'sent', ...fields }))).eventId
    expect(idOf({})).toBe(idOf({ To: '+44' }))
    expect(new Set([idOf({}), idOf({ MessageStatus: 'delivered' }), idOf({ MessageSid: 'SM2' })]).size).toBe(3)
  })

  const settings: TwilioSettings = {
    accountSid: account.accountSid,
    authToken: '12345',
    from: '+15005550006',
    baseUrl: 'https://api.twilio.com',
    connectTimeoutMs: 1,
    answerTimeoutMs: 1,
    concurrency: 1,
  }
  const callbackOf = (own: Partial<TwilioSettings>): string | null => {
    const sms = { channel: 'sms', to: '+447700900123', content: { text: 'hello' } } as const
    const attempt = attemptContext({ provider: 'twilio-eu' })
    return new URLSearchParams(wholeRequest(twilioAdapter, sms, { ...settings, ...own }, attempt).body).get(
      'StatusCallback',
    )
  }

  test('a callback is asked for where it can be verified, at an address that names message and attempt', () => {
    expect(callbackOf({})).toBeNull()
    expect(callbackOf({ publicUrl: 'https://a.example/p/' })).toBe(
      'https://a.example/p/v1/providers/twilio-eu/webhooks?message=msg_1&attempt=att_1',
    )
    const apiKeySid = `SK${'0'.repeat(32)}`
    expect(callbackOf({ publicUrl: 'https://a.example', apiKeySid })).toBeNull()
    expect(callbackOf({ publicUrl: 'https://a.example', apiKeySid, webhookAuthToken: 't' })).toMatch(/^https/)
  })

  test('capabilities say so', () => {
    const evidence = (more: object): string => receiverOf({ ...account, ...more }).capabilities.lateEvidence
    expect([evidence({}), evidence({ publicUrl })]).toEqual(['none', 'callback_url'])
  })
})

describe('Resend', () => {
  const byResend = (type: string, data: object = {}, id = 'svix_1'): Told => {
    const tags = { sendonce: message }
    const body = { type, created_at: '2026-12-01T08:59:59.123Z', data: { email_id: 'e-1', tags, ...data } }
    return bySvix(secret, id, now, JSON.stringify(body))
  }
  test.each([
    ['email.sent', 'accepted'],
    ['email.delivery_delayed', 'accepted'],
    ['email.complained', 'accepted'],
    ['email.opened', 'accepted'],
    ['email.delivered', 'delivered'],
    ['email.bounced', 'undelivered Permanent'],
    ['email.failed', 'undelivered email.failed'],
    ['email.suppressed', 'undelivered email.suppressed'],
  ])('%s: %s', (type, expected) => {
    const bounce = type === 'email.bounced' ? { bounce: { type: 'Permanent', message: 'no such mailbox' } } : {}
    const event = onlyEvent(from(providers.resend, byResend(type, bounce)))
    expect(inShort(event)).toBe(expected)
    expect(event).toMatchObject({
      eventId: 'svix_1',
      messageId: message,
      providerMessageId: 'e-1',
      at: new Date('2026-12-01T08:59:59.123Z'),
    })
  })

  test('tags as a list, of another application, or none', () => {
    const referenceIn = (tags: unknown): string | null =>
      onlyEvent(from(providers.resend, byResend('email.sent', { tags }))).messageId
    expect(
      referenceIn([
        { name: 'a', value: 'b' },
        { name: 'sendonce', value: message },
      ]),
    ).toBe(message)
    expect([referenceIn([{ name: 'a', value: 'b' }]), referenceIn({ a: 'b' }), referenceIn(undefined)]).toEqual([
      null,
      null,
      null,
    ])
  })

  test('news of domains and contacts is none of ours; what is no event is unreadable', () => {
    expect(from(providers.resend, byResend('domain.created'))).toEqual(nothing)
    expect(from(providers.resend, bySvix(secret, 'm', now, '{"hello":1}'))).toEqual({ refused: 'unreadable' })
    expect(from(providers.resend, bySvix(secret, 'm', now, 'hello'))).toEqual({ refused: 'unreadable' })
  })
})

describe('Postmark', () => {
  const headers = { authorization: `Basic ${Buffer.from(`u:${password}`).toString('base64')}` }
  const byPostmark = (body: object): Told => ({
    headers,
    body: JSON.stringify({ MessageID: '883953f4', Metadata: { sendonce: message }, ...body }),
  })
  const delivery = { RecordType: 'Delivery', Recipient: 'a@example.com', DeliveredAt: '2026-12-01T08:00:00Z' }
  const bounce = {
    RecordType: 'Bounce',
    ID: 42,
    Email: 'a@example.com',
    BouncedAt: '2026-12-01T04:00:00.2735393-04:00',
  }

  test.each([
    [delivery, 'delivered'],
    [{ ...bounce, Type: 'HardBounce' }, 'undelivered HardBounce'],
    [{ ...bounce, Type: 'SoftBounce' }, 'undelivered SoftBounce'],
    [{ ...bounce, Type: 'Transient' }, 'accepted'],
    [{ ...bounce, Type: 'AutoResponder' }, 'accepted'],
    [{ ...bounce, Type: 'constructor' }, 'accepted'],
    [{ RecordType: 'SpamComplaint', ID: 1 }, 'accepted'],
    [{ RecordType: 'Open', ReceivedAt: '2026-12-01T08:00:00Z' }, 'accepted'],
  ])('%j: %s', (body, expected) => {
    const event = onlyEvent(from(providers.postmark, byPostmark(body)))
    expect(inShort(event)).toBe(expected)
    expect(event).toMatchObject({ messageId: message, providerMessageId: '883953f4', attemptId: null })
  })

  test('times, with or without a zone of their own; another recipient is another event, the same again is not', () => {
    const eventIn = (body: object): WebhookEvent => onlyEvent(from(providers.postmark, byPostmark(body)))
    expect(eventIn({ ...bounce, Type: 'HardBounce' }).at).toEqual(new Date('2026-12-01T08:00:00.273Z'))
    const [one, again, other] = [delivery, delivery, { ...delivery, Recipient: 'b@example.com' }].map(
      (body) => eventIn(body).eventId,
    )
    expect([again === one, other === one]).toEqual([true, false])
    expect(one).not.toContain('example')
  })

  test('what is about no message of ours', () => {
    expect(from(providers.postmark, { headers, body: '{"RecordType":"Inbound"}' })).toEqual(nothing)
    expect(from(providers.postmark, { headers, body: '[' })).toEqual({ refused: 'unreadable' })
    expect(onlyEvent(from(providers.postmark, byPostmark({ ...delivery, Metadata: {} }))).messageId).toBeNull()
  })
})

describe('GOV.UK Notify', () => {
  const byNotify = (body: object): Told => ({
    headers: { authorization: 'bearer 1234567890' },
    body: JSON.stringify({
      id: 'n-1',
      reference: message,
      to: '+44',
      completed_at: '2026-12-01T08:00:00.000001Z',
      ...body,
    }),
  })
  test.each([
    ['delivered', 'delivered'],
    ['permanent-failure', 'undelivered permanent-failure'],
    ['temporary-failure', 'undelivered temporary-failure'],
    ['technical-failure', 'undelivered technical-failure'],
  ])('%s: %s', (status, expected) => {
    const event = onlyEvent(from(providers.notify, byNotify({ status })))
    expect(inShort(event)).toBe(expected)
    expect(event).toMatchObject({ messageId: message, providerMessageId: 'n-1', at: new Date('2026-12-01T08:00:00Z') })
    expect(onlyEvent(from(providers.notify, byNotify({ status, to: '+45' }))).eventId).toBe(event.eventId)
  })

  test('a text message that came in is no receipt', () => {
    expect(from(providers.notify, byNotify({ message: 'hi', source_number: '447' }))).toMatchObject({ events: [] })
  })
})

describe('Slack', () => {
  const event = {
    type: 'message',
    app_id: 'A1',
    ts: '1796113199.000100',
    channel: 'C1',
    text: 'hello',
    metadata: { event_type: 'sendonce', event_payload: { reference: message } },
  }
  const bySlackEvent = (more: object = {}, of: object = event): Told =>
    bySlack(
      's1',
      now,
      JSON.stringify({ type: 'event_callback', event_id: 'Ev1', api_app_id: 'A1', event: of, ...more }),
    )

  test('our own message, as it was posted, proves acceptance', () => {
    const { ts: message_ts, ...posted } = event
    for (const of of [event, { ...posted, type: 'message_metadata_posted', message_ts }])
      expect(onlyEvent(from(providers.slack, bySlackEvent({}, of)))).toEqual({
        eventId: 'Ev1',
        messageId: message,
        attemptId: null,
        providerMessageId: '1796113199.000100',
        kind: 'accepted',
        at: new Date(1_796_113_199_000),
        code: null,
      })
  })

  test.each([
    ['of another app', { ...event, app_id: 'A2' }],
    ['of a person', { ...event, app_id: undefined }],
    ['with other metadata', { ...event, metadata: { event_type: 'task', event_payload: { reference: message } } }],
    ['without metadata', { ...event, metadata: undefined }],
    ['that was changed', { type: 'message', subtype: 'message_changed', message: event }],
    ['that is a reaction', { ...event, type: 'reaction_added' }],
  ])('a message %s is no news of ours', (_, of) => {
    expect(from(providers.slack, bySlackEvent({}, of))).toEqual(nothing)
  })

  test('the challenge is answered, if it is signed', () => {
    const told = bySlack('s1', now, '{"token":"t","challenge":"3eZbrw1aBm2rZg","type":"url_verification"}')
    expect(from(providers.slack, told)).toEqual({
      ...nothing,
      answer: { contentType: 'text/plain; charset=utf-8', body: '3eZbrw1aBm2rZg' },
    })
    expect(from(providers.slack, { ...told, body: `${String(told.body)} ` })).toEqual({ refused: 'forged' })
  })
})

test('LINE: whatever it tells is no receipt', () => {
  const events = [{ type: 'message', webhookEventId: 'w', message: { text: 'hi' } }]
  for (const body of [
    { destination: 'U', events },
    { destination: 'U', events: [] },
  ])
    expect(from(providers.line, byLine('c1', JSON.stringify(body)))).toEqual(nothing)
  expect(from(providers.line, byLine('c1', '{}'))).toEqual({ refused: 'unreadable' })
})

test.each([
  [{ ...account }, 'its setting publicUrl (or PUBLIC_URL) is missing'],
  [{ ...account, publicUrl, apiKeySid: `SK${'0'.repeat(32)}` }, 'its setting webhookAuthToken is missing'],
  [{ adapter: 'resend', apiKey: 're_1' }, 'its setting webhookSecret is missing'],
  [{ adapter: 'postmark', serverToken: 't', webhookUser: 'u' }, 'its setting webhookPassword is missing'],
  [{ adapter: 'slack', token: 't' }, 'its setting signingSecret is missing'],
  [{ adapter: 'line', channelAccessToken: 't' }, 'its setting channelSecret is missing'],
  [{ adapter: 'smtp', host: 'localhost', security: 'none' }, 'the adapter smtp knows none'],
  [{ adapter: 'webhook', signingSecret: secret }, 'the adapter webhook knows none'],
])('without what it needs a provider takes no webhooks, and says what is missing: %j', (settings, lacks) => {
  expect(receiverOf(settings).parseWebhook).toEqual({ lacks })
})

/** What people write back: each vendor's documented webhooks, what is made of them, and what is no reply at all. */
import { describe, expect, test } from 'vitest'
import { getExpectedTwilioSignature } from 'twilio/lib/webhooks/webhooks.js'
import type { InboundReply, ParsedWebhook } from '../../src/providers/provider.ts'
import { checker, describedBy } from '../support/vendor.ts'
import { byLine, bySlack, bySvix, notifySettings, parsedBy, receiverOf, type Told } from '../support/webhooks.ts'

const now = new Date('2026-12-01T09:00:00Z')
const nothing = { events: [], replies: [] }
const password = 'p'.repeat(16)
const publicUrl = 'https://hooks.example.com'
const svixSecret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const providers = {
  twilio: receiverOf({ adapter: 'twilio', accountSid: `AC${'0'.repeat(32)}`, authToken: '12345', publicUrl }),
  line: receiverOf({ adapter: 'line', channelAccessToken: 't', channelSecret: 'c1' }),
  slack: receiverOf({ adapter: 'slack', token: 'xoxb-1', signingSecret: 's1' }),
  postmark: receiverOf({ adapter: 'postmark', serverToken: 't', webhookUser: 'u', webhookPassword: password }),
  notify: receiverOf({ ...notifySettings, webhookBearerToken: '1234567890' }),
  resend: receiverOf({ adapter: 'resend', apiKey: 're_1', webhookSecret: svixSecret }),
}

const from = (name: keyof typeof providers, told: Told): ParsedWebhook => parsedBy(providers[name], told, now)
function onlyReply(parsed: ParsedWebhook): InboundReply {
  if (!('replies' in parsed) || parsed.replies[0] === undefined) throw new Error(JSON.stringify(parsed))
  expect([parsed.events, parsed.replies.length]).toEqual([[], 1])
  return parsed.replies[0]
}

describe('Twilio', () => {
  const url = '/v1/providers/twilio-eu/webhooks'
  const byTwilio = (fields: Record<string, string>): Told => ({
    url,
    headers: { 'x-twilio-signature': getExpectedTwilioSignature('12345', publicUrl + url, fields) },
    body: new URLSearchParams(fields).toString(),
  })
  const sms = {
    ToCountry: 'GB',
    SmsMessageSid: 'SM7',
    NumMedia: '0',
    SmsStatus: 'received',
    Body: 'Yes & no, 漢字 👍',
    To: '+447700900000',
    NumSegments: '1',
    MessageSid: 'SM7',
    AccountSid: `AC${'0'.repeat(32)}`,
    From: '+447700900123',
    ApiVersion: '2010-04-01',
  }

  test('a text message, answered so that nothing is said to its sender', () => {
    const told = from('twilio', byTwilio(sms))
    expect(onlyReply(told)).toEqual({
      eventId: 'SM7',
      from: '+447700900123',
      to: '+447700900000',
      sentTo: ['+447700900123'],
      text: 'Yes & no, 漢字 👍',
      at: null,
      inReplyTo: null,
    })
    expect(told).toMatchObject({ answer: { contentType: 'text/xml; charset=utf-8', body: '<Response/>' } })
  })

  test('a WhatsApp message, which may quote one of ours', () => {
    const [whatsapp, ours] = ['whatsapp:+447700900123', 'whatsapp:+14155238886']
    const fields = { ...sms, From: whatsapp, To: ours, ProfileName: 'Ada', WaId: '447700900123' }
    expect(onlyReply(from('twilio', byTwilio(fields)))).toMatchObject({ from: whatsapp, to: ours, sentTo: [whatsapp] })
    const quoting = { ...fields, OriginalRepliedMessageSender: ours, OriginalRepliedMessageSid: 'SM1' }
    expect(onlyReply(from('twilio', byTwilio(quoting))).inReplyTo).toBe('SM1')
  })

  test.each<[string, Record<string, string>]>([
    ['a status callback', { ...sms, MessageStatus: 'received' }],
    ['a status callback without a status that is known', { ...sms, MessageStatus: '' }],
    ['an older status callback', { ...sms, SmsStatus: 'delivered' }],
    ['a picture without words', { ...sms, Body: '', NumMedia: '1', MediaUrl0: 'https://api.twilio.com/m' }],
    ['a text that nobody sent', { MessageSid: 'SM7', Body: 'x' }],
    ['a call', { CallSid: 'CA1', From: '+447700900123' }],
  ])('%s is no reply', (_, fields) => {
    expect(from('twilio', byTwilio(fields))).toMatchObject(nothing)
  })

  test('a word of it changed: forged', () => {
    const told = byTwilio(sms)
    expect(from('twilio', { ...told, body: String(told.body).replace('Yes', 'No') })).toEqual({ refused: 'forged' })
  })
})

describe('LINE', () => {
  const message = { type: 'text', id: '444573844083572737', quoteToken: 'q3Plxr', text: 'Hello 漢字' }
  const event = {
    type: 'message',
    message,
    timestamp: 1_625_665_242_211,
    source: { type: 'user', userId: 'U80696558e1aa831' },
    replyToken: '757913772c4646b784d4b7ce46d12671',
    mode: 'active',
    webhookEventId: '01FZ74A0TDDPYRVKNK77XKC3ZR',
    deliveryContext: { isRedelivery: false },
  }
  const told = (...events: readonly object[]): Told =>
    byLine('c1', JSON.stringify({ destination: 'Ub07', events: [...events] }))
  const group = { type: 'group', groupId: 'Ca56', userId: 'U80696558e1aa831' }
  const quoting = { ...event, message: { ...message, quotedMessageId: '461230966842064897' } }
  const reply = {
    eventId: '01FZ74A0TDDPYRVKNK77XKC3ZR',
    from: 'U80696558e1aa831',
    to: 'Ub07',
    sentTo: ['U80696558e1aa831'],
    text: 'Hello 漢字',
    at: new Date(1_625_665_242_211),
    inReplyTo: null,
  }

  test('a text of a person; delivered again it is the same event', () => {
    expect(onlyReply(from('line', told(event)))).toEqual(reply)
    expect(onlyReply(from('line', told({ ...event, deliveryContext: { isRedelivery: true } })))).toEqual(reply)
    expect(onlyReply(from('line', told(quoting))).inReplyTo).toBe('461230966842064897')
  })

  test('LN5 in a group it answers what went to the group, whoever wrote', () => {
    const inGroup = { ...event, source: group }
    expect(onlyReply(from('line', told(inGroup)))).toEqual({ ...reply, to: 'Ca56', sentTo: ['Ca56'] })
    const unnamed = { ...event, source: { type: 'room', roomId: 'Ra56' } }
    expect(onlyReply(from('line', told(unnamed)))).toMatchObject({ from: 'Ra56', to: 'Ra56', sentTo: ['Ra56'] })
  })

  test('several of one request are several; what is no text is none', () => {
    const others = [
      { ...event, type: 'follow' },
      { ...event, message: { type: 'sticker', id: '1', packageId: '2', stickerId: '3' } },
      { ...event, message: { ...message, text: undefined } },
      { ...event, source: undefined },
      { ...event, webhookEventId: undefined },
      null,
      'x',
    ] as object[]
    const parsed = from('line', told(event, ...others, { ...event, webhookEventId: 'second', timestamp: 'noon' }))
    expect(parsed).toEqual({ events: [], replies: [reply, { ...reply, eventId: 'second', at: null }] })
    expect(from('line', told())).toEqual(nothing)
  })

  const { absent, why, read } = describedBy('line-webhook.yml')
  test.skipIf(absent)(`the events of these tests are those of LINE's description${why}`, () => {
    const check = checker(read(), [])
    const schema = { $ref: '#/components/schemas/MessageEvent' }
    const text = { $ref: '#/components/schemas/TextMessageContent' }
    for (const sample of [event, quoting, { ...event, source: group }]) {
      expect([...check(schema, sample), ...check(text, sample.message)]).toEqual([])
      expect(
        check(
          { $ref: `#/components/schemas/${sample.source.type === 'user' ? 'User' : 'Group'}Source` },
          sample.source,
        ),
      ).toEqual([])
    }
    expect(check(schema, { ...event, webhookEventId: undefined })).not.toEqual([])
  })
})

describe('Slack', () => {
  const event = {
    type: 'message',
    channel: 'C123ABC456',
    user: 'U123ABC456',
    text: 'Hello &amp; goodbye',
    ts: '1355517523.000005',
    event_ts: '1355517523.000005',
    channel_type: 'channel',
  }
  const told = (of: object, more: object = {}): Told => {
    const body = { type: 'event_callback', event_id: 'Ev1', api_app_id: 'A1', event: of, ...more }
    return bySlack('s1', now, JSON.stringify(body))
  }

  test('what a person writes in a channel answers what went to the channel', () => {
    expect(onlyReply(from('slack', told(event)))).toEqual({
      eventId: 'Ev1',
      from: 'U123ABC456',
      to: 'C123ABC456',
      sentTo: ['C123ABC456'],
      text: 'Hello &amp; goodbye', // as Slack writes it
      at: new Date(1_355_517_523_000),
      inReplyTo: null,
    })
  })

  test('in a thread it answers the message that began it', () => {
    const inThread = { ...event, thread_ts: '1355517500.000001' }
    expect(onlyReply(from('slack', told(inThread))).inReplyTo).toBe('1355517500.000001')
    expect(onlyReply(from('slack', told({ ...inThread, subtype: 'thread_broadcast' }))).inReplyTo).not.toBeNull()
    expect(onlyReply(from('slack', told({ ...event, thread_ts: event.ts }))).inReplyTo).toBeNull()
  })

  test('a direct message answers what went to it, or to the person', () => {
    const direct = { ...event, channel: 'D024BE91L', channel_type: 'im' }
    expect(onlyReply(from('slack', told(direct))).sentTo).toEqual(['D024BE91L', 'U123ABC456'])
  })

  test.each([
    ['of a bot', { ...event, bot_id: 'B1' }],
    ['of a bot, in the older way', { ...event, subtype: 'bot_message' }],
    ['that was changed', { ...event, subtype: 'message_changed' }],
    ['that was deleted', { ...event, subtype: 'message_deleted' }],
    ['that somebody joined', { ...event, subtype: 'channel_join' }],
    ['without a person', { ...event, user: undefined }],
    ['without words', { ...event, text: '' }],
    ['that mentions the app, which is told as a message, too', { ...event, type: 'app_mention' }],
  ])('a message %s is no reply', (_, of) => {
    expect(from('slack', told(of))).toEqual(nothing)
  })

  test('without an event id it cannot be told from another', () => {
    expect(from('slack', told(event, { event_id: undefined }))).toEqual(nothing)
  })
})

describe('Postmark', () => {
  const headers = { authorization: `Basic ${Buffer.from(`u:${password}`).toString('base64')}` }
  const told = (body: object): Told => ({ headers, body: JSON.stringify(body) })
  const header = (Name: string, Value: string) => ({ Name, Value })
  const inbound = {
    FromName: 'Ada',
    MessageStream: 'inbound',
    From: 'Ada.Lovelace@example.com',
    FromFull: { Email: 'Ada.Lovelace@example.com', Name: 'Ada', MailboxHash: '' },
    To: '"Shop" <hash+42@inbound.postmarkapp.com>',
    ToFull: [{ Email: 'hash+42@inbound.postmarkapp.com', Name: 'Shop', MailboxHash: '42' }],
    OriginalRecipient: 'hash+42@inbound.postmarkapp.com',
    Subject: 'Re: Order 42',
    MessageID: '73e6d360-66eb-11e1-8e72-a8904824019b',
    Date: 'Fri, 1 Aug 2014 16:45:32 -0400',
    TextBody: 'Thanks!\n\nOn Friday you wrote:\n> On its way.',
    StrippedTextReply: 'Thanks!',
    Headers: [header('X-Spam-Status', 'No'), header('In-Reply-To', ' <883953f4-6105-42a2@mtasv.net>')],
    Attachments: [],
  }

  test('an e-mail that answers one of ours, without what it quotes', () => {
    expect(onlyReply(from('postmark', told(inbound)))).toEqual({
      eventId: '73e6d360-66eb-11e1-8e72-a8904824019b',
      from: 'Ada.Lovelace@example.com',
      to: 'hash+42@inbound.postmarkapp.com',
      sentTo: ['Ada.Lovelace@example.com', 'ada.lovelace@example.com'],
      text: 'Thanks!',
      at: new Date('2014-08-01T20:45:32Z'),
      inReplyTo: '883953f4-6105-42a2',
    })
  })

  test('where nothing was stripped, the whole text; what is not known is null', () => {
    const { FromFull: _, StrippedTextReply: __, OriginalRecipient: ___, ...bare } = inbound
    const odd = { ...bare, From: 'ada@example.com', Date: 'noon', Headers: 'x', RecordType: 'Inbound' }
    expect(onlyReply(from('postmark', told(odd)))).toMatchObject({
      from: 'ada@example.com',
      to: null,
      sentTo: ['ada@example.com'],
      text: inbound.TextBody,
      at: null,
      inReplyTo: null,
    })
  })

  test.each([
    ['that a machine wrote', { ...inbound, Headers: [header('Auto-Submitted', 'auto-replied')] }],
    ['without a text', { ...inbound, TextBody: ' \n', StrippedTextReply: '' }],
    ['without an id', { ...inbound, MessageID: undefined }],
    ['of nobody', { ...inbound, From: '', FromFull: {} }],
  ])('an e-mail %s is no reply', (_, body) => {
    expect(from('postmark', told(body))).toEqual(nothing)
  })

  test('one that says that no machine wrote it is one', () => {
    const plainly = { ...inbound, Headers: [header('auto-submitted', 'no'), header('in-reply-to', '<a@b> <c@d>')] }
    expect(onlyReply(from('postmark', told(plainly))).inReplyTo).toBe('a')
  })
})

describe('GOV.UK Notify', () => {
  const told = (body: object): Told => ({
    headers: { authorization: 'Bearer 1234567890' },
    body: JSON.stringify(body),
  })
  const received = {
    id: '3d1ce039-5476-414c-99b2-fac1e6add62c',
    source_number: '447700912345',
    destination_number: '07700987654',
    message: 'Hello Notify!',
    date_received: '2017-05-14T12:15:30.000000Z',
  }

  test('a received text message; its number is written as it is sent to', () => {
    expect(onlyReply(from('notify', told(received)))).toEqual({
      eventId: received.id,
      from: '+447700912345',
      to: '07700987654',
      sentTo: ['+447700912345'],
      text: 'Hello Notify!',
      at: new Date('2017-05-14T12:15:30Z'),
      inReplyTo: null,
    })
    expect(onlyReply(from('notify', told({ ...received, source_number: 'GOVUK' }))).from).toBe('GOVUK')
  })

  test.each([
    ['without an id', { ...received, id: undefined }],
    ['of nobody', { ...received, source_number: undefined }],
    ['without words', { ...received, message: '' }],
  ])('one %s is no reply', (_, body) => {
    expect(from('notify', told(body))).toEqual(nothing)
  })
})

test('Resend tells of an e-mail that came in without its text: no reply, and no receipt', () => {
  const data = { email_id: 'e-1', from: 'Ada <ada@example.com>', to: ['shop@example.com'], subject: 'Re: Order 42' }
  const body = { type: 'email.received', created_at: '2026-12-01T08:59:59.123Z', data }
  expect(from('resend', bySvix(svixSecret, 'msg_1', now, JSON.stringify(body)))).toEqual(nothing)
})

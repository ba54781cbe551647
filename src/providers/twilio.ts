/**
 * Twilio Programmable Messaging, for SMS and WhatsApp: POST Messages.json, form body, basic authentication.
 * https://www.twilio.com/docs/messaging/api/message-resource
 *
 * Duplicates: Messages takes no key of ours and cannot be searched by one. Blind; but with `publicUrl` its status callbacks
 * come to an address that names the attempt (twilio-webhook.ts), and settle what is unknown.
 * After a time-out or a 500: https://www.twilio.com/docs/api/errors/20500 says that repeating the request may reach the
 * recipient twice, so nothing is repeated. Only a 429 is documented as never processed (error 20429).
 *
 * T1. What callers wrote goes into the form body only, never into a header or the path, and survives the encoding.
 * T2. Twilio is a third party: the trace context of the caller is not passed on.
 * T6. The channel says which it is: `sms` to a number, `chat` to `whatsapp:` and a number; sender and recipient are of one
 *     kind. WhatsApp is one call like the other: outside the 24 hours after a person wrote, free text fails later, by a
 *     status callback (63016), and templates are not sent here.
 */
import { Type, type Static } from 'typebox'
import type { Capabilities } from '../core/capabilities.ts'
import type { ChatRequest, MessageRequest, SmsRequest } from '../core/message-content.ts'
import { apiUrl, callSettings, addressPattern } from './call-settings.ts'
import { placeOf } from './place.ts'
import type { AnswerRules, AttemptContext, HttpAdapter, WebhookRules } from './provider.ts'
import { codes } from './twilio-codes.ts'
import { parseTwilioWebhook, statusCallback } from './twilio-webhook.ts'

const capabilities = (own: TwilioSettings): Capabilities => ({
  channels: ['sms', 'chat'],
  deduplication: null,
  lookup: null,
  lateEvidence: callbackSigning(own) === null ? 'none' : 'callback_url',
  acceptance: 'status',
})

const e164 = /^\+[1-9]\d{1,14}$/
const messagingService = /^MG[0-9a-fA-F]{32}$/
/** E.164, a short code, or an alphanumeric sender: at most 11 of Twilio's characters, one of them a letter. */
const sender = /^(\+[1-9]\d{1,14}|\d{3,8}|(?=.*[A-Za-z])[A-Za-z0-9 +&_-]{1,11})$/
/** https://www.twilio.com/docs/whatsapp/api: a channel address. */
const whatsapp = /^whatsapp:\+[1-9]\d{1,14}$/
/** For both: `Body` "can be up to 1,600 characters in length", though WhatsApp itself takes more. */
const mostCharacters = 1600

const settings = Type.Object(
  {
    accountSid: Type.String({
      pattern: '^AC[0-9a-fA-F]{32}$',
      description: 'The account that sends: it stands in the path of every call.',
    }),
    authToken: Type.String({
      minLength: 1,
      description: "The account's auth token, or the secret of the API key where apiKeySid is set.",
    }),
    apiKeySid: Type.Optional(
      Type.String({
        pattern: '^SK[0-9a-fA-F]{32}$',
        description: "An API key that signs in instead of the account: it can be revoked without the account's token.",
      }),
    ),
    webhookAuthToken: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          "The account's auth token, with which Twilio signs status callbacks; needed where authToken is the secret of an API key.",
      }),
    ),
    publicUrl: Type.Optional(
      Type.String({
        pattern: addressPattern,
        description:
          'Where Twilio reaches this gateway, if not at PUBLIC_URL: it is asked to send status callbacks to /v1/providers/<name>/webhooks below it.',
      }),
    ),
    from: Type.Optional(
      Type.String({
        pattern: sender.source,
        description: 'The sender of messages that name none: E.164, a short code or an alphanumeric sender.',
      }),
    ),
    whatsappFrom: Type.Optional(
      Type.String({
        pattern: whatsapp.source,
        description: 'The sender of WhatsApp messages that name none: whatsapp:+ and the number.',
      }),
    ),
    messagingServiceSid: Type.Optional(
      Type.String({
        pattern: messagingService.source,
        description:
          'The messaging service that picks a sender where neither the message nor `from` (or `whatsappFrom`) names one.',
      }),
    ),
    baseUrl: apiUrl({ default: 'https://api.twilio.com', follows: '/2010-04-01' }),
    ...callSettings({ connectTimeoutMs: 3000, answerTimeoutMs: 10_000 }),
  },
  { additionalProperties: false },
)
export type TwilioSettings = Static<typeof settings>

const limit = (pointer: string, detail: string) => ({ pointer, detail })

function limitBroken(message: MessageRequest, own: TwilioSettings) {
  const said = textOf(message)
  const { text } = said.content
  const broken = addressesBroken(said)
  if (broken !== null) return broken
  if (said.channel === 'chat' && said.content.threadId !== undefined)
    return limit('/content/threadId', 'WhatsApp has no threads: it would not be sent.')
  if (senderOf(said, own) === undefined)
    return limit('/from', 'A sender is needed: neither the message nor the provider names one.')
  if (text === '') return limit('/content/text', 'Twilio does not send an empty text.')
  if (!text.isWellFormed()) return limit('/content/text', 'The text holds half a character (a lone surrogate).')
  // Twilio counts what is outside the basic plane (most emoji) as several characters: so does `length`.
  if (text.length > mostCharacters)
    return limit(
      '/content/text',
      `Twilio takes at most ${mostCharacters} characters, counted as UTF-16 units (an emoji is two or more); this text has ${text.length}.`,
    )
  return null
}

/** T6. */
function addressesBroken({ channel, to, from }: SmsRequest | ChatRequest) {
  if (channel === 'sms' && !e164.test(to))
    return limit('/to', 'Twilio takes the recipient of an SMS as E.164: + and up to 15 digits.')
  if (channel === 'chat' && !whatsapp.test(to))
    return limit('/to', 'Twilio takes the recipient of a chat message as whatsapp:+ and up to 15 digits.')
  if (from === undefined || messagingService.test(from) || (channel === 'sms' ? sender : whatsapp).test(from))
    return null
  return channel === 'sms'
    ? limit(
        '/from',
        'The sender is none that Twilio takes: E.164, a short code, an alphanumeric sender of at most 11 characters with a letter, or a messaging service (MG…).',
      )
    : limit('/from', 'The sender of a WhatsApp message is whatsapp:+ and a number, or a messaging service (MG…).')
}

const senderOf = ({ channel, from }: SmsRequest | ChatRequest, own: TwilioSettings): string | undefined =>
  from ?? (channel === 'sms' ? own.from : own.whatsappFrom) ?? own.messagingServiceSid

function render(message: MessageRequest, own: TwilioSettings, attempt: AttemptContext) {
  const said = textOf(message)
  const named = senderOf(said, own)
  if (named === undefined) throw new TypeError('No sender: limitBroken was not asked, or the settings changed.')
  const form = new URLSearchParams({
    To: said.to,
    [messagingService.test(named) ? 'MessagingServiceSid' : 'From']: named,
    Body: said.content.text,
    ...(own.publicUrl === undefined || callbackSigning(own) === null
      ? {}
      : { StatusCallback: statusCallback(own.publicUrl, attempt) }),
  })
  const { origin, path } = placeOf(own.baseUrl)
  return {
    origin,
    method: 'POST',
    path: `${path}/2010-04-01/Accounts/${own.accountSid}/Messages.json`,
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      accept: 'application/json',
    },
    body: form.toString(),
  } as const
}

/** What status callbacks are verified with; null where they could not be, and so are not asked for. */
function callbackSigning({ publicUrl, webhookAuthToken, apiKeySid, authToken }: TwilioSettings) {
  const token = webhookAuthToken ?? (apiKeySid === undefined ? authToken : undefined)
  return publicUrl === undefined || token === undefined ? null : { publicUrl, authToken: token }
}

const webhooks: WebhookRules<TwilioSettings> = {
  lacks: (own) =>
    own.publicUrl === undefined
      ? 'publicUrl (or PUBLIC_URL)'
      : callbackSigning(own) === null
        ? 'webhookAuthToken'
        : null,
  parse(request, own) {
    const signing = callbackSigning(own)
    return signing === null ? { refused: 'forged' } : parseTwilioWebhook(request, signing)
  },
}

const authorise = (_: unknown, { accountSid, apiKeySid = accountSid, authToken }: TwilioSettings) => ({
  authorization: `Basic ${Buffer.from(`${apiKeySid}:${authToken}`).toString('base64')}`,
})

function textOf(message: MessageRequest): SmsRequest | ChatRequest {
  if (message.channel === 'sms' || message.channel === 'chat') return message
  throw new TypeError(`twilio was given a message of channel ${message.channel}`)
}

const answers: AnswerRules = {
  isAccepted: (status) => status === 201,
  messageIdOf: (body) => (isRecord(body) && typeof body['sid'] === 'string' ? body['sid'] : null),
  /** Twilio repeats the HTTP status in its error body: a proxy's page does not. */
  errorCodeOf: (body, status) =>
    isRecord(body) && Number.isInteger(body['code']) && typeof body['message'] === 'string' && body['status'] === status
      ? String(body['code'])
      : null,
  codes,
}

const isRecord = (body: unknown): body is Record<string, unknown> => typeof body === 'object' && body !== null

export const twilio: HttpAdapter<TwilioSettings> = {
  adapter: 'twilio',
  capabilities,
  settings,
  identity: ({ baseUrl, accountSid }) => [baseUrl, accountSid],
  limitBroken,
  render,
  authorise,
  answers,
  webhooks,
}

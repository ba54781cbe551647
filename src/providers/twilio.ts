/**
 * Twilio Programmable Messaging: POST Messages.json, form body, basic authentication.
 * https://www.twilio.com/docs/messaging/api/message-resource
 *
 * Duplicates: Messages takes no key of ours and cannot be searched by one. Blind.
 * After a time-out or a 500: https://www.twilio.com/docs/api/errors/20500 says that repeating the request may reach the
 * recipient twice, so nothing is repeated. Only a 429 is documented as never processed (error 20429).
 *
 * T1. What callers wrote goes into the form body only, never into a header or the path, and survives the encoding.
 * T2. Twilio is a third party: the trace context of the caller is not passed on.
 */
import { Type, type Static } from 'typebox'
import type { Capabilities } from '../core/capabilities.ts'
import type { MessageRequest, SmsRequest } from '../core/message-content.ts'
import { apiUrl, callSettings } from './call-settings.ts'
import { placeOf } from './place.ts'
import type { AnswerRules, CodeRule, HttpAdapter } from './provider.ts'

const capabilities = {
  channels: ['sms'],
  deduplication: null,
  lookup: null,
  lateEvidence: 'none',
  acceptance: 'status',
} as const satisfies Capabilities

/**
 * Titles as in https://www.twilio.com/docs/api/errors. The dictionary names no HTTP status where the code itself does
 * not (20404): 400 is what Twilio's guides and test credentials show for a parameter that it refuses.
 */
const codes: Readonly<Record<string, CodeRule>> = {
  // About us. 20404 too: nothing in our path but the account can be missing.
  10001: { means: 'credentials', statuses: [401, 403], wording: 'Account is not active' },
  20003: { means: 'credentials', statuses: [401, 403], wording: 'Permission Denied' },
  20005: { means: 'credentials', statuses: [401, 403], wording: 'Account not active' },
  20006: { means: 'credentials', statuses: [401, 403], wording: 'Access Denied' },
  20403: { means: 'credentials', statuses: [403], wording: '403 Forbidden' },
  20404: { means: 'credentials', statuses: [404], wording: 'Not Found' },
  70051: { means: 'credentials', statuses: [401, 403], wording: 'Authorization Failed' },
  // Not now. 21611 is given instead of creating the message.
  20429: { means: 'refused_for_now', statuses: [429], wording: 'Too many requests' },
  21611: {
    means: 'refused_for_now',
    statuses: [400, 429],
    wording: "This 'From' number has exceeded the maximum number of queued messages",
  },
  // Open: 20503 says "try again", but not that the request was not processed.
  20500: { means: 'unknown', statuses: [500], wording: 'Internal Server Error' },
  20503: { means: 'unknown', statuses: [503], wording: 'Service unavailable' },
  // About this message.
  21211: { means: 'rejected', statuses: [400], wording: "Invalid 'To' Phone Number" },
  21212: { means: 'rejected', statuses: [400], wording: "Invalid 'From' Number" },
  21265: { means: 'rejected', statuses: [400], wording: "'To' number cannot be a Short Code" },
  21266: { means: 'rejected', statuses: [400], wording: "'To' and 'From' numbers cannot be the same" },
  21408: {
    means: 'rejected',
    statuses: [400],
    wording: 'Message blocked: permissions disabled for the destination region',
  },
  21601: {
    means: 'rejected',
    statuses: [400],
    wording: 'Phone number is not a valid SMS-capable inbound phone number',
  },
  21602: { means: 'rejected', statuses: [400], wording: 'Message body is required' },
  21603: {
    means: 'rejected',
    statuses: [400],
    wording: "A 'From' or 'MessagingServiceSid' parameter is required to send a message",
  },
  21604: { means: 'rejected', statuses: [400], wording: "'To' phone number is required to send a Message" },
  21606: {
    means: 'rejected',
    statuses: [400],
    wording:
      "The 'From' phone number provided is not a valid message-capable Twilio phone number for this destination/account",
  },
  21608: {
    means: 'rejected',
    statuses: [400],
    wording: "The 'to' phone number provided is not yet verified for this account.",
  },
  21610: { means: 'rejected', statuses: [400], wording: 'Attempt to send to unsubscribed recipient' },
  21612: {
    means: 'rejected',
    statuses: [400],
    wording: "Message cannot be sent with the current combination of 'To' and/or 'From' parameters",
  },
  21614: { means: 'rejected', statuses: [400], wording: "'To' number is not a valid mobile number" },
  21617: {
    means: 'rejected',
    statuses: [400],
    wording: 'The concatenated message body exceeds the 1600 character limit',
  },
  21619: { means: 'rejected', statuses: [400], wording: 'A Message Body, Media URL or Content SID is required' },
  21635: { means: 'rejected', statuses: [400], wording: "'To' number cannot be a landline" },
  21659: {
    means: 'rejected',
    statuses: [400],
    wording: "'From' is not a Twilio phone number or Short Code country mismatch",
  },
  21660: { means: 'rejected', statuses: [400], wording: "Mismatch between the 'From' number and the account" },
  21661: { means: 'rejected', statuses: [400], wording: "'From' number is not SMS-capable" },
  21701: { means: 'rejected', statuses: [400, 404], wording: 'The Messaging Service does not exist' },
  21705: { means: 'rejected', statuses: [400], wording: 'The Messaging Service is invalid' },
}

const e164 = /^\+[1-9]\d{1,14}$/
const messagingService = /^MG[0-9a-fA-F]{32}$/
/** E.164, a short code, or an alphanumeric sender: at most 11 of Twilio's characters, one of them a letter. */
const sender = /^(\+[1-9]\d{1,14}|\d{3,8}|(?=.*[A-Za-z])[A-Za-z0-9 +&_-]{1,11})$/
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
    from: Type.Optional(
      Type.String({
        pattern: sender.source,
        description: 'The sender of messages that name none: E.164, a short code or an alphanumeric sender.',
      }),
    ),
    messagingServiceSid: Type.Optional(
      Type.String({
        pattern: messagingService.source,
        description: 'The messaging service that picks a sender where neither the message nor `from` names one.',
      }),
    ),
    baseUrl: apiUrl({ default: 'https://api.twilio.com', follows: '/2010-04-01' }),
    ...callSettings({ connectTimeoutMs: 3000, answerTimeoutMs: 10_000 }),
  },
  { additionalProperties: false },
)
export type TwilioSettings = Static<typeof settings>

function limitBroken(message: MessageRequest, { from, messagingServiceSid }: TwilioSettings) {
  const { text } = smsOf(message).content
  if (!e164.test(message.to))
    return { pointer: '/to', detail: 'Twilio takes the recipient of an SMS as E.164: + and up to 15 digits.' }
  if (message.from !== undefined && !sender.test(message.from) && !messagingService.test(message.from))
    return {
      pointer: '/from',
      detail:
        'The sender is none that Twilio takes: E.164, a short code, an alphanumeric sender of at most 11 characters with a letter, or a messaging service (MG…).',
    }
  if (message.from === undefined && from === undefined && messagingServiceSid === undefined)
    return { pointer: '/from', detail: 'A sender is needed: neither the message nor the provider names one.' }
  if (text === '') return { pointer: '/content/text', detail: 'Twilio does not send an empty text.' }
  if (!text.isWellFormed())
    return { pointer: '/content/text', detail: 'The text holds half a character (a lone surrogate).' }
  // Twilio counts what is outside the basic plane (most emoji) as several characters: so does `length`.
  if (text.length > mostCharacters)
    return {
      pointer: '/content/text',
      detail: `Twilio takes at most ${mostCharacters} characters, counted as UTF-16 units (an emoji is two or more); this text has ${text.length}.`,
    }
  return null
}

function render(message: MessageRequest, own: TwilioSettings) {
  const { to, from, content } = smsOf(message)
  const named = from ?? own.from ?? own.messagingServiceSid
  if (named === undefined) throw new TypeError('No sender: limitBroken was not asked, or the settings changed.')
  const form = new URLSearchParams({
    To: to,
    [messagingService.test(named) ? 'MessagingServiceSid' : 'From']: named,
    Body: content.text,
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

const authorise = (_: unknown, { accountSid, apiKeySid = accountSid, authToken }: TwilioSettings) => ({
  authorization: `Basic ${Buffer.from(`${apiKeySid}:${authToken}`).toString('base64')}`,
})

function smsOf(message: MessageRequest): SmsRequest {
  if (message.channel !== 'sms') throw new TypeError(`twilio was given a message of channel ${message.channel}`)
  return message
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
}

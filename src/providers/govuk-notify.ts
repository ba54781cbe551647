/**
 * GOV.UK Notify: POST /v2/notifications/sms and /email, JSON, signed in by a JWT for each call.
 * https://docs.notifications.service.gov.uk/rest-api.html
 *
 * Duplicates: `reference` is ours and need not be unique, so that a repeat is a second message. What it accepted can be
 * looked up by it, exactly, and at once: its server inserts the row in the request that it answers. The messages of its
 * few high-volume services go through a queue first; there not to be found proves nothing.
 * After a time-out or a 500: it is asked. Its server gives up a request after 30 s (HTTP_SERVE_TIMEOUT_SECONDS, which its
 * kind of worker keeps loosely), so that what we gave up may still be inserted: settling is twice that.
 *
 * G1. Notify sends templates. Each channel has one, with a placeholder for the text (and one for the subject); what else
 *     an e-mail may have is refused, for it would be lost.
 * G2. What callers wrote goes into the JSON body only. The trace context stays here.
 * G3. A key shows the messages of its own type only and does not say which type it has: with another key an absence
 *     proves nothing, so that the whole key is the identity.
 */
import { createHmac } from 'node:crypto'
import { Type, type Static } from 'typebox'
import type { Capabilities } from '../core/capabilities.ts'
import type { EmailRequest, MessageRequest, SmsRequest } from '../core/message-content.ts'
import { callSettings } from './call-settings.ts'
import { govukNotifyWebhooks } from './govuk-notify-webhook.ts'
import type { AnswerRules, CodeRule, HttpAdapter, LookupCall, RenderedRequest } from './provider.ts'
import { memberOf, textAt } from './read-body.ts'

const dayMs = 86_400_000

const capabilities = (own: Pick<GovukNotifySettings, 'smsTemplateId' | 'emailTemplateId' | 'highVolume'>) =>
  ({
    channels: [
      ...(own.smsTemplateId === undefined ? [] : (['sms'] as const)),
      ...(own.emailTemplateId === undefined ? [] : (['email'] as const)),
    ],
    deduplication: null,
    lookup: {
      match: 'exact',
      strength: own.highVolume ? 'weak' : 'strong',
      settlingMs: 60_000,
      retentionMs: 7 * dayMs,
      // A service may keep its messages for less than the usual week.
      marginMs: 4 * dayMs,
    },
    lateEvidence: 'reference',
    acceptance: 'body',
  }) as const satisfies Capabilities

/** https://docs.notifications.service.gov.uk/rest-api.html#general-errors; status and type are said to be stable, the texts not. */
const codes: Readonly<Record<string, CodeRule>> = {
  ValidationError: {
    means: 'rejected',
    statuses: [400],
    wording: 'ValidationError: an argument is missing or not valid.',
  },
  BadRequestError: {
    means: 'rejected',
    statuses: [400],
    wording: 'BadRequestError: template, sender, recipient, permission or length are not what the service allows.',
  },
  // About us: the key, or our clock. The documents call it by both names, the server by the first.
  AuthError: {
    means: 'credentials',
    statuses: [401, 403],
    wording: 'AuthError: the API key was not found or is revoked, or the system clock is not accurate to 30 seconds.',
  },
  'BadRequestError.403': {
    means: 'credentials',
    statuses: [403],
    wording: 'BadRequestError (status code 403): API key not found, or the system clock is not accurate to 30 seconds.',
  },
  RateLimitError: {
    means: 'refused_for_now',
    statuses: [429],
    wording: 'RateLimitError: exceeded rate limit for key type of requests per 60 seconds.',
    pauseMs: () => 60_000,
  },
  TooManyRequestsError: {
    means: 'refused_for_now',
    statuses: [429],
    wording: 'TooManyRequestsError: exceeded send limits for today; limits reset at midnight.',
    pauseMs: (at) => dayMs - (at.getTime() % dayMs),
  },
  // "Notify was unable to process the request, resend" does not say that it was not inserted.
  Exception: { means: 'unknown', statuses: [500], wording: 'Exception: internal server error.' },
}

const uuid = '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}'
const isUuid = new RegExp(`^${uuid}$`)
const parts = new RegExp(`(${uuid})-(${uuid})$`)
const template = (what: string) => Type.Optional(Type.String({ pattern: isUuid.source, description: what }))
const placeholder = (name: string, what: string) =>
  Type.String({ minLength: 1, maxLength: 255, default: name, description: what })

const settings = Type.Object(
  {
    apiKey: Type.String({
      pattern: `^(.*-)?${uuid}-${uuid}$`,
      description:
        'The API key as Notify shows it: its name, the service id and the secret, with hyphens between them.',
    }),
    smsTemplateId: template('The template of text messages: its content is one placeholder.'),
    smsTextPlaceholder: placeholder('text', 'The placeholder for the text in that template, without the brackets.'),
    emailTemplateId: template('The template of e-mails: placeholders for its subject and its content.'),
    emailSubjectPlaceholder: placeholder('subject', 'The placeholder for the subject in that template.'),
    emailTextPlaceholder: placeholder('text', 'The placeholder for the text in that template.'),
    smsSenderId: template('The text message sender of messages that name none; else the default of the service.'),
    emailReplyToId: template('The reply-to address of e-mails; else the default of the service.'),
    webhookBearerToken: Type.Optional(
      Type.String({
        pattern: '^[\\x21-\\x7e]{10,}$',
        description:
          'The bearer token that callbacks are set up with at Notify, both for delivery receipts and for received text messages.',
      }),
    ),
    highVolume: Type.Boolean({
      default: false,
      description: 'Notify treats the service as a high-volume one: it queues what it accepts before it can be found.',
    }),
    baseUrl: Type.String({
      pattern: '^https?://[^/?#@\\s]+(/[^?#\\s]*)?$',
      default: 'https://api.notifications.service.gov.uk',
      description: 'Where the API is; a path in it is kept in front of /v2.',
    }),
    ...callSettings({ connectTimeoutMs: 3000, answerTimeoutMs: 15_000 }),
  },
  {
    additionalProperties: false,
    anyOf: ['smsTemplateId', 'emailTemplateId'].map((name) => ({ properties: { [name]: {} }, required: [name] })),
  },
)
export type GovukNotifySettings = Static<typeof settings>

const mostSmsCharacters = 918
const mostEmailBytes = 2_000_000

function limitBroken(message: MessageRequest, own: GovukNotifySettings) {
  switch (message.channel) {
    case 'sms':
      return smsLimitBroken(message, own)
    case 'email':
      return emailLimitBroken(message, own)
    case 'chat':
    case 'push':
    case 'webhook':
      throw new TypeError(`govuk-notify was given a message of channel ${message.channel}`)
  }
}

const limit = (pointer: string, detail: string) => ({ pointer, detail })
const halfCharacter = 'The text holds half a character (a lone surrogate).'

function smsLimitBroken({ to, from, content: { text } }: SmsRequest, own: GovukNotifySettings) {
  if (own.smsTemplateId === undefined) return limit('/channel', 'This service has no template for text messages.')
  if (!/^\+[1-9]\d{5,13}$/.test(to))
    return limit('/to', 'Notify takes the recipient of a text message as + and 6 to 14 digits.')
  if (from !== undefined && !isUuid.test(from))
    return limit('/from', 'The sender of a text message is the id (a UUID) of one of the senders of the service.')
  if (!text.isWellFormed()) return limit('/content/text', halfCharacter)
  const characters = Array.from(text).length
  if (characters > mostSmsCharacters)
    return limit('/content/text', `Notify takes at most ${mostSmsCharacters} characters; this text has ${characters}.`)
  return text.trim() === '' ? limit('/content/text', 'Notify does not send an empty text.') : null
}

function emailLimitBroken({ to, from, cc, bcc, replyTo, content }: EmailRequest, own: GovukNotifySettings) {
  const { subject, text, html, headers, attachments } = content
  if (own.emailTemplateId === undefined) return limit('/channel', 'This service has no template for e-mails.')
  if (to.length < 5 || to.length > 250) return limit('/to', 'Notify takes addresses of 5 to 250 characters.')
  if (from !== undefined) return limit('/from', 'The sender of an e-mail is that of the service: it cannot be chosen.')
  if (cc !== undefined && cc.length > 0) return limit('/cc', 'Notify sends an e-mail to one recipient: no copies.')
  if (bcc !== undefined && bcc.length > 0) return limit('/bcc', 'Notify sends an e-mail to one recipient: no copies.')
  if (replyTo !== undefined)
    return limit('/replyTo', 'Notify takes reply-to addresses of the service only: see the setting emailReplyToId.')
  if (html !== undefined)
    return limit('/content/html', 'Notify makes the HTML of an e-mail itself: it takes text only.')
  if (text === undefined || text.trim() === '') return limit('/content/text', 'Notify does not send an empty text.')
  if (headers !== undefined && Object.keys(headers).length > 0)
    return limit('/content/headers', 'Notify takes no headers for an e-mail.')
  if (attachments !== undefined && attachments.length > 0)
    return limit('/content/attachments', 'Notify sends links to files and no attachments: they would be lost.')
  if (!subject.isWellFormed()) return limit('/content/subject', halfCharacter)
  if (!text.isWellFormed()) return limit('/content/text', halfCharacter)
  const bytes = Buffer.byteLength(subject) + Buffer.byteLength(text)
  return bytes > mostEmailBytes
    ? limit('/content/text', `Notify takes e-mails of at most ${mostEmailBytes} bytes; this one has ${bytes}.`)
    : null
}

function bodyOf(message: MessageRequest, own: GovukNotifySettings, reference: string) {
  if (message.channel === 'sms' && own.smsTemplateId !== undefined)
    return {
      phone_number: message.to,
      template_id: own.smsTemplateId,
      personalisation: { [own.smsTextPlaceholder]: message.content.text },
      reference,
      sms_sender_id: message.from ?? own.smsSenderId,
    }
  if (message.channel === 'email' && own.emailTemplateId !== undefined)
    return {
      email_address: message.to,
      template_id: own.emailTemplateId,
      personalisation: {
        [own.emailSubjectPlaceholder]: message.content.subject,
        [own.emailTextPlaceholder]: message.content.text,
      },
      reference,
      email_reply_to_id: own.emailReplyToId,
    }
  throw new TypeError(`govuk-notify has no template for a message of channel ${message.channel}`)
}

function placeOf({ baseUrl }: GovukNotifySettings, path: string): Pick<RenderedRequest, 'origin' | 'path'> {
  const { origin, pathname } = new URL(baseUrl)
  return { origin, path: `${pathname.replace(/\/+$/, '')}/v2/notifications${path}` }
}

const base64url = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

function authorise(_: unknown, { apiKey }: GovukNotifySettings, at: Date) {
  const [, serviceId, secret = ''] = parts.exec(apiKey) ?? []
  const claims = { iss: serviceId, iat: Math.floor(at.getTime() / 1000) }
  const signed = `${base64url({ typ: 'JWT', alg: 'HS256' })}.${base64url(claims)}`
  return { authorization: `Bearer ${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}` }
}

const answers: AnswerRules = {
  isAccepted: (status) => status === 201,
  messageIdOf: (body) => textAt(body, 'id'),
  /** Notify repeats the HTTP status in its error body: a proxy's page does not. */
  errorCodeOf(body, status) {
    const errors = memberOf(body, 'errors')
    if (memberOf(body, 'status_code') !== status || !Array.isArray(errors)) return null
    const [first] = errors as unknown[]
    const error = textAt(first, 'message') === null ? null : textAt(first, 'error')
    return error === 'BadRequestError' && status === 403 ? 'BadRequestError.403' : error
  },
  codes,
}

const lookup: LookupCall<GovukNotifySettings> = {
  // Without `include_jobs`: that adds what was uploaded as a file, and ours never is.
  render: (_, own, { messageId }) => ({
    ...placeOf(own, `?${new URLSearchParams({ reference: messageId }).toString()}`),
    method: 'GET',
    headers: { accept: 'application/json' },
    body: null,
  }),
  read(body, { messageId }) {
    const rows = memberOf(body, 'notifications')
    if (!Array.isArray(rows) || textAt(memberOf(body, 'links'), 'current') === null) return null
    const ours = (rows as unknown[]).filter((row) => textAt(row, 'reference') === messageId)
    return { count: ours.length, providerMessageId: textAt(ours[0], 'id') }
  },
}

export const govukNotify: HttpAdapter<GovukNotifySettings> = {
  adapter: 'govuk-notify',
  capabilities,
  settings,
  identity: ({ baseUrl, apiKey }) => [baseUrl, apiKey],
  limitBroken,
  render: (message, own, { messageId }) => ({
    ...placeOf(own, `/${message.channel}`),
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify(bodyOf(message, own, messageId)),
  }),
  authorise,
  answers,
  lookup,
  webhooks: govukNotifyWebhooks,
}

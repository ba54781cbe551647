/**
 * Resend: POST /emails, JSON, bearer key.
 * https://resend.com/docs/api-reference/emails/send-email
 *
 * Duplicates: `Idempotency-Key` is known for 24 hours; a repeat with the same payload gets the first answer again, and
 * nothing is sent (https://resend.com/docs/dashboard/emails/idempotency-keys). With another payload it is a conflict,
 * which does not say whether the first was sent.
 * After a time-out: "it makes it safe to retry requests that send an email": the same request with the same key.
 *
 * RS1. The key is the message id, and the body is made of the message alone: every attempt sends the same bytes.
 * RS2. What callers wrote goes into the JSON body only. What will stand in a header of the e-mail is one line.
 * RS3. A request without a User-Agent is refused at Resend's edge.
 * RS4. Webhooks are Svix's (https://resend.com/docs/webhooks/verify-webhooks-requests). Each event repeats the tags of its
 *      e-mail, one of which is our message id.
 */
import { Type, type Static } from 'typebox'
import type { Capabilities } from '../core/capabilities.ts'
import type { MessageRequest } from '../core/message-content.ts'
import { apiUrl, callSettings } from './call-settings.ts'
import { emailOf, headersBroken, recipientsOf, senderOf, senderPattern, sizeOf } from './email-message.ts'
import { dateOf, headerOf, jsonOf, noNews } from './incoming.ts'
import { under } from './place.ts'
import type {
  AnswerRules,
  AttemptContext,
  CodeRule,
  HttpAdapter,
  RenderedRequest,
  WebhookEvent,
  WebhookRules,
} from './provider.ts'
import { memberOf, textAt } from './read-body.ts'
import { secretPattern, verify } from './standard-webhooks.ts'

const hourMs = 3_600_000

const capabilities = {
  channels: ['email'],
  deduplication: {
    keyField: 'header Idempotency-Key',
    keyFormat: 'message_id',
    lifetimeMs: 24 * hourMs,
    marginMs: hourMs,
    repeat: 'same_response',
  },
  lookup: null,
  lateEvidence: 'reference',
  acceptance: 'body',
} as const satisfies Capabilities

/**
 * Names, statuses and messages as in https://resend.com/docs/api-reference/errors. A quota that is used up is about us:
 * until it is reset or raised no message goes out, so the provider is stopped and not asked for each one.
 */
const codes: Readonly<Record<string, CodeRule>> = {
  // About us. 404 and 405 too: nothing in our path but the base URL can be wrong.
  missing_api_key: { means: 'credentials', statuses: [401], wording: 'Missing API key in the authorization header.' },
  invalid_api_key: { means: 'credentials', statuses: [400, 401, 403], wording: 'API key is invalid.' },
  restricted_api_key: {
    means: 'credentials',
    statuses: [401, 403],
    wording: 'This API key is restricted to only send emails.',
  },
  // Of these two only others' transcripts of the page were seen, and not the message: the name stands for it.
  suspended_api_key: { means: 'credentials', statuses: [403], wording: 'suspended_api_key' },
  invalid_permission: { means: 'credentials', statuses: [403], wording: 'invalid_permission' },
  not_found: { means: 'credentials', statuses: [404], wording: 'The requested endpoint does not exist.' },
  method_not_allowed: {
    means: 'credentials',
    statuses: [405],
    wording: 'Method is not allowed for the requested path.',
  },
  daily_quota_exceeded: {
    means: 'credentials',
    statuses: [429],
    wording: 'You have reached your daily email sending quota.',
  },
  monthly_quota_exceeded: {
    means: 'credentials',
    statuses: [429],
    wording: 'You have reached your monthly email sending quota.',
  },
  // Not now.
  rate_limit_exceeded: {
    means: 'refused_for_now',
    statuses: [429],
    wording: 'Too many requests. Please limit the number of requests per second.',
  },
  // About the key.
  concurrent_idempotent_requests: {
    means: 'key_in_use',
    statuses: [409],
    wording: 'Same idempotency key used while original request is still in progress.',
  },
  invalid_idempotent_request: {
    means: 'key_reused',
    statuses: [409],
    wording: 'Same idempotency key used with a different request payload.',
  },
  // Open.
  application_error: { means: 'unknown', statuses: [500], wording: 'An unexpected error occurred.' },
  internal_server_error: { means: 'unknown', statuses: [500], wording: 'An unexpected error occurred.' },
  // About this message. 403: a sender whose domain is not verified, or a recipient while only tests are allowed.
  validation_error: {
    means: 'rejected',
    statuses: [400, 403, 422],
    wording: 'We found an error with one or more fields in the request.',
  },
  invalid_idempotency_key: { means: 'rejected', statuses: [400], wording: 'The key must be between 1-256 chars.' },
  invalid_attachment: {
    means: 'rejected',
    statuses: [422],
    wording: 'Attachment must have either a `content` or `path`.',
  },
  invalid_from_address: { means: 'rejected', statuses: [422, 403], wording: 'Invalid from field.' },
  invalid_parameter: { means: 'rejected', statuses: [422], wording: 'The parameter must be a valid UUID.' },
  missing_required_field: {
    means: 'rejected',
    statuses: [422],
    wording: 'The request body is missing one or more required fields.',
  },
  security_error: {
    means: 'rejected',
    statuses: [451],
    wording: 'We may have found a security issue with the request.',
  },
}

/** Under which our message id stands among the tags of an e-mail. */
const tag = 'sendonce'
const mostRecipients = 50
const mostBytes = 40 * 1024 * 1024

const settings = Type.Object(
  {
    apiKey: Type.String({
      pattern: '^[\\x21-\\x7e]+$',
      description: 'An API key, re_…; one that may only send is enough.',
    }),
    webhookSecret: Type.Optional(
      Type.String({
        pattern: `^${secretPattern}$`,
        description: 'The signing secret of the webhook that is set up at Resend, whsec_…',
      }),
    ),
    from: Type.Optional(
      Type.String({
        pattern: senderPattern,
        description: 'The sender of messages that name none: an address, or Name <address>.',
      }),
    ),
    baseUrl: apiUrl({ default: 'https://api.resend.com', follows: '/emails' }),
    ...callSettings({ connectTimeoutMs: 3000, answerTimeoutMs: 10_000 }),
  },
  { additionalProperties: false },
)
export type ResendSettings = Static<typeof settings>

function limitBroken(message: MessageRequest, own: ResendSettings) {
  const email = emailOf(message, 'resend')
  const recipients = recipientsOf(email).length
  if (recipients > mostRecipients)
    return { pointer: '/to', detail: `Resend takes at most ${mostRecipients} recipients; this has ${recipients}.` }
  const bytes = sizeOf(email)
  if (bytes > mostBytes)
    return {
      pointer: '/content',
      detail: `Resend takes at most 40 MB, attachments as Base64; this has ${bytes} bytes.`,
    }
  return headersBroken(email, own.from)
}

function render(message: MessageRequest, own: ResendSettings, { messageId }: AttemptContext) {
  const email = emailOf(message, 'resend')
  const { to, cc, bcc, replyTo, content } = email
  const { subject, text, html, headers, attachments } = content
  return {
    ...under(own.baseUrl, '/emails'),
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      'user-agent': 'Sendonce',
      'idempotency-key': messageId,
    },
    body: JSON.stringify({
      from: senderOf(email, own.from),
      to: [to],
      cc,
      bcc,
      reply_to: replyTo,
      subject,
      text,
      html,
      headers,
      attachments: attachments?.map(({ filename, contentType, content: bytes }) => ({
        filename,
        content_type: contentType,
        content: bytes,
      })),
      tags: [{ name: tag, value: messageId }],
    }),
  } as const
}

const authorise = (_: RenderedRequest, { apiKey }: ResendSettings) => ({ authorization: `Bearer ${apiKey}` })

const answers: AnswerRules = {
  isAccepted: (status) => status === 200,
  messageIdOf: (body) => textAt(body, 'id'),
  /** Resend repeats the HTTP status in its error body: a proxy's page does not. */
  errorCodeOf(body, status) {
    const [name, message] = [textAt(body, 'name'), textAt(body, 'message')]
    if (memberOf(body, 'statusCode') !== status || message === null) return null
    // A key that it does not know is refused under the name of any mistake; its text alone tells, and older answers did.
    return name === 'validation_error' && /^API key is invalid\.?$/.test(message) ? 'invalid_api_key' : name
  },
  codes,
}

/**
 * https://resend.com/docs/dashboard/webhooks/event-types. What is not listed (`email.opened` …) proves that it was
 * accepted, and no more.
 */
const receipts: Readonly<Record<string, { readonly kind: WebhookEvent['kind']; readonly wording: string }>> = {
  'email.sent': { kind: 'accepted', wording: 'Resend will attempt to deliver the message' },
  'email.delivery_delayed': { kind: 'accepted', wording: 'It could not be delivered yet: a temporary issue' },
  'email.complained': { kind: 'accepted', wording: 'It was delivered, and the recipient marked it as spam' },
  'email.delivered': { kind: 'delivered', wording: "Delivered to the recipient's mail server" },
  'email.bounced': { kind: 'undelivered', wording: "The recipient's mail server permanently rejected the email" },
  'email.failed': { kind: 'undelivered', wording: 'The email failed to send due to an error' },
  'email.suppressed': { kind: 'undelivered', wording: 'It was not sent: the recipient is on the suppression list' },
}

const webhooks: WebhookRules<ResendSettings> = {
  lacks: ({ webhookSecret }) => (webhookSecret === undefined ? 'webhookSecret' : null),
  parse(request, { webhookSecret }, now) {
    const [id, timestamp] = [headerOf(request, 'svix-id'), headerOf(request, 'svix-timestamp')]
    const signed = { id, timestamp, signature: headerOf(request, 'svix-signature'), rawBody: request.rawBody }
    const found = webhookSecret === undefined ? 'forged' : verify(signed, webhookSecret, now)
    if (found !== 'genuine') return { refused: found }
    const body = jsonOf(request.rawBody)
    const type = textAt(body, 'type')
    if (type === null) return { refused: 'unreadable' }
    const data = memberOf(body, 'data')
    // What was received comes without its text (https://resend.com/docs/webhooks/emails/received): it is no reply here.
    if (!type.startsWith('email.') || type === 'email.received' || memberOf(data, 'email_id') === undefined)
      return noNews
    const kind = receipts[type]?.kind ?? 'accepted'
    const told = { messageId: taggedAs(memberOf(data, 'tags')), providerMessageId: textAt(data, 'email_id') }
    const code = kind === 'undelivered' ? (textAt(memberOf(data, 'bounce'), 'type') ?? type) : null
    const at = dateOf(memberOf(body, 'created_at'))
    return { events: [{ eventId: id, attemptId: null, kind, at, code, ...told }], replies: [] }
  },
}

/** The documents show a list of names and values; what is sent is an object of them. */
function taggedAs(tags: unknown): string | null {
  if (!Array.isArray(tags)) return textAt(tags, tag)
  return textAt(
    (tags as unknown[]).find((each) => textAt(each, 'name') === tag),
    'value',
  )
}

export const resend: HttpAdapter<ResendSettings> = {
  adapter: 'resend',
  capabilities,
  settings,
  identity: (own) => [own.baseUrl, own.apiKey],
  limitBroken,
  render,
  authorise,
  answers,
  webhooks,
}

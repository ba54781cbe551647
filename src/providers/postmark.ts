/**
 * Postmark: POST /email, JSON, `X-Postmark-Server-Token`.
 * https://postmarkapp.com/developer/api/email-api
 *
 * Duplicates: no key of ours is taken. Our message id goes along as metadata, by which what was sent can be searched
 * (https://postmarkapp.com/support/article/1125-custom-metadata-faq). How soon after acceptance is not published, so
 * that not to be found proves nothing.
 * After a time-out or a 500: "in most cases the message is lost during the process", which is no proof either.
 *
 * PM1. Acceptance is `ErrorCode` 0 with a `MessageID`: a 200 alone is not.
 * PM2. Found is what bears our message id: a search that did not go by it has told nothing.
 * PM3. Addresses are joined by commas, so none may hold one; headers that Postmark reads itself are not a message's.
 */
import { Type, type Static } from 'typebox'
import type { Capabilities } from '../core/capabilities.ts'
import type { MessageRequest } from '../core/message-content.ts'
import { apiUrl, callSettings } from './call-settings.ts'
import { emailOf, headersBroken, recipientsOf, senderOf, senderPattern, sizeOf } from './email-message.ts'
import { under } from './place.ts'
import { metadataKey, postmarkWebhooks } from './postmark-webhook.ts'
import type { AnswerRules, AttemptContext, CodeRule, HttpAdapter, LookupCall, RenderedRequest } from './provider.ts'
import { memberOf, textAt } from './read-body.ts'

const dayMs = 86_400_000

const capabilities = {
  channels: ['email'],
  deduplication: null,
  // 45 days are the default; a server may be set to keep messages for 7 to 365.
  lookup: { match: 'exact', strength: 'weak', settlingMs: 300_000, retentionMs: 45 * dayMs, marginMs: dayMs },
  lateEvidence: 'reference',
  acceptance: 'body',
} as const satisfies Capabilities

/**
 * Error codes as in https://postmarkapp.com/developer/api/overview#error-codes: they come with HTTP 422, where no other
 * status is documented. Those of the account are about us: no message of ours would go out.
 */
const codes: Readonly<Record<string, CodeRule>> = {
  10: { means: 'credentials', statuses: [401], wording: 'Bad or missing API token' },
  405: { means: 'credentials', statuses: [422], wording: 'Not allowed to send' },
  412: { means: 'credentials', statuses: [422], wording: 'Account is Pending' },
  413: { means: 'credentials', statuses: [422], wording: 'Account May Not Send' },
  429: { means: 'refused_for_now', statuses: [429], wording: 'Rate Limit Exceeded' },
  // During planned outages; that nothing was processed is not said.
  100: { means: 'unknown', statuses: [503], wording: 'Maintenance' },
  300: { means: 'rejected', statuses: [422], wording: 'Invalid email request' },
  400: { means: 'rejected', statuses: [422], wording: 'Sender Signature not found' },
  401: { means: 'rejected', statuses: [422], wording: 'Sender signature not confirmed' },
  402: { means: 'rejected', statuses: [422], wording: 'Invalid JSON' },
  403: { means: 'rejected', statuses: [422], wording: 'Incompatible JSON' },
  406: { means: 'rejected', statuses: [422], wording: 'Inactive recipient' },
  409: { means: 'rejected', statuses: [422], wording: 'JSON required' },
  410: { means: 'rejected', statuses: [422], wording: 'Too many batch messages' },
  411: { means: 'rejected', statuses: [422], wording: 'Forbidden attachment type' },
}

const mostRecipients = 50
const mostSubject = 2000
const mostFrom = 255
const megabyte = 1024 * 1024

const settings = Type.Object(
  {
    serverToken: Type.String({
      pattern: '^[\\x21-\\x7e]+$',
      description: 'The API token of the Postmark server that sends.',
    }),
    webhookUser: Type.Optional(
      Type.String({
        pattern: '^[^:\\x00-\\x1f]+$',
        description: "The user in the webhook's address at Postmark: https://user:password@…",
      }),
    ),
    webhookPassword: Type.Optional(
      Type.String({ minLength: 16, description: 'The password in that address, of 16 characters or more.' }),
    ),
    from: Type.Optional(
      Type.String({
        pattern: senderPattern,
        maxLength: mostFrom,
        description: 'The sender of messages that name none: an address, or Name <address>.',
      }),
    ),
    messageStream: Type.String({
      pattern: '^[a-z0-9_-]+$',
      default: 'outbound',
      description: 'The message stream that messages go through, by its id.',
    }),
    baseUrl: apiUrl({ default: 'https://api.postmarkapp.com', follows: '/email' }),
    ...callSettings({ connectTimeoutMs: 3000, answerTimeoutMs: 15_000 }),
  },
  { additionalProperties: false },
)
export type PostmarkSettings = Static<typeof settings>

function limitBroken(message: MessageRequest, own: PostmarkSettings) {
  const email = emailOf(message, 'postmark')
  const { subject, text = '', html = '', headers = {} } = email.content
  const recipients = recipientsOf(email).length
  if (recipients > mostRecipients)
    return { pointer: '/to', detail: `Postmark takes at most ${mostRecipients} recipients; this has ${recipients}.` }
  if (subject.length > mostSubject)
    return {
      pointer: '/content/subject',
      detail: `Postmark takes at most ${mostSubject} characters of subject, counted as UTF-16 units; this has ${subject.length}.`,
    }
  if ((email.from ?? '').length > mostFrom)
    return { pointer: '/from', detail: `Postmark takes at most ${mostFrom} characters of sender.` }
  if (Buffer.byteLength(text) > 5 * megabyte)
    return { pointer: '/content/text', detail: 'Postmark takes at most 5 MB of text.' }
  if (Buffer.byteLength(html) > 5 * megabyte)
    return { pointer: '/content/html', detail: 'Postmark takes at most 5 MB of HTML.' }
  const bytes = sizeOf(email)
  if (bytes > 10 * megabyte)
    return {
      pointer: '/content',
      detail: `Postmark takes at most 10 MB, attachments as Base64; this has ${bytes} bytes.`,
    }
  const theirs = Object.keys(headers).find((name) => /^x-pm-/i.test(name))
  if (theirs !== undefined)
    return { pointer: `/content/headers/${theirs}`, detail: 'Headers X-PM-… are read by Postmark itself.' }
  return headersBroken(email, own.from)
}

function render(message: MessageRequest, own: PostmarkSettings, { messageId }: AttemptContext) {
  const email = emailOf(message, 'postmark')
  const { to, cc = [], bcc = [], replyTo, content } = email
  const { subject, text, html, headers, attachments } = content
  return {
    ...under(own.baseUrl, '/email'),
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json', 'user-agent': 'Sendonce' },
    body: JSON.stringify({
      From: senderOf(email, own.from),
      To: to,
      Cc: cc.length === 0 ? undefined : cc.join(','),
      Bcc: bcc.length === 0 ? undefined : bcc.join(','),
      ReplyTo: replyTo,
      Subject: subject,
      TextBody: text,
      HtmlBody: html,
      MessageStream: own.messageStream,
      Metadata: { [metadataKey]: messageId },
      Headers: headers && Object.entries(headers).map(([name, value]) => ({ Name: name, Value: value })),
      Attachments: attachments?.map(({ filename, contentType, content: bytes }) => ({
        Name: filename,
        ContentType: contentType,
        Content: bytes,
      })),
    }),
  } as const
}

const authorise = (_: RenderedRequest, { serverToken }: PostmarkSettings) => ({
  'x-postmark-server-token': serverToken,
})

const errorCodeIn = (body: unknown): unknown => memberOf(body, 'ErrorCode')

const answers: AnswerRules = {
  isAccepted: (status, body) => status === 200 && (errorCodeIn(body) === 0 || errorCodeIn(body) === undefined),
  messageIdOf: (body) => (errorCodeIn(body) === 0 ? textAt(body, 'MessageID') : null),
  errorCodeOf(body) {
    const code = errorCodeIn(body)
    return Number.isInteger(code) && code !== 0 && typeof memberOf(body, 'Message') === 'string' ? String(code) : null
  },
  codes,
}

const lookup: LookupCall<PostmarkSettings> = {
  render(_, own, { messageId }) {
    // The search is of one stream, and of the default one if none is named.
    const query = new URLSearchParams({ count: '50', offset: '0', messagestream: own.messageStream })
    query.set(`metadata_${metadataKey}`, messageId)
    return {
      ...under(own.baseUrl, `/messages/outbound?${query.toString()}`),
      method: 'GET',
      headers: { accept: 'application/json', 'user-agent': 'Sendonce' },
      body: null,
    }
  },
  read(body, { messageId }) {
    const [total, messages] = [memberOf(body, 'TotalCount'), memberOf(body, 'Messages')]
    if (!Number.isInteger(total) || !Array.isArray(messages)) return null
    const shown: readonly unknown[] = messages
    const ours = shown.filter((each) => memberOf(memberOf(each, 'Metadata'), metadataKey) === messageId)
    // Others were shown, or they are on another page: then the search was not by our id.
    if (ours.length !== shown.length || ours.length !== total) return null
    return { count: ours.length, providerMessageId: textAt(ours[0], 'MessageID') }
  },
}

export const postmark: HttpAdapter<PostmarkSettings> = {
  adapter: 'postmark',
  capabilities,
  settings,
  identity: (own) => [own.baseUrl, own.serverToken],
  limitBroken,
  render,
  authorise,
  answers,
  lookup,
  webhooks: postmarkWebhooks,
}

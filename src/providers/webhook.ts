/**
 * Standard Webhooks 1.0.0: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 * A signed POST to a URL that the caller names. The receiver is anybody: it has no documented error body, so that an
 * answer is acceptance (2xx), "gone" (410), or no proof of anything. That it acts once on one `webhook-id` is its duty
 * under the specification, and not ours to believe: blind, unless the configuration says `deduplicates: true`.
 *
 * W1. `webhook-id` and the bytes of the body are the same for all attempts of a message, however its JSON was stored.
 * W2. Path and query go out exactly as asked. What a caller wrote reaches the request line and the body, no header.
 * W3. Which addresses may be called is judged where the connection is made (public-address.ts). A redirect is not followed.
 */
import { isIP } from 'node:net'
import { Type, type Static } from 'typebox'
import type { Capabilities, Deduplication } from '../core/capabilities.ts'
import { canonicalJson } from '../core/fingerprint.ts'
import type { MessageRequest, WebhookRequest } from '../core/message-content.ts'
import { callSettings } from './call-settings.ts'
import type { AnswerRules, AttemptContext, HttpAdapter, RenderedRequest } from './provider.ts'
import { checkedConnector, isPublicAddress, isPublicOrPrivateAddress, whyRefused } from './public-address.ts'
import { secretPattern, signatures } from './standard-webhooks.ts'

const hourMs = 3_600_000

/** How long receivers remember a webhook-id the specification does not say; a day is what its own retries span. */
const byWebhookId = {
  keyField: 'header webhook-id',
  keyFormat: 'message_id',
  lifetimeMs: 24 * hourMs,
  marginMs: hourMs,
  repeat: 'same_response',
} as const satisfies Deduplication

const capabilities = ({ deduplicates }: Pick<WebhookSettings, 'deduplicates'>): Capabilities => ({
  channels: ['webhook'],
  deduplication: deduplicates ? byWebhookId : null,
  lookup: null,
  lateEvidence: 'none',
  acceptance: 'status',
})

const secrets = `^${secretPattern}( ${secretPattern})*$`

const settings = Type.Object(
  {
    signingSecret: Type.Unsafe<string | readonly string[]>({
      type: ['string', 'array'],
      pattern: secrets,
      items: { type: 'string', pattern: secrets },
      minItems: 1,
      description:
        'whsec_ and the base64 of 24 to 64 bytes. While it is being changed: the new and the old one, as a list or with a blank between them; all of them sign.',
    }),
    allowPrivateAddresses: Type.Boolean({
      default: false,
      description: 'Receivers may be inside: on loopback and private addresses. Metadata services stay refused.',
    }),
    deduplicates: Type.Boolean({
      default: false,
      description:
        'Every receiver acts once on one webhook-id, and knows it for a day: then a lost answer is followed by the same call.',
    }),
    ...callSettings({ connectTimeoutMs: 3000, answerTimeoutMs: 15_000 }),
  },
  { additionalProperties: false },
)
export type WebhookSettings = Static<typeof settings>

const allowedBy = ({ allowPrivateAddresses }: WebhookSettings) =>
  allowPrivateAddresses ? isPublicOrPrivateAddress : isPublicAddress

/** RFC 3986's characters; of them server, path and query: what comes after is never sent. */
const uri = /^(?:[!#$&-;=?-[\]_a-z~]|%[\dA-Fa-f]{2})+$/
const parts = /^(https?:\/\/[^/?#]+)(\/[^?#]*)?(\?[^#]*)?/

function targetOf({ to }: WebhookRequest) {
  const [, server, path = '/', query = ''] = (uri.test(to) && parts.exec(to)) || []
  if (server === undefined || !URL.canParse(server)) return null
  const { origin, hostname } = new URL(server)
  return { origin, host: hostname.replaceAll(/^\[|\]$/g, ''), hasLogin: server.includes('@'), path: path + query }
}

function limitBroken(message: MessageRequest, own: WebhookSettings) {
  const request = webhookOf(message)
  const target = targetOf(request)
  if (target === null) return { pointer: '/to', detail: 'The receiver is an absolute URL, percent-encoded.' }
  if (target.hasLogin) return { pointer: '/to', detail: 'A URL with credentials in it is not called.' }
  if (isIP(target.host) !== 0 && !allowedBy(own)(target.host)) return { pointer: '/to', detail: whyRefused }
  if (request.from !== undefined) return { pointer: '/from', detail: 'A webhook has no sender: it would not be sent.' }
  return null
}

function render(message: MessageRequest, _: WebhookSettings, attempt: AttemptContext) {
  const request = webhookOf(message)
  const target = targetOf(request)
  if (target === null) throw new TypeError('Not a URL: limitBroken was not asked.')
  const { type, data } = request.content
  // Put together by hand: members in the order of the specification, the data in the one order that it always has.
  const body = `{"type":${JSON.stringify(type)},"timestamp":"${attempt.createdAt.toISOString()}","data":${canonicalJson(data)}}`
  return {
    origin: target.origin,
    method: 'POST',
    path: target.path,
    headers: {
      'content-type': 'application/json',
      'user-agent': 'Sendonce',
      'webhook-id': attempt.messageId,
      ...(attempt.traceparent === null ? {} : { traceparent: attempt.traceparent }),
    },
    body,
  } as const
}

function authorise({ headers, body }: RenderedRequest, own: WebhookSettings, at: Date) {
  const seconds = String(Math.floor(at.getTime() / 1000))
  const content = `${headers['webhook-id'] ?? ''}.${seconds}.${body ?? ''}`
  return { 'webhook-timestamp': seconds, 'webhook-signature': signatures(own.signingSecret, content) }
}

function webhookOf(message: MessageRequest): WebhookRequest {
  if (message.channel !== 'webhook') throw new TypeError(`webhook was given a message of channel ${message.channel}`)
  return message
}

const answers: AnswerRules = {
  isAccepted: (status) => status >= 200 && status < 300,
  messageIdOf: () => null,
  /** The one refusal that the specification gives a meaning; all else may have come from in between. */
  errorCodeOf: (_, status) => (status === 410 ? 'gone' : null),
  codes: {
    gone: {
      means: 'rejected',
      statuses: [410],
      wording: '410 Gone: it is no longer interested in receiving webhooks from this source.',
      refusesUrlForMs: 3_600_000,
    },
  },
}

export const webhook: HttpAdapter<WebhookSettings> = {
  adapter: 'webhook',
  capabilities,
  connector: (own) => checkedConnector(allowedBy(own)),
  settings,
  identity: ({ signingSecret }) => [signingSecret].flat(),
  limitBroken,
  render,
  authorise,
  answers,
}

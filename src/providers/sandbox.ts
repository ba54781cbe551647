/**
 * The sandbox, our own stand-in for providers of every kind (src/sandbox/server.ts; its recipients are the table in
 * magic.ts). The same server, the same faults, under four names:
 *   sandbox-blind            knows no key: what is sent twice is accepted twice; it cannot be asked
 *   sandbox-keyed            acts once on one Idempotency-Key, and gives a repeat the first answer
 *   sandbox-lookup           shows at once what it accepted under a reference of ours
 *   sandbox-lookup-eventual  shows it some seconds later, so that not to see it proves nothing
 *
 * What becomes of a message it tells by webhook, signed as Standard Webhooks are, at the address that came with the request.
 *
 * Acceptance is declared as `status`: it documents that a 201 is given after the message was written down, so a 201
 * whose body was cut (recipient `half-answer`) is accepted, without a provider id. A 500 proves nothing either way.
 */
import { Type, type Static } from 'typebox'
import type { Capabilities, Lookup } from '../core/capabilities.ts'
import { channels, type MessageRequest } from '../core/message-content.ts'
import { magicFor, sandboxErrors } from '../sandbox/magic.ts'
import { callSettings } from './call-settings.ts'
import { under } from './place.ts'
import { dateOf, headerOf, jsonOf, noNews } from './incoming.ts'
import type {
  AnswerRules,
  AttemptContext,
  HttpAdapter,
  LookContext,
  LookupCall,
  RenderedRequest,
  WebhookEvent,
  WebhookRules,
} from './provider.ts'
import { memberOf, textAt } from './read-body.ts'
import { verify } from './standard-webhooks.ts'

const blind = {
  channels,
  deduplication: null,
  lookup: null,
  lateEvidence: 'reference',
  acceptance: 'status',
} as const satisfies Capabilities

const hourMs = 3_600_000
const strong: Lookup = {
  match: 'exact',
  strength: 'strong',
  settlingMs: 500,
  retentionMs: 7 * 24 * hourMs,
  marginMs: hourMs,
}

const kinds = {
  'sandbox-blind': blind,
  'sandbox-keyed': {
    ...blind,
    deduplication: {
      keyField: 'header Idempotency-Key',
      keyFormat: 'message_id',
      lifetimeMs: 24 * hourMs,
      marginMs: hourMs,
      repeat: 'same_response',
    },
  },
  'sandbox-lookup': { ...blind, lookup: strong },
  'sandbox-lookup-eventual': { ...blind, lookup: { ...strong, strength: 'weak', settlingMs: 2_000 } },
} as const satisfies Readonly<Record<string, Capabilities>>

type SandboxName = keyof typeof kinds

/** Where messages of the test environment go that name no provider. */
export const defaultSandbox: SandboxName = 'sandbox-blind'

const settings = Type.Object(
  {
    baseUrl: Type.String({ minLength: 1 }),
    ...callSettings({ connectTimeoutMs: 1000, answerTimeoutMs: 5_000 }),
    /** Where nobody listens: dialled by the first attempt to `refuse-connection`. Port 1 cannot be had by chance. */
    refusedUrl: Type.String({ minLength: 1, default: 'http://127.0.0.1:1' }),
  },
  { additionalProperties: false },
)
export type SandboxSettings = Static<typeof settings> & {
  /** Where this provider's receipts reach the gateway, as long as it is known; null: none are sent. */
  readonly receiptUrl?: () => string | null
  /** What receipts are signed with; null: they cannot be verified. */
  readonly receiptSecret?: string | null
  /** Which sandbox it is, wherever it listens this time; absent: the one at `baseUrl`. */
  readonly ledger?: string
}

const answers: AnswerRules = {
  isAccepted: (status) => status === 201,
  messageIdOf: (body) => textAt(body, 'id'),
  errorCodeOf(body) {
    const error = memberOf(body, 'error')
    return textAt(error, 'message') === null ? null : textAt(error, 'code')
  },
  codes: {
    recipient_refused: { means: 'rejected', statuses: [400], wording: sandboxErrors.recipient_refused.message },
    invalid_request: { means: 'rejected', statuses: [400, 404, 413], wording: sandboxErrors.invalid_request.message },
    rate_limited: { means: 'refused_for_now', statuses: [429], wording: sandboxErrors.rate_limited.message },
    unavailable: { means: 'refused_for_now', statuses: [503], wording: sandboxErrors.unavailable.message },
    internal_error: { means: 'unknown', statuses: [500], wording: sandboxErrors.internal_error.message },
    key_in_use: { means: 'key_in_use', statuses: [409], wording: sandboxErrors.key_in_use.message },
    key_reused: { means: 'key_reused', statuses: [409], wording: sandboxErrors.key_reused.message },
  },
}

const kindsOfReceipts: Readonly<Record<string, WebhookEvent['kind']>> = {
  'message.delivered': 'delivered',
  'message.undelivered': 'undelivered',
}

const webhooks: WebhookRules<SandboxSettings> = {
  lacks: ({ receiptSecret = null }) => (receiptSecret === null ? 'SANDBOX_WEBHOOK_SECRET' : null),
  parse(request, { receiptSecret = null }, now) {
    const [id, timestamp] = [headerOf(request, 'webhook-id'), headerOf(request, 'webhook-timestamp')]
    const signed = { id, timestamp, signature: headerOf(request, 'webhook-signature'), rawBody: request.rawBody }
    const found = receiptSecret === null ? 'forged' : verify(signed, receiptSecret, now)
    if (found !== 'genuine') return { refused: found }
    const body = jsonOf(request.rawBody)
    const [type, data] = [textAt(body, 'type'), memberOf(body, 'data')]
    if (type === null) return { refused: 'unreadable' }
    const kind = Object.hasOwn(kindsOfReceipts, type) ? kindsOfReceipts[type] : undefined
    if (kind === undefined) return noNews
    const told = {
      messageId: textAt(data, 'messageId'),
      providerMessageId: textAt(data, 'id'),
      code: textAt(data, 'code'),
    }
    const at = dateOf(memberOf(body, 'timestamp'))
    return { events: [{ eventId: id, attemptId: null, kind, at, ...told }], replies: [] }
  },
}

const maxSmsCharacters = 1600

/** The ledger counts under the provider's name, which is the kind's. */
function sandbox(adapter: SandboxName): HttpAdapter<SandboxSettings> {
  const capabilities: Capabilities = kinds[adapter]
  return {
    adapter,
    capabilities,
    settings,
    identity: ({ baseUrl, ledger = baseUrl }) => [ledger],
    limitBroken(message) {
      if (message.channel !== 'sms' || Array.from(message.content.text).length <= maxSmsCharacters) return null
      return { pointer: '/content/text', detail: `A text message has at most ${maxSmsCharacters} characters here.` }
    },
    render: (message, own, attempt) => render(adapter, capabilities.deduplication !== null, message, own, attempt),
    // Not rendered: a gateway that was started anew may be at another address when it repeats a request.
    authorise: ({ method }, own) => {
      const url = method === 'POST' && own.receiptSecret ? own.receiptUrl?.() : null
      return typeof url === 'string' ? { 'x-receipt-url': url } : {}
    },
    answers,
    webhooks,
    ...(capabilities.lookup === null ? {} : { lookup: lookupOf(adapter, capabilities.lookup) }),
  }
}

export const sandboxAdapters = (Object.keys(kinds) as SandboxName[]).map(sandbox)

function render(
  provider: SandboxName,
  isKeyed: boolean,
  message: MessageRequest,
  own: SandboxSettings,
  attempt: AttemptContext,
): RenderedRequest {
  const isRefused = attempt.attemptNumber === 1 && magicFor(message.channel, message.to)?.name === 'refuse-connection'
  const { messageId } = attempt
  const { channel, to, from, content } = message
  return {
    ...under(isRefused ? own.refusedUrl : own.baseUrl, '/v1/send'),
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-answer-timeout-ms': String(own.answerTimeoutMs),
      ...(isKeyed ? { 'idempotency-key': messageId } : {}),
      ...(attempt.traceparent === null ? {} : { traceparent: attempt.traceparent }),
    },
    body: JSON.stringify({ messageId, provider, channel, to, from, content }),
  }
}

function lookupOf(provider: SandboxName, { strength }: Lookup): LookupCall<SandboxSettings> {
  return {
    render: (_, own, { messageId }) => {
      const query = new URLSearchParams({ provider, reference: messageId })
      if (strength === 'weak') query.set('consistency', 'eventual')
      return { ...under(own.baseUrl, `/v1/messages?${query.toString()}`), method: 'GET', headers: {}, body: null }
    },
    read: (body, { messageId }: LookContext) => {
      const data = memberOf(body, 'data')
      if (!Array.isArray(data)) return null
      const ours = (data as unknown[]).filter((row) => textAt(row, 'reference') === messageId)
      return { count: ours.length, providerMessageId: textAt(ours[0], 'id') }
    },
  }
}

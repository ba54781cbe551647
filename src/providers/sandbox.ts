/**
 * The sandbox, our own stand-in for providers of every kind (src/sandbox/server.ts; its recipients are the table in
 * magic.ts). The same server, the same faults, under four names:
 *   sandbox-blind            knows no key: what is sent twice is accepted twice; it cannot be asked
 *   sandbox-keyed            acts once on one Idempotency-Key, and gives a repeat the first answer
 *   sandbox-lookup           shows at once what it accepted under a reference of ours
 *   sandbox-lookup-eventual  shows it some seconds later, so that not to see it proves nothing
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
import type { AnswerRules, AttemptContext, HttpAdapter, LookContext, LookupCall, RenderedRequest } from './provider.ts'
import { memberOf, textAt } from './read-body.ts'

const blind = {
  channels,
  deduplication: null,
  lookup: null,
  lateEvidence: 'none',
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
export type SandboxSettings = Static<typeof settings>

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

const maxSmsCharacters = 1600

/** The ledger counts under the provider's name, which is the kind's. */
function sandbox(adapter: SandboxName): HttpAdapter<SandboxSettings> {
  const capabilities: Capabilities = kinds[adapter]
  return {
    adapter,
    capabilities,
    settings,
    identity: ({ baseUrl }) => [baseUrl],
    limitBroken(message) {
      if (message.channel !== 'sms' || Array.from(message.content.text).length <= maxSmsCharacters) return null
      return { pointer: '/content/text', detail: `A text message has at most ${maxSmsCharacters} characters here.` }
    },
    render: (message, own, attempt) => render(adapter, capabilities.deduplication !== null, message, own, attempt),
    authorise: () => ({}),
    answers,
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

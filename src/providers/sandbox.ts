/**
 * The sandbox, our own stand-in for a provider (src/sandbox/server.ts; its recipients are the table in magic.ts).
 * Duplicates: it knows none; what is sent twice is accepted twice. After a time-out it says nothing: there is no look-up.
 *
 * Acceptance is declared as `status`: it documents that a 201 is given after the message was written down, so a 201
 * whose body was cut (recipient `half-answer`) is accepted, without a provider id. A 500 proves nothing either way.
 */
import { Type, type Static } from 'typebox'
import { channels, type MessageRequest } from '../core/message-content.ts'
import { magicFor, sandboxErrors } from '../sandbox/magic.ts'
import { callSettings } from './call-settings.ts'
import type { AnswerRules, AttemptContext, Capabilities, HttpAdapter, RenderedRequest } from './provider.ts'

const capabilities = { channels, deduplication: 'blind', acceptance: 'status' } satisfies Capabilities

const settings = Type.Object(
  {
    baseUrl: Type.String({ minLength: 1 }),
    ...callSettings({ connectTimeoutMs: 1000, answerTimeoutMs: 5_000 }),
    /** The name under which the ledger counts: an adapter does not know what its provider is called. */
    providerName: Type.String({ minLength: 1, default: 'sandbox-blind' }),
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
  },
}

function render(message: MessageRequest, config: SandboxSettings, attempt: AttemptContext): RenderedRequest {
  const isRefused = attempt.attemptNumber === 1 && magicFor(message.channel, message.to)?.name === 'refuse-connection'
  const { origin, pathname } = new URL(isRefused ? config.refusedUrl : config.baseUrl)
  const { channel, to, from, content } = message
  return {
    origin,
    method: 'POST',
    path: `${pathname.replace(/\/+$/, '')}/v1/send`,
    headers: {
      'content-type': 'application/json',
      'x-answer-timeout-ms': String(config.answerTimeoutMs),
      ...(attempt.traceparent === null ? {} : { traceparent: attempt.traceparent }),
    },
    body: JSON.stringify({ messageId: attempt.messageId, provider: config.providerName, channel, to, from, content }),
  }
}

const maxSmsCharacters = 1600

export const sandbox: HttpAdapter<SandboxSettings> = {
  adapter: 'sandbox',
  capabilities,
  settings,
  limitBroken(message) {
    if (message.channel !== 'sms' || Array.from(message.content.text).length <= maxSmsCharacters) return null
    return { pointer: '/content/text', detail: `A text message has at most ${maxSmsCharacters} characters here.` }
  },
  render,
  answers,
}

const memberOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined

function textAt(value: unknown, name: string): string | null {
  const text = memberOf(value, name)
  return typeof text === 'string' && text !== '' ? text : null
}

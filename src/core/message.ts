/**
 * What a message is: one thing to be said to one recipient over one channel. Owns the words of its life and what is
 * true in each state; how it gets from one to the next is core/state-machine.ts's.
 *
 * Glossary: an *attempt* is one call to one provider; its *outcome* is what that call told us; the *verdict* is what
 * all attempts together say. `sent` means that the provider accepted it. `unknown` means that its answer was lost. A
 * *resolution* is how an `unknown` ended. The *answer* is the HTTP reply that a status implies.
 */
import type { Environment, MessageRequest } from './message-content.ts'
import type { Evidence, OutcomeKind } from './outcome.ts'

export const statuses = ['scheduled', 'queued', 'sending', 'unknown', 'sent', 'failed', 'canceled'] as const
export type Status = (typeof statuses)[number]

export interface Attempt {
  readonly id: string
  /** Counts from 1. */
  readonly number: number
  readonly provider: string
  readonly startedAt: Date
}

export interface EndedAttempt extends Attempt {
  readonly endedAt: Date
  readonly outcome: OutcomeKind
  readonly evidence: Evidence
}

export const resolutionSources = ['late_answer', 'operator'] as const

/** How an `unknown` ended. */
export interface Resolution {
  readonly by: (typeof resolutionSources)[number]
  readonly at: Date
  readonly attemptId: string
  readonly outcome: 'sent' | 'not_sent'
  /** The API key of the person who settled it, and what they saw. */
  readonly apiKey?: string
  readonly evidence?: string
}

export type FailedReason = 'provider_refused' | 'expired' | 'resolved_not_sent'

/** What is true in each state, and only there. */
export type State =
  | { readonly status: 'scheduled'; readonly sendAt: Date }
  | { readonly status: 'queued'; readonly last: EndedAttempt | null; readonly dueAt: Date }
  | { readonly status: 'sending'; readonly attempt: Attempt }
  | { readonly status: 'unknown'; readonly attempt: EndedAttempt }
  | {
      readonly status: 'sent'
      readonly attempt: EndedAttempt
      readonly providerMessageId: string | null
      readonly sentAt: Date
      readonly resolution: Resolution | null
    }
  | {
      readonly status: 'failed'
      readonly reason: FailedReason
      readonly last: EndedAttempt | null
      readonly resolution: Resolution | null
    }
  | { readonly status: 'canceled'; readonly last: EndedAttempt | null }

/** The HTTP answer that was stored when the message first became final: these bytes are every later repeat's. */
export interface StoredAnswer {
  readonly status: number
  readonly contentType: string
  readonly location: string | null
  readonly body: string
}

/** All that the API shows of a message. */
export interface ShownMessage {
  readonly id: string
  readonly account: string
  readonly environment: Environment
  readonly idempotencyKey: string
  readonly fingerprint: string
  /** What was asked, and the canonical text of it that the fingerprint was made of. */
  readonly request: MessageRequest
  readonly canonical: string
  readonly metadata: Readonly<Record<string, string>>
  /** The provider that the next or current attempt goes to. */
  readonly provider: string
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly sendAt: Date | null
  readonly notAfter: Date
  readonly traceparent: string | null
  /** Grows by one with every change; writes are compare-and-set on it. */
  readonly version: number
  /** Attempts begun so far. */
  readonly attempts: number
  /** The fold of the attempts before the one in `state`; null if there was none. */
  readonly earlierVerdict: OutcomeKind | null
  readonly state: State
}

export interface Message extends ShownMessage {
  /** Present once the message is final. */
  readonly answer: StoredAnswer | null
}

export const isFinal = (status: Status): boolean => status === 'sent' || status === 'failed' || status === 'canceled'

/** The attempt that the state speaks of: running, or ended last. */
export function attemptOf(state: State): Attempt | EndedAttempt | null {
  switch (state.status) {
    case 'sending':
    case 'unknown':
    case 'sent':
      return state.attempt
    case 'queued':
    case 'failed':
    case 'canceled':
      return state.last
    case 'scheduled':
      return null
  }
}

/** The attempt that ended last, if it is not running again. */
export function endedAttemptOf(state: State): EndedAttempt | null {
  const attempt = attemptOf(state)
  return attempt !== null && 'endedAt' in attempt ? attempt : null
}

/** Why the message is where it is, in a word; null where the status says it all. */
export function statusReason(state: State): string | null {
  switch (state.status) {
    case 'queued':
      return state.last === null ? null : (state.last.evidence.code ?? state.last.evidence.phase)
    case 'unknown':
      return state.attempt.evidence.code ?? state.attempt.evidence.phase
    case 'failed':
      return state.reason
    case 'scheduled':
    case 'sending':
    case 'sent':
    case 'canceled':
      return null
  }
}

/** Did or will anything go out? `no` is said only when nothing was and nothing will be sent. */
export function sentOf(status: Status): 'yes' | 'no' | 'maybe' {
  switch (status) {
    case 'sent':
      return 'yes'
    case 'failed':
    case 'canceled':
      return 'no'
    case 'scheduled':
    case 'queued':
    case 'sending':
    case 'unknown':
      return 'maybe'
  }
}

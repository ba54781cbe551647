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

export const statuses = ['held', 'scheduled', 'queued', 'sending', 'unknown', 'sent', 'failed', 'canceled'] as const
export type Status = (typeof statuses)[number]

export interface Attempt {
  readonly id: string
  /** Counts from 1. */
  readonly number: number
  readonly provider: string
  /** What the provider was then: a digest of adapter, origin and account. Empty where it was not recorded. */
  readonly identity: string
  readonly startedAt: Date
  /** By the data base's clock, to within the moment that its statement took. */
  readonly leaseUntil: Date
}

export interface EndedAttempt extends Attempt {
  readonly endedAt: Date
  readonly outcome: OutcomeKind
  readonly evidence: Evidence
}

/** An earlier attempt whose outcome is unknown and that nothing has settled since. */
export interface OpenAttempt {
  readonly id: string
  readonly number: number
  readonly startedAt: Date
  readonly leaseUntil: Date
  /** Whoever made the call said how it ended. */
  readonly endSeen: boolean
}

/** The next automatic step about a message that is unknown. */
export interface Plan {
  /** `replay`: the same request under the same key. `look`: ask the provider by our reference. */
  readonly step: 'replay' | 'look'
  readonly at: Date
  readonly givesUpAt: Date
  /** Steps taken so far. */
  readonly steps: number
}

export const resolutionSources = ['provider_replay', 'lookup', 'receipt', 'late_answer', 'operator'] as const

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

export const deliveryStatuses = ['delivered', 'undelivered'] as const

/** What receipts say became of a message after its acceptance: kept beside the status, never in it. */
export interface Delivery {
  readonly status: (typeof deliveryStatuses)[number]
  /** The provider's time where it gives one, else that of the receipt's arrival; never later than that. */
  readonly at: Date
  /** The provider's own code. */
  readonly code: string | null
}

/** A receipt that came while a call runs: it proves that the message was accepted, whatever that call tells. */
export interface Proof {
  readonly attemptId: string | null
  readonly providerMessageId: string | null
  readonly at: Date
}

export type FailedReason = 'provider_refused' | 'expired' | 'resolved_not_sent'

/** Why a message waits for a person: its API key wants an approval, or another one said the same a short while ago. */
export const heldReasons = ['approval', 'duplicate'] as const
export type HeldReason = (typeof heldReasons)[number]

/** What a person decided about one that was held. */
export interface ApprovalDecision {
  readonly decision: 'approved' | 'declined'
  /** Their API key. */
  readonly by: string
  readonly at: Date
  /** The network address that they decided from. */
  readonly from: string
}

/** Why a message was canceled, where it was not its sender who did it. */
export type CanceledReason = 'declined' | 'lapsed' | 'conversation_changed'

/** What is true in each state, and only there. */
export type State =
  /** Waits for a person, until notAfter. */
  | { readonly status: 'held' }
  | { readonly status: 'scheduled'; readonly sendAt: Date }
  | { readonly status: 'queued'; readonly last: EndedAttempt | null; readonly dueAt: Date }
  | { readonly status: 'sending'; readonly attempt: Attempt }
  /** With earlier attempts open, the attempt itself may be known not to have been accepted. No plan: a person's. */
  | { readonly status: 'unknown'; readonly attempt: EndedAttempt; readonly plan: Plan | null }
  | {
      readonly status: 'sent'
      readonly attempt: EndedAttempt
      readonly providerMessageId: string | null
      readonly sentAt: Date
    }
  | { readonly status: 'failed'; readonly reason: FailedReason; readonly last: EndedAttempt | null }
  | { readonly status: 'canceled'; readonly reason: CanceledReason | null; readonly last: EndedAttempt | null }

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
  /** The only ones that it may go to; null: any of its route. */
  readonly allowedProviders: readonly string[] | null
  /** The API key that sent it; null: it was not noted then. */
  readonly sentBy: string | null
  /** Why it waits, or waited, for a person; null: it never did. */
  readonly heldFor: HeldReason | null
  readonly decision: ApprovalDecision | null
  /** The version of the conversation that its claim found and that must still be it when it leaves; null: whichever. */
  readonly conversationVersion: number | null
  /** The first message with the same content, by another key, a short while before. */
  readonly possibleDuplicateOf: string | null
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly sendAt: Date | null
  readonly notAfter: Date
  readonly traceparent: string | null
  /** Grows by one with every change; writes are compare-and-set on it. */
  readonly version: number
  /** Attempts begun so far. */
  readonly attempts: number
  /** Attempts before the one in `state` that may have been accepted, oldest first. */
  readonly open: readonly OpenAttempt[]
  /** How the last unknown attempt was settled; null if none was. */
  readonly resolution: Resolution | null
  /** What the last receipt of a delivery told; null if none did. */
  readonly delivery: Delivery | null
  readonly state: State
}

export interface Message extends ShownMessage {
  /** Present once the message is final. */
  readonly answer: StoredAnswer | null
  /**
   * The request as a provider that takes keys got it, kept while it may have to be sent again byte for byte. The
   * provider's own format; null for all others.
   */
  readonly rendered: string | null
  /** Only while it is `sending`. */
  readonly proof: Proof | null
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
    case 'held':
    case 'scheduled':
      return null
  }
}

/** The attempt that ended last, if it is not running again. */
export function endedAttemptOf(state: State): EndedAttempt | null {
  const attempt = attemptOf(state)
  return attempt !== null && 'endedAt' in attempt ? attempt : null
}

/** The attempts that may have been accepted: the earlier ones, and the one in `state` if it is unknown itself. */
export function openAttemptIds({ open, state }: ShownMessage): readonly string[] {
  const ids = open.map(({ id }) => id)
  return state.status === 'unknown' && state.attempt.outcome === 'unknown' ? [...ids, state.attempt.id] : ids
}

/** Why the message is where it is, in a word; null where the status says it all. */
export function statusReason({ state, heldFor }: Pick<ShownMessage, 'state' | 'heldFor'>): string | null {
  switch (state.status) {
    case 'held':
      return heldFor
    case 'queued':
      return state.last === null ? null : (state.last.evidence.code ?? state.last.evidence.phase)
    case 'unknown':
      return state.attempt.evidence.code ?? state.attempt.evidence.phase
    case 'failed':
    case 'canceled':
      return state.reason
    case 'scheduled':
    case 'sending':
    case 'sent':
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
    case 'held':
    case 'scheduled':
    case 'queued':
    case 'sending':
    case 'unknown':
      return 'maybe'
  }
}

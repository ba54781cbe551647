/**
 * What is known of a call to a provider, and what all calls together say of a message. Owns the words `accepted`,
 * `rejected`, `not_sent`, `unknown` and the fold over them; it does not judge answers (providers/http-outcome.ts and
 * the adapters' tables do) and does not decide what follows (core/state-machine.ts does).
 *
 * O1. `accepted` beats `unknown` beats `rejected` and `not_sent`, in whatever order the attempts ended.
 * O2. While one attempt is unknown, no fold says anything but `unknown` or `accepted`: a later "not sent" speaks
 *     for its own attempt only.
 */

/** Why a call that was not accepted may be made again, and when. */
export type NotSentReason =
  | 'not_begun' /** no byte of the request left this process */
  | 'refused_for_now' /** the provider's documented "not accepted, try later" (a 429 of its own) */
  | 'credentials' /** the provider refuses our credentials: the provider is stopped, the message waits */

/** What one attempt showed, in words that may be stored and shown: no recipient, no text, no secret. */
export interface Evidence {
  /** `not_begun`, `begun` or `answered`: how far the call got. */
  readonly phase: 'not_begun' | 'begun' | 'answered'
  readonly httpStatus?: number
  /** The provider's own code, or the transport's error code. */
  readonly code?: string
  /** One sentence of ours, or the provider's documented wording for `code`. */
  readonly detail: string
  /** The code stands in no table of the adapter. */
  readonly unrecognised?: true
  /** Of a call that was not accepted: the pause that the provider asked for, in milliseconds. */
  readonly retryAfterMs?: number
  /** Nobody saw how the call ended: whoever made it is gone, or asleep. */
  readonly endUnseen?: true
}

export type Outcome =
  | { readonly kind: 'accepted'; readonly providerMessageId: string | null; readonly evidence: Evidence }
  | { readonly kind: 'rejected'; readonly evidence: Evidence }
  | {
      readonly kind: 'not_sent'
      readonly reason: NotSentReason
      readonly retryAfterMs: number | null
      readonly evidence: Evidence
    }
  | {
      readonly kind: 'unknown'
      readonly evidence: Evidence
      /** The provider asked for a pause before it is asked again. */
      readonly retryAfterMs?: number | null
      /** Asking again under the same key would tell nothing new. */
      readonly isReplayPointless?: true
      /** The provider has another request under our key: that is never so if nothing is wrong. */
      readonly isKeyConflict?: true
    }

/** What a look-up by our reference told. */
export type LookResult =
  /** One message, or several: it was sent twice already. */
  | {
      readonly kind: 'found'
      readonly count: number
      readonly providerMessageId: string | null
      readonly evidence: Evidence
    }
  | { readonly kind: 'absent'; readonly evidence: Evidence }
  /** It told nothing. */
  | { readonly kind: 'failed'; readonly retryAfterMs: number | null; readonly evidence: Evidence }

export const outcomeKinds = ['accepted', 'rejected', 'not_sent', 'unknown'] as const
export type OutcomeKind = (typeof outcomeKinds)[number]

const rank = { accepted: 3, unknown: 2, rejected: 1, not_sent: 0 } as const satisfies Record<OutcomeKind, number>

/** The verdict of a message: the strongest of what its attempts ended with. @param earlier null before the first */
export function fold(earlier: OutcomeKind | null, outcome: OutcomeKind): OutcomeKind {
  return earlier !== null && rank[earlier] > rank[outcome] ? earlier : outcome
}

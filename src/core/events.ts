/**
 * What can happen to a message, and what a decision is: the vocabulary of the state machine. Events carry the time and
 * the chance; effects are data for the shell.
 */
import type { Absence, RecoveryMeans } from './recovery.ts'
import {
  attemptOf,
  type ApprovalDecision,
  type Attempt,
  type Delivery,
  type EndedAttempt,
  type Message,
  type OpenAttempt,
  type Proof,
  type Resolution,
  type State,
} from './message.ts'
import type { LookResult, Outcome } from './outcome.ts'

export type Event =
  /** From `unknown` it needs the warrant that `means` give; `rendered` is kept where a replay may have to follow. */
  | {
      readonly type: 'begin'
      readonly attempt: Attempt
      readonly means: RecoveryMeans
      readonly rendered: string | null
    }
  | {
      readonly type: 'outcome'
      readonly attempt: Attempt
      readonly outcome: Outcome
      readonly means: RecoveryMeans | null
      /** Another provider of the route has not been asked in this round: one that did not take it need not be waited for. */
      readonly canFailOver?: boolean
      readonly at: Date
      readonly random: number
    }
  | {
      readonly type: 'lease_lapsed'
      readonly attemptId: string
      readonly means: RecoveryMeans | null
      readonly at: Date
      readonly random: number
    }
  /** A look-up by our reference ended; `attempt` is the one that stood there when it began. */
  | {
      readonly type: 'looked'
      readonly attempt: EndedAttempt
      readonly result: LookResult
      /** Of one that found nothing. */
      readonly absence: Absence
      readonly means: RecoveryMeans
      readonly at: Date
      readonly random: number
    }
  /** The step that was planned cannot be taken any more: what else can be done, if anything? */
  | { readonly type: 'replan'; readonly means: RecoveryMeans | null; readonly at: Date; readonly random: number }
  | { readonly type: 'expire'; readonly at: Date }
  | { readonly type: 'cancel'; readonly apiKey: string; readonly at: Date }
  /** A person decided about one that is held. */
  | { readonly type: 'decide'; readonly decision: ApprovalDecision; readonly at: Date }
  /** Its conversation is not at the version any more that its claim found; `decision`: what a person approved in vain. */
  | { readonly type: 'conversation_moved'; readonly decision: ApprovalDecision | null; readonly at: Date }
  | {
      readonly type: 'settle'
      readonly attemptId: string
      readonly outcome: 'sent' | 'not_sent'
      /** Of one that was not sent: the warrant for one more attempt. */
      readonly resend: boolean
      readonly providerMessageId: string | null
      readonly evidence: string
      readonly apiKey: string
      readonly at: Date
    }
  | ReceiptEvent

/** What a provider told later, by webhook. Each kind proves that it had accepted the message. */
export interface ReceiptEvent {
  readonly type: 'receipt'
  /** Made of the provider and its event: the time line has one line of it, however often it is told. */
  readonly lineId: string
  readonly provider: string
  readonly evidence: 'accepted' | Delivery['status']
  /** Null where the provider names the message alone. */
  readonly attemptId: string | null
  readonly providerMessageId: string | null
  readonly code: string | null
  /** When it happened, as the provider tells. */
  readonly occurredAt: Date
  readonly at: Date
}

export type On<T extends Event['type']> = Extract<Event, { type: T }>

export type Alarm = 'verdict_corrected' | 'accepted_twice' | 'provider_credentials' | 'provider_key_conflict'

/** What the shell does in the same commit as the change (or, for `alarm`, after it). Without `dispatch_at` no dispatch is due. */
export type Effect =
  | { readonly type: 'dispatch_at'; readonly at: Date }
  | { readonly type: 'record'; readonly entry: TimelineEntry }
  | { readonly type: 'alarm'; readonly name: Alarm }

export const timelineTypes = [
  'claimed',
  'attempt_started',
  'attempt_ended',
  'late_outcome',
  'lease_lapsed',
  'warranted',
  'looked',
  'receipt',
  'gave_up',
  'expired',
  'canceled',
  'approved',
  'declined',
  'lapsed',
  'conversation_changed',
  'resolved',
] as const

/** One line of a message's time line. `data` holds no recipient, text or secret. */
export interface TimelineEntry {
  /** Of what may be told twice at the same moment: it is written once. All others get one when they are written. */
  readonly id?: string
  readonly type: (typeof timelineTypes)[number]
  readonly at: Date
  readonly attemptId: string | null
  readonly data: Readonly<Record<string, unknown>>
}

/** What changes beside the state. What is absent stays. */
export interface Changes {
  readonly open?: readonly OpenAttempt[]
  readonly resolution?: Resolution
  readonly rendered?: string | null
  readonly delivery?: Delivery
  readonly proof?: Proof
  readonly decision?: ApprovalDecision
}

export type Decision =
  | {
      readonly kind: 'transition'
      readonly next: State
      readonly changes: Changes
      readonly effects: readonly Effect[]
    }
  /** Nothing changes: late or repeated news. What it told is still worth a line in the time line, or not. */
  | { readonly kind: 'ignored'; readonly because: string; readonly effects: readonly Effect[] }
  /** A bug of ours, never weather. */
  | { readonly kind: 'illegal'; readonly because: string }

export const transition = (next: State, changes: Changes, ...effects: Effect[]): Decision => ({
  kind: 'transition',
  next,
  changes,
  effects,
})
export const ignored = (because: string, ...effects: Effect[]): Decision => ({ kind: 'ignored', because, effects })
export const illegal = (message: Message, event: Event): Decision => ({
  kind: 'illegal',
  because: `${event.type} cannot happen to a message that is ${message.state.status}`,
})

export const record = (
  type: TimelineEntry['type'],
  at: Date,
  attemptId: string | null = null,
  data: TimelineEntry['data'] = {},
  id?: string,
): Effect => ({ type: 'record', entry: { type, at, attemptId, data, ...(id === undefined ? {} : { id }) } })

export const alarm = (name: Alarm): Effect => ({ type: 'alarm', name })

/** The row holds one attempt; one that makes room for another moves to the time line in the same commit. */
export function endedEntry(attempt: EndedAttempt): Effect {
  const { id, number, provider, startedAt, endedAt, evidence } = attempt
  return record('attempt_ended', endedAt, id, { number, provider, startedAt, outcome: attempt.outcome, ...evidence })
}

/** What a state held of an attempt, for the time line, if news of the attempt `byId` takes its place in the row. */
export function displaced(state: State, byId: string): Effect[] {
  const attempt = attemptOf(state)
  if (attempt === null) return []
  if ('endedAt' in attempt) return [endedEntry(attempt)]
  if (attempt.id === byId) return []
  const { number, provider, startedAt } = attempt
  return [record('attempt_started', startedAt, attempt.id, { number, provider })]
}

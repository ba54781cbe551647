/**
 * THE state machine. Owns what a message's status can become and why; every change of a message goes through `decide`.
 * It stores nothing, calls nobody and knows no clock: events carry the time, effects are data for the shell.
 *
 * M1. `sending` is entered only with an attempt, and left only by that attempt's outcome or the lapse of its lease.
 * M2. A lapsed lease makes `unknown`, never another attempt.
 * M3. From `unknown` a blind provider's message goes on only by evidence about that very attempt (its own late answer)
 *     or by a person, who may have it sent again: that verdict is the warrant, and it warrants one attempt.
 * M4. `sent` is final. `failed` and `canceled` give way to an acceptance learnt later, and to nothing else.
 * M5. `canceled` is entered only while every attempt so far was `not_sent`.
 */
import { finalAnswer } from './answer.ts'
import {
  attemptOf,
  endedAttemptOf,
  isFinal,
  type Attempt,
  type EndedAttempt,
  type Message,
  type Resolution,
  type State,
} from './message.ts'
import { fold, type Evidence, type Outcome } from './outcome.ts'
import { retryDelayMs } from './schedule.ts'

export type Event =
  | { readonly type: 'begin'; readonly attempt: Attempt }
  | {
      readonly type: 'outcome'
      readonly attempt: Attempt
      readonly outcome: Outcome
      readonly at: Date
      readonly random: number
    }
  | { readonly type: 'lease_lapsed'; readonly attemptId: string; readonly at: Date }
  | { readonly type: 'expire'; readonly at: Date }
  | { readonly type: 'cancel'; readonly apiKey: string; readonly at: Date }
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

/** What the shell does in the same commit as the change (or, for `alarm`, after it). Without `dispatch_at` no dispatch is due. */
export type Effect =
  | { readonly type: 'dispatch_at'; readonly at: Date }
  | { readonly type: 'record'; readonly entry: TimelineEntry }
  | { readonly type: 'alarm'; readonly name: 'verdict_corrected' | 'accepted_twice' | 'provider_credentials' }

export const timelineTypes = [
  'claimed',
  'attempt_started',
  'attempt_ended',
  'late_outcome',
  'lease_lapsed',
  'expired',
  'canceled',
  'resolved',
] as const

/** One line of a message's time line. `data` holds no recipient, text or secret. */
export interface TimelineEntry {
  readonly type: (typeof timelineTypes)[number]
  readonly at: Date
  readonly attemptId: string | null
  readonly data: Readonly<Record<string, unknown>>
}

export type Decision =
  | { readonly kind: 'transition'; readonly next: State; readonly effects: readonly Effect[] }
  /** Nothing changes: late or repeated news. What it told is still worth a line in the time line, or not. */
  | { readonly kind: 'ignored'; readonly because: string; readonly effects: readonly Effect[] }
  /** A bug of ours, never weather. */
  | { readonly kind: 'illegal'; readonly because: string }

const transition = (next: State, ...effects: Effect[]): Decision => ({ kind: 'transition', next, effects })
const ignored = (because: string, ...effects: Effect[]): Decision => ({ kind: 'ignored', because, effects })
const illegal = (message: Message, event: Event): Decision => ({
  kind: 'illegal',
  because: `${event.type} cannot happen to a message that is ${message.state.status}`,
})
const record = (
  type: TimelineEntry['type'],
  at: Date,
  attemptId: string | null = null,
  data: TimelineEntry['data'] = {},
): Effect => ({ type: 'record', entry: { type, at, attemptId, data } })

export function decide(message: Message, event: Event): Decision {
  switch (event.type) {
    case 'begin':
      return begin(message, event)
    case 'outcome':
      return outcome(message, event)
    case 'lease_lapsed':
      return leaseLapsed(message, event)
    case 'expire':
      return expire(message, event)
    case 'cancel':
      return cancel(message, event)
    case 'settle':
      return settle(message, event)
  }
}

type On<T extends Event['type']> = Extract<Event, { type: T }>

function begin(message: Message, event: On<'begin'>): Decision {
  const { state } = message
  switch (state.status) {
    case 'scheduled':
      return transition({ status: 'sending', attempt: event.attempt })
    case 'queued': {
      // The row holds one attempt; the one before it moves to the time line in the same commit.
      const moved = state.last === null ? [] : [endedEntry(state.last)]
      return transition({ status: 'sending', attempt: event.attempt }, ...moved)
    }
    case 'sending':
    case 'unknown':
    case 'sent':
    case 'failed':
    case 'canceled':
      return ignored(`it is ${state.status} already`)
  }
}

function endedEntry(attempt: EndedAttempt): Effect {
  const { id, number, provider, startedAt, endedAt, evidence } = attempt
  return record('attempt_ended', endedAt, id, { number, provider, startedAt, outcome: attempt.outcome, ...evidence })
}

function outcome(message: Message, event: On<'outcome'>): Decision {
  const { state } = message
  const { attempt, at } = event
  const ended: EndedAttempt = { ...attempt, endedAt: at, outcome: event.outcome.kind, evidence: event.outcome.evidence }
  const current = endedAttemptOf(state)
  if (current !== null && isSameNews(current, ended)) return ignored('it was recorded already')
  const late = record('late_outcome', at, attempt.id, { outcome: ended.outcome, ...ended.evidence })
  switch (state.status) {
    case 'sending':
      return attempt.id === state.attempt.id
        ? followOutcome(message, event, ended)
        : lateOutcome(message, event, ended, late)
    case 'unknown':
      if (attempt.id !== state.attempt.id) return lateOutcome(message, event, ended, late)
      if (ended.outcome === 'unknown') return ignored('its outcome is unknown already', late)
      return withEffects(followOutcome(message, event, ended, 'late_answer'), endedEntry(state.attempt), late)
    case 'scheduled':
    case 'queued':
    case 'failed':
    case 'canceled':
      return lateOutcome(message, event, ended, late)
    case 'sent':
      return ended.outcome === 'accepted' && attempt.id !== state.attempt.id
        ? ignored('it was accepted by another attempt: sent twice', late, { type: 'alarm', name: 'accepted_twice' })
        : ignored('it is sent already', late)
  }
}

const isSameNews = (a: EndedAttempt, b: EndedAttempt): boolean =>
  a.id === b.id && a.outcome === b.outcome && JSON.stringify(a.evidence) === JSON.stringify(b.evidence)

const withEffects = (decision: Decision, ...more: Effect[]): Decision =>
  decision.kind === 'illegal' ? decision : { ...decision, effects: [...decision.effects, ...more] }

/** The current attempt told its outcome: what all attempts together say now decides. */
function followOutcome(
  message: Message,
  { outcome: told, at, random }: On<'outcome'>,
  ended: EndedAttempt,
  by: 'late_answer' | null = null,
): Decision {
  const resolution = (result: Resolution['outcome']): Resolution | null =>
    by === null ? null : { by, at, attemptId: ended.id, outcome: result }
  switch (fold(message.earlierVerdict, told.kind)) {
    case 'accepted': {
      const providerMessageId = told.kind === 'accepted' ? told.providerMessageId : null
      return transition({
        status: 'sent',
        attempt: ended,
        providerMessageId,
        sentAt: at,
        resolution: resolution('sent'),
      })
    }
    case 'unknown':
      return transition({ status: 'unknown', attempt: ended })
    case 'rejected':
      return transition({
        status: 'failed',
        reason: 'provider_refused',
        last: ended,
        resolution: resolution('not_sent'),
      })
    case 'not_sent': {
      const reason = told.kind === 'not_sent' ? told.reason : 'not_begun'
      const retryAfterMs = told.kind === 'not_sent' ? told.retryAfterMs : null
      const retryAt = new Date(at.getTime() + retryDelayMs(ended.number, reason, retryAfterMs, random))
      const dueAt = retryAt < message.notAfter ? retryAt : message.notAfter
      const alarm: Effect[] = reason === 'credentials' ? [{ type: 'alarm', name: 'provider_credentials' }] : []
      return transition({ status: 'queued', last: ended, dueAt }, { type: 'dispatch_at', at: dueAt }, ...alarm)
    }
  }
}

/** News of an attempt that is not current, or of a message that was settled without it: only acceptance changes anything. */
function lateOutcome(message: Message, event: On<'outcome'>, ended: EndedAttempt, late: Effect): Decision {
  if (event.outcome.kind !== 'accepted') return ignored('it speaks for an attempt that is settled', late)
  const { at } = event
  const next: State = {
    status: 'sent',
    attempt: ended,
    providerMessageId: event.outcome.providerMessageId,
    sentAt: at,
    resolution: { by: 'late_answer', at, attemptId: ended.id, outcome: 'sent' },
  }
  // The row holds one attempt: the one that it held moves to the time line. What was said of this one was wrong.
  return transition(next, ...displaced(message.state, ended.id), late, { type: 'alarm', name: 'verdict_corrected' })
}

function displaced(state: State, byId: string): Effect[] {
  const attempt = attemptOf(state)
  if (attempt === null) return []
  if ('endedAt' in attempt) return [endedEntry(attempt)]
  if (attempt.id === byId) return []
  const { number, provider, startedAt } = attempt
  return [record('attempt_started', startedAt, attempt.id, { number, provider })]
}

function leaseLapsed(message: Message, { at, attemptId }: On<'lease_lapsed'>): Decision {
  const { state } = message
  switch (state.status) {
    case 'sending': {
      if (state.attempt.id !== attemptId) return ignored('that attempt has ended, and another runs')
      const evidence: Evidence = {
        phase: 'begun',
        code: 'lease lapsed',
        detail: 'Whoever made the call did not say how it ended; it may have begun.',
      }
      const ended: EndedAttempt = { ...state.attempt, endedAt: at, outcome: 'unknown', evidence }
      return transition({ status: 'unknown', attempt: ended }, record('lease_lapsed', at, ended.id))
    }
    case 'scheduled':
    case 'queued':
    case 'unknown':
    case 'sent':
    case 'failed':
    case 'canceled':
      return ignored(`it is ${state.status}, not sending`)
  }
}

function expire(message: Message, { at }: On<'expire'>): Decision {
  const { state } = message
  switch (state.status) {
    case 'scheduled':
    case 'queued':
      return transition(
        { status: 'failed', reason: 'expired', last: state.status === 'queued' ? state.last : null, resolution: null },
        record('expired', at),
      )
    case 'sending':
    case 'unknown':
    case 'sent':
    case 'failed':
    case 'canceled':
      return ignored(`it is ${state.status}`)
  }
}

function cancel(message: Message, { at, apiKey }: On<'cancel'>): Decision {
  const { state } = message
  switch (state.status) {
    case 'scheduled':
    case 'queued': {
      const last = state.status === 'queued' ? state.last : null
      return transition({ status: 'canceled', last }, record('canceled', at, null, { apiKey }))
    }
    case 'canceled':
      return ignored('it is canceled already')
    case 'sending':
    case 'unknown':
    case 'sent':
    case 'failed':
      return ignored('too late')
  }
}

function settle(message: Message, event: On<'settle'>): Decision {
  const { state } = message
  switch (state.status) {
    case 'unknown':
      return event.attemptId === state.attempt.id ? settled(message, state.attempt, event) : illegal(message, event)
    case 'scheduled':
    case 'queued':
    case 'sending':
    case 'sent':
    case 'failed':
    case 'canceled':
      return ignored('it is not unknown')
  }
}

function settled(message: Message, attempt: EndedAttempt, event: On<'settle'>): Decision {
  const { at, apiKey, evidence, attemptId, providerMessageId, outcome: verdict, resend } = event
  const resolution: Resolution = { by: 'operator', at, attemptId, outcome: verdict, apiKey, evidence }
  const entry = record('resolved', at, attemptId, { outcome: verdict, resend, apiKey, evidence })
  if (verdict === 'sent')
    return transition({ status: 'sent', attempt, providerMessageId, sentAt: at, resolution }, entry)
  if (!resend) return transition({ status: 'failed', reason: 'resolved_not_sent', last: attempt, resolution }, entry)
  if (at >= message.notAfter) return ignored('notAfter has passed: nothing is sent again')
  // The verdict is what is known of that attempt now; what was known of it before stays in the time line.
  const detail = 'A person settled that it was not sent, and had it sent again.'
  const settledEvidence: Evidence = { ...attempt.evidence, code: 'operator', detail }
  const last: EndedAttempt = { ...attempt, endedAt: at, outcome: 'not_sent', evidence: settledEvidence }
  return transition({ status: 'queued', last, dueAt: at }, { type: 'dispatch_at', at }, endedEntry(attempt), entry)
}

/** The message after a transition: the next version, with its answer if that makes it final. */
export function advance(message: Message, next: State, at: Date): Message {
  const begins = next.status === 'sending'
  const last = begins ? endedAttemptOf(message.state) : null
  const changed: Message = {
    ...message,
    state: next,
    version: message.version + 1,
    updatedAt: at,
    attempts: begins ? message.attempts + 1 : message.attempts,
    provider: begins ? next.attempt.provider : message.provider,
    earlierVerdict: last === null ? message.earlierVerdict : fold(message.earlierVerdict, last.outcome),
  }
  return isFinal(next.status) ? { ...changed, answer: finalAnswer(changed) } : changed
}

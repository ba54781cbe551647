/**
 * How a message that is `unknown` is settled: what a look-up told, what a person says, what an overtaken attempt learnt.
 * Only state-machine.ts calls it.
 *
 * U1. A verdict is about one attempt. What is not settled by it stays open, and the message unknown.
 * U2. Nothing is settled as "not sent" but by a proven absence, by a person, or by the owner of that very call.
 * U3. A message that was settled as not sent goes out again only inside notAfter, and by what settled it: the absence, or
 *     a person who says so.
 */
import {
  alarm,
  displaced,
  endedEntry,
  ignored,
  illegal,
  record,
  transition,
  type Decision,
  type Effect,
  type On,
} from './events.ts'
import type { EndedAttempt, Message, Resolution, State } from './message.ts'
import { openAttemptIds } from './message.ts'
import { isSameProvider, planFor } from './recovery.ts'

type Unknown = Extract<State, { status: 'unknown' }>

export function looked(message: Message, event: On<'looked'>): Decision {
  const { state } = message
  const { result, at, attempt, means, random, absence } = event
  if (message.attempts === 0) return illegal(message, event) // nobody can have looked for what never left
  const { evidence } = result
  const entry = record('looked', at, attempt.id, {
    result: result.kind === 'found' && result.count > 1 ? 'doubled' : result.kind,
    ...(result.kind === 'absent' ? { absence } : {}),
    ...evidence,
  })
  if (result.kind === 'found') return found(message, event, result, entry)
  if (state.status !== 'unknown' || state.attempt.id !== attempt.id)
    return ignored('it is not what was looked for', entry)
  if (result.kind === 'absent' && absence === 'proven' && isSameProvider(means, state.attempt))
    return absent(message, state, event, entry)
  const plan = planFor({ ...message, attempt: state.attempt }, means, {
    now: at,
    random,
    steps: (state.plan?.steps ?? 0) + 1,
    pauseMs: result.kind === 'failed' ? (result.retryAfterMs ?? 0) : 0,
    isReplayPointless: state.plan?.step === 'look',
    ...(result.kind === 'absent' ? { absence } : {}),
  })
  return transition({ ...state, plan }, {}, entry, ...gaveUp(state, plan, at))
}

/** The provider has it: sent, whatever was said of it before. */
function found(
  message: Message,
  { attempt, at }: On<'looked'>,
  { count, providerMessageId }: Extract<On<'looked'>['result'], { kind: 'found' }>,
  entry: Effect,
): Decision {
  const { state } = message
  const twice = count > 1 ? [alarm('accepted_twice')] : []
  if (state.status === 'sent') return ignored('it is sent already', entry, ...twice)
  const resolution: Resolution = { by: 'lookup', at, attemptId: attempt.id, outcome: 'sent' }
  const sentWith = { providerMessageId, sentAt: at }
  if (state.status === 'unknown' && state.attempt.id === attempt.id)
    return transition({ status: 'sent', attempt: state.attempt, ...sentWith }, { resolution }, entry, ...twice)
  const corrected = isOneOfOpen(message, attempt) ? [] : [alarm('verdict_corrected')]
  const effects = [...displaced(state, attempt.id), entry, ...corrected, ...twice]
  return transition({ status: 'sent', attempt, ...sentWith }, { resolution }, ...effects)
}

/** Not settled before, or a refused repeat of what is not: nothing was said of the message that this corrects. */
const isOneOfOpen = ({ open: [first] }: Message, { number }: EndedAttempt): boolean =>
  first !== undefined && number >= first.number

/** Proven absent: no attempt whose answer was lost arrived. One more is warranted, unless a repeat was refused for good. */
function absent(message: Message, state: Unknown, { at }: On<'looked'>, entry: Effect): Decision {
  const { attempt } = state
  const resolution: Resolution = { by: 'lookup', at, attemptId: attempt.id, outcome: 'not_sent' }
  const last = asNotSent(attempt, at, 'absent', 'The provider was asked twice and does not have it.')
  const warrant = attempt.outcome === 'rejected' ? {} : { warrant: 'absent' }
  const resolved = record('resolved', at, attempt.id, { by: 'lookup', outcome: 'not_sent', ...warrant })
  if (attempt.outcome === 'rejected')
    return transition({ status: 'failed', reason: 'provider_refused', last: attempt }, { resolution }, entry, resolved)
  const effects = [endedEntry(attempt), entry, resolved]
  if (at >= message.notAfter)
    return transition({ status: 'failed', reason: 'expired', last }, { resolution }, ...effects, record('expired', at))
  return transition({ status: 'queued', last, dueAt: at }, { resolution }, { type: 'dispatch_at', at }, ...effects)
}

export function replan(message: Message, { means, at, random }: On<'replan'>): Decision {
  const { state } = message
  if (state.status !== 'unknown' || state.plan === null) return ignored('nothing is planned')
  const plan = planFor({ ...message, attempt: state.attempt }, means, {
    now: at,
    random,
    steps: state.plan.steps + 1,
    isReplayPointless: state.plan.step === 'look',
  })
  return transition({ ...state, plan }, {}, ...gaveUp(state, plan, at))
}

const gaveUp = (state: Unknown, plan: Unknown['plan'], at: Date): Effect[] =>
  plan === null && state.plan !== null ? [record('gave_up', at, state.attempt.id, { step: state.plan.step })] : []

export function settle(message: Message, event: On<'settle'>): Decision {
  const { state } = message
  if (state.status !== 'unknown') return ignored('it is not unknown')
  const { at, apiKey, evidence, attemptId, providerMessageId, outcome, resend } = event
  if (!openAttemptIds(message).includes(attemptId)) return ignored('that attempt is settled')
  const resolution: Resolution = { by: 'operator', at, attemptId, outcome, apiKey, evidence }
  const entry = record('resolved', at, attemptId, { by: 'operator', outcome, resend, apiKey, evidence })
  if (outcome === 'sent')
    return transition({ status: 'sent', attempt: state.attempt, providerMessageId, sentAt: at }, { resolution }, entry)
  if (openAttemptIds(message).length > 1) return stillOpen(message, state, attemptId, at, entry)
  if (!resend)
    return transition({ status: 'failed', reason: 'resolved_not_sent', last: state.attempt }, { resolution }, entry)
  if (at >= message.notAfter) return ignored('notAfter has passed: nothing is sent again')
  const detail = 'A person settled that it was not sent, and had it sent again.'
  return transition(
    { status: 'queued', last: asNotSent(state.attempt, at, 'operator', detail), dueAt: at },
    { resolution },
    { type: 'dispatch_at', at },
    endedEntry(state.attempt),
    entry,
  )
}

/** One attempt of several is settled as not sent. */
function stillOpen(message: Message, state: Unknown, attemptId: string, at: Date, entry: Effect): Decision {
  if (attemptId !== state.attempt.id)
    return transition(state, { open: message.open.filter(({ id }) => id !== attemptId) }, entry)
  const detail = 'A person settled that it was not sent; an earlier attempt is open.'
  const attempt = asNotSent(state.attempt, at, 'operator', detail)
  return transition({ ...state, attempt }, {}, endedEntry(state.attempt), entry)
}

/** What is known of the attempt now; what was known of it before stays in the time line. */
const asNotSent = (attempt: EndedAttempt, at: Date, code: string, detail: string): EndedAttempt => ({
  ...attempt,
  endedAt: at,
  outcome: 'not_sent',
  evidence: { ...attempt.evidence, code, detail },
})

/** The owner of an earlier call says that it was not accepted: what is left may say no more than that, too. */
export function withoutOpen(message: Message, ended: EndedAttempt, at: Date): Decision {
  const { state } = message
  const open = message.open.filter(({ id }) => id !== ended.id)
  if (state.status !== 'unknown' || open.length > 0 || state.attempt.outcome === 'unknown')
    return transition(state, { open })
  const resolution: Resolution = { by: 'late_answer', at, attemptId: ended.id, outcome: 'not_sent' }
  const { attempt } = state
  // O1: one refusal for good is the verdict, whichever of them it was.
  if (attempt.outcome === 'rejected')
    return transition({ status: 'failed', reason: 'provider_refused', last: attempt }, { open, resolution })
  if (ended.outcome === 'rejected')
    return transition(
      { status: 'failed', reason: 'provider_refused', last: ended },
      { open, resolution },
      ...displaced(state, ended.id),
    )
  const dueAt = at < message.notAfter ? at : message.notAfter
  return transition(
    { status: 'queued', last: attempt, dueAt },
    { open, resolution },
    { type: 'dispatch_at', at: dueAt },
  )
}

/**
 * THE state machine. Owns what a message's status can become and why; every change of a message goes through `decide`.
 * It stores nothing, calls nobody and knows no clock: events carry the time, effects are data for the shell. What
 * becomes of an `unknown` one is in settle-unknown.ts, of one that waits for a person in approval.ts; all are only ever entered through `decide`.
 *
 * M1. `sending` is entered only with an attempt, and left only by that attempt's outcome or the lapse of its lease.
 * M2. A lapsed lease makes `unknown`, never another attempt.
 * M3. From `unknown` another attempt begins only by a warrant (recovery.ts): the provider's own deduplication, an absence
 *     that is proven, or a person's verdict; each warrants one attempt, and none after notAfter.
 * M4. `sent` is final, and so is its answer. `failed` and `canceled` give way to an acceptance learnt later, and to nothing
 *     else.
 * M5. `canceled` is entered only from a message that waits: nothing of it was, or may have been, accepted.
 * M6. While one attempt is open nothing but acceptance is believed of the message, whatever its other attempts say.
 * M7. `held` is left by one decision of a person, by its sender or by notAfter; never by itself to be sent.
 */
import { finalAnswer } from './answer.ts'
import { conversationMoved, decideHeld, lapse } from './approval.ts'
import {
  alarm,
  displaced,
  endedEntry,
  ignored,
  record,
  transition,
  type Changes,
  type Decision,
  type Effect,
  type Event,
  type On,
} from './events.ts'
import { endedAttemptOf, isFinal, type EndedAttempt, type Message, type Resolution, type State } from './message.ts'
import { fold, type Evidence, type Outcome } from './outcome.ts'
import { isOneByKey, keyWarrantHolds, openAttempt, planFor, repeatsSoFar } from './recovery.ts'
import { acceptedBeside, receipt, settledByProof } from './receipt.ts'
import { credentialsPauseMs, retryDelayMs } from './schedule.ts'
import { looked, replan, settle, withoutOpen } from './settle-unknown.ts'

export function decide(message: Message, event: Event): Decision {
  switch (event.type) {
    case 'begin':
      return begin(message, event)
    case 'outcome':
      return outcome(message, event)
    case 'lease_lapsed':
      return leaseLapsed(message, event)
    case 'looked':
      return looked(message, event)
    case 'replan':
      return replan(message, event)
    case 'expire':
      return expire(message, event)
    case 'cancel':
      return cancel(message, event)
    case 'decide':
      return decideHeld(message, event)
    case 'conversation_moved':
      return conversationMoved(message, event)
    case 'settle':
      return settle(message, event)
    case 'receipt':
      return receipt(message, event)
  }
}

function begin(message: Message, { attempt, means, rendered }: On<'begin'>): Decision {
  const { state } = message
  // Taken on an old reading: what came meanwhile may have put off the next attempt.
  const isStale = attempt.number !== message.attempts + 1
  switch (state.status) {
    case 'held':
      return ignored('it waits for a person')
    case 'scheduled':
      return transition({ status: 'sending', attempt }, { rendered })
    case 'queued':
      if (isStale) return ignored('another attempt came first')
      return transition(
        { status: 'sending', attempt },
        { rendered },
        ...(state.last === null ? [] : [endedEntry(state.last)]),
      )
    case 'unknown': {
      const before = state.attempt
      if (isStale) return ignored('another attempt came first')
      if (state.plan?.step !== 'replay') return ignored('no replay is planned')
      if (!keyWarrantHolds({ ...message, attempt: before }, means, attempt.startedAt))
        return ignored('no warrant: its window is over, or the provider is another one')
      const open = before.outcome === 'unknown' ? [...message.open, openAttempt(before)] : message.open
      const warrant = record('warranted', attempt.startedAt, attempt.id, { warrant: 'key', for: open.length })
      return transition({ status: 'sending', attempt }, { open }, endedEntry(before), warrant)
    }
    case 'sending':
    case 'sent':
    case 'failed':
    case 'canceled':
      return ignored(`it is ${state.status} already`)
  }
}

function outcome(message: Message, event: On<'outcome'>): Decision {
  const { state } = message
  const { attempt, at } = event
  const ended: EndedAttempt = {
    ...attempt,
    endedAt: at,
    outcome: event.outcome.kind,
    evidence: evidenceOf(event.outcome),
  }
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
      if (ended.outcome === 'unknown') return ignored('its outcome is unknown already', late, ...keyConflict(event))
      return withEffects(followOutcome(message, event, ended, 'late_answer'), endedEntry(state.attempt), late)
    case 'held':
    case 'scheduled':
    case 'queued':
    case 'failed':
    case 'canceled':
      return lateOutcome(message, event, ended, late)
    case 'sent':
      return ended.outcome === 'accepted' &&
        attempt.id !== state.attempt.id &&
        !isOneByKey(state.attempt, attempt, event.means)
        ? ignored('it was accepted by another attempt: sent twice', late, alarm('accepted_twice'))
        : ignored('it is sent already', late)
  }
}

/** With the pause that was asked for: another attempt of the message must know of it, whoever makes it. */
const evidenceOf = (told: Outcome): Evidence =>
  told.kind === 'not_sent' && told.retryAfterMs !== null
    ? { ...told.evidence, retryAfterMs: told.retryAfterMs }
    : told.evidence

const isSameNews = (a: EndedAttempt, b: EndedAttempt): boolean =>
  a.id === b.id && a.outcome === b.outcome && JSON.stringify(a.evidence) === JSON.stringify(b.evidence)

const withEffects = (decision: Decision, ...more: Effect[]): Decision =>
  decision.kind === 'illegal' ? decision : { ...decision, effects: [...decision.effects, ...more] }

/** The current attempt told its outcome: what all attempts together say now decides. */
function followOutcome(
  message: Message,
  event: On<'outcome'>,
  ended: EndedAttempt,
  late: 'late_answer' | null = null,
): Decision {
  const { outcome: told, at } = event
  const by = late ?? (message.open.length > 0 ? 'provider_replay' : null)
  const resolution = (result: Resolution['outcome']): Changes =>
    by === null ? {} : { resolution: { by, at, attemptId: ended.id, outcome: result } }
  const proven = told.kind === 'accepted' ? null : settledByProof(message, ended, at)
  if (proven !== null) return proven
  switch (fold(message.open.length > 0 ? 'unknown' : null, told.kind)) {
    case 'accepted': {
      const own = told.kind === 'accepted' ? told.providerMessageId : null
      const { providerMessageId, alarms } = acceptedBeside(message.proof, own)
      const next: State = { status: 'sent', attempt: ended, providerMessageId, sentAt: at }
      return transition(next, resolution('sent'), ...alarms)
    }
    case 'unknown':
      return stillUnknown(message, event, ended)
    case 'rejected':
      return transition({ status: 'failed', reason: 'provider_refused', last: ended }, resolution('not_sent'))
    case 'not_sent':
      return tryAgain(message, event, ended, resolution('not_sent'))
  }
}

/** A call that was not accepted, for certain: made again later, until notAfter. */
function tryAgain(
  message: Message,
  { outcome: told, at, random, canFailOver = false }: On<'outcome'>,
  ended: EndedAttempt,
  changes: Changes,
): Decision {
  const reason = told.kind === 'not_sent' ? told.reason : 'not_begun'
  const retryAfterMs = told.kind === 'not_sent' ? told.retryAfterMs : null
  const waitMs = canFailOver ? 0 : retryDelayMs(ended.number, reason, retryAfterMs, random)
  const retryAt = new Date(at.getTime() + waitMs)
  const dueAt = retryAt < message.notAfter ? retryAt : message.notAfter
  const alarms = reason === 'credentials' ? [alarm('provider_credentials')] : []
  return transition({ status: 'queued', last: ended, dueAt }, changes, { type: 'dispatch_at', at: dueAt }, ...alarms)
}

/** Something may have been accepted; a replay that was refused speaks for itself alone. */
function stillUnknown(
  message: Message,
  { outcome: told, means, at, random }: On<'outcome'>,
  ended: EndedAttempt,
): Decision {
  const isCredentials = told.kind === 'not_sent' && told.reason === 'credentials'
  const plan = planFor({ ...message, attempt: ended }, means, {
    now: at,
    random,
    steps: repeatsSoFar(message, ended),
    pauseMs: 'retryAfterMs' in told ? Math.max(told.retryAfterMs ?? 0, isCredentials ? credentialsPauseMs : 0) : 0,
    isReplayPointless: told.kind === 'rejected' || (told.kind === 'unknown' && told.isReplayPointless === true),
  })
  const effects = [
    ...(plan === null && message.open.length > 0 ? [record('gave_up', at, ended.id, { step: 'replay' })] : []),
    ...(isCredentials ? [alarm('provider_credentials')] : []),
    ...keyConflict({ outcome: told }),
  ]
  return transition({ status: 'unknown', attempt: ended, plan }, {}, ...effects)
}

const keyConflict = ({ outcome: told }: Pick<On<'outcome'>, 'outcome'>): Effect[] =>
  told.kind === 'unknown' && told.isKeyConflict === true ? [alarm('provider_key_conflict')] : []

/** News of an attempt that is not current, or of a message that was settled without it. */
function lateOutcome(message: Message, event: On<'outcome'>, ended: EndedAttempt, late: Effect): Decision {
  const { outcome: told, at } = event
  const wasOpen = message.open.some(({ id }) => id === ended.id)
  if (told.kind === 'accepted') {
    const { providerMessageId } = told
    const resolution: Resolution = { by: 'late_answer', at, attemptId: ended.id, outcome: 'sent' }
    // The row holds one attempt: the one that it held moves to the time line. What was said of this one may be wrong.
    const alarms = wasOpen ? [] : [alarm('verdict_corrected')]
    const next: State = { status: 'sent', attempt: ended, providerMessageId, sentAt: at }
    return transition(next, { resolution }, ...displaced(message.state, ended.id), late, ...alarms)
  }
  if (!wasOpen || told.kind === 'unknown')
    return ignored('it changes nothing that is known of the message', late, ...keyConflict(event))
  return withEffects(withoutOpen(message, ended, at), late)
}

function leaseLapsed(message: Message, { at, attemptId, means, random }: On<'lease_lapsed'>): Decision {
  const { state } = message
  switch (state.status) {
    case 'sending': {
      if (state.attempt.id !== attemptId) return ignored('that attempt has ended, and another runs')
      const evidence: Evidence = {
        phase: 'begun',
        code: 'lease lapsed',
        detail: 'Whoever made the call did not say how it ended; it may have begun.',
        endUnseen: true,
      }
      const ended: EndedAttempt = { ...state.attempt, endedAt: at, outcome: 'unknown', evidence }
      const lapsed = record('lease_lapsed', at, ended.id)
      const proven = settledByProof(message, ended, at)
      if (proven !== null) return withEffects(proven, lapsed)
      const steps = repeatsSoFar(message, ended)
      const plan = planFor({ ...message, attempt: ended }, means, { now: at, random, steps })
      return transition({ status: 'unknown', attempt: ended, plan }, {}, lapsed)
    }
    case 'held':
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
    case 'held':
      return lapse(at)
    case 'scheduled':
    case 'queued':
      return transition(
        { status: 'failed', reason: 'expired', last: state.status === 'queued' ? state.last : null },
        {},
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
    case 'held':
    case 'scheduled':
    case 'queued': {
      const last = state.status === 'queued' ? state.last : null
      return transition({ status: 'canceled', reason: null, last }, {}, record('canceled', at, null, { apiKey }))
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

/** The message after a transition: the next version, with its answer if that makes it final. */
export function advance(message: Message, next: State, changes: Changes, at: Date): Message {
  const begins = next.status === 'sending' && message.state.status !== 'sending'
  const isUnsettled = next.status === 'sending' || next.status === 'unknown'
  const { open = message.open, resolution = message.resolution, rendered = message.rendered } = changes
  const { delivery = message.delivery, proof = message.proof, decision = message.decision } = changes
  const changed: { -readonly [Name in keyof Message]: Message[Name] } = {
    ...message,
    state: next,
    version: message.version + 1,
    updatedAt: at,
    attempts: begins ? message.attempts + 1 : message.attempts,
    provider: begins ? next.attempt.provider : message.provider,
    open: isUnsettled ? open : [],
    resolution,
    delivery,
    decision,
    rendered: isUnsettled || next.status === 'queued' ? rendered : null,
    proof: next.status === 'sending' && !begins ? proof : null,
  }
  // M4: what became final before is answered as it was, whatever is learnt beside it.
  if (isFinal(next.status) && next.status !== message.state.status) changed.answer = finalAnswer(changed)
  return changed
}

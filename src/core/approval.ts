/**
 * What becomes of a message that waits for a person. Only state-machine.ts calls it.
 *
 * H1. It is left by one decision of a person, by its sender, or by notAfter; never by itself to be sent. An approval that
 *     comes after notAfter is none.
 * H2. What was approved goes the way of every other message: queued, or scheduled for its time.
 * H3. What was written on a reading of the conversation that is not the present one any more is not sent.
 */
import { ignored, record, transition, type Decision, type Effect, type On } from './events.ts'
import type { ApprovalDecision, Message, State } from './message.ts'

/** H1. */
export function decideHeld({ state, sendAt, notAfter }: Message, { decision, at }: On<'decide'>): Decision {
  if (state.status !== 'held') return ignored(`it is ${state.status}, not held`)
  if (at >= notAfter) return lapse(at)
  const line = decisionLine(decision)
  if (decision.decision === 'declined')
    return transition({ status: 'canceled', reason: 'declined', last: null }, { decision }, line)
  const next: State =
    sendAt !== null && sendAt > at ? { status: 'scheduled', sendAt } : { status: 'queued', last: null, dueAt: at }
  return transition(next, { decision }, line, { type: 'dispatch_at', at: 'dueAt' in next ? next.dueAt : next.sendAt })
}

/** Nobody decided in time. */
export const lapse = (at: Date): Decision =>
  transition({ status: 'canceled', reason: 'lapsed', last: null }, {}, record('lapsed', at))

const decisionLine = ({ decision, by, at, from }: ApprovalDecision): Effect =>
  record(decision, at, null, { apiKey: by, from })

/** H3. `decision`: what a person approved in vain. */
export function conversationMoved(
  { state, decision: before }: Message,
  { decision, at }: On<'conversation_moved'>,
): Decision {
  switch (state.status) {
    case 'held':
    case 'scheduled': {
      // Somebody may have approved it a moment before, for a time to come: theirs is the decision.
      const made = before === null ? decision : null
      return transition(
        { status: 'canceled', reason: 'conversation_changed', last: null },
        made === null ? {} : { decision: made },
        ...(made === null ? [] : [decisionLine(made)]),
        record('conversation_changed', at),
      )
    }
    case 'queued':
    case 'sending':
    case 'unknown':
    case 'sent':
    case 'failed':
    case 'canceled':
      return ignored(`it is ${state.status}: it has left already, or never will`)
  }
}

/**
 * POST /v1/messages/{id}/approve and /decline: a person says yes or no to a message that is held.
 *
 * Z1. One decision: a compare-and-set decides, the winner alone leads to one send. The same again is the present state,
 *     another is refused and told who decided what, when.
 * Z2. It is about what was shown: another fingerprint is refused. No key decides about what it sent.
 * Z3. What was approved goes the way of every other message; if its conversation moved since the claim, it is canceled.
 */
import type { Scope } from '../core/idempotency.ts'
import { sentOf, type ApprovalDecision, type Message } from '../core/message.ts'
import { messageReference } from '../core/message-view.ts'
import type { Deps } from '../deps.ts'
import { applyEvent } from './apply-event.ts'
import { getMessage } from './get-message.ts'
import { Refusal } from './refusal.ts'

/** Who decides, from where. */
export interface Decider {
  readonly apiKey: string
  readonly from: string
}

/**
 * @param fingerprint of what was shown
 * @param waitMs how long an approval waits for the outcome
 * @throws Refusal
 */
export async function decideApproval(
  deps: Deps,
  scope: Scope,
  id: string,
  decision: ApprovalDecision['decision'],
  fingerprint: string,
  { apiKey, from }: Decider,
  waitMs: number,
): Promise<Message> {
  const found = await getMessage(deps, scope, id)
  if (found.sentBy === apiKey)
    throw new Refusal('forbidden', 'No API key decides about what it sent itself.', about(found))
  if (found.heldFor === null) throw new Refusal('not-held', `The message is ${found.state.status}.`, about(found))
  if (found.fingerprint !== fingerprint) throw new Refusal('fingerprint-mismatch', null, about(found))
  const at = deps.clock.now()
  const asked = { decision, by: apiKey, at, from }
  const { message } = await applyEvent(deps, found, { type: 'decide', decision: asked, at })
  const made = message.decision
  if (made === null)
    throw new Refusal('too-late', `The message is ${message.state.status}, and nobody had decided.`, about(message))
  if (made.decision !== decision)
    throw new Refusal('already-decided', null, {
      ...about(message),
      decision: { decision: made.decision, by: made.by, at: made.at.toISOString() },
    })
  if (message.state.status === 'queued') deps.nudgeDispatcher()
  return deps.waiters.wait(message, waitMs)
}

const about = (message: Message) => ({ sent: sentOf(message.state.status), message: messageReference(message) })

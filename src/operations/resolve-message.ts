/**
 * POST /v1/messages/{id}/resolve: a person says what became of an attempt whose outcome is unknown.
 *
 * Q1. One verdict an attempt: the same again is the present state, another is refused and told who decided what, when.
 */
import type { Scope } from '../core/idempotency.ts'
import { uuidFromId } from '../core/ids.ts'
import { attemptOf, sentOf, type Message } from '../core/message.ts'
import { messageReference, resolutionView } from '../core/message-view.ts'
import type { Deps } from '../deps.ts'
import { applyEvent } from './apply-event.ts'
import { getMessage } from './get-message.ts'
import { Refusal } from './refusal.ts'

export interface Verdict {
  /** Public id of the attempt. */
  readonly attempt: string
  readonly outcome: 'sent' | 'not_sent'
  readonly providerMessageId: string | null
  readonly evidence: string
}

/** @throws Refusal */
export async function resolveMessage(
  deps: Deps,
  scope: Scope,
  id: string,
  verdict: Verdict,
  apiKey: string,
): Promise<Message> {
  const found = await getMessage(deps, scope, id)
  const attemptId = uuidFromId('attempt', verdict.attempt) ?? ''
  if (attemptOf(found.state)?.id !== attemptId)
    throw new Refusal('not-found', 'The message has no such attempt that could be unknown.')
  const { outcome, providerMessageId, evidence } = verdict
  const at = deps.clock.now()
  const event = { type: 'settle', attemptId, outcome, providerMessageId, evidence, apiKey, at } as const
  const { message, decision } = await applyEvent(deps, found, event)
  if (decision.kind !== 'transition') refuseOther(message, attemptId, outcome)
  return message
}

/** Nothing was decided now: is that because it was decided so before? */
function refuseOther(message: Message, attemptId: string, outcome: Verdict['outcome']): void {
  const { state } = message
  const extras = { sent: sentOf(state.status), message: messageReference(message) }
  const resolution = state.status === 'sent' || state.status === 'failed' ? state.resolution : null
  if (resolution?.attemptId === attemptId) {
    if (resolution.outcome === outcome) return
    throw new Refusal('already-decided', null, { ...extras, decision: resolutionView(resolution) })
  }
  throw new Refusal('not-unknown', `The message is ${state.status}.`, extras)
}

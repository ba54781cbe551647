/**
 * POST /v1/messages/{id}/resolve: a person says what became of an attempt whose outcome is unknown.
 *
 * Q1. One verdict an attempt: the same again is the present state, another is refused and told who decided what, when.
 * Q2. Where several attempts are open, each wants its verdict; the last one decides whether it is sent again.
 * Q3. A verdict `not_sent` with `resend` warrants one more attempt, within notAfter; posted again it warrants none.
 */
import type { Scope } from '../core/idempotency.ts'
import { idFromUuid, uuidFromId } from '../core/ids.ts'
import { attemptOf, openAttemptIds, sentOf, type Message } from '../core/message.ts'
import { messageReference, resolutionView } from '../core/message-view.ts'
import type { TimelineEntry } from '../core/events.ts'
import type { Deps } from '../deps.ts'
import { applyEvent } from './apply-event.ts'
import { getMessage } from './get-message.ts'
import { Refusal } from './refusal.ts'

export interface Verdict {
  /** Public id of the attempt. */
  readonly attempt: string
  readonly outcome: 'sent' | 'not_sent'
  readonly resend: boolean
  readonly providerMessageId: string | null
  readonly evidence: string
}

/** Who settles it. */
export interface Settler {
  readonly apiKey: string
  readonly isBootstrap: boolean
}

/** @throws Refusal */
export async function resolveMessage(
  deps: Deps,
  scope: Scope,
  id: string,
  verdict: Verdict,
  { apiKey, isBootstrap }: Settler,
): Promise<Message> {
  const found = await getMessage(deps, scope, id)
  // Whoever was given the gateway has, at first, no second key.
  if (found.sentBy === apiKey && !isBootstrap)
    throw new Refusal('forbidden', 'No API key settles what it sent itself.', about(found))
  const attemptId = uuidFromId('attempt', verdict.attempt) ?? ''
  if (!openAttemptIds(found).includes(attemptId)) return decidedBefore(deps, found, attemptId, verdict)
  const { outcome, resend, providerMessageId, evidence } = verdict
  const at = deps.clock.now()
  if (resend && at >= found.notAfter && found.state.status === 'unknown')
    throw new Refusal(
      'too-late',
      'notAfter has passed, so nothing is sent again; settle it without `resend`.',
      about(found),
    )
  const event = { type: 'settle', attemptId, outcome, resend, providerMessageId, evidence, apiKey, at } as const
  const { message, decision } = await applyEvent(deps, found, event)
  return decision.kind === 'transition' ? message : decidedBefore(deps, message, attemptId, verdict)
}

const about = (message: Message) => ({ sent: sentOf(message.state.status), message: messageReference(message) })

/** Nothing was decided now: was it decided so before? */
async function decidedBefore(deps: Deps, message: Message, attemptId: string, verdict: Verdict): Promise<Message> {
  const events = await deps.store.findEvents(message.id)
  const decision = events.find((event) => event.type === 'resolved' && event.attemptId === attemptId)
  if (decision !== undefined) {
    const { outcome, resend = verdict.resend } = decision.data
    if (outcome === verdict.outcome && resend === verdict.resend) return message
    throw new Refusal('already-decided', null, { ...about(message), decision: decisionView(decision) })
  }
  const wasUnknown = events.some(({ attemptId: id, data }) => id === attemptId && data['outcome'] === 'unknown')
  if (attemptOf(message.state)?.id !== attemptId && !wasUnknown)
    throw new Refusal('not-found', 'The message has no such attempt that could be unknown.')
  // Its own late answer, a repeat or a look-up may have settled it meanwhile, as the person says or otherwise.
  const { state, resolution } = message
  if (state.status === 'unknown')
    throw new Refusal(
      'not-unknown',
      'That attempt is not open; the message is unknown by `openAttempts`.',
      about(message),
    )
  if (resolution === null || state.status === 'sending')
    throw new Refusal('not-unknown', `The message is ${state.status}.`, about(message))
  if (resolution.outcome === verdict.outcome && !verdict.resend) return message
  throw new Refusal('already-decided', null, { ...about(message), decision: resolutionView(resolution) })
}

function decisionView({ at, attemptId, data }: TimelineEntry) {
  return {
    by: data['by'] ?? 'operator',
    at: at.toISOString(),
    attempt: idFromUuid('attempt', attemptId ?? ''),
    outcome: data['outcome'],
    apiKey: data['apiKey'] ?? null,
    evidence: data['evidence'] ?? null,
  }
}

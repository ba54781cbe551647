/**
 * A message as the API shows it: the one view, in stored answers, lists and problems alike. Times are RFC 3339 UTC.
 */
import { idFromUuid } from './ids.ts'
import { keySource } from './idempotency.ts'
import {
  openAttemptIds,
  statusReason,
  type Delivery,
  type Resolution,
  type ShownMessage,
  type State,
} from './message.ts'

export function messageView(message: ShownMessage) {
  const { state, request } = message
  return {
    id: idFromUuid('message', message.id),
    object: 'message' as const,
    environment: message.environment,
    status: state.status,
    statusReason: statusReason(message),
    channel: request.channel,
    to: request.to,
    from: request.from ?? null,
    ...(request.channel === 'email' ? emailFields(request) : {}),
    content: request.content,
    conversation: request.conversation ?? null,
    reference: request.reference ?? null,
    intent: request.intent ?? null,
    idempotencyKey: message.idempotencyKey,
    keySource: keySource(message.idempotencyKey),
    fingerprint: message.fingerprint,
    sentBy: message.sentBy,
    approval: approvalView(message),
    conversationVersion: message.conversationVersion,
    possibleDuplicateOf:
      message.possibleDuplicateOf === null ? null : idFromUuid('message', message.possibleDuplicateOf),
    provider: message.provider,
    providerMessageId: state.status === 'sent' ? state.providerMessageId : null,
    attempts: message.attempts,
    sendAt: message.sendAt?.toISOString() ?? null,
    notAfter: message.notAfter.toISOString(),
    createdAt: message.createdAt.toISOString(),
    updatedAt: message.updatedAt.toISOString(),
    sentAt: state.status === 'sent' ? state.sentAt.toISOString() : null,
    delivery: deliveryView(message.delivery),
    resolution: resolutionView(message.resolution),
    plan: state.status === 'unknown' ? planView(state) : null,
    openAttempts: openAttemptIds(message).map((id) => idFromUuid('attempt', id)),
    metadata: message.metadata,
  }
}

function emailFields(request: { cc?: readonly string[]; bcc?: readonly string[]; replyTo?: string }) {
  return { cc: request.cc ?? [], bcc: request.bcc ?? [], replyTo: request.replyTo ?? null }
}

const deliveryView = (delivery: Delivery | null) =>
  delivery === null ? null : { ...delivery, at: delivery.at.toISOString() }

/** Null: nobody was asked. */
function approvalView({ heldFor, decision, state }: ShownMessage) {
  if (heldFor === null) return null
  if (decision !== null)
    return { status: decision.decision, reason: heldFor, by: decision.by, at: decision.at.toISOString() }
  return {
    status: state.status === 'held' ? ('pending' as const) : ('ended' as const),
    reason: heldFor,
    by: null,
    at: null,
  }
}

export function resolutionView(resolution: Resolution | null) {
  if (resolution === null) return null
  const { by, at, attemptId, outcome, apiKey, evidence } = resolution
  return {
    by,
    at: at.toISOString(),
    attempt: idFromUuid('attempt', attemptId),
    outcome,
    apiKey: apiKey ?? null,
    evidence: evidence ?? null,
  }
}

/** What the gateway does next about an unknown outcome, by itself; null: it waits for evidence, or a person. */
function planView({ plan, attempt }: Extract<State, { status: 'unknown' }>) {
  if (plan === null) return null
  return {
    step: plan.step,
    at: plan.at.toISOString(),
    givesUpAt: plan.givesUpAt.toISOString(),
    steps: plan.steps,
    lastEvidence: attempt.evidence.detail,
  }
}

/** A message as problems and key look-ups name it. */
export function messageReference(message: ShownMessage) {
  return {
    id: idFromUuid('message', message.id),
    status: message.state.status,
    createdAt: message.createdAt.toISOString(),
  }
}

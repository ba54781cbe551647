/** A message that is about to be claimed, and its claim: made of what was asked and of what was planned for it. */
import { contentHash } from '../core/conversation.ts'
import { fingerprintOf, fingerprintText } from '../core/fingerprint.ts'
import type { HeldReason, Message, State } from '../core/message.ts'
import type { Deps } from '../deps.ts'
import type { Claim } from '../store/claim-message.ts'
import { newAttempt, renderedFor } from './dispatch-message.ts'
import type { Names, Plan, SendRequest } from './plan-message.ts'

/** How it is claimed. */
export interface Manner {
  /** It waits for a person. */
  readonly heldFor: HeldReason | null
  /** The one that it is a second of, where that is known before. */
  readonly duplicateOf: string | null
  /** Of one whose first attempt begins with its claim. */
  readonly leaseMs: number | null
  /** Of one that is claimed in another manner than before; absent: a new one. */
  readonly id?: string
}

export function newClaim(
  deps: Deps,
  asked: SendRequest,
  names: Names,
  canonical: string,
  plan: Plan,
  manner: Manner,
): Claim {
  const { heldFor, leaseMs } = manner
  const fingerprint = fingerprintOf(canonical)
  const { mode, windowSeconds } = asked.sender.policy.duplicateGuard
  const waits = heldFor !== null || plan.times.sendAt !== null
  return {
    message: newMessage(deps, asked, names[0], canonical, plan, manner, fingerprintText(fingerprint)),
    fingerprint,
    secondKey: names[1] ?? null,
    leaseMs,
    ifVersion: plan.ifVersion,
    rechecks: asked.request.conversation !== undefined && (heldFor !== null || (waits && plan.ifVersion !== null)),
    guard:
      mode === 'off'
        ? null
        : {
            contentHash: contentHash(asked.request),
            windowS: windowSeconds,
            // What a person is asked about anyway is shown to them as what it is, and not refused before.
            refuses: heldFor === null && mode !== 'flag',
          },
  }
}

function newMessage(
  deps: Deps,
  { request, scope, sender, traceparent }: SendRequest,
  key: string,
  canonical: string,
  { provider, times }: Plan,
  { heldFor, duplicateOf, leaseMs, id = deps.newUuid() }: Manner,
  fingerprint: string,
): Message {
  const now = deps.clock.now()
  const attempt = newAttempt(deps, provider, 1, now, leaseMs ?? 0)
  const state: State =
    heldFor !== null
      ? { status: 'held' }
      : times.sendAt !== null
        ? { status: 'scheduled', sendAt: times.sendAt }
        : leaseMs !== null
          ? { status: 'sending', attempt }
          : { status: 'queued', last: null, dueAt: now }
  const message: Message = {
    id,
    account: scope.account,
    environment: scope.environment,
    idempotencyKey: key,
    fingerprint,
    request,
    canonical,
    metadata: request.metadata ?? {},
    provider: provider.name,
    allowedProviders: sender.policy.allowedProviders,
    sentBy: sender.apiKey,
    heldFor,
    decision: null,
    conversationVersion: null,
    possibleDuplicateOf: duplicateOf,
    createdAt: now,
    updatedAt: now,
    sendAt: times.sendAt,
    notAfter: times.notAfter,
    traceparent,
    version: 1,
    attempts: state.status === 'sending' ? 1 : 0,
    open: [],
    resolution: null,
    delivery: null,
    state,
    answer: null,
    rendered: null,
    proof: null,
  }
  return state.status === 'sending' ? { ...message, rendered: renderedFor(message, provider, attempt) } : message
}

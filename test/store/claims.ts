/** Claims and changes as operations make them, without operations. */
import { newUuid as uuidv7 } from '../../src/new-uuid.ts'
import { contentHash, leaves } from '../../src/core/conversation.ts'
import { canonicalText, fingerprintOf, fingerprintText } from '../../src/core/fingerprint.ts'
import type { MessageRequest } from '../../src/core/message-content.ts'
import type { Attempt, EndedAttempt, Message, State } from '../../src/core/message.ts'
import type { OutcomeKind } from '../../src/core/outcome.ts'
import type { Effect } from '../../src/core/events.ts'
import { advance } from '../../src/core/state-machine.ts'
import type { Claim } from '../../src/store/claim-message.ts'
import type { Change } from '../../src/store/save-message.ts'
import { plain, unbound } from '../support/plain-message.ts'

export const scope = { account: 'default', environment: 'live' } as const

export interface Asked {
  readonly request?: Partial<MessageRequest>
  readonly as?: 'held' | 'sending' | 'queued' | 'scheduled'
  readonly secondKey?: string
  readonly leaseMs?: number
  /** What binds it, and what else is told of its message. */
  readonly bound?: Partial<Pick<Claim, 'ifVersion' | 'rechecks' | 'guard'>>
  readonly message?: Partial<Message>
}

/** A guard by the content of the request. */
export const guardOf = (
  { message }: Pick<Claim, 'message'>,
  { refuses = false, windowS = 900 }: { refuses?: boolean; windowS?: number } = {},
): Claim['guard'] => ({ contentHash: contentHash(message.request), windowS, refuses })

export function newAttempt(number = 1): Attempt {
  return {
    id: uuidv7(),
    number,
    provider: 'fake',
    identity: 'fake-identity',
    startedAt: new Date(),
    leaseUntil: new Date(Date.now() + 4_000),
  }
}

export function ended(attempt: Attempt, outcome: OutcomeKind, endedAt = new Date()): EndedAttempt {
  const evidence = { phase: 'answered', httpStatus: 201, code: 'c', detail: 'told' } as const
  return { ...attempt, endedAt, outcome, evidence }
}

export function newClaim(
  key: string,
  { request = {}, as = 'sending', secondKey, leaseMs = 4_000, bound = {}, message: more = {} }: Asked = {},
): Claim {
  const asked = {
    channel: 'sms',
    to: '+447700900123',
    content: { text: 'hello' },
    ...request,
  } as MessageRequest
  const canonical = canonicalText(asked)
  const fingerprint = fingerprintOf(canonical)
  const now = new Date()
  const sendAt = as === 'scheduled' ? new Date(now.getTime() + 60_000) : null
  const states = {
    held: (): State => ({ status: 'held' }),
    sending: (): State => ({ status: 'sending', attempt: newAttempt() }),
    queued: (): State => ({ status: 'queued', last: null, dueAt: now }),
    scheduled: (): State => ({ status: 'scheduled', sendAt: sendAt ?? now }),
  }
  const message: Message = {
    id: uuidv7(),
    ...scope,
    idempotencyKey: key,
    fingerprint: fingerprintText(fingerprint),
    request: asked,
    canonical,
    metadata: {},
    provider: 'fake',
    ...plain,
    heldFor: as === 'held' ? 'approval' : null,
    createdAt: now,
    updatedAt: now,
    sendAt,
    notAfter: new Date(now.getTime() + 86_400_000),
    traceparent: null,
    version: 1,
    attempts: as === 'sending' ? 1 : 0,
    open: [],
    resolution: null,
    delivery: null,
    state: states[as](),
    answer: null,
    rendered: null,
    proof: null,
    ...more,
  }
  return {
    message,
    fingerprint,
    secondKey: secondKey ?? null,
    leaseMs: as === 'sending' ? leaseMs : null,
    ...unbound,
    ...bound,
  }
}

/** The change that takes a message to `state`. */
export function changeTo(
  message: Message,
  state: State,
  { effects = [], leaseMs = null, mayHaveDueWork = true }: Partial<Omit<Change, 'next'>> & { effects?: Effect[] } = {},
): Change {
  const next = advance(message, state, {}, state.status === 'sent' ? state.sentAt : new Date())
  return { next, effects, leaseMs, mayHaveDueWork, leaves: leaves(message, state) }
}

export function sentState(message: Message, providerMessageId: string | null = 'p1'): State {
  if (message.state.status !== 'sending') throw new Error('only a call can be accepted')
  const sentAt = new Date()
  const attempt = ended(message.state.attempt, 'accepted', sentAt)
  return { status: 'sent', attempt, providerMessageId, sentAt }
}

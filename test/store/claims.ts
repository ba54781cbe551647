/** Claims and changes as operations make them, without operations. */
import { newUuid as uuidv7 } from '../../src/new-uuid.ts'
import { canonicalText, fingerprintOf, fingerprintText } from '../../src/core/fingerprint.ts'
import type { MessageRequest } from '../../src/core/message-content.ts'
import type { Attempt, EndedAttempt, Message, State } from '../../src/core/message.ts'
import type { OutcomeKind } from '../../src/core/outcome.ts'
import type { Effect } from '../../src/core/events.ts'
import { advance } from '../../src/core/state-machine.ts'
import type { Claim } from '../../src/store/claim-message.ts'
import type { Change } from '../../src/store/save-message.ts'

export const scope = { account: 'default', environment: 'live' } as const

export interface Asked {
  readonly request?: Partial<MessageRequest>
  readonly as?: 'sending' | 'queued' | 'scheduled'
  readonly secondKey?: string
  readonly leaseMs?: number
}

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

export function ended(attempt: Attempt, outcome: OutcomeKind): EndedAttempt {
  const evidence = { phase: 'answered', httpStatus: 201, code: 'c', detail: 'told' } as const
  return { ...attempt, endedAt: new Date(), outcome, evidence }
}

export function newClaim(key: string, { request = {}, as = 'sending', secondKey, leaseMs = 4_000 }: Asked = {}): Claim {
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
  }
  return {
    message,
    fingerprint,
    secondKey: secondKey ?? null,
    leaseMs: as === 'sending' ? leaseMs : null,
  }
}

/** The change that takes a message to `state`. */
export function changeTo(
  message: Message,
  state: State,
  { effects = [], leaseMs = null, mayHaveDueWork = true }: Partial<Omit<Change, 'next'>> & { effects?: Effect[] } = {},
): Change {
  return { next: advance(message, state, {}, new Date()), effects, leaseMs, mayHaveDueWork }
}

export function sentState(message: Message, providerMessageId: string | null = 'p1'): State {
  if (message.state.status !== 'sending') throw new Error('only a call can be accepted')
  const attempt = ended(message.state.attempt, 'accepted')
  return { status: 'sent', attempt, providerMessageId, sentAt: new Date() }
}

/** The transition table, found by asking `decide` of every status and every event. */
import {
  statuses,
  type Attempt,
  type EndedAttempt,
  type Message,
  type State,
  type Status,
} from '../../src/core/message.ts'
import { outcomeKinds, type LookResult, type Outcome, type OutcomeKind } from '../../src/core/outcome.ts'
import type { Event } from '../../src/core/events.ts'
import type { RecoveryMeans } from '../../src/core/recovery.ts'
import { decide } from '../../src/core/state-machine.ts'
import { plain } from './plain-message.ts'

export const at = new Date('2026-12-01T09:00:00.000Z')
export const attempt: Attempt = { id: 'a1', number: 1, provider: 'p', identity: 'i', startedAt: at, leaseUntil: at }
export const ended = (outcome: OutcomeKind): EndedAttempt => ({
  ...attempt,
  endedAt: at,
  outcome,
  evidence: { phase: 'answered', detail: 'as it was told' },
})

/** A state of each status, as ordinary as it can be. */
export const ordinaryStates: { [S in Status]: Extract<State, { status: S }> } = {
  held: { status: 'held' },
  scheduled: { status: 'scheduled', sendAt: at },
  queued: { status: 'queued', last: ended('not_sent'), dueAt: at },
  sending: { status: 'sending', attempt },
  unknown: {
    status: 'unknown',
    attempt: ended('unknown'),
    plan: { step: 'replay', at, givesUpAt: new Date(at.getTime() + 3_600_000), steps: 0 },
  },
  sent: { status: 'sent', attempt: ended('accepted'), providerMessageId: null, sentAt: at },
  failed: { status: 'failed', reason: 'provider_refused', last: ended('rejected') },
  canceled: { status: 'canceled', reason: null, last: null },
}

export function messageIn(state: State): Message {
  return {
    id: '0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5c',
    account: 'default',
    environment: 'live',
    idempotencyKey: 'k',
    fingerprint: 'v1:0',
    request: { channel: 'sms', to: '+447700900123', content: { text: 'hello' } },
    canonical: '{}',
    metadata: {},
    provider: 'p',
    ...plain,
    heldFor: state.status === 'held' ? 'approval' : null,
    createdAt: at,
    updatedAt: at,
    sendAt: state.status === 'scheduled' ? state.sendAt : null,
    notAfter: new Date(at.getTime() + 86_400_000),
    traceparent: null,
    version: 1,
    attempts: state.status === 'held' || state.status === 'scheduled' || state.status === 'canceled' ? 0 : 1,
    open: [],
    resolution: null,
    delivery: null,
    state,
    answer: null,
    rendered: 'as it was sent',
    proof: null,
  }
}

export function outcomeOf(kind: OutcomeKind): Outcome {
  const evidence = { phase: 'answered', detail: 'as it was told' } as const
  switch (kind) {
    case 'accepted':
      return { kind, providerMessageId: 'x', evidence }
    case 'not_sent':
      return { kind, reason: 'not_begun', retryAfterMs: null, evidence }
    case 'rejected':
    case 'unknown':
      return { kind, evidence }
  }
}

const settle = {
  type: 'settle',
  attemptId: attempt.id,
  providerMessageId: null,
  evidence: 'seen',
  apiKey: 'k',
  at,
} as const

const hourMs = 3_600_000
/** A provider that takes keys and can be asked: every event can happen to its messages. */
const means: RecoveryMeans = {
  identity: 'i',
  deduplication: {
    keyField: 'k',
    keyFormat: 'message_id',
    lifetimeMs: 24 * hourMs,
    marginMs: hourMs,
    repeat: 'same_response',
  },
  lookup: { match: 'exact', strength: 'strong', settlingMs: 1, retentionMs: 24 * hourMs, marginMs: hourMs },
}
const shows = (count: number): LookResult => {
  const evidence = { phase: 'answered', detail: 'as it was shown' } as const
  return count === 0 ? { kind: 'absent', evidence } : { kind: 'found', count, providerMessageId: 'x', evidence }
}
const look = { type: 'looked', attempt: ended('unknown'), means, at, random: 0 } as const

const receipt = {
  type: 'receipt',
  lineId: '0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5d',
  provider: 'p',
  attemptId: null,
  providerMessageId: null,
  code: null,
  occurredAt: at,
  at,
} as const

/** Every event by the name that the table gives it. */
export const events: Readonly<Record<string, Event>> = {
  begin: { type: 'begin', attempt: { ...attempt, id: 'a2', number: 2 }, means, rendered: null },
  ...Object.fromEntries(
    outcomeKinds.map((kind) => [
      kind,
      { type: 'outcome', attempt, outcome: outcomeOf(kind), means, at, random: 0 } as const,
    ]),
  ),
  'lease lapsed': { type: 'lease_lapsed', attemptId: attempt.id, means, at, random: 0 },
  'looked: found': { ...look, result: shows(1), absence: 'early' },
  'looked: not there': { ...look, result: shows(0), absence: 'early' },
  'looked: proven absent': { ...look, result: shows(0), absence: 'proven' },
  replan: { type: 'replan', means, at, random: 0 },
  expire: { type: 'expire', at },
  cancel: { type: 'cancel', apiKey: 'k', at },
  approve: { type: 'decide', decision: { decision: 'approved', by: 'k', at, from: '::1' }, at },
  decline: { type: 'decide', decision: { decision: 'declined', by: 'k', at, from: '::1' }, at },
  'conversation moved': { type: 'conversation_moved', decision: null, at },
  'settle: sent': { ...settle, outcome: 'sent', resend: false },
  'settle: not sent': { ...settle, outcome: 'not_sent', resend: false },
  'settle: resend': { ...settle, outcome: 'not_sent', resend: true },
  'receipt: accepted': { ...receipt, evidence: 'accepted' },
  'receipt: delivered': { ...receipt, evidence: 'delivered' },
}

/** What an event makes of an ordinary message of a status: the next status, `·` ignored, `!` illegal. */
export function nextOf(status: Status, event: Event): string {
  const decision = decide(messageIn(ordinaryStates[status]), event)
  return decision.kind === 'transition' ? decision.next.status : decision.kind === 'ignored' ? '·' : '!'
}

export function transitionTable(): string {
  const names = Object.keys(events)
  const rows = statuses.map((status) => [
    `**${status}**`,
    ...Object.values(events).map((event) => nextOf(status, event)),
  ])
  return [['', ...names], ['', ...names].map(() => '---'), ...rows]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n')
}

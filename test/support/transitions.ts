/** The transition table, found by asking `decide` of every status and every event. */
import {
  statuses,
  type Attempt,
  type EndedAttempt,
  type Message,
  type State,
  type Status,
} from '../../src/core/message.ts'
import { outcomeKinds, type Outcome, type OutcomeKind } from '../../src/core/outcome.ts'
import { decide, type Event } from '../../src/core/state-machine.ts'

export const at = new Date('2026-12-01T09:00:00.000Z')
export const attempt: Attempt = { id: 'a1', number: 1, provider: 'p', startedAt: at }
export const ended = (outcome: OutcomeKind): EndedAttempt => ({
  ...attempt,
  endedAt: at,
  outcome,
  evidence: { phase: 'answered', detail: 'as it was told' },
})

/** A state of each status, as ordinary as it can be. */
export const ordinaryStates: { [S in Status]: Extract<State, { status: S }> } = {
  scheduled: { status: 'scheduled', sendAt: at },
  queued: { status: 'queued', last: ended('not_sent'), dueAt: at },
  sending: { status: 'sending', attempt },
  unknown: { status: 'unknown', attempt: ended('unknown') },
  sent: { status: 'sent', attempt: ended('accepted'), providerMessageId: null, sentAt: at, resolution: null },
  failed: { status: 'failed', reason: 'provider_refused', last: ended('rejected'), resolution: null },
  canceled: { status: 'canceled', last: null },
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
    createdAt: at,
    updatedAt: at,
    sendAt: state.status === 'scheduled' ? state.sendAt : null,
    notAfter: new Date(at.getTime() + 86_400_000),
    traceparent: null,
    version: 1,
    attempts: state.status === 'scheduled' || state.status === 'canceled' ? 0 : 1,
    earlierVerdict: null,
    state,
    answer: null,
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

/** Every event by the name that the table gives it. */
export const events: Readonly<Record<string, Event>> = {
  begin: { type: 'begin', attempt: { ...attempt, id: 'a2', number: 2 } },
  ...Object.fromEntries(
    outcomeKinds.map((kind) => [kind, { type: 'outcome', attempt, outcome: outcomeOf(kind), at, random: 0 } as const]),
  ),
  'lease lapsed': { type: 'lease_lapsed', attemptId: attempt.id, at },
  expire: { type: 'expire', at },
  cancel: { type: 'cancel', apiKey: 'k', at },
  'settle: sent': { ...settle, outcome: 'sent', resend: false },
  'settle: not sent': { ...settle, outcome: 'not_sent', resend: false },
  'settle: resend': { ...settle, outcome: 'not_sent', resend: true },
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

/** Messages, attempts and outcomes for the tests of the core. All times count from one instant; ids are made of numbers. */
import { canonicalText, fingerprintOf, fingerprintText } from '../../src/core/fingerprint.ts'
import { attemptOf, type Attempt, type EndedAttempt, type Message, type State } from '../../src/core/message.ts'
import type { ApprovalDecision } from '../../src/core/message.ts'
import type { MessageRequest } from '../../src/core/message-content.ts'
import type { Evidence, LookResult, Outcome, OutcomeKind } from '../../src/core/outcome.ts'
import type { Decision, Event, ReceiptEvent, TimelineEntry } from '../../src/core/events.ts'
import type { Absence, RecoveryMeans } from '../../src/core/recovery.ts'
import { advance, decide } from '../../src/core/state-machine.ts'
import { timelineView, type RecordedEntry } from '../../src/core/timeline.ts'
import { plain } from '../support/plain-message.ts'

export const t0 = new Date('2026-12-01T09:00:00.000Z')
export const after = (ms: number): Date => new Date(t0.getTime() + ms)
export const uuid = (n: number): string => `0197a1b2-c3d4-7e5f-8a9b-${n.toString(16).padStart(12, '0')}`

export const recipient = '+447700900123'
export const saying = 'Your parcel is on its way'

export const attempt = (number = 1): Attempt => ({
  id: uuid(number),
  number,
  provider: 'fake',
  identity: 'fake-identity',
  startedAt: after(number * 1_000),
  leaseUntil: after(number * 1_000 + 4_000),
})

/** A provider that can do nothing about a lost answer. */
export const blind: RecoveryMeans = { identity: 'fake-identity', deduplication: null, lookup: null }

const evidences: Record<OutcomeKind, Evidence> = {
  accepted: { phase: 'answered', httpStatus: 201, detail: 'The provider accepted the message.' },
  rejected: { phase: 'answered', httpStatus: 400, code: '21211', detail: 'Invalid To number.' },
  not_sent: { phase: 'not_begun', code: 'ECONNREFUSED', detail: 'No byte left.' },
  unknown: { phase: 'begun', code: 'UND_ERR_SOCKET', detail: 'No answer was read.' },
}

export const ended = (outcome: OutcomeKind, number = 1): EndedAttempt => ({
  ...attempt(number),
  endedAt: after(number * 1_000 + 100),
  outcome,
  evidence: evidences[outcome],
})

export const told: Record<OutcomeKind, Outcome> = {
  accepted: { kind: 'accepted', providerMessageId: 'SM1', evidence: evidences.accepted },
  rejected: { kind: 'rejected', evidence: evidences.rejected },
  not_sent: { kind: 'not_sent', reason: 'not_begun', retryAfterMs: null, evidence: evidences.not_sent },
  unknown: { kind: 'unknown', evidence: evidences.unknown },
}

const hourMs = 3_600_000
/** One that takes keys, and one that can be asked and whose absences count. */
export const keyed: RecoveryMeans = {
  ...blind,
  deduplication: {
    keyField: 'header Idempotency-Key',
    keyFormat: 'message_id',
    lifetimeMs: 24 * hourMs,
    marginMs: hourMs,
    repeat: 'same_response',
  },
}
export const asked: RecoveryMeans = {
  ...blind,
  lookup: { match: 'exact', strength: 'strong', settlingMs: 500, retentionMs: 168 * hourMs, marginMs: hourMs },
}

export const weak: RecoveryMeans = {
  ...blind,
  lookup: { match: 'exact', strength: 'weak', settlingMs: 2_000, retentionMs: 168 * hourMs, marginMs: hourMs },
}
export const both: RecoveryMeans = { ...blind, deduplication: keyed.deduplication, lookup: asked.lookup }

interface Look {
  readonly absence?: Absence
  readonly count?: number
  readonly at?: Date
  readonly of?: EndedAttempt
  readonly means?: RecoveryMeans
}

/** A look-up about an attempt ended; about the first one if nothing is said. */
export const look = (
  kind: LookResult['kind'],
  { absence = 'early', count = 1, at = after(9_000), of = ended('unknown'), means = asked }: Look = {},
) =>
  ({
    type: 'looked',
    attempt: of,
    result: shown(kind, count),
    absence,
    means,
    at,
    random: 0.5,
  }) as const satisfies Event

function shown(kind: LookResult['kind'], count: number): LookResult {
  const evidence: Evidence = { phase: 'answered', httpStatus: 200, detail: 'As it was shown.' }
  switch (kind) {
    case 'found':
      return { kind, count, providerMessageId: 'SM1', evidence }
    case 'absent':
      return { kind, evidence }
    case 'failed':
      return { kind, retryAfterMs: null, evidence }
  }
}

export const outcomeOf = (of: Attempt, kind: OutcomeKind, at = after(of.number * 1_000 + 200), means = blind) =>
  ({ type: 'outcome', attempt: of, outcome: told[kind], means, at, random: 0.5 }) as const satisfies Event

/** One state a status, as the first attempt of a message leaves it. */
export const states = {
  held: { status: 'held' },
  scheduled: { status: 'scheduled', sendAt: after(60_000) },
  queued: { status: 'queued', last: ended('not_sent'), dueAt: after(2_000) },
  sending: { status: 'sending', attempt: attempt() },
  unknown: { status: 'unknown', attempt: ended('unknown'), plan: null },
  sent: {
    status: 'sent',
    attempt: ended('accepted'),
    providerMessageId: 'SM1',
    sentAt: after(1_100),
  },
  failed: { status: 'failed', reason: 'provider_refused', last: ended('rejected') },
  canceled: { status: 'canceled', reason: null, last: ended('not_sent') },
} as const satisfies { [S in State['status']]: Extract<State, { status: S }> }

export const smsRequest: MessageRequest = {
  channel: 'sms',
  to: recipient,
  content: { text: saying },
  conversation: 'ticket-991',
  reference: 'order-42',
}

export function messageIn(state: State, more: Partial<Message> = {}): Message {
  const request = more.request ?? smsRequest
  const canonical = canonicalText(request)
  return {
    id: uuid(0),
    account: 'acme',
    environment: 'live',
    idempotencyKey: 'order-42-shipped',
    fingerprint: fingerprintText(fingerprintOf(canonical)),
    request,
    canonical,
    metadata: {},
    provider: 'fake',
    ...plain,
    heldFor: state.status === 'held' ? 'approval' : null,
    createdAt: t0,
    updatedAt: t0,
    sendAt: state.status === 'scheduled' ? state.sendAt : null,
    notAfter: after(86_400_000),
    traceparent: null,
    version: 1,
    attempts: attemptOf(state)?.number ?? 0,
    open: [],
    resolution: null,
    delivery: null,
    state,
    answer: null,
    rendered: null,
    proof: null,
    ...more,
  }
}

/** The message after the event, as the shell would store it; as it was if nothing follows. */
export function applied(message: Message, event: Event): { message: Message; decision: Decision } {
  const decision = decide(message, event)
  if (decision.kind !== 'transition') return { message, decision }
  const at = event.type === 'begin' ? event.attempt.startedAt : event.at
  return { message: advance(message, decision.next, decision.changes, at), decision }
}

export const play = (message: Message, ...events: Event[]): Message =>
  events.reduce((before, event) => applied(before, event).message, message)

const effectsOf = (decision: Decision) => (decision.kind === 'illegal' ? [] : decision.effects)
export const alarms = (decision: Decision): string[] =>
  effectsOf(decision).flatMap((effect) => (effect.type === 'alarm' ? [effect.name] : []))
export const entries = (decision: Decision): TimelineEntry[] =>
  effectsOf(decision).flatMap((effect) => (effect.type === 'record' ? [effect.entry] : []))
export const whatFollows = (decision: Decision): string =>
  decision.kind === 'transition' ? decision.next.status : decision.kind

/** With keys the request is kept as it was sent. */
export const begin = (number: number, means = blind, of: Partial<Attempt> = {}) =>
  ({
    type: 'begin',
    attempt: { ...attempt(number), ...of },
    means,
    rendered: means.deduplication === null ? null : 'as it was sent',
  }) as const satisfies Event
export const lapse = {
  type: 'lease_lapsed',
  attemptId: attempt().id,
  means: blind,
  at: after(5_000),
  random: 0.5,
} as const satisfies Event
export const expire: Event = { type: 'expire', at: after(86_400_000) }
export const cancel: Event = { type: 'cancel', apiKey: 'key1', at: after(5_000) }
export const decided = (decision: ApprovalDecision['decision'], at = after(6_000)): ApprovalDecision => ({
  decision,
  by: 'key2',
  at,
  from: '203.0.113.7',
})
export const approve = (at = after(6_000)) =>
  ({ type: 'decide', decision: decided('approved', at), at }) as const satisfies Event
export const decline = (at = after(6_000)) =>
  ({ type: 'decide', decision: decided('declined', at), at }) as const satisfies Event
/** @param decision that was made in vain */
export const moved = (decision: ApprovalDecision | null = null, at = after(6_000)) =>
  ({ type: 'conversation_moved', decision, at }) as const satisfies Event
export const settle = (outcome: 'sent' | 'not_sent', number = 1, resend = false): Event => ({
  type: 'settle',
  attemptId: attempt(number).id,
  outcome,
  resend,
  providerMessageId: outcome === 'sent' ? 'SM9' : null,
  evidence: 'Seen in the console.',
  apiKey: 'key1',
  at: after(9_000),
})

/** Told of the message alone, some time after the first attempt's lease. */
export const receipt = (evidence: ReceiptEvent['evidence'], more: Partial<ReceiptEvent> = {}): ReceiptEvent => ({
  type: 'receipt',
  lineId: uuid(0x2000),
  provider: 'fake',
  evidence,
  attemptId: null,
  providerMessageId: 'SM1',
  code: evidence === 'undelivered' ? '30005' : null,
  occurredAt: after(6_000),
  at: after(7_000),
  ...more,
})

type Line = ReturnType<typeof timelineView>['data'][number]

/** The time line after the events: what the shell records comes back from the data base with its data as JSON. */
export function linesAfter(start: Message, ...events: Event[]): { lines: Line[]; recorded: RecordedEntry[] } {
  let message = start
  const recorded: RecordedEntry[] = []
  for (const event of events) {
    const step = applied(message, event)
    for (const entry of entries(step.decision)) {
      const data = JSON.parse(JSON.stringify(entry.data)) as RecordedEntry['data']
      recorded.push({ ...entry, data, id: uuid(0x1000 + recorded.length) })
    }
    message = step.message
  }
  return { lines: timelineView(message, recorded).data, recorded }
}

/** `attempt_started 2`: what happened to which attempt. */
export const nameOf = ({ type, attempt: of }: Line): string =>
  of === null ? type : `${type} ${Number.parseInt(of.slice(-12), 16)}`

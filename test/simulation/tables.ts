/** The tables of the simulated data base, and what their CHECK constraints refuse (prisma/migrations). */
import pg from 'pg'
import type { InboundMessage } from '../../src/core/conversation-view.ts'
import type { MessageRow } from '../../src/store/message-rows.ts'

export interface KeyRow {
  readonly account: string
  readonly environment: string
  readonly key: string
  /** Null: a tombstone. */
  readonly messageId: string | null
  readonly fingerprint: Buffer | null
  readonly fingerprintVersion: number | null
  readonly firstSeenAt: Date
}

export interface AnswerRow {
  readonly answerContentType: string
  readonly answerLocation: string | null
  readonly answerBody: string
}

export interface EventRow {
  readonly id: string
  readonly type: string
  readonly at: Date
  readonly attemptId: string | null
  readonly data: string
}

export interface DueRow {
  readonly task: string
  /** Milliseconds; Infinity: a person's. */
  readonly dueAtMs: number
}

export interface ConversationRow {
  readonly version: number
  readonly updatedAt: Date
}

export interface GuardRow {
  readonly messageId: string
  readonly seenAtMs: number
  readonly windowS: number
}

export interface ReceiptRow {
  readonly provider: string
  readonly eventId: string
  readonly environment: string
  readonly messageId: string
  readonly attemptId: string | null
  readonly kind: string
  readonly providerMessageId: string | null
  readonly code: string | null
  readonly occurredAt: Date
  readonly receivedAt: Date
  readonly appliedAt: Date | null
}

export interface Tables {
  readonly keys: Map<string, KeyRow>
  readonly messages: Map<string, MessageRow>
  readonly answers: Map<string, AnswerRow>
  readonly dueWork: Map<string, DueRow>
  readonly events: Map<string, readonly EventRow[]>
  readonly erased: Map<string, string>
  readonly sweeps: Map<string, Date>
  readonly conversations: Map<string, ConversationRow>
  /** By conversation, oldest first. */
  readonly inbound: Map<string, readonly InboundMessage[]>
  readonly guards: Map<string, GuardRow>
  /** By message, the guard's row of its content. */
  readonly contents: Map<string, string>
  /** By provider and event id. */
  readonly receipts: Map<string, ReceiptRow>
}

export const emptyTables = (): Tables => ({
  keys: new Map(),
  messages: new Map(),
  answers: new Map(),
  dueWork: new Map(),
  events: new Map(),
  erased: new Map(),
  sweeps: new Map(),
  conversations: new Map(),
  inbound: new Map(),
  guards: new Map(),
  contents: new Map(),
  receipts: new Map(),
})

export const keyOf = (account: string, environment: string, key: string): string => `${account} ${environment} ${key}`

/** The error that PostgreSQL gives, as far as the store reads it. */
export function databaseError(code: string, constraint: string): pg.DatabaseError {
  const error = new pg.DatabaseError(`simulated: ${constraint}`, 0, 'error')
  error.code = code
  error.constraint = constraint
  return error
}

const isNull = (value: unknown): boolean => value === null

/** By name, what each CHECK of `messages` asks. */
const checks: Readonly<Record<string, (row: MessageRow) => boolean>> = {
  channel_is_known: ({ channel }) => ['sms', 'email', 'chat', 'push', 'webhook'].includes(channel),
  attempt_is_whole: (row) =>
    [row.attempts === 0, isNull(row.attemptNumber), isNull(row.attemptStartedAt), isNull(row.attemptProvider)].every(
      (isMissing) => isMissing === isNull(row.attemptId),
    ),
  outcome_is_whole: (row) =>
    isNull(row.outcome) === isNull(row.attemptEndedAt) &&
    isNull(row.outcome) === isNull(row.evidence) &&
    (isNull(row.outcome) || !isNull(row.attemptId)),
  only_sending_runs: (row) => (row.status === 'sending') === (!isNull(row.attemptId) && isNull(row.outcome)),
  scheduled_has_not_begun: (row) => row.status !== 'scheduled' || (!isNull(row.sendAt) && row.attempts === 0),
  queued_was_not_sent: (row) =>
    row.status !== 'queued' || (!isNull(row.dueAt) && (isNull(row.outcome) || row.outcome === 'not_sent')),
  sending_has_a_lease: (row) => row.status !== 'sending' || !isNull(row.leaseUntil),
  unknown_has_evidence: (row) =>
    row.status !== 'unknown' || row.outcome === 'unknown' || (!isNull(row.outcome) && !isNull(row.openAttempts)),
  sent_was_accepted: (row) =>
    row.status !== 'sent' ||
    (!isNull(row.sentAt) && !isNull(row.outcome) && (row.outcome === 'accepted' || !isNull(row.resolution))),
  failed_has_a_reason: (row) => {
    if (row.status !== 'failed') return isNull(row.failedReason)
    if (row.failedReason === 'provider_refused') return row.outcome === 'rejected'
    if (row.failedReason === 'expired') return isNull(row.outcome) || row.outcome === 'not_sent'
    return row.failedReason === 'resolved_not_sent' && !isNull(row.resolution) && !isNull(row.outcome)
  },
  canceled_was_not_sent: (row) => row.status !== 'canceled' || isNull(row.outcome) || row.outcome === 'not_sent',
  final_has_its_answer: (row) => ['sent', 'failed', 'canceled'].includes(row.status) === !isNull(row.answerStatus),
  intent_is_guarded: (row) =>
    isNull(row.intentGuard) || (!['failed', 'canceled'].includes(row.status) && row.intentGuard === row.intent),
  held_waits_for_a_person: (row) =>
    row.status !== 'held' || (!isNull(row.heldFor) && isNull(row.decision) && row.attempts === 0),
  only_what_was_held_is_decided: (row) => isNull(row.decision) || !isNull(row.heldFor),
  only_what_was_held_is_declined: (row) =>
    isNull(row.canceledReason) ||
    (row.status === 'canceled' && (row.canceledReason === 'conversation_changed' || !isNull(row.heldFor))),
  only_what_was_accepted_is_delivered: (row) => isNull(row.delivery) || ['sending', 'sent'].includes(row.status),
  only_what_runs_has_a_proof: (row) => isNull(row.proof) || row.status === 'sending',
  only_unknown_has_a_plan: (row) => isNull(row.plan) || row.status === 'unknown',
  only_what_is_not_settled_is_open: (row) => isNull(row.openAttempts) || ['sending', 'unknown'].includes(row.status),
  only_what_may_go_out_is_rendered: (row) =>
    isNull(row.rendered) || ['queued', 'sending', 'unknown'].includes(row.status),
}

/** @throws as PostgreSQL does, if a CHECK refuses the row */
export function checkRow(row: MessageRow): void {
  for (const [name, holds] of Object.entries(checks)) if (!holds(row)) throw databaseError('23514', name)
}

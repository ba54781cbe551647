/** Rows of `messages` as bare SQL makes them: one that is right for each status, to be spoilt. */
import { randomUUID } from 'node:crypto'
import type { TestDatabase } from '../support/database.ts'

export type Row = Readonly<Record<string, unknown>>

const at = new Date()
const attempt: Row = {
  attempts: 1,
  attempt_id: randomUUID(),
  attempt_number: 1,
  attempt_provider: 'fake',
  attempt_started_at: at,
  lease_until: at,
}
const ended = (outcome: string): Row => ({ ...attempt, attempt_ended_at: at, outcome, evidence: '{}' })
const answer: Row = { answer_status: 201 }

const approved: Row = { held_for: 'approval', decision: '{}' }
const held: Row = { status: 'held', held_for: 'approval' }

export const rightRows = {
  held,
  'held, for it looks like another': { ...held, held_for: 'duplicate', conversation_version: 0 },
  'queued, and approved': { status: 'queued', due_at: at, ...approved },
  'scheduled, and approved': { status: 'scheduled', send_at: at, ...approved },
  scheduled: { status: 'scheduled', send_at: at },
  queued: { status: 'queued', due_at: at },
  'queued again': { status: 'queued', due_at: at, ...ended('not_sent') },
  sending: { status: 'sending', lease_until: at, ...attempt },
  unknown: { status: 'unknown', ...ended('unknown') },
  'unknown, and looked for': { status: 'unknown', plan: '{}', ...ended('unknown') },
  'unknown, for an earlier attempt is': { status: 'unknown', open_attempts: '[]', ...ended('not_sent') },
  sent: { status: 'sent', sent_at: at, ...ended('accepted'), ...answer },
  'sent by a person': { status: 'sent', sent_at: at, resolution: '{}', ...ended('unknown'), ...answer },
  'sent, and delivered': { status: 'sent', sent_at: at, delivery: '{}', ...ended('accepted'), ...answer },
  'sending, and proven by a receipt': { status: 'sending', lease_until: at, proof: '{}', delivery: '{}', ...attempt },
  failed: { status: 'failed', failed_reason: 'provider_refused', ...ended('rejected'), ...answer },
  expired: { status: 'failed', failed_reason: 'expired', ...answer },
  'failed by a person': {
    status: 'failed',
    failed_reason: 'resolved_not_sent',
    resolution: '{}',
    ...ended('unknown'),
    ...answer,
  },
  canceled: { status: 'canceled', ...answer },
  declined: { status: 'canceled', canceled_reason: 'declined', ...approved, ...answer },
  lapsed: { status: 'canceled', canceled_reason: 'lapsed', held_for: 'duplicate', ...answer },
  'canceled by its sender, though held': { status: 'canceled', held_for: 'approval', ...answer },
  'canceled, for its conversation moved': { status: 'canceled', canceled_reason: 'conversation_changed', ...answer },
  'approved in vain': { status: 'canceled', canceled_reason: 'conversation_changed', ...approved, ...answer },
  'canceled after a try': { status: 'canceled', ...ended('not_sent'), ...answer },
} as const satisfies Record<string, Row>

/** What every message has, whatever its status. */
const common = (): Row => ({
  id: randomUUID(),
  account_id: 'default',
  environment: 'live',
  idempotency_key: randomUUID(),
  request: '{}',
  fingerprint_version: 1,
  metadata: '{}',
  channel: 'sms',
  recipient: '+447700900123',
  provider: 'fake',
  not_after: at,
  version: 1,
  attempts: 0,
})

export const insertMessage = async (database: TestDatabase, row: Row): Promise<void> =>
  insert(database, 'messages', { ...common(), ...row })

export async function insert(database: TestDatabase, table: string, row: Row): Promise<void> {
  const names = Object.keys(row)
  await database.query(
    `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map((_, i) => `$${i + 1}`).join(', ')})`,
    Object.values(row),
  )
}

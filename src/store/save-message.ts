/**
 * The write of every change after the claim: one statement, compare-and-set on the version, with the due work and the
 * time line that belong to it.
 *
 * S1. No row comes back: someone else changed the message first, and nothing at all was written.
 * S2. A lease is set by the data base's clock, and only by a change that begins an attempt.
 */
import { v7 as uuidv7 } from 'uuid'
import type { Message } from '../core/message.ts'
import type { Effect, TimelineEntry } from '../core/state-machine.ts'
import type { Database, Statement } from './database.ts'
import { guardsIntent, stateColumns } from './message-rows.ts'

/** `keep`: this message has no due work and gets none (an ordinary synchronous send). */
type DueChange = 'keep' | 'set' | 'clear'

const assignments = [
  'status = $4', 'failed_reason = $5', 'attempts = $6', 'earlier_outcomes = $7', 'attempt_id = $8', 'attempt_provider = $9',
  'attempt_started_at = $10', 'attempt_ended_at = $11', 'outcome = $12', 'evidence = $13', 'due_at = $14',
  'provider_message_id = $15', 'sent_at = $16', 'resolution = $17', 'answer_status = $18', 'answer_content_type = $19',
  'answer_location = $20', 'answer_body = $21', 'updated_at = $22', 'intent_guard = CASE WHEN $23::boolean THEN intent END',
  "lease_until = CASE WHEN $24::float8 IS NULL THEN lease_until ELSE now() + $24 * interval '1 millisecond' END",
]

const dueSql: Record<DueChange, string> = {
  keep: '',
  clear: ', due AS (DELETE FROM due_work WHERE message_id IN (SELECT id FROM saved))',
  set: `, due AS (INSERT INTO due_work (message_id, task, due_at)
      SELECT id, $25::text, COALESCE($26::timestamptz, now() + $24::float8 * interval '1 millisecond') FROM saved
      ON CONFLICT (message_id) DO UPDATE SET task = excluded.task, due_at = excluded.due_at)`,
}

function statement(due: DueChange, entries: boolean): Statement {
  const at = due === 'set' ? 27 : 25
  const events = `, noted AS (INSERT INTO events (id, message_id, type, at, attempt_id, data)
      SELECT e.id, saved.id, e.type, e.at, e.attempt_id, e.data FROM saved,
      unnest($${at}::uuid[], $${at + 1}::text[], $${at + 2}::timestamptz[], $${at + 3}::uuid[], $${at + 4}::text[])
        AS e (id, type, at, attempt_id, data))`
  return {
    name: `save-${due}${entries ? '-events' : ''}`,
    text: `
      WITH saved AS (
        UPDATE messages SET version = $3, ${assignments.join(', ')} WHERE id = $1 AND version = $2 RETURNING id
      )${dueSql[due]}${entries ? events : ''}
      SELECT id FROM saved`,
  }
}

const statements = new Map<string, Statement>()
function statementFor(due: DueChange, entries: boolean): Statement {
  const name = `${due}${entries}`
  const made = statements.get(name) ?? statement(due, entries)
  statements.set(name, made)
  return made
}

/**
 * Writes `next` over the version before it.
 * @param leaseMs of a change that begins an attempt, else null
 * @param mayHaveDueWork false for a message that was claimed synchronously and has never waited for a worker
 * @returns whether it was written
 */
export async function saveMessage(
  database: Database,
  next: Message,
  effects: readonly Effect[],
  leaseMs: number | null,
  mayHaveDueWork: boolean,
): Promise<boolean> {
  const dispatchAt = effects.find((effect) => effect.type === 'dispatch_at')?.at ?? null
  const due: DueChange = leaseMs !== null || dispatchAt !== null ? 'set' : mayHaveDueWork ? 'clear' : 'keep'
  const entries = effects.flatMap((effect) => (effect.type === 'record' ? [effect.entry] : []))
  const row = stateColumns(next)
  const values = [
    next.id, next.version - 1, next.version, row.status, row.failedReason, row.attempts, row.earlierOutcomes, row.attemptId,
    row.attemptProvider, row.attemptStartedAt, row.attemptEndedAt, row.outcome, row.evidence, row.dueAt,
    row.providerMessageId, row.sentAt, row.resolution, row.answerStatus, row.answerContentType, row.answerLocation,
    row.answerBody, next.updatedAt, guardsIntent(next), leaseMs,
    ...(due === 'set' ? [leaseMs === null ? 'dispatch' : 'lease', dispatchAt] : []),
    ...(entries.length > 0 ? eventArrays(entries) : []),
  ]
  return (await database.run(statementFor(due, entries.length > 0), values)).length === 1
}

function eventArrays(entries: readonly TimelineEntry[]): unknown[][] {
  return [
    entries.map(() => uuidv7()),
    entries.map((entry) => entry.type),
    entries.map((entry) => entry.at),
    entries.map((entry) => entry.attemptId),
    entries.map((entry) => JSON.stringify(entry.data)),
  ]
}

const record: Statement = {
  name: 'record-events',
  text: `INSERT INTO events (id, message_id, type, at, attempt_id, data)
    SELECT e.id, $1, e.type, e.at, e.attempt_id, e.data
    FROM unnest($2::uuid[], $3::text[], $4::timestamptz[], $5::uuid[], $6::text[]) AS e (id, type, at, attempt_id, data)`,
}

/** News that change nothing, for the time line alone. */
export async function recordEvents(database: Database, messageId: string, entries: readonly TimelineEntry[]): Promise<void> {
  await database.run(record, [messageId, ...eventArrays(entries)])
}

/**
 * The write of every change after the claim: one statement, compare-and-set on the version, with the due work and the
 * time line that belong to it, for all changes that wait for it.
 *
 * S1. No row comes back: someone else changed the message first, and nothing at all of this change was written.
 * S2. A lease is set by the data base's clock, and only by a change that begins an attempt.
 * S3. A message leaves only if its conversation is at the version that its claim found, judged under the lock of that row;
 *     such a change goes alone.
 */
import { endedAttemptOf, type Message } from '../core/message.ts'
import { newUuid } from '../new-uuid.ts'
import type { Effect, TimelineEntry } from '../core/events.ts'
import type { Database, Statement } from './database.ts'
import { conversationCheck, ConversationMoved, violatedConstraint } from './database-errors.ts'
import { grouped } from './grouped.ts'
import { jsonRows } from './json-rows.ts'
import { guardsIntent, stateColumns } from './message-rows.ts'

export interface Change {
  /** The message after the change; it replaces the version before. */
  readonly next: Message
  readonly effects: readonly Effect[]
  /** Of a change that begins an attempt, else null. */
  readonly leaseMs: number | null
  /** False for a message that was claimed synchronously and has never waited for a worker: nothing to clear. */
  readonly mayHaveDueWork: boolean
  /** The message was final before: its stored answer stays as it is. */
  readonly keepsAnswer?: boolean
  /** A message of a conversation goes that waited until now: see core/conversation.ts, V2. */
  readonly leaves?: boolean
}

const columns = {
  provider: 'text',
  status: 'text',
  failed_reason: 'text',
  attempts: 'integer',
  attempt_id: 'uuid',
  attempt_provider: 'text',
  attempt_started_at: 'timestamptz',
  attempt_ended_at: 'timestamptz',
  outcome: 'text',
  evidence: 'text',
  due_at: 'timestamptz',
  provider_message_id: 'text',
  sent_at: 'timestamptz',
  resolution: 'text',
  answer_status: 'smallint',
  attempt_number: 'integer',
  attempt_identity: 'text',
  open_attempts: 'text',
  plan: 'text',
  rendered: 'text',
  delivery: 'text',
  proof: 'text',
  decision: 'text',
  canceled_reason: 'text',
  updated_at: 'timestamptz',
} as const
/** `due`: null leaves the due work alone, `clear` deletes it, else it is the task; `events` are rows of the time line. */
const extras = {
  id: 'uuid',
  before: 'integer',
  guards_intent: 'boolean',
  leaves: 'boolean',
  lease_ms: 'float8',
  due: 'text',
  dispatch_at: 'timestamptz',
  events: 'json',
  answer_content_type: 'text',
  answer_location: 'text',
  answer_body: 'text',
} as const

const typed = Object.entries({ ...columns, ...extras }).map(([name, type]) => `${name} ${type}`)
const lease = "now() + c.lease_ms * interval '1 millisecond'"

// What was saved is handed on whole: joined to the changes again, a group would cost the square of its size.
// A row of `moved` must pass the CHECK before its conflict is seen; where a version was noted, the conversation is there.
const save: Statement = {
  name: 'save',
  text: `
    WITH changes AS MATERIALIZED (SELECT * FROM json_to_recordset($1::json) AS c (${typed.join(', ')})),
    saved AS (
      UPDATE messages m SET version = c.before + 1, ${Object.keys(columns)
        .map((name) => `${name} = c.${name}`)
        .join(', ')},
        intent_guard = CASE WHEN c.guards_intent THEN m.intent_guard END, lease_until = COALESCE(${lease}, m.lease_until)
      FROM changes c WHERE m.id = c.id AND m.version = c.before
      RETURNING m.id, c.due, c.dispatch_at, c.lease_ms, c.events, c.answer_status, c.answer_content_type, c.answer_location, c.answer_body,
        c.leaves, m.account_id, m.environment, m.conversation, m.conversation_version),
    set_due AS (
      INSERT INTO due_work (message_id, task, due_at)
      SELECT c.id, c.due, COALESCE(c.dispatch_at, ${lease}) FROM saved c WHERE c.due <> 'clear'
      ON CONFLICT (message_id) DO UPDATE SET task = excluded.task, due_at = excluded.due_at),
    cleared AS (
      DELETE FROM due_work d USING saved c WHERE d.message_id = c.id AND c.due = 'clear'),
    answered AS (
      INSERT INTO answers (message_id, status, content_type, location, body)
      SELECT c.id, c.answer_status, c.answer_content_type, c.answer_location, c.answer_body
      FROM saved c WHERE c.answer_body IS NOT NULL
      ON CONFLICT (message_id) DO UPDATE SET status = excluded.status, content_type = excluded.content_type,
        location = excluded.location, body = excluded.body),
    moved AS (
      INSERT INTO conversations AS v (account_id, environment, conversation, version, moved, based_on)
      SELECT account_id, environment, conversation, 1 + COALESCE(conversation_version, 0), 1, conversation_version
      FROM saved WHERE leaves
      ON CONFLICT (account_id, environment, conversation) DO UPDATE
        SET version = v.version + 1, moved = 1, based_on = excluded.based_on, updated_at = now()),
    noted AS (
      INSERT INTO events (id, message_id, type, at, attempt_id, data)
      SELECT e.id, c.id, e.type, e.at, e.attempt_id, e.data
      FROM saved c
        CROSS JOIN LATERAL json_to_recordset(c.events) AS e (id uuid, type text, at timestamptz, attempt_id uuid, data text)
      WHERE c.events IS NOT NULL ON CONFLICT (id) DO NOTHING)
    SELECT id FROM saved`,
}

/**
 * The ordinary change: a message that was claimed and called at once ends with its first attempt, and nothing else of it
 * changes. The statement names few columns and has few parts, since each costs at every execution.
 */
const saveFirst: Statement = {
  name: 'save-first',
  text: `
    WITH changes AS MATERIALIZED (
      SELECT * FROM json_to_recordset($1::json) AS c (id uuid, before integer, status text, failed_reason text, at timestamptz, outcome text, evidence text,
        provider_message_id text, answer_status smallint, answer_content_type text, answer_location text, answer_body text)),
    saved AS (
      UPDATE messages m SET version = c.before + 1, status = c.status, failed_reason = c.failed_reason, attempt_ended_at = c.at, outcome = c.outcome,
        evidence = c.evidence, provider_message_id = c.provider_message_id, answer_status = c.answer_status, rendered = NULL, updated_at = c.at,
        sent_at = CASE WHEN c.status = 'sent' THEN c.at END, intent_guard = CASE WHEN c.status = 'sent' THEN m.intent_guard END
      FROM changes c WHERE m.id = c.id AND m.version = c.before
      RETURNING m.id, c.answer_status, c.answer_content_type, c.answer_location, c.answer_body)
    INSERT INTO answers (message_id, status, content_type, location, body) SELECT * FROM saved RETURNING message_id AS id`,
}

function isFirst({ next, effects, leaseMs, mayHaveDueWork, keepsAnswer = false, leaves = false }: Change): boolean {
  const { state, version, attempts, resolution, delivery, open, updatedAt } = next
  const isPlain = version === 2 && attempts === 1 && resolution === null && delivery === null && open.length === 0
  const isAlone = effects.length === 0 && leaseMs === null && !mayHaveDueWork && !keepsAnswer && !leaves
  if (!isPlain || !isAlone || (state.status !== 'sent' && state.status !== 'failed')) return false
  const times = [endedAttemptOf(state)?.endedAt, state.status === 'sent' ? state.sentAt : updatedAt]
  return times.every((time) => time?.getTime() === updatedAt.getTime())
}

function firstRowOf({ next }: Change) {
  const { state, answer } = next
  const ended = endedAttemptOf(state)
  return {
    id: next.id,
    before: next.version - 1,
    status: state.status,
    failed_reason: state.status === 'failed' ? state.reason : undefined,
    at: next.updatedAt,
    outcome: ended?.outcome,
    evidence: JSON.stringify(ended?.evidence),
    provider_message_id: (state.status === 'sent' ? state.providerMessageId : null) ?? undefined,
    answer_status: answer?.status,
    answer_content_type: answer?.contentType,
    answer_location: answer?.location ?? undefined,
    answer_body: answer?.body,
  }
}

function rowOf({ next, effects, leaseMs, mayHaveDueWork, keepsAnswer = false, leaves = false }: Change) {
  const answer = keepsAnswer ? null : next.answer
  const dispatchAt = effects.find((effect) => effect.type === 'dispatch_at')?.at ?? null
  const entries = effects.flatMap((effect) => (effect.type === 'record' ? [effect.entry] : []))
  const row = stateColumns(next)
  return {
    id: next.id,
    before: next.version - 1,
    provider: next.provider,
    status: row.status,
    failed_reason: row.failedReason,
    attempts: row.attempts,
    attempt_id: row.attemptId,
    attempt_provider: row.attemptProvider,
    attempt_started_at: row.attemptStartedAt,
    attempt_ended_at: row.attemptEndedAt,
    outcome: row.outcome,
    evidence: row.evidence,
    due_at: row.dueAt,
    provider_message_id: row.providerMessageId,
    sent_at: row.sentAt,
    resolution: row.resolution,
    answer_status: row.answerStatus,
    attempt_number: row.attemptNumber,
    attempt_identity: row.attemptIdentity,
    open_attempts: row.openAttempts,
    plan: row.plan,
    rendered: row.rendered,
    delivery: row.delivery,
    proof: row.proof,
    decision: row.decision,
    canceled_reason: row.canceledReason,
    answer_content_type: answer?.contentType ?? null,
    answer_location: answer?.location ?? null,
    answer_body: answer?.body ?? null,
    updated_at: next.updatedAt,
    guards_intent: guardsIntent(next),
    leaves,
    lease_ms: leaseMs,
    due: dueOf(next, leaseMs, dispatchAt, mayHaveDueWork),
    dispatch_at: next.state.status === 'unknown' ? (next.state.plan?.at ?? 'infinity') : dispatchAt,
    events: entries.length === 0 ? null : entries.map(eventRow),
  }
}

function dueOf(next: Message, leaseMs: number | null, dispatchAt: Date | null, mayHaveDueWork: boolean): string | null {
  if (leaseMs !== null) return 'lease'
  if (dispatchAt !== null) return 'dispatch'
  if (next.state.status === 'unknown') return next.state.plan === null ? 'unknown' : 'reconcile'
  if (next.state.status === 'sending') return null // news of an earlier attempt: the lease of this one stands
  return mayHaveDueWork ? 'clear' : null
}

function eventRow(entry: TimelineEntry) {
  return {
    id: entry.id ?? newUuid(),
    type: entry.type,
    at: entry.at,
    attempt_id: entry.attemptId,
    data: JSON.stringify(entry.data),
  }
}

/** About what a change adds to a statement; the rest of a row is small. */
const sizeOf = ({ next }: Change): number => (next.answer?.body.length ?? 0) + (next.rendered?.length ?? 0) + 1_024

/** The returned function tells whether the change was written; it throws StoreUnavailable, or ConversationMoved. */
export function messageSaver(database: Database): (change: Change) => Promise<boolean> {
  const saveAll = async (changes: readonly Change[]): Promise<boolean[]> => {
    // Two changes of one message in one group: the first is written, the second came too late.
    const first = new Map(changes.toReversed().map((change) => [change.next.id, change]))
    const wanted = [...first.values()].toSorted((a, b) => (a.next.id < b.next.id ? -1 : 1))
    const isOrdinary = wanted.every(isFirst)
    const [statement, json] = isOrdinary
      ? [saveFirst, JSON.stringify(wanted.map(firstRowOf))]
      : [save, jsonRows(wanted.map(rowOf))]
    const saved = new Set((await database.run<{ id: string }>(statement, [json])).map(({ id }) => id))
    return changes.map((change) => saved.has(change.next.id) && first.get(change.next.id) === change)
  }
  const saveGroup = grouped(saveAll, database.soon, sizeOf)
  return async (change) => {
    if (change.leaves !== true) return saveGroup(change)
    try {
      return (await saveAll([change])).includes(true)
    } catch (error) {
      throw violatedConstraint(error) === conversationCheck ? new ConversationMoved(error) : error
    }
  }
}

const record: Statement = {
  name: 'record-events',
  text: `INSERT INTO events (id, message_id, type, at, attempt_id, data) SELECT e.id, $1, e.type, e.at, e.attempt_id, e.data
    FROM json_to_recordset($2::json) AS e (id uuid, type text, at timestamptz, attempt_id uuid, data text)
    ON CONFLICT (id) DO NOTHING`,
}

/** News that change nothing, for the time line alone. */
export async function recordEvents(
  database: Database,
  messageId: string,
  entries: readonly TimelineEntry[],
): Promise<void> {
  await database.run(record, [messageId, JSON.stringify(entries.map(eventRow))])
}

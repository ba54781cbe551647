/**
 * What workers take: messages that wait for a dispatch, and attempts whose lease lapsed. Judged by the data base's clock.
 *
 * W1. Taking a row only puts it off for a while; what makes a send happen once is the compare-and-set that follows. So
 *     a worker that dies in between loses nothing, and two that take the same one do no harm.
 */
import type { Scope } from '../core/idempotency.ts'
import type { Message } from '../core/message.ts'
import { lastUuid, type Database, type Statement } from './database.ts'
import { joinAnswer, messageFromRow, selectAnswer, selectMessage, type MessageRowWithAnswer } from './message-rows.ts'

/** What workers take, and the tasks of the due work that it stands for: what is held is due for the dispatcher when it lapses. */
const takenAs = { dispatch: ['dispatch', 'held'], reconcile: ['reconcile'] } as const
export type Task = keyof typeof takenAs

const take: Statement = {
  name: 'take-due',
  text: `
    WITH taken AS (
      UPDATE due_work SET due_at = now() + interval '30 seconds' WHERE message_id IN (
        SELECT message_id FROM due_work WHERE due_at <= now() AND task = ANY ($2)
        ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED)
      RETURNING message_id)
    SELECT ${selectMessage}, ${selectAnswer} FROM taken JOIN messages m ON m.id = taken.message_id ${joinAnswer} ORDER BY m.id`,
}

/** Up to `limit` messages due for a task, put off for 30 s so that another worker leaves them alone meanwhile. */
export async function takeDue(database: Database, task: Task, limit: number): Promise<Message[]> {
  return (await database.run<MessageRowWithAnswer>(take, [limit, takenAs[task]])).map(messageFromRow)
}

const postpone: Statement = {
  name: 'postpone',
  text: `UPDATE due_work SET due_at = now() + $3::float8 * interval '1 millisecond' WHERE message_id = $1 AND task = ANY ($2)`,
}

/** Nothing was done with a taken message: look again in `ms`. */
export async function postponeDue(database: Database, task: Task, messageId: string, ms: number): Promise<void> {
  await database.run(postpone, [messageId, takenAs[task], ms])
}

const lapsed: Statement = {
  name: 'lapsed-leases',
  text: `
    SELECT ${selectMessage}, ${selectAnswer} FROM messages m JOIN (
      SELECT message_id AS id FROM due_work WHERE task = 'lease' AND due_at <= now()
      UNION
      SELECT id FROM messages WHERE created_at >= $1 AND created_at <= now() AND status = 'sending' AND lease_until <= now()
    ) late USING (id) ${joinAnswer}
    WHERE m.status = 'sending' AND m.lease_until <= now() ORDER BY m.id LIMIT $2`,
}

/**
 * Attempts whose lease has lapsed: those that workers began (they are in the due work), and synchronous ones claimed
 * since `claimedSince` (they are nowhere but in their row).
 */
export async function findLapsed(database: Database, claimedSince: Date, limit: number): Promise<Message[]> {
  return (await database.run<MessageRowWithAnswer>(lapsed, [claimedSince, limit])).map(messageFromRow)
}

const sweepStart: Statement = {
  name: 'sweep-start',
  text: 'SELECT seen_until AS "seenUntil" FROM sweeps WHERE name = $1',
}

/** Until when a sweep has seen everything; null if it never did. */
export async function findSweepStart(database: Database, name: string): Promise<Date | null> {
  return (await database.run<{ seenUntil: Date }>(sweepStart, [name]))[0]?.seenUntil ?? null
}

const swept: Statement = {
  name: 'sweep-end',
  text: `INSERT INTO sweeps (name, seen_until) VALUES ($1, $2)
    ON CONFLICT (name) DO UPDATE SET seen_until = GREATEST(sweeps.seen_until, excluded.seen_until)`,
}

export async function saveSweep(database: Database, name: string, seenUntil: Date): Promise<void> {
  await database.run(swept, [name, seenUntil])
}

export interface DueDepth {
  /** Messages that wait for a worker. */
  readonly waiting: number
  /** Messages whose outcome is unknown: those that the gateway settles by itself if it can, and those that wait for a person. */
  readonly reconciled: number
  readonly unknown: number
  /** Messages that wait for an approval. */
  readonly held: number
  /** How long ago the oldest of the latter was claimed. */
  readonly oldestUnknownS: number
}

// The oldest by id, which begins with the time: one look-up, however many there are.
const depth: Statement = {
  name: 'due-depth',
  text: `
    SELECT count(*) FILTER (WHERE task IN ('dispatch', 'lease'))::int AS waiting,
      count(*) FILTER (WHERE task = 'reconcile')::int AS reconciled, count(*) FILTER (WHERE task = 'unknown')::int AS unknown,
      count(*) FILTER (WHERE task = 'held')::int AS held,
      COALESCE((SELECT extract(epoch FROM now() - m.created_at) FROM messages m WHERE m.id = (
        SELECT u.message_id FROM due_work u WHERE u.task = 'unknown' ORDER BY u.message_id LIMIT 1)), 0)::float8 AS "oldestUnknownS"
    FROM due_work`,
}

export async function countDueWork(database: Database): Promise<DueDepth> {
  const [row] = await database.run<{ -readonly [name in keyof DueDepth]: DueDepth[name] }>(depth, [])
  return row ?? { waiting: 0, reconciled: 0, unknown: 0, held: 0, oldestUnknownS: 0 }
}

const waitingIds: Statement = {
  name: 'waiting-ids',
  text: `SELECT message_id AS id FROM due_work WHERE task = ANY ($1) ORDER BY message_id LIMIT $2`,
}

/** The statuses of messages that all stand in the due work, with their tasks: no index of `messages` names a status. */
const tasksOf = { held: ['held'], unknown: ['unknown', 'reconcile'] } as const
export type WaitingStatus = keyof typeof tasksOf
export const isWaiting = (status: string | undefined): status is WaitingStatus =>
  status !== undefined && Object.hasOwn(tasksOf, status)

// Not a join: while little is known of the tables, the planner would rather walk through all messages of the account.
const waitingIdsOf: Statement = {
  name: 'waiting-ids-of',
  text: `SELECT d.message_id AS id FROM due_work d
    WHERE d.task = ANY ($1) AND d.message_id < COALESCE($4::uuid, '${lastUuid}')
      AND (SELECT m.account_id = $2 AND m.environment = $3 FROM messages m WHERE m.id = d.message_id)
    ORDER BY d.message_id DESC LIMIT $5`,
}

/** Of one account, newest first. @param before the id that the page before ended with */
export async function findWaitingIdsOf(
  database: Database,
  { account, environment }: Scope,
  status: WaitingStatus,
  limit: number,
  before: string | null,
): Promise<string[]> {
  const values = [tasksOf[status], account, environment, before, limit]
  return (await database.run<{ id: string }>(waitingIdsOf, values)).map(({ id }) => id)
}

/** Ids of messages with such a status, oldest first, whatever the account. */
export async function findWaitingIds(database: Database, status: WaitingStatus, limit: number): Promise<string[]> {
  return (await database.run<{ id: string }>(waitingIds, [tasksOf[status], limit])).map(({ id }) => id)
}

/**
 * The claim: one statement that inserts keys, under their unique constraint, and messages with their first attempt, for
 * all requests that wait for it. Whoever inserts the key has the right to act; whoever does not, reads what is there.
 *
 * C1. Key, second name (conversation and reference), message and due work are inserted together or not at all.
 * C2. The winner is known by `RETURNING`, never by a row count; a conflict makes no error and touches nothing.
 * C3. The lease is set by the data base's clock, in the same statement.
 */
import type { Fingerprint } from '../core/fingerprint.ts'
import type { Message } from '../core/message.ts'
import { violatedConstraint } from './database-errors.ts'
import type { Database, Statement } from './database.ts'
import { grouped } from './grouped.ts'
import { jsonRows } from './json-rows.ts'
import { stateColumns } from './message-rows.ts'

/** A message about to be claimed: `createdAt` is set by the data base. */
export interface Claim {
  readonly message: Message
  readonly fingerprint: Fingerprint
  /** The derived key of (conversation, reference) if `message.idempotencyKey` is another one. */
  readonly secondKey: string | null
  /** Of a claim that begins its first attempt at once. */
  readonly leaseMs: number | null
}

export type ClaimResult =
  | { readonly kind: 'claimed'; readonly message: Message }
  /** The key, or the reference, has a message or a tombstone. */
  | { readonly kind: 'key_taken' }
  | { readonly kind: 'intent_taken' }

/** Columns of `messages` that come from the claim as they are, with their types. */
const columns = {
  id: 'uuid',
  account_id: 'text',
  environment: 'text',
  idempotency_key: 'text',
  request: 'text',
  fingerprint_version: 'smallint',
  metadata: 'text',
  channel: 'text',
  recipient: 'text',
  conversation: 'text',
  reference: 'text',
  intent: 'text',
  provider: 'text',
  traceparent: 'text',
  send_at: 'timestamptz',
  not_after: 'timestamptz',
  version: 'integer',
  status: 'text',
  attempts: 'integer',
  attempt_id: 'uuid',
  attempt_provider: 'text',
  attempt_number: 'integer',
  attempt_identity: 'text',
  rendered: 'text',
} as const
/** What the statement makes other columns of. */
const extras = { fingerprint: 'text', second_key: 'text', lease_ms: 'float8' } as const

type ClaimRow = Readonly<Record<keyof typeof columns | keyof typeof extras, unknown>>

const typed = Object.entries({ ...columns, ...extras }).map(([name, type]) => `${name} ${type}`)
const names = Object.keys(columns).join(', ')
const keyColumns = 'account_id, environment, key, message_id, fingerprint, fingerprint_version'
const keyValues = (key: string): string =>
  `account_id, environment, ${key}, id, decode(fingerprint, 'hex'), fingerprint_version`

const claim: Statement = {
  name: 'claim',
  // CASE: so that the winners are looked up in a hash, and a group does not cost the square of its size.
  // The second name has no ON CONFLICT: if it is taken the whole statement must come to nothing.
  text: `
    WITH asked AS MATERIALIZED (SELECT * FROM json_to_recordset($1::json) AS a (${typed.join(', ')})),
    claimed AS (
      INSERT INTO idempotency_keys (${keyColumns}) SELECT ${keyValues('idempotency_key')} FROM asked
      ON CONFLICT DO NOTHING RETURNING message_id),
    won AS MATERIALIZED (
      SELECT * FROM asked WHERE CASE WHEN id IN (SELECT message_id FROM claimed) THEN true ELSE false END),
    named AS (
      INSERT INTO idempotency_keys (${keyColumns}) SELECT ${keyValues('second_key')} FROM won WHERE second_key IS NOT NULL),
    due AS (
      INSERT INTO due_work (message_id, task, due_at) SELECT id, 'dispatch', COALESCE(send_at, now())
      FROM won WHERE status IN ('queued', 'scheduled'))
    INSERT INTO messages (${names}, attempt_started_at, intent_guard, lease_until, due_at)
    SELECT ${names}, CASE WHEN attempt_id IS NOT NULL THEN now() END, intent, now() + lease_ms * interval '1 millisecond', CASE WHEN status = 'queued' THEN now() END
    FROM won RETURNING id, created_at AS "createdAt"`,
}

/** About what a claim adds to a statement; the rest of a row is small. */
const sizeOf = ({ message }: Claim): number => message.canonical.length + (message.rendered?.length ?? 0) + 1_024

const orderOf = (row: ClaimRow): string =>
  `${String(row.account_id)} ${String(row.environment)} ${String(row.idempotency_key)}`

function rowOf({ message, fingerprint, secondKey, leaseMs }: Claim): ClaimRow {
  const { request } = message
  const state = stateColumns(message)
  return {
    id: message.id,
    account_id: message.account,
    environment: message.environment,
    idempotency_key: message.idempotencyKey,
    request: message.canonical,
    fingerprint_version: fingerprint.version,
    metadata: JSON.stringify(message.metadata),
    channel: request.channel,
    recipient: request.to,
    conversation: request.conversation ?? null,
    reference: request.reference ?? null,
    intent: request.intent ?? null,
    provider: message.provider,
    traceparent: message.traceparent,
    send_at: message.sendAt,
    not_after: message.notAfter,
    version: message.version,
    status: state.status,
    attempts: state.attempts,
    attempt_id: state.attemptId,
    attempt_provider: state.attemptProvider,
    attempt_number: state.attemptNumber,
    attempt_identity: state.attemptIdentity,
    rendered: state.rendered,
    fingerprint: fingerprint.hash.toString('hex'),
    second_key: secondKey,
    lease_ms: leaseMs,
  }
}

/** The returned function throws StoreUnavailable; if its effect is `doubtful`, read the key back and compare the id. */
export function messageClaimer(database: Database): (claim: Claim) => Promise<ClaimResult> {
  const claimGroup = grouped<Claim, ClaimResult>(
    async (claims) => {
      // In the order of the keys, so that two replicas never wait for each other.
      const rows = claims
        .map(rowOf)
        .map((row) => ({ row, order: orderOf(row) }))
        .toSorted((a, b) => (a.order < b.order ? -1 : 1))
        .map(({ row }) => row)
      const inserted = await database.run<{ id: string; createdAt: Date }>(claim, [jsonRows(rows)])
      const times = new Map(inserted.map(({ id, createdAt }) => [id, createdAt]))
      return claims.map(({ message, leaseMs }) => {
        const createdAt = times.get(message.id)
        return createdAt === undefined
          ? { kind: 'key_taken' }
          : { kind: 'claimed', message: asClaimed(message, createdAt, leaseMs) }
      })
    },
    database.soon,
    sizeOf,
  )
  return async (asked) => {
    try {
      return await claimGroup(asked)
    } catch (error) {
      switch (violatedConstraint(error)) {
        case 'messages_one_per_intent':
          return { kind: 'intent_taken' }
        case 'idempotency_keys_pkey':
          return { kind: 'key_taken' }
        default:
          throw error
      }
    }
  }
}

/** What was inserted, with the times that the data base gave it. */
function asClaimed(message: Message, createdAt: Date, leaseMs: number | null): Message {
  const { state } = message
  const known = { ...message, createdAt, updatedAt: createdAt }
  if (state.status === 'queued') return { ...known, state: { ...state, dueAt: createdAt } }
  if (state.status !== 'sending') return known
  const leaseUntil = new Date(createdAt.getTime() + (leaseMs ?? 0))
  return { ...known, state: { ...state, attempt: { ...state.attempt, startedAt: createdAt, leaseUntil } } }
}

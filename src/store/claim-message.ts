/**
 * The claim: one statement that inserts the key, under its unique constraint, and the message with its first attempt.
 * Whoever inserts the key has the right to act; whoever does not, reads what is there.
 *
 * C1. Key, second name (conversation and reference), message and due work are inserted together or not at all.
 * C2. The winner is known by `RETURNING`, never by a row count; a conflict makes no error and touches nothing.
 * C3. The lease is set by the data base's clock, in the same statement.
 */
import { fingerprintOf } from '../core/fingerprint.ts'
import type { Message } from '../core/message.ts'
import { violatedConstraint } from './database-errors.ts'
import type { Database, Statement } from './database.ts'
import { stateColumns } from './message-rows.ts'

/** A message about to be claimed: `createdAt` is set by the data base. */
export interface Claim {
  readonly message: Message
  readonly fingerprintVersion: number
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

/** Columns of `messages` that the claim fills; `$n` of each is its position, `created_at` and the lease are computed. */
const columns = [
  'id', 'account_id', 'environment', 'idempotency_key', 'request', 'fingerprint_version', 'metadata', 'channel',
  'recipient', 'conversation', 'reference', 'intent', 'intent_guard', 'provider', 'traceparent', 'send_at', 'not_after',
  'version', 'status', 'attempts', 'attempt_id', 'attempt_provider', 'attempt_started_at',
] as const
const next = columns.length + 1

/** `$1 … $23` the columns, then: fingerprint, lease in ms, due at (null: now), second key. */
function statement(shape: { due: boolean; secondKey: boolean }): Statement {
  const key = 'INSERT INTO idempotency_keys (account_id, environment, key, message_id, fingerprint, fingerprint_version)'
  const fingerprint = `$${next}::bytea`
  const due = `COALESCE($${next + 2}::timestamptz, now())`
  return {
    name: `claim${shape.due ? '-due' : ''}${shape.secondKey ? '-named' : ''}`,
    text: `
      WITH claimed AS (
        ${key} VALUES ($2::text, $3::text, $4::text, $1::uuid, ${fingerprint}, $6::smallint)
        ON CONFLICT DO NOTHING RETURNING message_id
      )${
        // No ON CONFLICT here: if the second name is taken the whole statement must come to nothing.
        shape.secondKey
          ? `, named AS (${key} SELECT $2::text, $3::text, $${next + 3}::text, message_id, ${fingerprint}, $6::smallint FROM claimed)`
          : ''
      }${
        shape.due ? `, due AS (INSERT INTO due_work (message_id, task, due_at) SELECT message_id, 'dispatch', ${due} FROM claimed)` : ''
      }
      INSERT INTO messages (${columns.join(', ')}, lease_until, due_at)
      SELECT message_id, $2::text, $3::text, ${columns
        .slice(3)
        .map((name, i) => `$${i + 4}::${typeOf(name)}`)
        .join(', ')},
        now() + $${next + 1}::float8 * interval '1 millisecond', ${shape.due ? `CASE WHEN $19 = 'queued' THEN ${due} END` : `$${next + 2}::timestamptz`}
      FROM claimed RETURNING created_at AS "createdAt"`,
  }
}

function typeOf(column: (typeof columns)[number]): string {
  if (column.endsWith('_at') || column === 'not_after') return 'timestamptz'
  if (column === 'attempt_id') return 'uuid'
  return column === 'version' ? 'integer' : column === 'attempts' || column === 'fingerprint_version' ? 'smallint' : 'text'
}

const statements = new Map<string, Statement>()
function statementFor(due: boolean, secondKey: boolean): Statement {
  const name = `${due}${secondKey}`
  const made = statements.get(name) ?? statement({ due, secondKey })
  statements.set(name, made)
  return made
}

/** @throws StoreUnavailable; if its effect is `doubtful`, read the key back and compare the message id */
export async function claimMessage(database: Database, claim: Claim): Promise<ClaimResult> {
  const { message, secondKey } = claim
  const { state, request } = message
  const row = stateColumns(message)
  const due = state.status === 'queued' || state.status === 'scheduled'
  const text = statementFor(due, secondKey !== null)
  const values = [
    message.id, message.account, message.environment, message.idempotencyKey, message.canonical, claim.fingerprintVersion,
    JSON.stringify(message.metadata), request.channel, request.to, request.conversation ?? null, request.reference ?? null,
    request.intent ?? null, request.intent ?? null, message.provider, message.traceparent, message.sendAt, message.notAfter,
    message.version, row.status, row.attempts, row.attemptId, row.attemptProvider, row.attemptStartedAt,
    fingerprintOf(message.canonical, claim.fingerprintVersion).hash,
    claim.leaseMs,
    state.status === 'scheduled' ? state.sendAt : null,
    ...(secondKey === null ? [] : [secondKey]),
  ]
  try {
    const [inserted] = await database.run<{ createdAt: Date }>(text, values)
    return inserted === undefined ? { kind: 'key_taken' } : { kind: 'claimed', message: asClaimed(message, inserted.createdAt) }
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

/** What was inserted, with the times that the data base gave it. */
function asClaimed(message: Message, createdAt: Date): Message {
  const { state } = message
  return { ...message, createdAt, updatedAt: createdAt, state: state.status === 'queued' ? { ...state, dueAt: createdAt } : state }
}

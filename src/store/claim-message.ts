/**
 * The claim: one statement that inserts keys, under their unique constraint, and messages with their first attempt, for
 * all requests that wait for it. Whoever inserts the key has the right to act; whoever does not, reads what is there.
 *
 * C1. Key, second name (conversation and reference), message and due work are inserted together or not at all.
 * C2. The winner is known by `RETURNING`, never by a row count; a conflict makes no error and touches nothing.
 * C3. The lease is set by the data base's clock, in the same statement.
 * C4. The version of a conversation and the guard against a second message are judged under the lock of their rows, by a
 *     CHECK: where it fails nothing was inserted. A claim that they bind goes alone; all others go in groups.
 */
import type { Fingerprint } from '../core/fingerprint.ts'
import type { Message } from '../core/message.ts'
import { conversationCheck, violatedConstraint } from './database-errors.ts'
import type { Database, Statement } from './database.ts'
import { alike, counts } from './duplicates.ts'
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
  /** The version that the conversation must have; null: whichever. */
  readonly ifVersion: number | null
  /** It is checked again before it leaves: the version that it finds is noted with it, as with `ifVersion`. */
  readonly rechecks: boolean
  /** The guard against a second message of the same content; null: it is off. */
  readonly guard: { readonly contentHash: string; readonly windowS: number; readonly refuses: boolean } | null
}

export type ClaimResult =
  | { readonly kind: 'claimed'; readonly message: Message }
  /** The key, or the reference, has a message or a tombstone. */
  | { readonly kind: 'key_taken' }
  | { readonly kind: 'intent_taken' }
  | { readonly kind: 'conversation_moved' }
  /** Its guard refuses it. */
  | { readonly kind: 'duplicate' }

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
  api_key_id: 'text',
  held_for: 'text',
  allowed_providers: 'text',
} as const
/** What the statement makes other columns of. */
const extras = {
  fingerprint: 'text',
  second_key: 'text',
  lease_ms: 'float8',
  moves: 'integer',
  if_version: 'integer',
  rechecks: 'boolean',
  content_hash: 'text',
  window_s: 'integer',
  refuses: 'boolean',
  known_duplicate: 'uuid',
} as const

type ClaimRow = Readonly<Record<keyof typeof columns | keyof typeof extras, unknown>>

const typed = Object.entries({ ...columns, ...extras }).map(([name, type]) => `${name} ${type}`)
const names = Object.keys(columns).join(', ')
const keyColumns = 'account_id, environment, key, message_id, fingerprint, fingerprint_version'
const keyValues = (key: string): string =>
  `account_id, environment, ${key}, id, decode(fingerprint, 'hex'), fingerprint_version`

/**
 * The first message of the content within the window that has neither failed nor been canceled; null: there is none. It is
 * the one that the guard knows, or one that is not seen yet; where that one is over, another may have followed it.
 */
const firstAlike = `CASE WHEN g.seen_at <= now() - excluded.window_s * interval '1 second' THEN NULL
          WHEN COALESCE((SELECT ${counts('f.status')} FROM messages f WHERE f.id = g.message_id), true)
            THEN g.message_id
          ELSE (SELECT o.id FROM won a CROSS JOIN LATERAL (${alike('a', 'excluded.content_hash', 'excluded.window_s')}) o
            WHERE a.id = excluded.message_id) END`

/**
 * A CHECK is asked of the row to be inserted before its conflict is seen: where the conversation is there already, that row
 * is made to pass, and the CHECK of the updated one judges. One that was never there is at no version but 0.
 */
const ifThere = `CASE WHEN if_version IS NULL THEN 0 WHEN EXISTS (SELECT 1 FROM conversations e
          WHERE (e.account_id, e.environment, e.conversation) = (t.account_id, t.environment, t.conversation)) THEN if_version ELSE 0 END`

const claim: Statement = {
  name: 'claim',
  // CASE: so that the winners are looked up in a hash, and a group does not cost the square of its size.
  // Counted, so that it is there first: every claim locks conversations, then guards, then intents, and none in a circle.
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
      INSERT INTO due_work (message_id, task, due_at)
      SELECT id, CASE WHEN status = 'held' THEN 'held' ELSE 'dispatch' END,
        CASE WHEN status = 'held' THEN not_after ELSE COALESCE(send_at, now()) END
      FROM won WHERE status IN ('held', 'queued', 'scheduled')),
    talked AS MATERIALIZED (
      SELECT account_id, environment, conversation, sum(moves)::integer AS moves, max(if_version) AS if_version
      FROM won WHERE conversation IS NOT NULL GROUP BY account_id, environment, conversation),
    moved AS (
      INSERT INTO conversations AS c (account_id, environment, conversation, version, moved, based_on)
      SELECT account_id, environment, conversation, moves + ${ifThere}, moves, if_version FROM talked t
      ORDER BY account_id, environment, conversation
      ON CONFLICT (account_id, environment, conversation) DO UPDATE
        SET version = c.version + excluded.moved, moved = excluded.moved, based_on = excluded.based_on,
          updated_at = CASE WHEN excluded.moved > 0 THEN now() ELSE c.updated_at END
      RETURNING account_id, environment, conversation, version - moved AS found),
    guarded AS (
      INSERT INTO duplicate_guards AS g (account_id, environment, content_hash, message_id, window_s, refuses, is_second)
      SELECT DISTINCT ON (account_id, environment, content_hash) account_id, environment, decode(content_hash, 'hex'), id,
        window_s, refuses, false
      FROM won WHERE content_hash IS NOT NULL AND (SELECT count(*) FROM moved) >= 0
      ORDER BY account_id, environment, content_hash, id
      ON CONFLICT (account_id, environment, content_hash) DO UPDATE
        SET message_id = COALESCE(${firstAlike}, excluded.message_id),
          is_second = ${firstAlike} IS NOT NULL, seen_at = now(), window_s = excluded.window_s, refuses = excluded.refuses
      RETURNING account_id, environment, content_hash, message_id)
    INSERT INTO messages (${names}, attempt_started_at, intent_guard, lease_until, due_at, conversation_version, possible_duplicate_of, content_hash)
    SELECT ${names}, CASE WHEN attempt_id IS NOT NULL THEN now() END, intent, now() + lease_ms * interval '1 millisecond', CASE WHEN status = 'queued' THEN now() END,
      CASE WHEN rechecks OR if_version IS NOT NULL THEN (
        SELECT found FROM moved v WHERE (v.account_id, v.environment, v.conversation) = (w.account_id, w.environment, w.conversation)) END,
      CASE WHEN known_duplicate IS NOT NULL THEN known_duplicate
        WHEN content_hash IS NULL OR id IN (SELECT message_id FROM guarded) THEN NULL
        ELSE (SELECT g.message_id FROM guarded g
          WHERE (g.account_id, g.environment, g.content_hash) = (w.account_id, w.environment, decode(w.content_hash, 'hex'))) END,
      decode(content_hash, 'hex')
    FROM won w WHERE (SELECT count(*) FROM guarded) >= 0
    RETURNING id, created_at AS "createdAt", conversation_version AS "conversationVersion", possible_duplicate_of AS "possibleDuplicateOf"`,
}

/** About what a claim adds to a statement; the rest of a row is small. */
const sizeOf = ({ message }: Claim): number => message.canonical.length + (message.rendered?.length ?? 0) + 1_024

const orderOf = (row: ClaimRow): string =>
  `${String(row.account_id)} ${String(row.environment)} ${String(row.idempotency_key)}`

function rowOf({ message, fingerprint, secondKey, leaseMs, ifVersion, rechecks, guard }: Claim): ClaimRow {
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
    api_key_id: message.sentBy,
    held_for: message.heldFor,
    allowed_providers: message.allowedProviders === null ? null : JSON.stringify(message.allowedProviders),
    moves: state.status === 'held' || state.status === 'scheduled' ? 0 : 1,
    if_version: ifVersion,
    rechecks,
    content_hash: guard?.contentHash ?? null,
    window_s: guard?.windowS ?? null,
    refuses: guard?.refuses ?? null,
    known_duplicate: message.possibleDuplicateOf,
  }
}

/** C4. */
const isBound = ({ ifVersion, rechecks, guard }: Claim): boolean =>
  ifVersion !== null || rechecks || guard?.refuses === true

/** The returned function throws StoreUnavailable; if its effect is `doubtful`, read the key back and compare the id. */
export function messageClaimer(database: Database): (claim: Claim) => Promise<ClaimResult> {
  const claimAll = async (claims: readonly Claim[]): Promise<ClaimResult[]> => {
    // In the order of the keys, so that two replicas never wait for each other.
    const rows = claims
      .map(rowOf)
      .map((row) => ({ row, order: orderOf(row) }))
      .toSorted((a, b) => (a.order < b.order ? -1 : 1))
      .map(({ row }) => row)
    const inserted = await database.run<Inserted>(claim, [jsonRows(rows)])
    const byId = new Map(inserted.map((row) => [row.id, row]))
    return claims.map(({ message, leaseMs }) => {
      const row = byId.get(message.id)
      return row === undefined ? { kind: 'key_taken' } : { kind: 'claimed', message: asClaimed(message, row, leaseMs) }
    })
  }
  const claimGroup = grouped<Claim, ClaimResult>(claimAll, database.soon, sizeOf)
  return async (asked) => {
    try {
      if (!isBound(asked)) return await claimGroup(asked)
      const [result] = await claimAll([asked])
      if (result === undefined) throw new Error('one claim has one result')
      return result
    } catch (error) {
      switch (violatedConstraint(error)) {
        case 'messages_one_per_intent':
          return { kind: 'intent_taken' }
        case 'idempotency_keys_pkey':
          return { kind: 'key_taken' }
        case conversationCheck:
          return { kind: 'conversation_moved' }
        case 'duplicate_is_not_refused':
          return { kind: 'duplicate' }
        default:
          throw error
      }
    }
  }
}

interface Inserted {
  id: string
  createdAt: Date
  conversationVersion: number | null
  possibleDuplicateOf: string | null
}

/** What was inserted, with what the data base knew. */
function asClaimed(message: Message, inserted: Inserted, leaseMs: number | null): Message {
  const { state } = message
  const { createdAt, conversationVersion, possibleDuplicateOf } = inserted
  const known = { ...message, createdAt, updatedAt: createdAt, conversationVersion, possibleDuplicateOf }
  if (state.status === 'queued') return { ...known, state: { ...state, dueAt: createdAt } }
  if (state.status !== 'sending') return known
  const leaseUntil = new Date(createdAt.getTime() + (leaseMs ?? 0))
  return { ...known, state: { ...state, attempt: { ...state.attempt, startedAt: createdAt, leaseUntil } } }
}

/**
 * The SQL of the claim, in two variants, and the rows that it reads as JSON. What it must keep (C1 to C4) stands in
 * claim-message.ts, which chooses between them.
 */
import { counts, alike } from './duplicates.ts'
import type { Statement } from './database.ts'

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
  status: 'text',
  attempt_id: 'uuid',
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

/** What is undefined is left out, and reads as NULL: that halves what goes over the wire and is parsed. */
export type ClaimRow = Readonly<Record<keyof typeof columns | keyof typeof extras, unknown>>

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

// CASE: so that the winners are looked up in a hash, and a group does not cost the square of its size.
const asked = `
    WITH asked AS MATERIALIZED (SELECT * FROM json_to_recordset($1::json) AS a (${typed.join(', ')})),
    claimed AS (
      INSERT INTO idempotency_keys (${keyColumns}) SELECT ${keyValues('idempotency_key')} FROM asked
      ON CONFLICT DO NOTHING RETURNING message_id),
    won AS MATERIALIZED (
      SELECT * FROM asked WHERE CASE WHEN id IN (SELECT message_id FROM claimed) THEN true ELSE false END),`

// The second name has no ON CONFLICT: if it is taken the whole statement must come to nothing.
const named = `
    named AS (
      INSERT INTO idempotency_keys (${keyColumns}) SELECT ${keyValues('second_key')} FROM won WHERE second_key IS NOT NULL),`

const due = `
    due AS (
      INSERT INTO due_work (message_id, task, due_at)
      SELECT id, CASE WHEN status = 'held' THEN 'held' ELSE 'dispatch' END,
        CASE WHEN status = 'held' THEN not_after ELSE COALESCE(send_at, now()) END
      FROM won WHERE status IN ('held', 'queued', 'scheduled')),`

const moved = `
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
      RETURNING account_id, environment, conversation, version - moved AS found),`

/** @param after a CTE that must be there first, so that all claims lock in one order and none in a circle */
const guarded = (after: string | null): string => `
    guarded AS (
      INSERT INTO duplicate_guards AS g (account_id, environment, content_hash, message_id, window_s, refuses, is_second)
      SELECT DISTINCT ON (account_id, environment, content_hash) account_id, environment, decode(content_hash, 'hex'), id,
        window_s, COALESCE(refuses, false), false
      FROM won WHERE content_hash IS NOT NULL${after === null ? '' : ` AND ${counted(after)}`}
      ORDER BY account_id, environment, content_hash, id
      ON CONFLICT (account_id, environment, content_hash) DO UPDATE
        SET (message_id, is_second) = (
            SELECT COALESCE(f.id, excluded.message_id), f.id IS NOT NULL FROM (SELECT ${firstAlike} AS id OFFSET 0) f),
          seen_at = now(), window_s = excluded.window_s, refuses = excluded.refuses
      RETURNING account_id, environment, content_hash, message_id)`

const counted = (cte: string): string => `(SELECT count(*) FROM ${cte}) >= 0`

const inserted = (conversationVersion: string): string => `
    INSERT INTO messages (${names}, version, attempts, attempt_number, attempt_provider, attempt_started_at, intent_guard, lease_until, due_at,
      conversation_version, possible_duplicate_of, content_hash)
    SELECT ${names}, 1, CASE WHEN attempt_id IS NULL THEN 0 ELSE 1 END,
      CASE WHEN attempt_id IS NOT NULL THEN 1 END, CASE WHEN attempt_id IS NOT NULL THEN provider END, CASE WHEN attempt_id IS NOT NULL THEN now() END,
      intent, now() + lease_ms * interval '1 millisecond', CASE WHEN status = 'queued' THEN now() END, ${conversationVersion},
      CASE WHEN known_duplicate IS NOT NULL THEN known_duplicate
        WHEN content_hash IS NULL OR id IN (SELECT message_id FROM guarded) THEN NULL
        ELSE (SELECT g.message_id FROM guarded g
          WHERE (g.account_id, g.environment, g.content_hash) = (w.account_id, w.environment, decode(w.content_hash, 'hex'))) END,
      decode(content_hash, 'hex')
    FROM won w WHERE ${counted('guarded')}
    RETURNING id, created_at AS "createdAt", conversation_version AS "conversationVersion", possible_duplicate_of AS "possibleDuplicateOf"`

const foundVersion = `
      CASE WHEN rechecks OR if_version IS NOT NULL THEN (
        SELECT found FROM moved v WHERE (v.account_id, v.environment, v.conversation) = (w.account_id, w.environment, w.conversation)) END`

// Every claim locks conversations, then guards, then intents.
export const claim: Statement = {
  name: 'claim',
  text: `${asked}${named}${due}${moved}${guarded('moved')}${inserted(foundVersion)}`,
}

/** For claims that belong to no conversation and have one name: fewer parts, for each costs at every execution. */
export const claimPlain: Statement = {
  name: 'claim-plain',
  text: `${asked}${due}${guarded(null)}${inserted('NULL::integer')}`,
}

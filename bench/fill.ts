/**
 * Rows that were there before: each program's own table is filled by SQL with sends that were made over the last month,
 * so that a replay of any of them is answered as if it had gone through the program.
 */
import { bodySql, canonicalSql } from './message.ts'
import type { Server } from './postgres.ts'

export const floorTable = `CREATE TABLE sends (key text PRIMARY KEY, fingerprint bytea NOT NULL, status text NOT NULL,
  code integer, body text, created_at timestamptz NOT NULL DEFAULT now())`

/** At most so many rows a statement. */
const chunk = 100_000
const agoSql = `now() - interval '1 day' - ((1 - n / $3::float8) * interval '29 days')`

const floor = `INSERT INTO sends (key, fingerprint, status, code, body, created_at)
  SELECT k, sha256(convert_to(${bodySql('k')}, 'UTF8')), 'sent', 201,
    '{"sid":"SM' || lpad(n::text, 32, '0') || '","status":"queued"}', ${agoSql}
  FROM (SELECT n, $4::text || n AS k FROM generate_series($1::int, $2::int) n) made`

const gateway = `WITH made AS MATERIALIZED (
    SELECT n, $4::text || n AS k, uuidv7(${agoSql} - now()) AS id, uuidv7(${agoSql} - now()) AS attempt, ${agoSql} AS at
    FROM generate_series($1::int, $2::int) n),
  keys AS (
    INSERT INTO idempotency_keys (account_id, environment, key, message_id, fingerprint, fingerprint_version, first_seen_at)
    SELECT 'default', 'live', k, id, sha256(convert_to(${canonicalSql('k')}, 'UTF8')), 1, at FROM made),
  answered AS (
    INSERT INTO answers (message_id, status, content_type, location, body)
    SELECT id, 201, 'application/json; charset=utf-8', '/v1/messages/msg_' || replace(id::text, '-', ''),
      json_build_object('id', 'msg_' || replace(id::text, '-', ''), 'object', 'message', 'status', 'sent',
        'idempotencyKey', k, 'filler', repeat('x', 700))::text
    FROM made)
  INSERT INTO messages (id, account_id, environment, idempotency_key, request, fingerprint_version, metadata, channel,
    recipient, provider, created_at, updated_at, not_after, version, status, attempts, attempt_number, attempt_id, attempt_provider,
    attempt_started_at, lease_until, attempt_ended_at, outcome, evidence, provider_message_id, sent_at, answer_status)
  SELECT id, 'default', 'live', k, ${canonicalSql('k')}, 1, '{}', 'sms', '+44' || (7000000000 + n), 'blind', at, at,
    at + interval '1 day', 2, 'sent', 1, 1, attempt, 'blind', at, at + interval '15 seconds', at, 'accepted',
    '{"phase":"answered","httpStatus":201,"detail":"The provider accepted the message."}',
    'SM' || lpad(n::text, 32, '0'), at, 201
  FROM made`

/** Keys `${prefix}0` to `${prefix}${count - 1}`. */
export async function fillRows(
  server: Server,
  database: string,
  kind: 'floor' | 'gateway',
  prefix: string,
  count: number,
): Promise<void> {
  for (let from = 0; from < count; from += chunk) {
    const to = Math.min(from + chunk, count) - 1
    await server.query(database, kind === 'floor' ? floor : gateway, [from, to, count, prefix])
  }
  // A gateway that has run for a month has swept what it sent.
  if (kind === 'gateway')
    await server.query(
      database,
      `INSERT INTO sweeps (name, seen_until) VALUES ('leases', now()) ON CONFLICT (name) DO UPDATE SET seen_until = now()`,
    )
  await server.query(database, 'VACUUM ANALYZE')
}

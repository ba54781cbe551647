/**
 * What the guard against a second message, and the rule of a first contact, ask of the data base. The guard itself is judged
 * in the claim (claim-message.ts).
 */
import type { Scope } from '../core/idempotency.ts'
import { guardWindow } from '../core/key-policy.ts'
import type { Channel } from '../core/message-content.ts'
import type { Database, Statement } from './database.ts'

/** What neither failed nor was canceled counts: of anything else its sender was told to send again. */
export const counts = (status: string): string => `${status} NOT IN ('failed', 'canceled')`

/**
 * The first message of the content that counts, within a window. By the recipient, and by the time in the ids, with some
 * minutes for clocks: however much was ever sent there, no more is read than the window holds.
 * @param asked a row with account_id, environment and recipient
 */
export const alike = (asked: string, contentHash: string, windowS: string): string => `
  SELECT o.id FROM (
    SELECT * FROM messages x
    WHERE hashtextextended(x.recipient, 0) = hashtextextended(${asked}.recipient, 0) AND x.recipient = ${asked}.recipient
      AND x.id >= (lpad(to_hex(((extract(epoch FROM now()) - ${windowS} - 300) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
    OFFSET 0) o
  WHERE o.account_id = ${asked}.account_id AND o.environment = ${asked}.environment AND o.content_hash = ${contentHash}
    AND o.created_at > now() - ${windowS} * interval '1 second' AND ${counts('o.status')}
  ORDER BY o.id LIMIT 1`

const first: Statement = {
  name: 'first-of-content',
  text: `
    SELECT CASE WHEN COALESCE((SELECT ${counts('f.status')} FROM messages f WHERE f.id = g.message_id), true)
        THEN g.message_id ELSE (${alike('a', 'g.content_hash', '$4::float8')}) END AS "messageId"
    FROM (SELECT $1::text AS account_id, $2::text AS environment, $5::text AS recipient) a
      JOIN duplicate_guards g USING (account_id, environment)
    WHERE g.content_hash = decode($3, 'hex') AND g.seen_at > now() - $4::float8 * interval '1 second'`,
}

/** The first message of this content that counts, within the window; undefined: there is none. It may be erased by retention. */
export async function findFirstOfContent(
  database: Database,
  scope: Scope,
  to: string,
  contentHash: string,
  windowS: number,
): Promise<string | undefined> {
  const values = [scope.account, scope.environment, contentHash, windowS, to]
  const [row] = await database.run<{ messageId: string | null }>(first, values)
  return row?.messageId ?? undefined
}

// OFFSET 0: while little is known of the table, the planner would rather walk through all messages of the account.
const reached: Statement = {
  name: 'was-reached',
  text: `SELECT 1 FROM (
      SELECT account_id, environment, channel, status FROM messages
      WHERE hashtextextended(recipient, 0) = hashtextextended($4, 0) AND recipient = $4 OFFSET 0) m
    WHERE account_id = $1 AND environment = $2 AND channel = $3 AND status = 'sent' LIMIT 1`,
}

/** Was anything sent to this recipient, as far back as results are kept? */
export async function wasReached(database: Database, scope: Scope, channel: Channel, to: string): Promise<boolean> {
  return (await database.run(reached, [scope.account, scope.environment, channel, to])).length > 0
}

const erase: Statement = {
  name: 'erase-guards',
  text: `
    DELETE FROM duplicate_guards WHERE (account_id, environment, content_hash) IN (
      SELECT account_id, environment, content_hash FROM duplicate_guards
      WHERE first_at < now() - $2::float8 * interval '1 second' AND seen_at < now() - $2::float8 * interval '1 second'
      LIMIT $1 FOR UPDATE SKIP LOCKED)
    RETURNING message_id`,
}

/**
 * Rows that no window reaches any more: the key that comes next may look further back than the one that came by last.
 * @returns how many; less than `limit` means that none is left
 */
export async function eraseGuards(database: Database, limit: number): Promise<number> {
  return (await database.run(erase, [limit, guardWindow.maxS])).length
}

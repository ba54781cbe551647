/**
 * Retention: erases what became final long ago. The key stays, and with it the rule that it never sends again.
 *
 * R1. Only final messages are erased, by the time they became final; what is in flight or unknown stays.
 * R2. A bounded batch a statement: message, time line and due work go, and what is left stands in `erased_messages`,
 *     in one commit. A repeat that reads meanwhile finds either the answer or the remains.
 */
import type { Database, Statement } from './database.ts'

const erase: Statement = {
  name: 'erase-results',
  text: `
    WITH old AS (
      SELECT id FROM messages
      WHERE created_at < $1 AND status IN ('sent', 'failed', 'canceled') AND updated_at < $1
      ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED),
    gone AS (DELETE FROM messages WHERE id IN (SELECT id FROM old) RETURNING id, status),
    due AS (DELETE FROM due_work WHERE message_id IN (SELECT id FROM old)),
    answers AS (DELETE FROM answers WHERE message_id IN (SELECT id FROM old)),
    events AS (DELETE FROM events WHERE message_id IN (SELECT id FROM old))
    INSERT INTO erased_messages (message_id, status) SELECT id, status FROM gone RETURNING message_id`,
}

/** @returns how many were erased; less than `limit` means that nothing older is left */
export async function eraseResults(database: Database, finalBefore: Date, limit: number): Promise<number> {
  return (await database.run(erase, [finalBefore, limit])).length
}

/**
 * Which conversation a reply belongs to, by what was sent before it.
 *
 * F1. A message counts if its person may have got it: of this provider and environment, by an attempt that may have been
 *     accepted. One that waits, failed or was canceled has no answer.
 * F2. The message that is named wins over every other, then the newest. By our id it is found whomever it went to (a copy,
 *     somebody it was passed on to); by the provider's among those that went to the person, for no index knows that id.
 */
import type { Environment } from '../core/message-content.ts'
import type { Database, Statement } from './database.ts'

export interface ReplySearch {
  readonly provider: string
  readonly environment: Environment
  /** To which the message was sent: any of these. */
  readonly recipients: readonly string[]
  /** The message that the reply names, by our id (a UUID) or the provider's. */
  readonly messageId: string | null
  readonly providerMessageId: string | null
}

export interface FoundConversation {
  readonly account: string
  readonly conversation: string
}

const couldBeAnswered = `m.attempt_provider = $1 AND m.environment = $2 AND m.conversation IS NOT NULL
      AND m.status IN ('sending', 'unknown', 'sent')`

/**
 * Two look-ups by index: the primary key, and the hash of the recipient. That one is fenced off (OFFSET 0), for while the
 * table is small another index looks as good, and the plan is kept.
 */
const find: Statement = {
  name: 'find-conversation',
  text: `
    SELECT account, conversation FROM (
      SELECT m.account_id AS account, m.conversation, m.attempt_started_at, m.id, true AS named
      FROM messages m WHERE m.id = $4 AND ${couldBeAnswered}
      UNION ALL
      SELECT m.account_id, m.conversation, m.attempt_started_at, m.id, COALESCE(m.provider_message_id = $5, false)
      FROM unnest($3::text[]) AS r (recipient)
        CROSS JOIN LATERAL (
          SELECT * FROM messages x
          WHERE hashtextextended(x.recipient, 0) = hashtextextended(r.recipient, 0) AND x.recipient = r.recipient OFFSET 0) m
      WHERE ${couldBeAnswered}) found
    ORDER BY named DESC, attempt_started_at DESC, id DESC LIMIT 1`,
}

/** @returns undefined: nothing was sent that this could answer, or it names no conversation */
export async function findConversationOfReply(
  database: Database,
  { provider, environment, recipients, messageId, providerMessageId }: ReplySearch,
): Promise<FoundConversation | undefined> {
  type Row = { -readonly [name in keyof FoundConversation]: FoundConversation[name] }
  const [row] = await database.run<Row>(find, [provider, environment, recipients, messageId, providerMessageId])
  return row
}

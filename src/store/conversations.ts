/**
 * Conversations: their versions, and what the other side said. The version is moved by claims (claim-message.ts), by
 * messages that leave (save-message.ts) and here, by what comes in; always in the commit of what moves it.
 *
 * I1. An inbound message is inserted once: told by a service, under its event id within the conversation; told by a provider,
 *     under that provider's event id. It moves the version in the same statement; one that was there moves nothing.
 * I2. A version is read before the messages that are shown with it: it may be older than they are, never newer.
 */
import type { InboundMessage } from '../core/conversation-view.ts'
import type { Scope } from '../core/idempotency.ts'
import { lastUuid, type Database, type Statement } from './database.ts'

export interface Conversation {
  readonly version: number
  /** When it got its version; null: nothing was ever said in it. */
  readonly updatedAt: Date | null
}

const find: Statement = {
  name: 'conversation',
  text: `SELECT version, CASE WHEN version > 0 THEN updated_at END AS "updatedAt" FROM conversations
    WHERE account_id = $1 AND environment = $2 AND conversation = $3`,
}

export async function findConversation(database: Database, scope: Scope, name: string): Promise<Conversation> {
  const [row] = await database.run<{ version: number; updatedAt: Date | null }>(find, [
    scope.account,
    scope.environment,
    name,
  ])
  return row ?? { version: 0, updatedAt: null }
}

/** What the other side said, as it comes in. */
export interface Inbound extends Scope {
  readonly id: string
  readonly conversation: string
  /** `api`, or the provider whose webhook brought it. */
  readonly source: string
  readonly eventId: string
  readonly sender: string
  readonly text: string
  readonly occurredAt: Date | null
}

const fields = `i.id, i.source, i.event_id AS "eventId", i.sender, i.body AS text, i.occurred_at AS "occurredAt", i.received_at AS "receivedAt"`

const record: Statement = {
  name: 'record-inbound',
  text: `
    WITH kept AS (
      INSERT INTO inbound_messages AS i (id, account_id, environment, conversation, source, event_id, sender, body, occurred_at)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
      ON CONFLICT DO NOTHING RETURNING ${fields}),
    moved AS (
      INSERT INTO conversations AS c (account_id, environment, conversation, version, moved)
      SELECT $2, $3, $4, 1, 1 FROM kept
      ON CONFLICT (account_id, environment, conversation) DO UPDATE
        SET version = c.version + 1, moved = 1, based_on = NULL, updated_at = now()
      RETURNING version)
    SELECT kept.*, moved.version FROM kept CROSS JOIN moved`,
}

const findTold: Statement = {
  name: 'inbound-by-event',
  text: `SELECT ${fields} FROM inbound_messages i
    WHERE account_id = $1 AND environment = $2 AND conversation = $3 AND source = $4 AND event_id = $5`,
}

const findToldByProvider: Statement = {
  name: 'inbound-by-provider-event',
  text: `SELECT ${fields} FROM inbound_messages i
    WHERE environment = $1 AND source = $2 AND event_id = $3 AND source <> 'api'`,
}

export interface RecordedInbound {
  readonly inbound: InboundMessage
  readonly version: number
  /** False: it was told before. */
  readonly isNew: boolean
}

export async function recordInbound(database: Database, told: Inbound): Promise<RecordedInbound> {
  const { id, account, environment, conversation, source, eventId, sender, text, occurredAt } = told
  const place = [account, environment, conversation, source, eventId]
  const [kept] = await database.run<InboundMessage & { version: number }>(record, [
    id,
    ...place,
    sender,
    text,
    occurredAt,
  ])
  if (kept !== undefined) {
    const { version, ...inbound } = kept
    return { inbound, version, isNew: true }
  }
  // A second statement: one that was committed meanwhile is not seen by the first.
  const [before] = await (source === 'api'
    ? database.run<InboundMessage>(findTold, place)
    : database.run<InboundMessage>(findToldByProvider, [environment, source, eventId]))
  if (before === undefined) throw new Error('an inbound message is kept for good, and is not there')
  const { version } = await findConversation(database, told, conversation)
  return { inbound: before, version, isNew: false }
}

const list: Statement = {
  name: 'inbound-of-conversation',
  text: `SELECT ${fields} FROM inbound_messages i
    WHERE account_id = $1 AND environment = $2 AND conversation = $3 AND id < COALESCE($4::uuid, '${lastUuid}')
    ORDER BY id DESC LIMIT $5`,
}

/** Newest first. @param before the id that the page before ended with */
export async function listInbound(
  database: Database,
  scope: Scope,
  conversation: string,
  limit: number,
  before: string | null,
): Promise<InboundMessage[]> {
  return database.run<InboundMessage>(list, [scope.account, scope.environment, conversation, before, limit])
}

const erase: Statement = {
  name: 'erase-inbound',
  text: `
    UPDATE inbound_messages SET sender = NULL, body = NULL WHERE id IN (
      SELECT id FROM inbound_messages WHERE received_at < $1 AND body IS NOT NULL
      ORDER BY received_at LIMIT $2 FOR UPDATE SKIP LOCKED)
    RETURNING id`,
}

/** What was said is erased; the event id stays. @returns how many; less than `limit` means that nothing older is left */
export async function eraseInbound(database: Database, receivedBefore: Date, limit: number): Promise<number> {
  return (await database.run(erase, [receivedBefore, limit])).length
}

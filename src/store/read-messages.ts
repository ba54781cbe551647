/**
 * Reads of messages and keys: by key (what a repeat finds), by id, in lists, and the time line. Every read of a tenant's
 * data names account and environment.
 */
import type { Fingerprint } from '../core/fingerprint.ts'
import type { Scope } from '../core/idempotency.ts'
import type { Channel } from '../core/message-content.ts'
import type { Message, ShownMessage, Status, StoredAnswer } from '../core/message.ts'
import type { TimelineEntry } from '../core/events.ts'
import { lastUuid, type Database, type Statement } from './database.ts'
import { findWaitingIdsOf, isWaiting } from './due-work.ts'
import { grouped } from './grouped.ts'
import {
  joinAnswer,
  messageFromRow,
  selectAnswer,
  selectMessage,
  shownFromRow,
  type MessageRow,
  type MessageRowWithAnswer,
} from './message-rows.ts'

/** What stands behind a key. */
export type FoundKey = { readonly key: string; readonly firstSeenAt: Date } & (
  | { readonly kind: 'message'; readonly fingerprint: Fingerprint; readonly message: Message }
  | {
      readonly kind: 'erased'
      readonly fingerprint: Fingerprint
      readonly messageId: string
      readonly lastStatus: Status
    }
  | { readonly kind: 'void' }
)

interface KeyRow extends Partial<MessageRowWithAnswer> {
  asker: number
  key: string
  firstSeenAt: Date
  keyMessageId: string | null
  fingerprint: Buffer
  keyFingerprintVersion: number
  erasedStatus: Status | null
}

const byKey: Statement = {
  name: 'message-by-key',
  text: `
    SELECT a.asker, k.key, k.first_seen_at AS "firstSeenAt", k.message_id AS "keyMessageId", k.fingerprint,
      k.fingerprint_version AS "keyFingerprintVersion", x.status AS "erasedStatus", ${selectMessage}, ${selectAnswer}
    FROM json_to_recordset($1::json) AS a (asker integer, account_id text, environment text, key text)
      JOIN idempotency_keys k USING (account_id, environment, key)
      LEFT JOIN messages m ON m.id = k.message_id
      ${joinAnswer}
      LEFT JOIN erased_messages x ON m.id IS NULL AND x.message_id = k.message_id`,
}

interface KeyQuestion {
  readonly scope: Scope
  readonly keys: readonly string[]
}

/** The returned function gives the first of the keys, in their order, that was ever seen. */
export function keyFinder(database: Database): (question: KeyQuestion) => Promise<FoundKey | undefined> {
  return grouped(async (questions) => {
    const asked = questions.flatMap(({ scope, keys }, asker) =>
      keys.map((key) => ({ asker, account_id: scope.account, environment: scope.environment, key })),
    )
    const rows = await database.run<KeyRow>(byKey, [JSON.stringify(asked)])
    const answers = Map.groupBy(rows, ({ asker }) => asker)
    return questions.map(({ keys }, asker) => {
      const found = answers.get(asker) ?? []
      const row = keys.flatMap((key) => found.filter((candidate) => candidate.key === key))[0]
      return row === undefined ? undefined : foundKey(row)
    })
  }, database.soon)
}

function foundKey(row: KeyRow): FoundKey {
  const { key, firstSeenAt, keyMessageId } = row
  if (keyMessageId === null) return { kind: 'void', key, firstSeenAt }
  const fingerprint = { version: row.keyFingerprintVersion, hash: row.fingerprint }
  if (typeof row.id === 'string')
    return { kind: 'message', key, firstSeenAt, fingerprint, message: messageFromRow(row as MessageRowWithAnswer) }
  if (row.erasedStatus === null) throw new Error(`key of message ${keyMessageId} has neither a message nor its remains`)
  return { kind: 'erased', key, firstSeenAt, fingerprint, messageId: keyMessageId, lastStatus: row.erasedStatus }
}

const answerByKey: Statement = {
  name: 'answer-by-key',
  text: `
    SELECT a.asker, k.fingerprint, k.fingerprint_version AS version, w.status, w.content_type AS "contentType", w.location, w.body
    FROM json_to_recordset($1::json) AS a (asker integer, account_id text, environment text, key text)
      JOIN idempotency_keys k USING (account_id, environment, key)
      JOIN answers w ON w.message_id = k.message_id`,
}

export interface FoundAnswer {
  readonly fingerprint: Fingerprint
  readonly answer: StoredAnswer
}

/** The returned function gives the stored answer of a key whose message is final. */
export function answerFinder(
  database: Database,
): (question: { scope: Scope; key: string }) => Promise<FoundAnswer | undefined> {
  return grouped(async (questions) => {
    const asked = questions.map(({ scope, key }, asker) => ({
      asker,
      account_id: scope.account,
      environment: scope.environment,
      key,
    }))
    const found: (FoundAnswer | undefined)[] = questions.map(() => undefined)
    type Row = StoredAnswer & { asker: number; fingerprint: Buffer; version: number }
    for (const { asker, fingerprint: hash, version, status, contentType, location, body } of await database.run<Row>(
      answerByKey,
      [JSON.stringify(asked)],
    ))
      found[asker] = { fingerprint: { version, hash }, answer: { status, contentType, location, body } }
    return found
  }, database.soon)
}

const byIds: Statement = {
  name: 'messages-by-ids',
  text: `SELECT ${selectMessage}, ${selectAnswer} FROM messages m ${joinAnswer} WHERE m.id = ANY ($1)`,
}

/** For workers and waiters, whatever the account. */
export async function findMessages(database: Database, ids: readonly string[]): Promise<Message[]> {
  return (await database.run<MessageRowWithAnswer>(byIds, [ids])).map(messageFromRow)
}

const versionsByIds: Statement = {
  name: 'versions-by-ids',
  text: 'SELECT id, version FROM messages WHERE id = ANY ($1)',
}

/** The versions alone: what waiters ask often. */
export async function findVersions(database: Database, ids: readonly string[]): Promise<Map<string, number>> {
  const rows = await database.run<{ id: string; version: number }>(versionsByIds, [ids])
  return new Map(rows.map(({ id, version }) => [id, version]))
}

const byScopedId: Statement = {
  name: 'message-by-id',
  text: `SELECT ${selectMessage}, ${selectAnswer} FROM messages m ${joinAnswer}
    WHERE m.id = $1 AND m.account_id = $2 AND m.environment = $3`,
}

export async function findMessage(database: Database, scope: Scope, id: string): Promise<Message | undefined> {
  const [row] = await database.run<MessageRowWithAnswer>(byScopedId, [id, scope.account, scope.environment])
  return row === undefined ? undefined : messageFromRow(row)
}

const byIntent: Statement = {
  name: 'message-by-intent',
  text: `SELECT ${selectMessage} FROM messages m WHERE m.account_id = $1 AND m.environment = $2 AND m.intent_guard = $3`,
}

export async function findByIntent(
  database: Database,
  scope: Scope,
  intent: string,
): Promise<ShownMessage | undefined> {
  const [row] = await database.run<MessageRow>(byIntent, [scope.account, scope.environment, intent])
  return row === undefined ? undefined : shownFromRow(row)
}

/** What a list may be narrowed to; absent: everything. */
export interface MessageFilter {
  readonly conversation?: string
  readonly status?: Status
  readonly channel?: Channel
  readonly to?: string
  readonly reference?: string
  readonly intent?: string
  readonly provider?: string
  readonly createdAfter?: Date
  readonly createdBefore?: Date
}

/** Among so many of the newest that wait, or that went to one recipient, what else is asked for is looked for. */
const maxAmong = 10_000

const toRecipient: Statement = {
  name: 'ids-by-recipient',
  // OFFSET 0: while little is known of the table, the planner would rather walk through all messages of the account.
  text: `SELECT id FROM (
      SELECT id, account_id, environment FROM messages
      WHERE hashtextextended(recipient, 0) = hashtextextended($3, 0) AND recipient = $3 AND id < COALESCE($4::uuid, '${lastUuid}')
      ORDER BY id DESC OFFSET 0) m
    WHERE account_id = $1 AND environment = $2 ORDER BY id DESC LIMIT $5`,
}

/** The ids among which a list is to be found; undefined: all of the account. */
async function amongIds(
  database: Database,
  scope: Scope,
  { status, to }: MessageFilter,
  before: string | null,
): Promise<string[] | undefined> {
  const waiting = isWaiting(status) ? await findWaitingIdsOf(database, scope, status, maxAmong, before) : undefined
  if (to === undefined) return waiting
  const values = [scope.account, scope.environment, to, before, maxAmong]
  const ids = (await database.run<{ id: string }>(toRecipient, values)).map(({ id }) => id)
  if (waiting === undefined) return ids
  const isWaitingId = new Set(waiting)
  return ids.filter((id) => isWaitingId.has(id))
}

/** Newest first. @param before the id that the page before ended with */
export async function listMessages(
  database: Database,
  scope: Scope,
  filter: MessageFilter,
  limit: number,
  before: string | null,
): Promise<ShownMessage[]> {
  const { to, createdAfter, createdBefore, ...equal } = filter
  const created = {
    ...(createdAfter === undefined ? {} : { gt: createdAfter }),
    ...(createdBefore === undefined ? {} : { lt: createdBefore }),
  }
  const among = await amongIds(database, scope, filter, before)
  const rows = await database.cold(async (prisma) =>
    prisma.message.findMany({
      where: {
        accountId: scope.account,
        environment: scope.environment,
        ...equal,
        ...(to === undefined ? {} : { recipient: to }),
        ...(Object.keys(created).length === 0 ? {} : { createdAt: created }),
        id: { ...(before === null ? {} : { lt: before }), ...(among === undefined ? {} : { in: among }) },
      },
      orderBy: { id: 'desc' },
      take: limit,
    }),
  )
  return rows.map(shownFromRow)
}

/** What the row does not hold of the time line, oldest first. */
export async function findEvents(database: Database, messageId: string): Promise<(TimelineEntry & { id: string })[]> {
  const rows = await database.cold(async (prisma) =>
    prisma.event.findMany({ where: { messageId }, orderBy: { id: 'asc' } }),
  )
  return rows.map(({ id, type, at, attemptId, data }) => ({
    id,
    type: type as TimelineEntry['type'],
    at,
    attemptId,
    data: JSON.parse(data) as TimelineEntry['data'],
  }))
}

/** What the statements of src/store do to conversations and guards: the parts of claims and changes, and what comes in. */
import type { InboundMessage } from '../../src/core/conversation-view.ts'
import type { MessageRow } from '../../src/store/message-rows.ts'
import { databaseError, keyOf, type GuardRow, type Tables } from './tables.ts'
import { text, textOrNull, type Execution, type Json } from './execution.ts'

const versionOf = (tables: Tables, place: string): number => tables.conversations.get(place)?.version ?? 0
export const setVersion = (tables: Tables, place: string, version: number, nowMs: number): void =>
  void tables.conversations.set(place, { version, updatedAt: new Date(nowMs) })

export const placeOf = (asked: Json): string =>
  keyOf(String(asked['account_id']), String(asked['environment']), String(asked['conversation']))

/** `talked` and `moved`: each conversation once, with what it was found at. @throws the CHECK of its version */
export function talk(tables: Tables, won: readonly Json[]): Map<string, { found: number; version: number }> {
  const talked = Map.groupBy(
    won.filter(({ conversation }) => typeof conversation === 'string'),
    placeOf,
  )
  return new Map(
    [...talked].map(([place, claims]) => {
      const found = versionOf(tables, place)
      const expected = claims.flatMap(({ if_version: version }) => (typeof version === 'number' ? [version] : []))
      if (expected.length > 0 && Math.max(...expected) !== found)
        throw databaseError('23514', 'conversation_has_not_moved')
      return [place, { found, version: found + claims.reduce((sum, { moves }) => sum + Number(moves), 0) }]
    }),
  )
}

export interface Seconds {
  readonly rows: Map<string, GuardRow>
  /** The first message of the same content; null: it is the first itself. */
  readonly firstOf: (asked: Json) => string | null
}

const isOver = ({ status }: MessageRow): boolean => status === 'failed' || status === 'canceled'

/** The first message of a content that counts, within a window. @param name of the guard's row */
export function firstAlike(
  tables: Tables,
  name: string,
  recipient: string,
  windowS: number,
  nowMs: number,
): string | null {
  const row = tables.guards.get(name)
  const since = nowMs - windowS * 1_000
  if (row === undefined || row.seenAtMs <= since) return null
  const first = tables.messages.get(row.messageId)
  if (first === undefined || !isOver(first)) return row.messageId
  const later = [...tables.messages.values()].filter(
    (each) =>
      each.recipient === recipient &&
      each.createdAt.getTime() > since &&
      !isOver(each) &&
      tables.contents.get(each.id) === name,
  )
  return later.map(({ id }) => id).toSorted()[0] ?? null
}

/** The name of a guard's row. */
export const guardOf = (account: unknown, environment: unknown, hash: unknown): string =>
  `${keyOf(String(account), String(environment), 'null')} ${String(hash)}`

/** `guarded`: each content once. @throws the CHECK that refuses a second one */
export function guardAll(tables: Tables, won: readonly Json[], nowMs: number): Seconds {
  const nameOf = (asked: Json): string => guardOf(asked['account_id'], asked['environment'], asked['content_hash'])
  const rows = new Map<string, GuardRow>()
  const byAge = won.toSorted((a, b) => (String(a['id']) < String(b['id']) ? -1 : 1))
  for (const asked of byAge.filter(({ content_hash: hash }) => typeof hash === 'string')) {
    const name = nameOf(asked)
    if (rows.has(name)) continue
    const windowS = Number(asked['window_s'])
    const first = firstAlike(tables, name, String(asked['recipient']), windowS, nowMs)
    if (first !== null && asked['refuses'] === true) throw databaseError('23514', 'duplicate_is_not_refused')
    rows.set(name, { messageId: first ?? text(asked['id']), seenAtMs: nowMs, windowS })
  }
  return {
    rows,
    firstOf: (asked) => {
      const known = textOrNull(asked['known_duplicate'])
      const first = rows.get(nameOf(asked))?.messageId
      return known ?? (first === undefined || first === asked['id'] ? null : first)
    },
  }
}

/** @throws the CHECK of its version: then nothing is saved at all, for such a change goes alone */
export function leave(
  tables: Tables,
  { accountId, environment, conversation, conversationVersion }: MessageRow,
  nowMs: number,
): void {
  const place = keyOf(accountId, environment, String(conversation))
  const found = versionOf(tables, place)
  if (conversationVersion !== null && conversationVersion !== found)
    throw databaseError('23514', 'conversation_has_not_moved')
  setVersion(tables, place, found + 1, nowMs)
}

export function recordInbound({ tables, nowMs, received }: Execution, values: readonly unknown[]) {
  const [id, account, environment, conversation, source, eventId, sender, said, occurredAt] = values
  const place = keyOf(String(account), String(environment), String(conversation))
  const before = tables.inbound.get(place) ?? []
  if (before.some((each) => each.source === source && each.eventId === eventId)) return []
  const kept: InboundMessage = {
    id: String(id),
    source: String(source),
    eventId: String(eventId),
    sender: String(sender),
    text: String(said),
    occurredAt: occurredAt as Date | null,
    receivedAt: new Date(nowMs),
  }
  const version = versionOf(tables, place) + 1
  tables.inbound.set(place, [...before, kept])
  setVersion(tables, place, version, nowMs)
  received(place, kept)
  return [{ ...kept, version }]
}

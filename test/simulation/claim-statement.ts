/** What the claim does to the tables (src/store/claim-message.ts): all of it at one instant, or nothing. */
import type { MessageRow } from '../../src/store/message-rows.ts'
import { dateOrNull, numberOrNull, rowsOf, text, textOrNull, type Execution, type Json } from './execution.ts'
import { guardAll, guardOf, placeOf, setVersion, talk, type Seconds } from './conversation-statements.ts'
import { checkRow, databaseError, keyOf, type KeyRow } from './tables.ts'

function keyRow(asked: Json, key: unknown, nowMs: number): KeyRow {
  return {
    account: text(asked['account_id']),
    environment: text(asked['environment']),
    key: text(key),
    messageId: text(asked['id']),
    fingerprint: Buffer.from(text(asked['fingerprint']), 'hex'),
    fingerprintVersion: Number(asked['fingerprint_version']),
    firstSeenAt: new Date(nowMs),
  }
}

const idOf = ({ account, environment, key }: KeyRow): string => keyOf(account, environment, key)

export function claim({ tables, nowMs, changed }: Execution, [json]: readonly unknown[]) {
  const keys = new Map<string, KeyRow>()
  const isTaken = (id: string): boolean => tables.keys.has(id) || keys.has(id)
  const won = rowsOf(json).filter((asked) => {
    const row = keyRow(asked, asked['idempotency_key'], nowMs)
    if (isTaken(idOf(row))) return false
    keys.set(idOf(row), row)
    return true
  })
  const moved = talk(tables, won)
  const seconds = guardAll(tables, won, nowMs)
  const messages = won.map((asked) => claimedRow(asked, nowMs, moved, seconds))
  const guarded = [...tables.messages.values()]
  for (const row of messages) {
    checkRow(row)
    if (tables.messages.has(row.id)) throw databaseError('23505', 'messages_pkey')
    if (row.intentGuard !== null && guarded.some((other) => isSameIntent(row, other)))
      throw databaseError('23505', 'messages_one_per_intent')
    guarded.push(row)
  }
  for (const asked of won.filter(({ second_key: second }) => typeof second === 'string')) {
    const row = keyRow(asked, asked['second_key'], nowMs)
    if (isTaken(idOf(row))) throw databaseError('23505', 'idempotency_keys_pkey')
    keys.set(idOf(row), row)
  }
  for (const [id, row] of keys) tables.keys.set(id, row)
  for (const [place, { found, version }] of moved)
    if (version > found || !tables.conversations.has(place)) setVersion(tables, place, version, nowMs)
  for (const [id, row] of seconds.rows) tables.guards.set(id, row)
  for (const row of messages) {
    tables.messages.set(row.id, row)
    const asked = won.find(({ id }) => id === row.id)
    if (typeof asked?.['content_hash'] === 'string')
      tables.contents.set(row.id, guardOf(row.accountId, row.environment, asked['content_hash']))
    if (row.status === 'held') tables.dueWork.set(row.id, { task: 'held', dueAtMs: row.notAfter.getTime() })
    if (row.status === 'queued' || row.status === 'scheduled')
      tables.dueWork.set(row.id, { task: 'dispatch', dueAtMs: row.sendAt?.getTime() ?? nowMs })
    changed(null, row)
  }
  return messages.map(({ id, createdAt, conversationVersion, possibleDuplicateOf }) => ({
    id,
    createdAt,
    conversationVersion,
    possibleDuplicateOf,
  }))
}

const isSameIntent = (a: MessageRow, b: MessageRow): boolean =>
  a.intentGuard === b.intentGuard && a.accountId === b.accountId && a.environment === b.environment

function claimedRow(
  asked: Json,
  nowMs: number,
  moved: ReadonlyMap<string, { found: number }>,
  { firstOf }: Seconds,
): MessageRow {
  const now = new Date(nowMs)
  const leaseMs = numberOrNull(asked['lease_ms'])
  const begins = asked['attempt_id'] !== null
  return {
    id: text(asked['id']),
    accountId: text(asked['account_id']),
    environment: text(asked['environment']),
    idempotencyKey: text(asked['idempotency_key']),
    request: text(asked['request']),
    fingerprintVersion: Number(asked['fingerprint_version']),
    metadata: text(asked['metadata']),
    channel: text(asked['channel']),
    recipient: text(asked['recipient']),
    conversation: textOrNull(asked['conversation']),
    reference: textOrNull(asked['reference']),
    intent: textOrNull(asked['intent']),
    intentGuard: textOrNull(asked['intent']),
    provider: text(asked['provider']),
    traceparent: textOrNull(asked['traceparent']),
    createdAt: now,
    updatedAt: now,
    sendAt: dateOrNull(asked['send_at']),
    notAfter: new Date(text(asked['not_after'])),
    version: 1,
    status: text(asked['status']),
    failedReason: null,
    attempts: begins ? 1 : 0,
    attemptId: textOrNull(asked['attempt_id']),
    attemptProvider: begins ? text(asked['provider']) : null,
    attemptStartedAt: begins ? now : null,
    leaseUntil: leaseMs === null ? null : new Date(nowMs + leaseMs),
    attemptEndedAt: null,
    outcome: null,
    evidence: null,
    dueAt: asked['status'] === 'queued' ? now : null,
    providerMessageId: null,
    sentAt: null,
    resolution: null,
    answerStatus: null,
    attemptNumber: begins ? 1 : null,
    attemptIdentity: textOrNull(asked['attempt_identity']),
    openAttempts: null,
    plan: null,
    rendered: textOrNull(asked['rendered']),
    delivery: null,
    proof: null,
    apiKeyId: textOrNull(asked['api_key_id']),
    heldFor: textOrNull(asked['held_for']),
    decision: null,
    canceledReason: null,
    conversationVersion:
      asked['rechecks'] === true || asked['if_version'] !== null ? (moved.get(placeOf(asked))?.found ?? null) : null,
    possibleDuplicateOf: firstOf(asked),
    allowedProviders: textOrNull(asked['allowed_providers']),
  }
}

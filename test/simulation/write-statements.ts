/** What the statements of src/store that write do to the tables; each whole, at one instant, or not at all. */
import type { MessageRow } from '../../src/store/message-rows.ts'
import { checkRow, databaseError, keyOf, type EventRow, type KeyRow, type Tables } from './tables.ts'

type Json = Readonly<Record<string, unknown>>

export interface Execution {
  readonly tables: Tables
  readonly nowMs: number
  /** Told of every row that is written, before and after; both are the committed rows. */
  readonly changed: (before: MessageRow | null, after: MessageRow | null) => void
}

const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null)
const dateOrNull = (value: unknown): Date | null => (typeof value === 'string' ? new Date(value) : null)
const numberOrNull = (value: unknown): number | null => (typeof value === 'number' ? value : null)
const text = (value: unknown): string => {
  if (typeof value !== 'string') throw databaseError('23502', 'not null')
  return value
}

/** As `json_to_recordset` reads them: a member that is absent is NULL. */
export const rowsOf = (json: unknown): readonly Json[] =>
  (JSON.parse(String(json)) as Json[]).map((row) => new Proxy(row, { get: (of, name) => of[String(name)] ?? null }))

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
  const messages = won.map((asked) => claimedRow(asked, nowMs))
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
  for (const row of messages) {
    tables.messages.set(row.id, row)
    if (row.status === 'queued' || row.status === 'scheduled')
      tables.dueWork.set(row.id, { task: 'dispatch', dueAtMs: row.sendAt?.getTime() ?? nowMs })
    changed(null, row)
  }
  return messages.map(({ id, createdAt }) => ({ id, createdAt }))
}

const isSameIntent = (a: MessageRow, b: MessageRow): boolean =>
  a.intentGuard === b.intentGuard && a.accountId === b.accountId && a.environment === b.environment

function claimedRow(asked: Json, nowMs: number): MessageRow {
  const now = new Date(nowMs)
  const leaseMs = numberOrNull(asked['lease_ms'])
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
    version: Number(asked['version']),
    status: text(asked['status']),
    failedReason: null,
    attempts: Number(asked['attempts']),
    attemptId: textOrNull(asked['attempt_id']),
    attemptProvider: textOrNull(asked['attempt_provider']),
    attemptStartedAt: asked['attempt_id'] === null ? null : now,
    leaseUntil: leaseMs === null ? null : new Date(nowMs + leaseMs),
    attemptEndedAt: null,
    outcome: null,
    evidence: null,
    dueAt: asked['status'] === 'queued' ? now : null,
    providerMessageId: null,
    sentAt: null,
    resolution: null,
    answerStatus: null,
    attemptNumber: numberOrNull(asked['attempt_number']),
    attemptIdentity: textOrNull(asked['attempt_identity']),
    openAttempts: null,
    plan: null,
    rendered: textOrNull(asked['rendered']),
  }
}

export function save({ tables, nowMs, changed }: Execution, [json]: readonly unknown[]) {
  const changes = rowsOf(json).flatMap((change) => {
    const before = tables.messages.get(text(change['id']))
    if (before === undefined || before.version !== change['before']) return []
    const after = savedRow(before, change, nowMs)
    checkRow(after)
    return [{ change, before, after }]
  })
  for (const { change, before, after } of changes) {
    const { id } = after
    tables.messages.set(id, after)
    saveDueWork(tables, id, change, after, nowMs)
    if (after.answerStatus !== null)
      tables.answers.set(id, {
        answerContentType: text(change['answer_content_type']),
        answerLocation: textOrNull(change['answer_location']),
        answerBody: text(change['answer_body']),
      })
    insertEvents(tables, id, (change['events'] ?? []) as readonly Json[])
    changed(before, after)
  }
  return changes.map(({ after: { id } }) => ({ id }))
}

function saveDueWork(tables: Tables, id: string, change: Json, after: MessageRow, nowMs: number): void {
  const { due, dispatch_at: at, lease_ms: leaseMs } = change
  if (due === 'clear') tables.dueWork.delete(id)
  else if (typeof due === 'string') {
    const leaseEnd = typeof leaseMs === 'number' ? nowMs + leaseMs : after.leaseUntil?.getTime()
    const dueAtMs = at === 'infinity' ? Infinity : typeof at === 'string' ? Date.parse(at) : leaseEnd
    if (dueAtMs === undefined) throw databaseError('23502', 'due_at')
    tables.dueWork.set(id, { task: due, dueAtMs })
  }
}

function savedRow(before: MessageRow, change: Json, nowMs: number): MessageRow {
  const leaseMs = numberOrNull(change['lease_ms'])
  return {
    ...before,
    version: before.version + 1,
    provider: text(change['provider']),
    status: text(change['status']),
    failedReason: textOrNull(change['failed_reason']),
    attempts: Number(change['attempts']),
    attemptId: textOrNull(change['attempt_id']),
    attemptProvider: textOrNull(change['attempt_provider']),
    attemptStartedAt: dateOrNull(change['attempt_started_at']),
    attemptEndedAt: dateOrNull(change['attempt_ended_at']),
    outcome: textOrNull(change['outcome']),
    evidence: textOrNull(change['evidence']),
    dueAt: dateOrNull(change['due_at']),
    providerMessageId: textOrNull(change['provider_message_id']),
    sentAt: dateOrNull(change['sent_at']),
    resolution: textOrNull(change['resolution']),
    answerStatus: numberOrNull(change['answer_status']),
    attemptNumber: numberOrNull(change['attempt_number']),
    attemptIdentity: textOrNull(change['attempt_identity']),
    openAttempts: textOrNull(change['open_attempts']),
    plan: textOrNull(change['plan']),
    rendered: textOrNull(change['rendered']),
    updatedAt: new Date(text(change['updated_at'])),
    intentGuard: change['guards_intent'] === true ? before.intentGuard : null,
    leaseUntil: leaseMs === null ? before.leaseUntil : new Date(nowMs + leaseMs),
  }
}

export function insertEvents(tables: Tables, messageId: string, events: readonly Json[]): void {
  const made = events.map((event): EventRow => ({
    id: text(event['id']),
    type: text(event['type']),
    at: new Date(text(event['at'])),
    attemptId: textOrNull(event['attempt_id']),
    data: text(event['data']),
  }))
  if (made.length > 0) tables.events.set(messageId, [...(tables.events.get(messageId) ?? []), ...made])
}

export function insertName({ tables }: Execution, values: readonly unknown[]) {
  const [account, environment, name, known] = values.map(String) as [string, string, string, string]
  const row = tables.keys.get(keyOf(account, environment, known))
  const id = keyOf(account, environment, name)
  if (row === undefined || row.messageId === null || tables.keys.has(id)) return []
  tables.keys.set(id, { ...row, key: name })
  return [{ key: name }]
}

export function insertTombstone({ tables, nowMs }: Execution, values: readonly unknown[]) {
  const [account, environment, key] = values.map(String) as [string, string, string]
  const id = keyOf(account, environment, key)
  if (tables.keys.has(id)) return []
  const none = { messageId: null, fingerprint: null, fingerprintVersion: null }
  tables.keys.set(id, { account, environment, key, ...none, firstSeenAt: new Date(nowMs) })
  return [{ key }]
}

export function eraseResults({ tables, changed }: Execution, [before, limit]: readonly unknown[]) {
  const old = [...tables.messages.values()]
    .filter(({ status }) => status === 'sent' || status === 'failed' || status === 'canceled')
    .filter(({ createdAt, updatedAt }) => createdAt < (before as Date) && updatedAt < (before as Date))
    .toSorted((a, b) => a.createdAt.getTime() - b.createdAt.getTime())
    .slice(0, Number(limit))
  for (const row of old) {
    const { id, status } = row
    for (const table of [tables.messages, tables.dueWork, tables.answers, tables.events]) table.delete(id)
    tables.erased.set(id, status)
    changed(row, null)
  }
  return old.map(({ id }) => ({ message_id: id }))
}

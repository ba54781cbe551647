/** What the statements of src/store that write do to the tables; each whole, at one instant, or not at all. */
import type { MessageRow } from '../../src/store/message-rows.ts'
import { leave } from './conversation-statements.ts'
import { dateOrNull, numberOrNull, rowsOf, text, textOrNull, type Execution, type Json } from './execution.ts'
import { checkRow, databaseError, keyOf, type EventRow, type Tables } from './tables.ts'

export function save({ tables, nowMs, changed }: Execution, [json]: readonly unknown[]) {
  const changes = rowsOf(json).flatMap((change) => {
    const before = tables.messages.get(text(change['id']))
    if (before === undefined || before.version !== change['before']) return []
    const after = savedRow(before, change, nowMs)
    checkRow(after)
    return [{ change, before, after }]
  })
  for (const { change, after } of changes) if (change['leaves'] === true) leave(tables, after, nowMs)
  for (const { change, before, after } of changes) {
    const { id } = after
    tables.messages.set(id, after)
    saveDueWork(tables, id, change, after, nowMs)
    if (typeof change['answer_body'] === 'string')
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

/** The same of an ordinary change, which tells no more than what it changes. */
export function saveFirst(execution: Execution, [json]: readonly unknown[]) {
  const whole = rowsOf(json).flatMap((change) => {
    const row = execution.tables.messages.get(text(change['id']))
    return row === undefined ? [] : [wholeChange(row, change)]
  })
  return save(execution, [JSON.stringify(whole)])
}

const wholeChange = (row: MessageRow, change: Json) => ({
  id: row.id,
  before: change['before'],
  provider: row.provider,
  status: change['status'],
  failed_reason: change['failed_reason'],
  attempts: row.attempts,
  attempt_id: row.attemptId,
  attempt_provider: row.attemptProvider,
  attempt_started_at: row.attemptStartedAt,
  attempt_ended_at: change['at'],
  outcome: change['outcome'],
  evidence: change['evidence'],
  provider_message_id: change['provider_message_id'],
  sent_at: change['status'] === 'sent' ? change['at'] : null,
  resolution: row.resolution,
  answer_status: change['answer_status'],
  attempt_number: row.attemptNumber,
  attempt_identity: row.attemptIdentity,
  open_attempts: row.openAttempts,
  plan: row.plan,
  delivery: row.delivery,
  proof: row.proof,
  decision: row.decision,
  canceled_reason: row.canceledReason,
  updated_at: change['at'],
  guards_intent: change['status'] === 'sent',
  answer_content_type: change['answer_content_type'],
  answer_location: change['answer_location'],
  answer_body: change['answer_body'],
})

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
    delivery: textOrNull(change['delivery']),
    proof: textOrNull(change['proof']),
    decision: textOrNull(change['decision']),
    canceledReason: textOrNull(change['canceled_reason']),
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
  const known = tables.events.get(messageId) ?? []
  const fresh = made.filter(({ id }) => known.every((event) => event.id !== id))
  if (fresh.length > 0) tables.events.set(messageId, [...known, ...fresh])
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

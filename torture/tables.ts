/** The tables, read straight from the server: what the gateways made of every key. */
import { idFromUuid } from '../src/core/ids.ts'
import type { Postgres } from './postgres.ts'

export interface MessageRow {
  readonly uuid: string
  /** As the sandbox and the callers know it. */
  readonly id: string
  readonly key: string
  readonly status: string
  readonly provider: string
  readonly attempts: number
  readonly hasPlan: boolean
  readonly reason: string | null
  readonly resolvedBy: string | null
  readonly leaseUntil: Date | null
  readonly notAfter: Date
  /** Status, Content-Type, Location and body of the stored answer. */
  readonly answer: string | null
  /** When each of its attempts began. */
  readonly begun: readonly number[]
  readonly events: readonly EventRow[]
}

export interface EventRow {
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
}

export interface Tables {
  readonly now: Date
  readonly messages: readonly MessageRow[]
  /** By key: the message's UUID, or null for a tombstone. */
  readonly keys: ReadonlyMap<string, string | null>
  readonly due: readonly { readonly uuid: string; readonly task: string; readonly at: Date | null }[]
}

interface Selected {
  readonly id: string
  readonly idempotency_key: string
  readonly status: string
  readonly provider: string
  readonly attempts: number
  readonly attempt_started_at: Date | null
  readonly plan: string | null
  readonly evidence: string | null
  readonly resolution: string | null
  readonly lease_until: Date | null
  readonly not_after: Date
  readonly answer_status: number | null
  readonly content_type: string | null
  readonly location: string | null
  readonly body: string | null
}

export async function readTables(postgres: Postgres): Promise<Tables> {
  const [time] = await postgres.query<{ now: Date }>('SELECT now() AS now')
  const selected = await postgres.query<Selected>(
    `SELECT m.*, a.status AS answer_status, a.content_type, a.location, a.body
     FROM messages m LEFT JOIN answers a ON a.message_id = m.id ORDER BY m.id`,
  )
  const recorded = await postgres.query<{ message_id: string; type: string; at: Date; data: string }>(
    'SELECT message_id, type, at, data FROM events ORDER BY id',
  )
  const keys = await postgres.query<{ key: string; message_id: string | null }>(
    'SELECT key, message_id FROM idempotency_keys',
  )
  const due = await postgres.query<{ uuid: string; task: string; at: Date | null }>(
    `SELECT message_id AS uuid, task, CASE WHEN isfinite(due_at) THEN due_at END AS at FROM due_work`,
  )
  const events = new Map<string, (EventRow & { at: Date })[]>()
  for (const { message_id, type, at, data } of recorded) {
    const event = { type, at, data: JSON.parse(data) as EventRow['data'] }
    events.set(message_id, [...(events.get(message_id) ?? []), event])
  }
  return {
    now: time?.now ?? new Date(),
    messages: selected.map((row) => messageFrom(row, events.get(row.id) ?? [])),
    keys: new Map(keys.map(({ key, message_id }) => [key, message_id])),
    due,
  }
}

function messageFrom(row: Selected, events: readonly (EventRow & { at: Date })[]): MessageRow {
  const evidence = parsed(row.evidence)
  const begun = events.flatMap(({ type, at, data }) => {
    if (type === 'attempt_started') return [at.getTime()]
    return type === 'attempt_ended' && typeof data['startedAt'] === 'string' ? [Date.parse(data['startedAt'])] : []
  })
  if (row.attempt_started_at !== null) begun.push(row.attempt_started_at.getTime())
  const answer = [row.answer_status, row.content_type, row.location, row.body]
  return {
    uuid: row.id,
    id: idFromUuid('message', row.id),
    key: row.idempotency_key,
    status: row.status,
    provider: row.provider,
    attempts: row.attempts,
    hasPlan: row.plan !== null,
    reason: evidence?.['code'] ?? evidence?.['phase'] ?? null,
    resolvedBy: parsed(row.resolution)?.['by'] ?? null,
    leaseUntil: row.lease_until,
    notAfter: row.not_after,
    answer: row.answer_status === null ? null : JSON.stringify(answer),
    begun,
    events,
  }
}

type Members = Readonly<Record<string, string | undefined>>
const parsed = (text: string | null): Members | null => (text === null ? null : (JSON.parse(text) as Members))

/** How long ago the oldest call began that nobody has told the end of, in ms. */
export async function oldestInFlight(postgres: Postgres): Promise<number> {
  const [row] = await postgres.query<{ ms: number | null }>(
    `SELECT (extract(epoch FROM max(now() - attempt_started_at)) * 1000)::float8 AS ms FROM messages WHERE status = 'sending'`,
  )
  return row?.ms ?? 0
}

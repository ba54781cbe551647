/**
 * Receipts as they are kept: the ids of providers' events, inserted under their primary key before anything follows from
 * them. What follows is operations/record-receipt.ts's.
 *
 * E1. `keep` resolves after its insert, or the one that came before it, was committed.
 * E2. What is applied is what was kept first: a second telling under the same id changes nothing of it.
 * E3. An event is of its provider's environment, and is only ever matched with messages of that one.
 * E4. Times are the data base's; a provider that claims to tell of the future tells of now.
 */
import type { ReceiptEvent } from '../core/events.ts'
import type { Environment } from '../core/message-content.ts'
import type { Database, Statement } from './database.ts'
import { grouped } from './grouped.ts'

/** What a provider told, as far as it is kept: nothing that was said, and to nobody. */
export interface Receipt {
  readonly provider: string
  /** The provider's, or made of what makes the event that event. */
  readonly eventId: string
  readonly environment: Environment
  readonly messageId: string
  readonly attemptId: string | null
  readonly kind: ReceiptEvent['evidence']
  readonly providerMessageId: string | null
  readonly code: string | null
  /** Null: the provider does not say. */
  readonly occurredAt: Date | null
}

export interface KeptReceipt extends Receipt {
  readonly occurredAt: Date
  readonly receivedAt: Date
  readonly appliedAt: Date | null
}

const columns = {
  provider: 'text',
  event_id: 'text',
  environment: 'text',
  message_id: 'uuid',
  attempt_id: 'uuid',
  kind: 'text',
  provider_message_id: 'text',
  code: 'text',
} as const
const names = Object.keys(columns).join(', ')
const typed = Object.entries({ ...columns, occurred_at: 'timestamptz' }).map(([name, type]) => `${name} ${type}`)

const select = `r.provider, r.event_id AS "eventId", r.environment, r.message_id AS "messageId", r.attempt_id AS "attemptId",
  r.kind, r.provider_message_id AS "providerMessageId", r.code, r.occurred_at AS "occurredAt", r.received_at AS "receivedAt",
  r.applied_at AS "appliedAt"`

const insert: Statement = {
  name: 'keep-receipts',
  text: `
    INSERT INTO receipts AS r (${names}, occurred_at)
    SELECT ${names}, LEAST(occurred_at, now()) FROM json_to_recordset($1::json) AS n (${typed.join(', ')})
    ON CONFLICT DO NOTHING RETURNING ${select}`,
}

const find: Statement = {
  name: 'find-receipts',
  text: `
    SELECT ${select} FROM json_to_recordset($1::json) AS n (provider text, event_id text) JOIN receipts r USING (provider, event_id)`,
}

const nameOf = ({ provider, eventId }: Pick<Receipt, 'provider' | 'eventId'>): string => `${provider} ${eventId}`

/** The returned function gives what is kept under the event's id: this receipt, or the one that came first. */
export function receiptKeeper(database: Database): (receipt: Receipt) => Promise<KeptReceipt> {
  return grouped(
    async (receipts) => {
      const asked = new Map(receipts.map((receipt) => [nameOf(receipt), receipt]))
      // In one order everywhere, so that two replicas never wait for each other.
      const rows = [...asked.keys()].toSorted().flatMap((name) => rowsOf(asked.get(name)))
      const kept = new Map(
        (await database.run<KeptRow>(insert, [JSON.stringify(rows)])).map((row) => [nameOf(row), row]),
      )
      const others = rows.filter(({ provider, event_id: eventId }) => !kept.has(nameOf({ provider, eventId })))
      // A second statement: one that was committed meanwhile is not seen by the first.
      if (others.length > 0)
        for (const row of await database.run<KeptRow>(find, [JSON.stringify(others)])) kept.set(nameOf(row), row)
      return receipts.map((receipt) => {
        const row = kept.get(nameOf(receipt))
        if (row === undefined) throw new Error('a receipt was erased in the moment in which it came again')
        return row
      })
    },
    database.soon,
    sizeOf,
  )
}

type KeptRow = { -readonly [name in keyof KeptReceipt]: KeptReceipt[name] }

const rowsOf = (receipt: Receipt | undefined) =>
  receipt === undefined
    ? []
    : [
        {
          provider: receipt.provider,
          event_id: receipt.eventId,
          environment: receipt.environment,
          message_id: receipt.messageId,
          attempt_id: receipt.attemptId,
          kind: receipt.kind,
          provider_message_id: receipt.providerMessageId,
          code: receipt.code,
          occurred_at: receipt.occurredAt,
        },
      ]

const sizeOf = (): number => 1_024

const mark: Statement = {
  name: 'mark-receipts',
  text: `
    UPDATE receipts r SET applied_at = now() FROM json_to_recordset($1::json) AS n (provider text, event_id text)
    WHERE r.provider = n.provider AND r.event_id = n.event_id AND r.applied_at IS NULL`,
}

/** The returned function notes that a receipt was applied, or that nothing followed from it. */
export function receiptMarker(database: Database): (receipt: Receipt) => Promise<void> {
  return grouped(
    async (receipts) => {
      const keys = new Map(
        receipts.map(({ provider, eventId }) => [nameOf({ provider, eventId }), { provider, eventId }]),
      )
      const rows = [...keys.keys()].toSorted().map((name) => keys.get(name))
      const json = JSON.stringify(rows.map((row) => ({ provider: row?.provider, event_id: row?.eventId })))
      await database.run(mark, [json])
      return receipts.map(() => undefined)
    },
    database.soon,
    sizeOf,
  )
}

const unapplied: Statement = {
  name: 'unapplied-receipts',
  text: `
    SELECT ${select} FROM receipts r JOIN messages m ON m.id = r.message_id AND m.environment = r.environment
    WHERE r.received_at >= $1 AND r.received_at < now() - $2::float8 * interval '1 millisecond' AND r.applied_at IS NULL
    ORDER BY r.received_at LIMIT $3`,
}

/** Receipts whose message is there and that were not applied, of those that came since then and at least `ageMs` ago. */
export async function findUnapplied(
  database: Database,
  since: Date,
  ageMs: number,
  limit: number,
): Promise<KeptReceipt[]> {
  return database.run<KeptRow>(unapplied, [since, ageMs, limit])
}

const erase: Statement = {
  name: 'erase-receipts',
  text: `
    DELETE FROM receipts WHERE (provider, event_id) IN (
      SELECT provider, event_id FROM receipts WHERE received_at < $1 ORDER BY received_at LIMIT $2 FOR UPDATE SKIP LOCKED)
    RETURNING event_id`,
}

/** @returns how many were erased; less than `limit` means that nothing older is left */
export async function eraseReceipts(database: Database, receivedBefore: Date, limit: number): Promise<number> {
  return (await database.run(erase, [receivedBefore, limit])).length
}

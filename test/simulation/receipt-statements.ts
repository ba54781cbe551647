/** What the statements about receipts do to the tables (src/store/receipts.ts). */
import { dateOrNull, rowsOf, text, textOrNull, type Execution } from './execution.ts'
import type { ReceiptRow } from './tables.ts'

export const nameOfReceipt = (provider: unknown, eventId: unknown): string => `${String(provider)} ${String(eventId)}`

export function keepReceipts({ tables, nowMs }: Execution, [json]: readonly unknown[]): readonly ReceiptRow[] {
  const now = new Date(nowMs)
  return rowsOf(json).flatMap((told) => {
    const name = nameOfReceipt(told['provider'], told['event_id'])
    if (tables.receipts.has(name)) return []
    const occurredAt = dateOrNull(told['occurred_at'])
    const row: ReceiptRow = {
      provider: text(told['provider']),
      eventId: text(told['event_id']),
      environment: text(told['environment']),
      messageId: text(told['message_id']),
      attemptId: textOrNull(told['attempt_id']),
      kind: text(told['kind']),
      providerMessageId: textOrNull(told['provider_message_id']),
      code: textOrNull(told['code']),
      occurredAt: occurredAt === null || occurredAt > now ? now : occurredAt,
      receivedAt: now,
      appliedAt: null,
    }
    tables.receipts.set(name, row)
    return [row]
  })
}

export function markReceipts({ tables, nowMs }: Execution, [json]: readonly unknown[]): readonly object[] {
  for (const { provider, event_id: eventId } of rowsOf(json)) {
    const name = nameOfReceipt(provider, eventId)
    const row = tables.receipts.get(name)
    if (row !== undefined && row.appliedAt === null) tables.receipts.set(name, { ...row, appliedAt: new Date(nowMs) })
  }
  return []
}

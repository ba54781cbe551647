/** Rules about receipts: each is applied once and never lost, proves an acceptance, and speaks of one attempt. */
import type { Delivery, Resolution } from '../../src/core/message.ts'
import type { MessageRow } from '../../src/store/message-rows.ts'
import { rowsOf } from './execution.ts'
import { nameOf, trueTime, type Facts } from './facts.ts'
import { stranger } from './receipts.ts'
import type { ReceiptRow } from './tables.ts'

const receiptsOf = ({ tables }: Facts, { id }: MessageRow): ReceiptRow[] =>
  [...tables.receipts.values()].filter(({ messageId, provider }) => messageId === id && provider !== stranger)

export function checkReceipt(facts: Facts, before: MessageRow, after: MessageRow): void {
  const { tables, broken, world } = facts
  const about = nameOf(after)
  const lines = (tables.events.get(after.id) ?? []).filter(({ type }) => type === 'receipt')
  if (lines.some(({ data }) => data.includes(`"${stranger}"`)))
    broken('receipts', `${about} was changed by a provider of another environment`)
  const isSame = after.delivery === before.delivery && after.providerMessageId === before.providerMessageId
  if (before.status === 'sent' && isSame) broken('receipts', `${about} was changed, and nothing is changed`)
  if (before.status === 'sending' && after.status === 'sending') world.sometimes('a receipt came before the answer')
  if (after.delivery !== before.delivery && after.delivery?.includes('"undelivered"') === true)
    world.sometimes('a failed delivery was told')
  if (after.resolution === before.resolution || after.resolution === null) return
  const { by, attemptId } = JSON.parse(after.resolution) as Resolution
  if (by !== 'receipt') return
  const told = receiptsOf(facts, after)
  if (!told.some((receipt) => (receipt.attemptId ?? after.attemptId) === attemptId))
    broken('receipts', `${about} is sent by attempt ${attemptId}, and no receipt speaks of that one`)
  if (before.status === 'sending') world.sometimes('a receipt settled what its call left open')
  else if (before.status === 'unknown') world.sometimes('a receipt settled an attempt')
  else world.sometimes('a receipt corrected a verdict')
  if (attemptId !== after.attemptId) world.sometimes('a receipt told of an overtaken attempt')
}

/** A receipt proves an acceptance: what it was applied to is sent, or will be by what it left there. */
export function checkMarked(facts: Facts, json: unknown): void {
  const { tables, broken, world } = facts
  for (const { provider, event_id: eventId } of rowsOf(json)) {
    const receipt = tables.receipts.get(`${String(provider)} ${String(eventId)}`)
    const row = tables.messages.get(receipt?.messageId ?? '')
    if (receipt === undefined || row === undefined) continue
    if (provider === stranger) broken('receipts', `${String(eventId)} is of another environment, and is applied`)
    const isProven = row.status === 'sent' || (row.status === 'sending' && row.proof !== null)
    if (!isProven) broken('receipts', `${String(eventId)} is applied, and ${nameOf(row)} is ${row.status}`)
    if (trueTime(facts) - receipt.receivedAt.getTime() > 10_000) world.sometimes('a receipt was applied much later')
  }
}

/** Of several deliveries the later one counts; on a tie it was delivered. */
function expectedDelivery(told: readonly ReceiptRow[]): Delivery['status'] | undefined {
  const [last] = told
    .filter(({ kind }) => kind !== 'accepted')
    .toSorted(
      (a, b) =>
        b.occurredAt.getTime() - a.occurredAt.getTime() ||
        Number(b.kind === 'delivered') - Number(a.kind === 'delivered'),
    )
  return last?.kind as Delivery['status'] | undefined
}

/** When all is at rest. */
export function checkReceiptsAtEnd(facts: Facts): void {
  const { tables, broken } = facts
  for (const row of tables.messages.values()) {
    const told = receiptsOf(facts, row)
    for (const { eventId, appliedAt } of told) {
      if (appliedAt === null) broken('receipts', `${eventId} was kept, and is not applied`)
      if (row.status !== 'sent') broken('receipts', `${eventId} tells of ${nameOf(row)}, which is ${row.status}`)
    }
    const expected = expectedDelivery(told)
    const status = row.delivery === null ? undefined : (JSON.parse(row.delivery) as Delivery).status
    if (status !== expected)
      broken('receipts', `${nameOf(row)} is ${status ?? 'not told of'}, and was ${expected ?? 'not'}`)
  }
}

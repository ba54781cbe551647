/** Rules about what leaves a gateway and what providers take (reliability.md, invariants 1, 2, 7 and the write gate). */
import { checkApproved } from './approval-rules.ts'
import { checkFirstWrite } from './conversation-rules.ts'
import { dangersOf, isSameByKey, leaseId, liesOf, trueTime, uuidOf, type Facts } from './facts.ts'
import type { Write } from './vendor.ts'
import type { Process } from './world.ts'

/** Our reading of the data base's clock is off by half of what reading it took. */
const clockErrorMs = 3_000

export function checkWrite(facts: Facts, write: Write, by: Process): void {
  const { world, tables, broken } = facts
  const { event, messageId, attempt } = write
  const about = `attempt ${attempt} of ${messageId} (${event}) at ${write.vendor.name}`
  const earlier = facts.writes.get(event) ?? []
  facts.writes.set(event, [...earlier, write])

  const row = tables.messages.get(uuidOf(messageId))
  const hasKey = [...tables.keys.values()].some((key) => key.messageId === uuidOf(messageId))
  if (row === undefined || !hasKey || row.attempts < attempt) {
    broken('2 claim before effect', `${about} begins, and is not recorded`)
    return
  }
  const now = trueTime(facts)
  const leaseUntil = facts.leases.get(leaseId(row.id, attempt))
  if (leaseUntil === undefined || now >= leaseUntil) broken('write gate', `${about} begins after its lease`)
  if (now > row.notAfter.getTime() + clockErrorMs) broken('write gate', `${about} begins after notAfter`)

  if (earlier.length === 0) checkFirstWrite(facts, row)
  checkApproved(facts, row, by)
  const settledMs = facts.settledMs.get(row.id) ?? -1
  for (const other of earlier) {
    const isOne = isSameByKey(other, write, world.now())
    const isSettled = settledMs > other.beganMs
    if (!isOne && !isSettled && !other.refusalRead)
      broken('7 unknown needs a warrant', `${about} begins, and attempt ${other.attempt} may have been accepted`)
  }
  if (
    dangersOf({ ...facts, writes: new Map([[event, earlier]]) }, event).some(
      (other) => !isSameByKey(other, write, world.now()),
    )
  )
    if (liesOf(facts, event).notSent === 0)
      broken('1 at most once', `${about} begins, and an earlier one was accepted or is on its way`)
  noteSometimes(facts, write, earlier)
}

function noteSometimes({ world, tables, doubtedClaims }: Facts, write: Write, earlier: readonly Write[]): void {
  const resolved = (tables.events.get(uuidOf(write.messageId)) ?? []).filter(({ type }) => type === 'resolved')
  const by = (who: string): boolean => resolved.some(({ data }) => (JSON.parse(data) as { by: string }).by === who)
  if (doubtedClaims.has(write.messageId) && write.attempt === 1)
    world.sometimes('a claim in doubt was read back, and gone on with')
  if (earlier.length > 0 && by('lookup')) world.sometimes('a message was sent again after a proven absence')
  if (earlier.length > 0 && by('operator')) world.sometimes('a message was sent again by a person')
  if (earlier.some(({ vendor }) => vendor !== write.vendor)) world.sometimes('another provider was asked')
}

export function checkAcceptance(facts: Facts, { event }: Write): void {
  const times = (facts.acceptances.get(event) ?? 0) + 1
  facts.acceptances.set(event, times)
  if (times > 1 + liesOf(facts, event).notSent) facts.broken('1 at most once', `${event} was accepted ${times} times`)
}

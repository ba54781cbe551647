/** Rules about every committed change of a message (reliability.md, invariants 7 to 11). */
import { idFromUuid } from '../../src/core/ids.ts'
import type { MessageRow } from '../../src/store/message-rows.ts'
import { checkDecision, checkHolding } from './approval-rules.ts'
import { checkSaid } from './conversation-rules.ts'
import { answerId, claimerOf, dangersOf, eventOf, leaseId, liesOf, nameOf, wasAccepted, type Facts } from './facts.ts'
import { checkGuard, checkIntent } from './guard-rules.ts'
import { checkReceipt } from './receipt-rules.ts'

/** The published graph: what each status may become. */
const graph: Readonly<Record<string, readonly string[]>> = {
  held: ['scheduled', 'queued', 'canceled'],
  scheduled: ['sending', 'sent', 'failed', 'canceled'],
  queued: ['sending', 'sent', 'failed', 'canceled'],
  sending: ['sending', 'sent', 'failed', 'queued', 'unknown'],
  unknown: ['sending', 'sent', 'failed', 'queued', 'unknown'],
  // News of its delivery.
  sent: ['sent'],
  failed: ['sent'],
  canceled: ['sent'],
}

export function checkChange(facts: Facts, before: MessageRow | null, after: MessageRow | null): void {
  const { world, broken } = facts
  if (after === null) {
    if (before !== null) checkErasure(facts, before)
    return
  }
  const about = nameOf(after)
  world.note('data base', () => `${about}: ${before?.status ?? 'new'} -> ${after.status}, version ${after.version}`)
  if (after.status === 'sending' && after.attemptNumber !== null && after.leaseUntil !== null)
    facts.leases.set(leaseId(after.id, after.attemptNumber), after.leaseUntil.getTime())
  noteSettled(facts, before, after)
  checkSaid(facts, before, after)
  const answer = facts.tables.answers.get(after.id)
  if (after.answerStatus !== null && answer !== undefined)
    facts.stored.add(answerId(after.id, after.answerStatus, answer.answerBody))
  if (before === null) checkClaim(facts, after)
  else {
    if (graph[before.status]?.includes(after.status) !== true)
      broken('9 monotone', `${about} became ${after.status} after ${before.status}`)
    if (after.version !== before.version + 1 || after.attempts < before.attempts)
      broken('9 monotone', `${about}: a version or an attempt is missing`)
    checkDecision(facts, before, after)
    checkReceipt(facts, before, after)
    checkFence(facts, before, after, about)
    checkWarrant(facts, before, after, about)
    noteSometimes(facts, before, after)
  }
  checkHonesty(facts, after, about)
}

/** By a resolution of the message, or by a verdict on one of several attempts. */
function noteSettled(
  { tables, settledMs, verdicts, world }: Facts,
  before: MessageRow | null,
  after: MessageRow,
): void {
  const told = (tables.events.get(after.id) ?? []).filter(({ type }) => type === 'resolved').length
  const isResolved = before !== null && after.resolution !== before.resolution
  if (isResolved || told > (verdicts.get(after.id) ?? 0)) settledMs.set(after.id, world.now())
  verdicts.set(after.id, told)
}

function checkClaim(facts: Facts, row: MessageRow): void {
  facts.claims++
  facts.claimers.add(claimerOf(facts, row)?.id ?? '')
  checkHolding(facts, row)
  checkGuard(facts, row)
  checkIntent(facts, row)
  const others = [...facts.tables.messages.values()].filter((other) => other.id !== row.id)
  if (others.some((other) => other.accountId === row.accountId && eventOf(other) === eventOf(row)))
    facts.broken('11 no key is new again', `${eventOf(row)} was claimed a second time`)
}

function checkErasure({ tables, broken, world }: Facts, row: MessageRow): void {
  world.sometimes('a result was erased')
  world.note('data base', () => `${idFromUuid('message', row.id)} is erased`)
  if (![...tables.keys.values()].some(({ messageId }) => messageId === row.id))
    broken('11 no key is new again', `the key of ${row.id} is gone`)
}

/** 10: only the current attempt takes a message out of `sending`, or an acceptance. */
function checkFence({ broken }: Facts, before: MessageRow, after: MessageRow, about: string): void {
  if (before.status !== 'sending' || after.status === 'sent') return
  if (after.attemptId !== before.attemptId)
    broken('10 fencing', `${about}: attempt ${after.attemptNumber} ended what attempt ${before.attemptNumber} runs`)
}

function checkWarrant({ tables, broken, world }: Facts, before: MessageRow, after: MessageRow, about: string): void {
  if (before.status !== 'unknown' || after.status === 'unknown') return
  const events = tables.events.get(after.id) ?? []
  if (after.status === 'sending') {
    if (!events.some(({ type, attemptId }) => type === 'warranted' && attemptId === after.attemptId))
      broken('7 unknown needs a warrant', `${about}: attempt ${after.attemptNumber} has none`)
    world.sometimes('a call was repeated under its key')
  } else if (after.resolution === null)
    broken('7 unknown needs a warrant', `${about} became ${after.status}, and nobody settled it`)
}

/** 8: `sent` needs an acceptance; all that says "not sent" needs that there is none and will be none. */
function checkHonesty(facts: Facts, row: MessageRow, about: string): void {
  const event = eventOf(row)
  const lies = liesOf(facts, event)
  if (row.status === 'sent' && lies.sent === 0 && !wasAccepted(facts, event))
    facts.broken('8 honest', `${about} is sent, and no provider accepted it`)
  const saysNotSent = row.status === 'failed' || row.status === 'canceled' || row.status === 'queued'
  if (saysNotSent && lies.notSent === 0 && dangersOf(facts, event).length > 0)
    facts.broken('8 honest', `${about} is ${row.status}, and was accepted or may yet be`)
}

function noteSometimes({ world, tables, writes }: Facts, before: MessageRow, after: MessageRow): void {
  const newest = tables.events.get(after.id)?.at(-1)
  if (newest?.type === 'lease_lapsed') world.sometimes('a lease lapsed')
  if (newest?.type === 'gave_up')
    world.sometimes(
      newest.data.includes('replay') ? "a key's window passed" : 'the looks about a message came to their end',
    )
  if (newest?.type === 'late_outcome') world.sometimes('a late answer of an overtaken attempt was taken in')
  if (after.failedReason === 'expired' && after.attempts > 0) world.sometimes('notAfter passed after an attempt')
  if (before.status === 'queued' && after.status === 'canceled') world.sometimes('a message was canceled')
  if (before.status !== 'sent' && after.resolution !== null && after.resolution !== before.resolution) {
    const { by } = JSON.parse(after.resolution) as { by: string }
    if (by === 'operator') world.sometimes('a person settled an attempt')
    if (by === 'provider_replay') world.sometimes('a replay settled an attempt')
    if (by === 'lookup' && after.status !== 'sent') world.sometimes('an absence was proven')
    if (by === 'lookup' && after.status === 'sent') world.sometimes('a look-up settled an attempt')
  }
  if (after.status === 'sent' && new Set(writes.get(eventOf(after))?.map(({ vendor }) => vendor)).size === 1)
    world.sometimes('the second provider of a route was not needed')
  if (before.status === 'failed' && after.status === 'sent') world.sometimes('a failure was corrected by an acceptance')
}

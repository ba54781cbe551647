/** Rules about what is said twice: by its content, within the window of a guard, and by its intent. */
import type { SmsRequest } from '../../src/core/message-content.ts'
import type { MessageRow } from '../../src/store/message-rows.ts'
import type { Refusal } from '../../src/operations/refusal.ts'
import type { Asked } from './answer-rules.ts'
import { claimerOf, nameOf, trueTime, uuidOf, type Facts } from './facts.ts'

const isOver = ({ status }: MessageRow): boolean => status === 'failed' || status === 'canceled'

const saidBy = (account: string, { to, conversation, content }: SmsRequest): string =>
  JSON.stringify([account, to, conversation ?? null, content.text])
const saidIn = (row: MessageRow): string => saidBy(row.accountId, JSON.parse(row.request) as SmsRequest)

/** A message was claimed. */
export function checkGuard(facts: Facts, row: MessageRow): void {
  const { tables, world, broken } = facts
  const guard = claimerOf(facts, row)?.sender.policy.duplicateGuard
  if (guard === undefined || guard.mode === 'off') return
  const now = trueTime(facts)
  const content = saidIn(row)
  const alike = [...tables.messages.values()].filter(
    (other) => other.id !== row.id && other.createdAt.getTime() < now && saidIn(other) === content,
  )
  const counted = alike.filter((other) => {
    const mode = claimerOf(facts, other)?.sender.policy.duplicateGuard.mode
    return mode !== 'off' && now - other.createdAt.getTime() < guard.windowSeconds * 1_000
  })
  const first = counted.find((other) => !isOver(other))
  noteSometimes(facts, row, alike.length > 0)
  if (first === undefined) return
  const about = `${nameOf(row)} (${row.status}) says what ${nameOf(first)} (${first.status}) said`
  // A person who is asked anyway is shown what it is like.
  if (guard.mode === 'refuse' && row.heldFor !== 'approval') broken('guard', `${about}, and is not refused`)
  if (guard.mode === 'hold' && row.heldFor === null) broken('guard', `${about}, and is not held`)
  if (row.possibleDuplicateOf === null) broken('guard', `${about}, and is not marked`)
  else if (guard.mode === 'flag') world.sometimes('a second message was marked by the guard')
}

function noteSometimes({ world, tables }: Facts, row: MessageRow, wasSaid: boolean): void {
  if (row.heldFor === 'duplicate') world.sometimes('a second message was held by the guard')
  if (tables.erased.has(row.possibleDuplicateOf ?? '')) world.sometimes('the first of two messages was erased')
  if (wasSaid && row.possibleDuplicateOf === null) world.sometimes('the window of a guard had passed')
}

/** Of all messages with one intent only one counts; but for one that had failed, and was accepted all the same. */
export function checkIntent({ tables, broken, world }: Facts, row: MessageRow): void {
  if (row.intent === null) return
  const others = [...tables.messages.values()].filter(
    ({ id, accountId, intent }) => id !== row.id && accountId === row.accountId && intent === row.intent,
  )
  const holder = others.find((other) => !isOver(other) && other.intentGuard !== null)
  if (holder !== undefined) broken('intent', `${nameOf(row)} has the intent of ${nameOf(holder)}, ${holder.status}`)
  if (others.some(isOver)) world.sometimes('an intent was free again')
}

/** A request was told that it may be a duplicate. */
export function checkDuplicate(
  facts: Facts,
  { account, request, sender }: Asked,
  refusal: Refusal,
  about: string,
): void {
  const { tables, broken, world } = facts
  const { message } = refusal.extras as { message?: { id: string } }
  if (message === undefined) return world.sometimes('the first of two messages was erased')
  const named = tables.messages.get(uuidOf(message.id))
  if (named === undefined) {
    if (!tables.erased.has(uuidOf(message.id))) broken('guard', `${about}, of a message that is not there`)
    return
  }
  const isIntent = request.intent !== undefined && named.intent === request.intent
  const isAlike = saidIn(named) === saidBy(account, request as SmsRequest)
  if (isIntent) world.sometimes('an intent was taken')
  else if (isAlike && sender.policy.duplicateGuard.mode === 'refuse')
    world.sometimes('a second message was refused by the guard')
  else broken('guard', `${about}, and ${nameOf(named)} is something else`)
}

/** Rules about messages that wait for a person: one decision each, by another than their sender, about what was shown. */
import type { ApprovalDecision, Message } from '../../src/core/message.ts'
import { Refusal } from '../../src/operations/refusal.ts'
import type { MessageRow } from '../../src/store/message-rows.ts'
import { claimerOf, nameOf, trueTime, type Facts } from './facts.ts'
import type { Process } from './world.ts'

/** A person says yes or no. */
export interface Verdict {
  /** UUID of the message. */
  readonly messageId: string
  readonly decision: ApprovalDecision['decision']
  readonly by: string
  /** It is about the text that the message has. */
  readonly isShown: boolean
}

type Decided = Omit<ApprovalDecision, 'at'> & { readonly at: string }

export interface Approvals {
  readonly asked: Verdict[]
  /** By message, what was committed. */
  readonly decided: Map<string, Decided>
  /** The gateway that committed it. */
  readonly decider: Map<string, Process>
  /** To whom anything was ever sent. */
  readonly reached: Set<string>
}
export const nobodyAsked = (): Approvals => ({ asked: [], decided: new Map(), decider: new Map(), reached: new Set() })

/** Our reading of the data base's clock is off by half of what reading it took. */
const clockErrorMs = 3_000

const recipientOf = ({ accountId, recipient }: MessageRow): string => `${accountId} ${recipient}`

export function checkHolding(facts: Facts, row: MessageRow): void {
  const { world, approvals } = facts
  const sender = claimerOf(facts, row)?.sender
  if (row.status === 'held') world.sometimes('a message was held')
  if (sender === undefined) return
  const { requireApproval: rule } = sender.policy
  const wasReached = approvals.reached.has(recipientOf(row))
  const mustWait =
    typeof rule === 'object'
      ? rule.channels.some((channel) => channel === row.channel)
      : rule === 'always' || (rule === 'first_contact' && !wasReached)
  if (mustWait && (row.status !== 'held' || row.heldFor !== 'approval'))
    facts.broken('approval', `${nameOf(row)} is ${row.status}, and its sender needs an approval`)
  if (rule === 'first_contact' && row.heldFor === 'approval') world.sometimes('a first contact was held')
  if (rule === 'first_contact' && row.heldFor === null) world.sometimes('a second contact was not held')
}

export function checkDecision(facts: Facts, before: MessageRow, after: MessageRow): void {
  const { approvals, broken, world } = facts
  const about = nameOf(after)
  if (after.status === 'sent') approvals.reached.add(recipientOf(after))
  if (after.decision !== before.decision) {
    const made = JSON.parse(after.decision ?? '{}') as Decided
    if (approvals.decided.has(after.id)) broken('one decision', `${about} is decided a second time`)
    approvals.decided.set(after.id, made)
    const wasAsked = approvals.asked.some(
      ({ messageId, decision, by, isShown }) =>
        messageId === after.id && decision === made.decision && by === made.by && isShown,
    )
    if (!wasAsked) broken('approval', `${about} is ${made.decision} by ${made.by}, who did not say so of this text`)
    if (made.by === after.apiKeyId) broken('approval', `${about} is ${made.decision} by its sender`)
    if (new Date(made.at) >= after.notAfter) broken('approval', `${about} is ${made.decision} after its notAfter`)
    if (made.decision === 'declined') world.sometimes('a message was declined')
    if (made.decision === 'declined' && after.status !== 'canceled')
      broken('approval', `${about} is declined, and ${after.status}`)
  }
  if (before.status !== 'held') return
  if (after.status === 'queued' || after.status === 'scheduled' || after.status === 'sending') {
    if (approvals.decided.get(after.id)?.decision !== 'approved')
      broken('approval', `${about} is ${after.status}, and nobody approved it`)
    if (after.status === 'scheduled') world.sometimes('an approved message waited for its time')
  }
  if (after.canceledReason === 'lapsed') {
    world.sometimes('a held message lapsed')
    if (trueTime(facts) < after.notAfter.getTime() - clockErrorMs) broken('approval', `${about} lapsed before its time`)
  }
  if (after.status === 'canceled' && after.canceledReason === null) world.sometimes('a held message was canceled')
}

/** A request of it begins. */
export function checkApproved(facts: Facts, row: MessageRow, by: Process): void {
  const { approvals, broken, world } = facts
  if (row.status === 'canceled') broken('approval', `${nameOf(row)} goes to a provider, and was canceled`)
  if (row.heldFor === null) return
  const made = approvals.decided.get(row.id)
  if (made?.decision !== 'approved') broken('approval', `${nameOf(row)} goes to a provider, and nobody approved it`)
  world.sometimes('an approved message went out')
  const decider = approvals.decider.get(row.id)
  if (decider !== by && decider?.isAlive() === false) world.sometimes('a gateway died between an approval and the call')
}

const sameOf = (made: Decided | undefined, told: unknown): boolean => {
  const { decision, by, at } = told as { decision?: string; by?: string; at?: string | Date }
  return made?.decision === decision && made?.by === by && made?.at === (at instanceof Date ? at.toISOString() : at)
}

/** The person hears what came of it. */
export function checkVerdict(facts: Facts, verdict: Verdict, heard: Message | Refusal): void {
  const { tables, approvals, broken, world } = facts
  const row = tables.messages.get(verdict.messageId)
  if (row === undefined) return
  const about = `${verdict.by}, who ${verdict.decision} ${nameOf(row)},`
  const made = approvals.decided.get(row.id)
  const isOwn = row.apiKeyId === verdict.by
  if (!(heard instanceof Refusal)) {
    if (!sameOf(made, heard.decision)) broken('one decision', `${about} heard of another decision than was made`)
    if (isOwn || !verdict.isShown || made?.decision !== verdict.decision) broken('approval', `${about} was not refused`)
    if (made?.by !== verdict.by) world.sometimes('a decision was made by another, who decided the same')
    return
  }
  switch (heard.type) {
    case 'already-decided':
      if (made?.decision === verdict.decision || !sameOf(made, heard.extras.decision))
        broken('one decision', `${about} was told of another decision than was made`)
      return world.sometimes('a decision contradicted another, and heard of it')
    case 'too-late':
      if (made !== undefined || row.status !== 'canceled')
        broken('one decision', `${about} was told that it is too late`)
      return world.sometimes('a decision came too late')
    case 'fingerprint-mismatch':
      if (verdict.isShown) broken('approval', `${about} was told that it is another text`)
      return world.sometimes('a decision about another text was refused')
    case 'forbidden':
      if (!isOwn) broken('approval', `${about} was told that it is theirs`)
      return world.sometimes('a decision of the sender was refused')
    default:
      broken('approval', `${about} was told ${heard.type}`)
  }
}

interface Saved {
  readonly id: string
  readonly before: number
  readonly events: readonly { type: string }[] | null
}

/** Changes whose sender was told that they are in doubt. */
export function noteDoubted({ tables, world }: Facts, saved: readonly Saved[]): void {
  for (const { id, before, events } of saved) {
    const isDone = tables.messages.get(id)?.version === before + 1
    if (isDone && events?.some(({ type }) => type === 'approved') === true)
      world.sometimes('an approval was committed in doubt')
  }
}

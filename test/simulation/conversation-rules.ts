/**
 * Rules about conversations: what was based on a reading goes out only if nothing was said since. What was said is counted
 * here from the commits, by no means of the store's: claims that go out, messages that leave, and what comes in.
 */
import type { InboundMessage } from '../../src/core/conversation-view.ts'
import type { MessageRow } from '../../src/store/message-rows.ts'
import { claimerOf, nameOf, type Facts } from './facts.ts'
import { keyOf } from './tables.ts'

export interface Said {
  /** By conversation, all that made a version of it, in order: of whom, or of what came in. */
  readonly all: Map<string, string[]>
  /** By message that waits: how much had been said when it was claimed. */
  readonly heard: Map<string, number>
  /** Messages that went out, as their commits say. */
  readonly gone: Set<string>
  /** By conversation and version: the message that went to a provider on that reading. */
  readonly wentOn: Map<string, string>
}
export const nothingSaid = (): Said => ({ all: new Map(), heard: new Map(), gone: new Set(), wentOn: new Map() })

const placeOf = ({ accountId, environment, conversation }: MessageRow): string =>
  keyOf(accountId, environment, String(conversation))
const saidIn = ({ said }: Facts, place: string): string[] => {
  const all = said.all.get(place) ?? []
  said.all.set(place, all)
  return all
}

const waits = ({ status }: MessageRow): boolean => status === 'held' || status === 'scheduled'
const goes = ({ status }: MessageRow): boolean => status === 'queued' || status === 'sending'

/** A message was claimed, or changed. */
export function checkSaid(facts: Facts, before: MessageRow | null, after: MessageRow): void {
  const { said, broken, world } = facts
  const isClaim = before === null
  if (goes(after) && (isClaim || waits(before))) said.gone.add(after.id)
  if (after.conversation === null) return
  const all = saidIn(facts, placeOf(after))
  const ifMatch = claimerOf(facts, after)?.ifMatch ?? null
  if (isClaim) {
    if (ifMatch !== null && ifMatch !== all.length)
      broken('conversation', `${nameOf(after)} was claimed at version ${all.length}, and asked for ${ifMatch}`)
    if (ifMatch !== null) world.sometimes('a message that was based on a version was claimed')
    if (waits(after)) said.heard.set(after.id, all.length)
    else all.push(nameOf(after))
    return
  }
  if (waits(before) && after.canceledReason === 'conversation_changed') noteMoved(facts, before, after, all)
  if (!waits(before) || !goes(after)) return
  const isBound = after.heldFor !== null || ifMatch !== null
  const heard = said.heard.get(after.id) ?? 0
  if (isBound && heard !== all.length)
    broken('conversation', `${nameOf(after)} leaves, and since its claim was said: ${all.slice(heard).join(', ')}`)
  if (isBound && before.status === 'scheduled')
    world.sometimes('a scheduled message left a conversation that had rested')
  all.push(nameOf(after))
}

function noteMoved(
  { said, broken, world }: Facts,
  before: MessageRow,
  after: MessageRow,
  all: readonly string[],
): void {
  if (said.heard.get(after.id) === all.length)
    broken('conversation', `${nameOf(after)} is canceled, and nothing was said since its claim`)
  if (after.decision?.includes('"approved"') === true)
    world.sometimes('an approved message did not leave: its conversation had moved')
  else if (before.status === 'scheduled')
    world.sometimes('a scheduled message did not leave: its conversation had moved')
}

/** Something came in. */
export function checkReceived(facts: Facts, place: string, { id, source, eventId }: InboundMessage): void {
  facts.world.note('data base', () => `${place} hears ${eventId}`)
  const known = facts.tables.inbound.get(place) ?? []
  if (known.some((each) => each.id !== id && each.source === source && each.eventId === eventId))
    facts.broken('versions', `${eventId} came into ${place} a second time`)
  saidIn(facts, place).push(`${source} ${eventId}`)
}

/** After each statement: a version is the number of things that were said. */
export function checkVersions(facts: Facts): void {
  for (const [place, { version }] of facts.tables.conversations) {
    const all = facts.said.all.get(place) ?? []
    if (version !== all.length)
      facts.broken('versions', `${place} is at ${version}, and this was said: ${all.join(', ')}`)
  }
}

/** Its first request begins. */
export function checkFirstWrite(facts: Facts, row: MessageRow): void {
  const { said, broken } = facts
  if (!said.gone.has(row.id)) broken('conversation', `${nameOf(row)} goes to a provider, and never left`)
  const ifMatch = claimerOf(facts, row)?.ifMatch ?? null
  if (row.conversation === null || ifMatch === null) return
  const reading = `${placeOf(row)} ${ifMatch}`
  const other = said.wentOn.get(reading)
  said.wentOn.set(reading, nameOf(row))
  if (other !== undefined) broken('conversation', `${nameOf(row)} goes out on version ${ifMatch}, and so did ${other}`)
}

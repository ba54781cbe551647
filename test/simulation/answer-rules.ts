/** Rules about what callers are told (reliability.md, invariants 3, 4, 5, 8, 12, 14, 16). */
import type { Answer } from '../../src/core/answer.ts'
import type { MessageRequest } from '../../src/core/message-content.ts'
import type { Sender } from '../../src/operations/plan-message.ts'
import { Refusal } from '../../src/operations/refusal.ts'
import { answerId, dangersOf, eventOf, liesOf, uuidOf, wasAccepted, type Facts } from './facts.ts'
import { checkDuplicate } from './guard-rules.ts'
import { keyOf } from './tables.ts'

/** One request of a caller. */
export interface Asked {
  readonly id: string
  readonly account: string
  /** The names that it gives its event: its key, and the derived one. */
  readonly names: readonly [string, ...string[]]
  readonly request: MessageRequest
  readonly canonical: string
  readonly async: boolean
  readonly waitMs: number
  /** The version that it names; null: none. */
  readonly ifMatch: number | null
  readonly sender: Sender
  /** Its key was known when it came. */
  readonly isRepeat: boolean
  readonly arrivedMs: number
  /** The gateway that has it was stopped meanwhile. */
  readonly wasPaused: () => boolean
}

/** What was said so far. */
export interface Heard {
  /** By message: the first final answer, and who was told that it is theirs. */
  readonly finals: Map<string, { readonly answer: Answer; readonly atMs: number }>
  readonly firsts: Map<string, string>
  /** Requests that were refused in a way which says that nothing was claimed. */
  readonly claimedNothing: Set<string>
}
export const emptyHeard = (): Heard => ({ finals: new Map(), firsts: new Map(), claimedNothing: new Set() })

interface Told {
  readonly id?: string
  readonly object?: string
  readonly sent?: string
  readonly message?: { readonly id: string }
}

const graceMs = 250

export function checkAnswer(facts: Facts, heard: Heard, asked: Asked, answer: Answer): void {
  const { tables, broken, world } = facts
  checkTime(facts, asked)
  const told = JSON.parse(answer.body) as Told
  const messageId = told.object === 'message' ? told.id : told.message?.id
  const about = `${asked.id} (${asked.names[0]}) was told ${answer.status} ${messageId ?? ''}`
  if (messageId === undefined) return broken('3 no lost acknowledgement', `${about}: no message is named`)
  const key = tables.keys.get(keyOf(asked.account, 'live', asked.names[0]))
  if (key?.messageId !== uuidOf(messageId)) broken('3 no lost acknowledgement', `${about}, and the key says another`)
  const row = tables.messages.get(uuidOf(messageId))
  if (row === undefined) {
    if (!tables.erased.has(uuidOf(messageId))) broken('3 no lost acknowledgement', `${about}, and it is not there`)
    return
  }
  if (row.request !== asked.canonical) broken('5 fingerprint', `${about}, which asks for something else`)
  if (row.accountId !== asked.account) broken('12 isolation', `${about} of another account`)
  if (!answer.replayed && answer.status !== 409) {
    const first = heard.firsts.get(messageId) ?? asked.id
    if (first !== asked.id) broken('6 in flight', `${about}, and so was ${first}: both as the first`)
    heard.firsts.set(messageId, asked.id)
  }
  checkHonest(facts, eventOf(row), told.sent, about)
  if (answer.status === 201 && !wasAccepted(facts, eventOf(row)) && liesOf(facts, eventOf(row)).sent === 0)
    broken('8 honest', `${about}, and no provider accepted it`)
  if (isFinal(answer) && !facts.stored.has(answerId(row.id, answer.status, answer.body)))
    broken('3 no lost acknowledgement', `${about}, which was never committed`)
  if (answer.replayed) world.sometimes('a repeat was answered as a replay')
  if (answer.status === 409) world.sometimes('a repeat was told that the first one runs')
  checkReplay(facts, heard, messageId, asked, answer, about)
}

const isFinal = ({ status }: Answer): boolean => ![202, 409, 504].includes(status)

/** 4: final answers are the same bytes, but for a failure that an acceptance corrected; and none is taken back. */
function checkReplay(
  { broken, world }: Facts,
  heard: Heard,
  messageId: string,
  { arrivedMs }: Asked,
  answer: Answer,
  about: string,
): void {
  const known = heard.finals.get(messageId)
  if (!isFinal(answer)) {
    if (known !== undefined && arrivedMs > known.atMs)
      broken('4 replay identity', `${about}, and ${known.answer.status} before`)
    return
  }
  const before = known?.answer
  const isSame = before?.status === answer.status && before.body === answer.body && before.location === answer.location
  if (isSame && answer.replayed) world.sometimes('a final answer was replayed, byte for byte')
  if (isSame) return
  if (before === undefined || (before.status !== 201 && answer.status === 201))
    heard.finals.set(messageId, { answer, atMs: world.now() })
  else if (arrivedMs > (known?.atMs ?? 0))
    broken('4 replay identity', `${about}, and ${before.status} before, with other bytes`)
}

function checkHonest(facts: Facts, event: string, sent: string | undefined, about: string): void {
  if (sent !== 'no' || liesOf(facts, event).notSent > 0) return
  if (dangersOf(facts, event).length > 0)
    facts.broken('8 honest', `${about}, "sent": "no", and it was accepted or may be`)
}

/** 14. */
function checkTime({ world, broken }: Facts, { id, arrivedMs, waitMs, async, wasPaused }: Asked): void {
  const tookMs = world.now() - arrivedMs
  const mayTakeMs = (async ? 5_000 : Math.max(waitMs, 1_500)) + graceMs
  if (tookMs > mayTakeMs && !wasPaused()) broken('14 bounded time', `${id} took ${tookMs} ms of ${mayTakeMs}`)
}

/** After these nobody knows whether the request claimed. */
const inDoubt: readonly string[] = ['store-unavailable', 'in-progress', 'shutting-down']

/** What speaks against a new message. It is refused so for good, unless an earlier try of its claim may yet be made. */
const preconditions: readonly string[] = [
  'conversation-changed',
  'conversation-version-required',
  'possible-duplicate',
  'policy-refused',
]
const isOpen = ({ type, extras }: Refusal): boolean => preconditions.includes(type) && extras.sent === 'maybe'

function checkPrecondition({ broken, world }: Facts, asked: Asked, { type, extras }: Refusal, about: string): void {
  if (preconditions.includes(type) && asked.isRepeat) broken('a repeat is answered', about)
  if (type === 'conversation-version-required') {
    world.sometimes('a message without a version was refused')
    if (asked.ifMatch !== null) broken('conversation', `${about}, and names version ${asked.ifMatch}`)
  }
  if (type !== 'conversation-changed') return
  world.sometimes('a message on a stale version was refused')
  if (extras.conversation?.version === asked.ifMatch) broken('conversation', `${about}, and it is at that version`)
}

export function checkRefusal(facts: Facts, heard: Heard, asked: Asked, refusal: Refusal): void {
  const { tables, broken, world } = facts
  checkTime(facts, asked)
  const { type, extras } = refusal
  const about = `${asked.id} (${asked.names.join(', ')}) was told ${type}`
  if (!inDoubt.includes(type) && !isOpen(refusal)) heard.claimedNothing.add(asked.id)
  const rows = asked.names.flatMap((name) => tables.keys.get(keyOf(asked.account, 'live', name)) ?? [])
  const row = rows.map(({ messageId }) => tables.messages.get(messageId ?? '')).find((found) => found !== undefined)
  if (type === 'idempotency-key-reused') {
    world.sometimes('another body under a key was refused')
    if (row?.request === asked.canonical && rows.length === 1) broken('5 fingerprint', `${about}, and asked the same`)
  }
  if (type === 'key-void' && !rows.some(({ messageId }) => messageId === null)) broken('5 fingerprint', about)
  if (type === 'result-expired') {
    world.sometimes('a repeat found an erased result')
    if (!rows.some(({ messageId }) => tables.erased.has(messageId ?? ''))) broken('3 no lost acknowledgement', about)
  }
  if (type === 'possible-duplicate') checkDuplicate(facts, asked, refusal, about)
  checkPrecondition(facts, asked, refusal, about)
  if (type === 'overloaded') world.sometimes('a request was refused for load')
  const { message, sent } = extras as { message?: { id: string }; sent?: string }
  const named = tables.messages.get(uuidOf(message?.id ?? ''))
  // Of a possible duplicate `sent` speaks of the request, and the message named is another one.
  if (named !== undefined && type !== 'possible-duplicate') checkHonest(facts, eventOf(named), sent, about)
}

/** What a caller hears when all faults are over: never that it may ask again for reasons of ours. */
export function checkWellAnswered({ broken }: Facts, key: string, heard: Answer | Refusal | null): void {
  const isTold =
    heard !== null && (!(heard instanceof Refusal) || (!inDoubt.includes(heard.type) && heard.type !== 'overloaded'))
  if (!isTold)
    broken('13 liveness', `${key} is ${heard === null ? 'not answered' : `told ${heard.type}`} when all is well`)
}

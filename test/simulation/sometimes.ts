/**
 * What must happen now and then: a batch in which one of these stays at zero has proven nothing about it, and fails.
 * (Antithesis calls them sometimes-properties.)
 */
export const sometimesNames = [
  'a repeat was answered as a replay',
  'a final answer was replayed, byte for byte',
  'a repeat was told that the first one runs',
  'a repeat found an erased result',
  'another body under a key was refused',
  'an intent was taken',
  'an intent was free again',
  'a message that was based on a version was claimed',
  'a message on a stale version was refused',
  'a message without a version was refused',
  'a scheduled message left a conversation that had rested',
  'a scheduled message did not leave: its conversation had moved',
  'an approved message did not leave: its conversation had moved',
  'an inbound message was told twice',
  'a message was held',
  'a first contact was held',
  'a second contact was not held',
  'an approved message went out',
  'an approved message waited for its time',
  'an approval was committed in doubt',
  'a gateway died between an approval and the call',
  'a message was declined',
  'a held message lapsed',
  'a held message was canceled',
  'a decision was made by another, who decided the same',
  'a decision contradicted another, and heard of it',
  'a decision came too late',
  'a decision about another text was refused',
  'a decision of the sender was refused',
  'a second message was marked by the guard',
  'a second message was held by the guard',
  'a second message was refused by the guard',
  'the window of a guard had passed',
  'the first of two messages was erased',
  'a receipt came before the answer',
  'a receipt settled what its call left open',
  'a receipt settled an attempt',
  'a receipt corrected a verdict',
  'a receipt told of an overtaken attempt',
  'a failed delivery was told',
  'a receipt was applied much later',
  'a forged receipt was refused',
  'a key was made void',
  'a message was canceled',
  'a request was refused for load',
  'two gateways raced for one key',
  'a claim in doubt was read back, and gone on with',
  'a statement in doubt was executed after its sender had read back',
  'a gateway was stopped while a statement was in doubt',
  'a gateway died in the moment of a call',
  'a gateway died between the claim and the call',
  'a gateway drained',
  'a machine slept',
  'a result was erased',
  'the reply of an acceptance was lost',
  'a lease lapsed',
  'the write gate was shut',
  'a gateway was stopped between the gate and the write',
  'a gateway was stopped while its request travelled',
  'a late answer of an overtaken attempt was taken in',
  'a call was repeated under its key',
  'a replay was recognised by its key',
  'a replay settled an attempt',
  "a key's window passed",
  'a look-up found what was sent',
  'a look-up settled an attempt',
  'an absence was proven',
  'a message was sent again after a proven absence',
  'the looks about a message came to their end',
  'notAfter passed after an attempt',
  'a person settled an attempt',
  'a message was sent again by a person',
  'a failure was corrected by an acceptance',
  'another provider was asked',
  'the second provider of a route was not needed',
] as const

export type Sometimes = (typeof sometimesNames)[number]
export type Seen = ReadonlyMap<Sometimes, number>

/** Seen once in about a thousand histories: asked for of a batch of so many. */
const rare: readonly Sometimes[] = [
  'a failure was corrected by an acceptance',
  'notAfter passed after an attempt',
  'an approval was committed in doubt',
  'a receipt corrected a verdict',
  'a receipt told of an overtaken attempt',
  'the first of two messages was erased',
]
const rareWithin = 5_000

/** Those that stayed at zero. */
export const unseenIn = (seen: Seen, histories: number): readonly Sometimes[] =>
  sometimesNames.filter((name) => !seen.has(name) && (histories >= rareWithin || !rare.includes(name)))

export function addSeen(sum: Map<Sometimes, number>, more: Seen): void {
  for (const [name, times] of more) sum.set(name, (sum.get(name) ?? 0) + times)
}

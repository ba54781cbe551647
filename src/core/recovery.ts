/**
 * What may follow an unknown outcome: which step is due next and when, and which warrants hold (engine.md, "Warrants").
 * Pure: it plans and judges; operations/reconcile-message.ts acts, and the state machine lets nothing else begin.
 *
 * R1. `key`: same provider identity, the window still open counted from the first attempt that may have arrived, the
 *     stored request at hand, and notAfter not passed.
 * R2. `absent`: an exact and strong look-up found nothing twice, a settling time apart on one process's monotonic clock,
 *     after the lease and a settling time, and within the provider's retention; ten leases if nobody saw the call end.
 * R3. After a change of the provider's identity neither proves anything: there is no plan, a person decides.
 * R4. Every plan ends: at the window, the retention or notAfter. What has no plan waits for evidence or a person.
 */
import { canProveAbsence, type Deduplication, type Lookup } from './capabilities.ts'
import type { Attempt, EndedAttempt, Message, OpenAttempt, Plan } from './message.ts'

/** What the provider of an attempt can do about it, as it is configured now. */
export interface RecoveryMeans {
  /** A digest of adapter, origin and account: another one is another provider. */
  readonly identity: string
  readonly deduplication: Deduplication | null
  readonly lookup: Lookup | null
}

/** What an absent look-up adds: nothing yet, the first half of the proof, or the proof. */
export type Absence = 'early' | 'once' | 'proven'

type Unsettled = Pick<Message, 'open' | 'notAfter' | 'rendered'> & { readonly attempt: EndedAttempt }

interface Circumstances {
  readonly now: Date
  /** In [0, 1). */
  readonly random: number
  /** Steps taken so far. */
  readonly steps: number
  /** The provider asked for this pause, in milliseconds. */
  readonly pauseMs?: number
  /** Another replay would tell nothing new. */
  readonly isReplayPointless?: boolean
  readonly absence?: Absence
}

/** The next automatic step of a message that is unknown; null: only evidence or a person settles it. */
export function planFor(
  message: Unsettled,
  means: RecoveryMeans | null,
  { now, random, steps, pauseMs = 0, isReplayPointless = false, absence }: Circumstances,
): Plan | null {
  if (means === null || !isSameProvider(means, message.attempt)) return null
  const soonest = Math.max(recoveryDelayMs(steps, random), pauseMs)
  const within = (step: Plan['step'], at: Date, givesUpAt: Date): Plan | null => {
    const inTime = at < givesUpAt ? at : lastStepAt(now, pauseMs, givesUpAt)
    return inTime === null ? null : { step, at: inTime, givesUpAt, steps }
  }
  if (means.deduplication !== null && message.rendered !== null && !isReplayPointless) {
    const plan = within('replay', after(now, soonest), replaysUntil(message, means.deduplication))
    if (plan !== null) return plan
  }
  if (means.lookup === null) return null
  const at = later(lookAt(message, means.lookup, now, soonest, absence), after(now, pauseMs))
  return within('look', at, looksUntil(message, means.lookup))
}

/** Pauses that double would leave up to half of a window unused: one last step just before its end, if there is time for it. */
function lastStepAt(now: Date, pauseMs: number, givesUpAt: Date): Date | null {
  const last = after(givesUpAt, -lastStepMs)
  return after(now, Math.max(pauseMs, lastStepMs)) <= last ? last : null
}

/** R3. An identity that was not recorded is nobody's. */
export const isSameProvider = (one: { readonly identity: string }, other: { readonly identity: string }): boolean =>
  one.identity !== '' && one.identity === other.identity

/** How often the call was repeated since the first attempt that is still open: a repeat that was refused counts, too. */
export const repeatsSoFar = ({ open }: Pick<Message, 'open'>, { number }: Attempt): number =>
  number - (open[0]?.number ?? number)

/** May the stored request be sent again, under the same key? */
export function keyWarrantHolds(message: Unsettled, means: RecoveryMeans, at: Date): boolean {
  return (
    means.deduplication !== null &&
    isSameProvider(means, message.attempt) &&
    message.rendered !== null &&
    at < replaysUntil(message, means.deduplication)
  )
}

const replaysUntil = (message: Unsettled, { lifetimeMs, marginMs }: Deduplication): Date =>
  earlier(after(openSince(message), lifetimeMs - marginMs), message.notAfter)

/** Until when the first byte of an attempt that was begun may leave: notAfter, and of a replay the key's window. */
export function mayBeginUntil({ open, notAfter }: Message, { deduplication }: RecoveryMeans): Date {
  const [first] = open
  if (first === undefined || deduplication === null) return notAfter
  return earlier(after(first.startedAt, deduplication.lifetimeMs - deduplication.marginMs), notAfter)
}

/**
 * What a look that found nothing proves.
 * @param look by the data base's clock
 * @param sinceLastMs what this process's monotonic clock says has passed between the end of its own last look that counted
 *   and the beginning of this one; null if there was none
 */
export function absenceOf(
  message: Unsettled,
  lookup: Lookup,
  look: { readonly began: Date; readonly ended: Date },
  sinceLastMs: number | null,
): Absence {
  if (!canProveAbsence(lookup)) return 'early'
  if (look.began < absenceCountsFrom(message, lookup) || look.ended >= looksUntil(message, lookup)) return 'early'
  return sinceLastMs !== null && sinceLastMs >= lookup.settlingMs ? 'proven' : 'once'
}

/** Looking for what a look-up that proves nothing has not shown after so long is of no more use. */
const weakLooksForMs = 86_400_000

function looksUntil(message: Unsettled, lookup: Lookup): Date {
  const { settlingMs, retentionMs, marginMs } = lookup
  const findableMs = retentionMs - marginMs
  return after(
    openSince(message),
    canProveAbsence(lookup) ? findableMs : Math.min(findableMs, weakLooksForMs + settlingMs),
  )
}

/** If nobody saw how a call ended, its owner may wake up yet. */
const leasesIfUnseen = 10

function absenceCountsFrom(message: Unsettled, { settlingMs }: Lookup): Date {
  const ends = unsettledAttempts(message).map(({ startedAt, leaseUntil, endSeen }) =>
    endSeen ? leaseUntil : after(startedAt, (leaseUntil.getTime() - startedAt.getTime()) * leasesIfUnseen),
  )
  return after(new Date(Math.max(...ends.map(Number))), settlingMs)
}

function lookAt(message: Unsettled, lookup: Lookup, now: Date, soonest: number, absence: Absence | undefined): Date {
  if (absence === 'once') return after(now, lookup.settlingMs)
  const counts = absenceCountsFrom(message, lookup)
  const next = after(now, soonest)
  // No step is left out in which an absence could first count.
  return canProveAbsence(lookup) && now < counts ? earlier(next, counts) : next
}

/** What may have arrived, oldest first; the attempt that ended last is among them whatever it ended with. */
const unsettledAttempts = ({ open, attempt }: Unsettled): readonly OpenAttempt[] => [...open, openAttempt(attempt)]
const openSince = (message: Unsettled): Date => unsettledAttempts(message)[0]?.startedAt ?? message.attempt.startedAt

export const openAttempt = ({ id, number, startedAt, leaseUntil, evidence }: EndedAttempt): OpenAttempt => ({
  id,
  number,
  startedAt,
  leaseUntil,
  endSeen: evidence.endUnseen !== true,
})

/** So long before its end a plan takes its last step. */
const lastStepMs = 5_000
const baseMs = 1_000
const capMs = 3_600_000

/** Exponential, half of it by chance: what many lost at one moment is not asked for at one moment. */
const recoveryDelayMs = (steps: number, random: number): number =>
  Math.round(Math.min(capMs, baseMs * 2 ** Math.min(steps, 20)) * (0.5 + random / 2))

const after = (at: Date, ms: number): Date => new Date(at.getTime() + ms)
const earlier = (a: Date, b: Date): Date => (a < b ? a : b)
const later = (a: Date, b: Date): Date => (a > b ? a : b)

/** Under one key of the provider's, and in its window, two acceptances are one. */
export function isOneByKey(known: Attempt, attempt: Attempt, means: RecoveryMeans | null): boolean {
  if (means === null || means.deduplication === null || !isSameProvider(known, attempt)) return false
  const { lifetimeMs, marginMs } = means.deduplication
  return Math.abs(known.startedAt.getTime() - attempt.startedAt.getTime()) < lifetimeMs - marginMs
}

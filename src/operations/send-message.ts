/**
 * POST /v1/messages: who asks first claims the key and sends; whoever asks again gets what came of it.
 *
 * N1. The check stands at the very top: nothing goes out before the key is committed.
 * N2. A refusal is given only after the key was looked up: what was claimed before is answered as what it became.
 * N3. Losers never write. What was read of a key is never sent on; an unclaimed run does not exist.
 * N4. A claim in doubt is read back by message id: ours, go on; absent, claim again; unreadable, 503. One that was absent
 *     may still be made: whatever ends the request from then on, nobody says that nothing was claimed.
 * N6. Where repeats are many the stored answer is asked for first; whatever it does not settle goes the ordinary way.
 */
import { answerFor, type Answer } from '../core/answer.ts'
import { canonicalText, fingerprintMatches } from '../core/fingerprint.ts'
import { attemptOf, type Message } from '../core/message.ts'
import type { Deps } from '../deps.ts'
import type { Provider } from '../providers/provider.ts'
import { StoreLocked, StoreOverloaded, StoreTrouble, StoreUnavailable } from '../store/database-errors.ts'
import type { Claim } from '../store/claim-message.ts'
import type { FoundKey } from '../store/read-messages.ts'
import { callProvider, leaseMsFor, type Lease } from './dispatch-message.ts'
import { newClaim } from './new-message.ts'
import {
  heldFor,
  planNew,
  possibleDuplicate,
  movedOn,
  type Names,
  type Plan,
  type SendRequest,
} from './plan-message.ts'
import type { Release } from './provider-slots.ts'
import { Refusal } from './refusal.ts'
import { repeatOf } from './repeat-of.ts'

/** How long the store gets if the caller wants no wait, or a shorter one. */
const minPatienceMs = 1_500
const asyncPatienceMs = 5_000

/** @param names from `namesOf` @throws Refusal */
export async function sendMessage(deps: Deps, asked: SendRequest, names: Names): Promise<Answer> {
  const since = deps.clock.mark()
  const patienceMs = asked.async ? asyncPatienceMs : Math.max(asked.waitMs, minPatienceMs)
  const known = await withinPatience(deps, answerOrMessage(deps, asked, names), patienceMs)
  if ('answer' in known) return known.answer
  const { message, claimed } = known
  deps.repeats.note(!claimed)
  const leftMs = asked.async ? 0 : asked.waitMs - deps.clock.elapsedMs(since)
  const settled = await deps.waiters.wait(message, leftMs)
  return answerFor(settled, { claimed, async: asked.async }, deps.clock.now())
}

/** A data base that accepts connections and says nothing must not hold the caller; the work itself goes on. */
async function withinPatience<T>(deps: Deps, work: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = deps.clock.after(ms, () => reject(storeUnavailable()))
    work.then(
      (known) => {
        cancel()
        resolve(known)
      },
      (error: unknown) => {
        cancel()
        reject(asRefusal(error))
      },
    )
  })
}

const storeUnavailable = (): Refusal => new Refusal('store-unavailable', null, { sent: 'maybe' }, 1)

interface Known {
  readonly message: Message
  readonly claimed: boolean
}

async function answerOrMessage(deps: Deps, asked: SendRequest, names: Names): Promise<Known | { answer: Answer }> {
  const canonical = canonicalText(asked.request)
  const answer = deps.repeats.areLikely() ? await storedAnswer(deps, asked, names, canonical) : undefined
  return answer === undefined ? claimOrFind(deps, asked, names, canonical) : { answer }
}

/** The stored answer of a repeat whose message is final and whose request is the same; undefined: all else. */
async function storedAnswer(
  deps: Deps,
  { scope }: SendRequest,
  [key]: Names,
  canonical: string,
): Promise<Answer | undefined> {
  const found = await deps.store.findAnswer(scope, key)
  if (found === undefined || !fingerprintMatches(found.fingerprint, canonical)) return undefined
  deps.metrics.claimed('repeat').inc()
  deps.repeats.note(true)
  return { ...found.answer, retryAfterS: null, replayed: true }
}

async function claimOrFind(deps: Deps, asked: SendRequest, names: Names, canonical: string): Promise<Known> {
  const plan = planNew(deps, asked, names)
  if (plan instanceof Refusal) {
    // Whatever speaks against a new message, a repeat is answered as what it became.
    const found = await deps.store.findKey(asked.scope, names)
    if (found === undefined) throw plan
    return { message: await repeat(deps, asked, names, found, canonical), claimed: false }
  }
  return deps.inFlight.track('claim', claim(deps, asked, names, canonical, plan)) // so that a drain waits for it
}

function asRefusal(error: unknown): unknown {
  if (error instanceof StoreOverloaded) return new Refusal('overloaded', null, {}, 1)
  if (error instanceof StoreLocked) return new Refusal('in-progress', null, { sent: 'maybe' }, 1)
  return error instanceof StoreUnavailable ? storeUnavailable() : error
}

/**
 * A repeat. If the reference found it, the key that it came with is a name of this message too from now on: a key that
 * was answered with one message never begins another.
 */
async function repeat(
  deps: Deps,
  { scope }: SendRequest,
  names: Names,
  found: FoundKey,
  canonical: string,
): Promise<Message> {
  const message = repeatOf(found, canonical)
  if (found.key === names[0] || (await deps.store.insertName(scope, names[0], found.key))) return message
  const taken = await deps.store.findKey(scope, [names[0]])
  return taken === undefined ? message : repeatOf(taken, canonical)
}

const maxClaims = 5

async function claim(deps: Deps, asked: SendRequest, names: Names, canonical: string, plan: Plan): Promise<Known> {
  const { provider, times } = plan
  const waitsFor = await heldFor(deps, asked)
  const isLater = asked.async || times.sendAt !== null || waitsFor !== null
  const slot = isLater ? null : await slotFor(deps, asked, names, provider)
  if (slot !== null && typeof slot === 'object')
    return { message: await repeat(deps, asked, names, slot, canonical), claimed: false }
  const release = slot
  const since = deps.clock.mark()
  const leaseMs = release === null ? null : leaseMsFor(deps, provider)
  const manner = { heldFor: waitsFor, duplicateOf: null, leaseMs }
  let toClaim = newClaim(deps, asked, names, canonical, plan, manner)
  let begun = false
  let isInDoubt = false
  try {
    for (let tries = 0; tries < maxClaims; tries++) {
      const { message } = toClaim
      const result = await deps.store.claimMessage(toClaim).catch((error: unknown) => inDoubt(error, isInDoubt))
      isInDoubt ||= result.kind === 'in_doubt'
      const found = result.kind === 'claimed' ? undefined : await readBack(deps, asked, names, isInDoubt)
      const ours = result.kind === 'claimed' ? result.message : oursOf(found, message)
      if (ours !== undefined) {
        noteClaim(deps, ours)
        const attempt = attemptOf(ours.state)
        // While the claim was in doubt others may have gone on: the attempt that stands there then is not ours to make.
        const isMine = attempt !== null && attempt.id === attemptOf(message.state)?.id
        if (release !== null && leaseMs !== null && isMine) {
          // Also if its lease has lapsed while it was in doubt: the write gate is shut then, and the owner says so.
          begun = true
          start(deps, ours, provider, { attempt, since, ms: leaseMs, synchronous: true }, release)
        } else if (ours.state.status === 'queued') deps.nudgeDispatcher()
        return { message: ours, claimed: true }
      }
      if (found !== undefined) {
        deps.metrics.claimed('repeat').inc()
        return { message: await repeat(deps, asked, names, found, canonical), claimed: false }
      }
      const sent = isInDoubt ? 'maybe' : 'no'
      if (result.kind === 'conversation_moved') throw await movedOn(deps, asked, sent)
      if (result.kind === 'intent_taken') {
        const first = await deps.store.findByIntent(asked.scope, asked.request.intent ?? '')
        if (first !== undefined) throw possibleDuplicate(first, 'intent', sent)
      }
      if (result.kind === 'duplicate') {
        const firstId = await firstOfContent(deps, asked, toClaim)
        // Its window has passed meanwhile: then it is claimed again as it is.
        if (firstId === undefined) continue
        if (asked.sender.policy.duplicateGuard.mode === 'refuse') {
          const [first] = await deps.store.findMessages([firstId])
          deps.metrics.duplicates.inc({ became: 'refused' })
          throw possibleDuplicate(first, 'content', sent)
        }
        const held = { heldFor: 'duplicate', duplicateOf: firstId, leaseMs: null, id: message.id } as const
        toClaim = newClaim(deps, asked, names, canonical, plan, held)
      }
    }
    throw new Refusal('in-progress', null, { sent: 'maybe' }, 1)
  } finally {
    if (!begun) release?.()
  }
}

function noteClaim({ metrics }: Deps, { possibleDuplicateOf, heldFor: waitsFor }: Message): void {
  metrics.claimed('claimed').inc()
  if (possibleDuplicateOf !== null) metrics.duplicates.inc({ became: waitsFor === null ? 'sent' : 'held' })
}

/** The message that the guard took this one for a second of: retention may have erased it, where others came after it. */
async function firstOfContent(
  { store }: Deps,
  { scope, request }: SendRequest,
  { guard }: Claim,
): Promise<string | undefined> {
  return guard === null ? undefined : store.findFirstOfContent(scope, request.to, guard.contentHash, guard.windowS)
}

/** A slot that comes free so soon is worth waiting for: a claim without one goes through the data base twice more. */
const maxSlotWaitMs = 1_000

/** A slot for the first call; null: none came free. A repeat needs none, and must not wait for one: it is found instead. */
async function slotFor(
  deps: Deps,
  { scope, waitMs }: SendRequest,
  names: Names,
  provider: Provider,
): Promise<Release | FoundKey | null> {
  const free = deps.slots.tryTake(provider)
  if (free !== null || deps.slots.isStopped(provider.name)) return free
  return (await deps.store.findKey(scope, names)) ?? deps.slots.take(provider, Math.min(waitMs, maxSlotWaitMs))
}

/** What is there after a claim that did not take, or may have. @throws StoreUnavailable: in doubt, and unreadable */
async function readBack(
  deps: Deps,
  { scope }: SendRequest,
  names: Names,
  isInDoubt: boolean,
): Promise<FoundKey | undefined> {
  try {
    return await deps.store.findKey(scope, names)
  } catch (error) {
    throw isInDoubt ? new StoreUnavailable('doubtful', error) : error
  }
}

/** A claim in doubt that was committed is known by the id that it gave its message. */
function oursOf(found: FoundKey | undefined, claimed: Message): Message | undefined {
  return found?.kind === 'message' && found.message.id === claimed.id ? found.message : undefined
}

/**
 * A claim that failed, and may have been committed all the same: it must be read back.
 * @param wasInDoubt an earlier try may be committed yet
 */
function inDoubt(error: unknown, wasInDoubt: boolean): { kind: 'in_doubt' } {
  if (error instanceof StoreUnavailable && error.effect === 'doubtful') return { kind: 'in_doubt' }
  throw wasInDoubt && error instanceof StoreTrouble ? new StoreUnavailable('doubtful', error) : error
}

/** The call goes on whether or not its caller stays: nobody waits for this promise but those who wait for the message. */
function start(deps: Deps, message: Message, provider: Provider, lease: Lease, release: Release): void {
  callProvider(deps, message, provider, lease)
    .catch((error: unknown) => {
      const name = error instanceof Error ? error.name : 'error'
      deps.log.error({ message: message.id, error: name }, 'a send failed in the gateway; its lease will lapse')
    })
    .finally(release)
}

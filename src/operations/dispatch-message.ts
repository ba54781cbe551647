/**
 * The call: an attempt that is committed, the provider, the outcome. No transaction is open while it runs.
 *
 * B1. The attempt is committed before the provider is called; the lease is measured from before that commit.
 * B2. The write gate shuts when half the lease has passed, or notAfter, or the window of a repeat: then no byte leaves.
 * B3. What the provider told is not given up: it is written again and again until it is stored, or the process ends.
 */
import type { Mark } from '../clock.ts'
import { idFromUuid, timeOfUuid } from '../core/ids.ts'
import { attemptOf, type Attempt, type Message } from '../core/message.ts'
import type { On } from '../core/events.ts'
import type { Outcome } from '../core/outcome.ts'
import { mayBeginUntil } from '../core/recovery.ts'
import type { Deps } from '../deps.ts'
import type { AttemptContext, Provider } from '../providers/provider.ts'
import { StoreTrouble, StoreUnavailable } from '../store/database-errors.ts'
import { applyEvent } from './apply-event.ts'
import type { Release } from './provider-slots.ts'
import { canFailOver } from './choose-provider.ts'
import { meansOf } from './recovery-means.ts'

/** A right to act: the attempt is recorded, and until half its lease has passed it may begin. */
export interface Lease {
  readonly attempt: Attempt
  /** Taken before the statement that set the lease was sent. */
  readonly since: Mark
  readonly ms: number
  /** The message was claimed with this attempt, and never waited for a worker. */
  readonly synchronous: boolean
}

export const leaseMsFor = (deps: Deps, provider: Provider): number => provider.callMs + deps.leaseMarginMs

/** An attempt that is about to begin. */
export const newAttempt = (
  deps: Deps,
  provider: Provider,
  number: number,
  startedAt: Date,
  leaseMs: number,
): Attempt => ({
  id: deps.newUuid(),
  number,
  provider: provider.name,
  identity: provider.identity,
  startedAt,
  leaseUntil: new Date(startedAt.getTime() + leaseMs),
})

/**
 * What a provider that takes keys will get, to be kept with the attempt: the same bytes for every attempt of a message.
 * Null for all others.
 */
export function renderedFor(message: Message, provider: Provider, attempt: Attempt): string | null {
  if (provider.capabilities.deduplication === null) return null
  const before = attemptOf(message.state)
  const isKept = message.rendered !== null && (before === null || before.identity === provider.identity)
  return isKept ? message.rendered : provider.render(message.request, contextOf(message, attempt))
}

const contextOf = (message: Message, attempt: Attempt): AttemptContext => ({
  messageId: idFromUuid('message', message.id),
  account: message.account,
  provider: attempt.provider,
  // Known before the claim, and the same for every attempt: the time in the row is the data base's to set.
  createdAt: timeOfUuid(message.id),
  attemptId: idFromUuid('attempt', attempt.id),
  attemptNumber: attempt.number,
  startedAt: attempt.startedAt,
  traceparent: message.traceparent,
})

/**
 * Begins an attempt of a message that waits, or repeats the call of one that is unknown where a warrant allows it.
 * @returns the message as it is afterwards
 */
export async function dispatchMessage(
  deps: Deps,
  message: Message,
  provider: Provider,
  release: Release,
): Promise<Message> {
  const since = deps.clock.mark()
  const ms = leaseMsFor(deps, provider)
  const attempt = newAttempt(deps, provider, message.attempts + 1, later(deps.clock.now(), message.updatedAt), ms)
  const rendered = renderedFor(message, provider, attempt)
  try {
    const begun = await begin(deps, message, { type: 'begin', attempt, means: meansOf(provider), rendered }, ms)
    if (attemptOf(begun.state)?.id !== attempt.id) return begun
    return await callProvider(deps, begun, provider, { attempt, since, ms, synchronous: false })
  } finally {
    release()
  }
}

/** A commit in doubt is read back: if the attempt that stands there is ours, it is ours to make. */
async function begin(deps: Deps, message: Message, event: On<'begin'>, leaseMs: number): Promise<Message> {
  try {
    return (await applyEvent(deps, message, event, { leaseMs })).message
  } catch (error) {
    if (!(error instanceof StoreUnavailable) || error.effect === 'absent') throw error
    const [present] = await deps.store.findMessages([message.id])
    if (present === undefined) throw error
    return present
  }
}

/** Makes the call of an attempt that is recorded, and stores its outcome. */
export async function callProvider(deps: Deps, message: Message, provider: Provider, lease: Lease): Promise<Message> {
  return deps.inFlight.track(message.id, callAndStore(deps, message, provider, lease))
}

async function callAndStore(deps: Deps, message: Message, provider: Provider, lease: Lease): Promise<Message> {
  const { attempt } = lease
  const stopTimer = deps.metrics.attemptTook(provider.name).startTimer()
  const until = mayBeginUntil(message, meansOf(provider))
  const gate = (): boolean => deps.clock.elapsedMs(lease.since) <= lease.ms / 2 && deps.clock.latest() < until
  const outcome = await provider
    .send(message.request, contextOf(message, attempt), gate, message.rendered)
    .catch((error: unknown) => afterBug(deps, message, error))
  stopTimer()
  deps.metrics.attempted(provider.name, outcome.kind).inc()
  noteCredentials(deps, provider, outcome)
  return storeOutcome(deps, message, provider, lease, outcome)
}

/** An adapter threw: a bug, after which nobody knows whether a byte left. */
function afterBug(deps: Deps, message: Message, error: unknown): Outcome {
  deps.log.error({ message: message.id, error: error instanceof Error ? error.name : 'error' }, 'an adapter threw')
  const detail = 'The adapter failed during the call; it may have begun.'
  return { kind: 'unknown', evidence: { phase: 'begun', code: 'adapter failed', detail } }
}

function noteCredentials(deps: Deps, provider: Provider, outcome: Outcome): void {
  if (outcome.kind === 'not_sent' && outcome.reason === 'credentials') {
    deps.slots.stop(provider.name)
    deps.log.error(
      { provider: provider.name, code: outcome.evidence.code },
      'provider refuses our credentials: stopped',
    )
  } else if (outcome.evidence.phase === 'answered') deps.slots.resume(provider.name)
}

/** Our reading of the data base's clock may be a moment behind what it wrote itself. */
const later = (a: Date, b: Date): Date => (a > b ? a : b)

/** A hint, for which no outcome is given up: where it cannot be had, the pause is the ordinary one. */
const mayFailOver = async (deps: Deps, message: Message, attempt: Attempt): Promise<boolean> =>
  canFailOver(deps, message, attempt).catch((error: unknown) => {
    const fields = { message: message.id, error: error instanceof Error ? error.name : 'error' }
    deps.log[error instanceof StoreTrouble ? 'warn' : 'error'](fields, 'the rest of a route could not be looked at')
    return false
  })

/** About a minute of tries. */
const maxTriesAfterBug = 16

async function storeOutcome(
  deps: Deps,
  message: Message,
  provider: Provider,
  lease: Lease,
  outcome: Outcome,
): Promise<Message> {
  const event = {
    type: 'outcome',
    attempt: lease.attempt,
    outcome,
    means: meansOf(provider),
    canFailOver: outcome.kind === 'not_sent' && (await mayFailOver(deps, message, lease.attempt)),
    at: later(deps.clock.now(), message.updatedAt),
    random: deps.random(),
  } as const
  for (let tries = 0; ; tries++) {
    try {
      return (await applyEvent(deps, message, event, { mayHaveDueWork: !lease.synchronous })).message
    } catch (error) {
      // A compare-and-set: to write it again does no harm. What is no trouble of the store is a bug, and still an outcome.
      const isTrouble = error instanceof StoreTrouble
      if (!isTrouble && tries >= maxTriesAfterBug) throw error
      const fields = { message: message.id, tries, error: error instanceof Error ? error.name : 'error' }
      deps.log[isTrouble ? 'warn' : 'error'](fields, 'an outcome could not be stored yet')
      await new Promise<void>((again) => deps.clock.after(Math.min(100 * 2 ** tries, 5_000), again))
    }
  }
}

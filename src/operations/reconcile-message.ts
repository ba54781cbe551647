/**
 * The next step about a message whose outcome is unknown: the same call under the same key, or a question to the provider.
 * What may follow is planned and judged in core/recovery.ts; this file only acts.
 *
 * K1. A replay is an attempt like any other: it is committed with its warrant before it is made.
 * K2. A look-up sends nothing. What it proves of an absence is counted by this process alone, by its monotonic clock.
 * K3. A step that cannot be taken now (no slot, provider stopped or not configured) is put off; one that cannot be taken
 *     any more is planned anew, or given up.
 */
import { idFromUuid } from '../core/ids.ts'
import type { EndedAttempt, Message, Plan } from '../core/message.ts'
import type { LookResult } from '../core/outcome.ts'
import { absenceOf, keyWarrantHolds, type Absence, type RecoveryMeans } from '../core/recovery.ts'
import type { Deps } from '../deps.ts'
import type { Provider } from '../providers/provider.ts'
import { applyEvent } from './apply-event.ts'
import { dispatchMessage } from './dispatch-message.ts'
import { attemptedProvider, meansOf } from './recovery-means.ts'

/** When a look for an attempt's message ended that found nothing, and counts; by attempt id, of this process alone. */
export type Looks = Map<string, number>

const busyPauseMs = 250
const stoppedPauseMs = 5_000
const missingPauseMs = 60_000

/** @returns false: it was put off */
export async function reconcileMessage(deps: Deps, message: Message, looks: Looks): Promise<boolean> {
  const { state } = message
  if (state.status !== 'unknown' || state.plan === null) return true // settled since it was taken
  const provider = attemptedProvider(deps, message)
  const now = deps.clock.now()
  if (provider === undefined && now < state.plan.givesUpAt) {
    deps.log.warn({ message: message.id, provider: state.attempt.provider }, 'its provider is not configured any more')
    return putOff(deps, message, missingPauseMs)
  }
  if (provider === undefined || isOver(message, state.attempt, state.plan, meansOf(provider), now)) {
    const means = provider === undefined ? null : meansOf(provider)
    await applyEvent(deps, message, { type: 'replan', means, at: now, random: deps.random() })
    return true
  }
  const release = await deps.slots.takeAmongOthers(provider)
  if (release === null) return putOff(deps, message, deps.slots.isStopped(provider.name) ? stoppedPauseMs : busyPauseMs)
  await takeStep(deps, message, state.attempt, state.plan, provider, looks, release)
  return true
}

/** The planned step cannot be taken any more: its time is over, or the provider is another one or can do less by now. */
function isOver(message: Message, attempt: EndedAttempt, plan: Plan, means: RecoveryMeans, now: Date): boolean {
  if (now >= plan.givesUpAt) return true
  return plan.step === 'replay'
    ? !keyWarrantHolds({ ...message, attempt }, means, now)
    : means.lookup === null || means.identity !== attempt.identity
}

async function takeStep(
  deps: Deps,
  message: Message,
  attempt: EndedAttempt,
  { step }: Plan,
  provider: Provider,
  looks: Looks,
  release: () => void,
): Promise<void> {
  switch (step) {
    case 'replay':
      await dispatchMessage(deps, message, provider, release)
      return
    case 'look':
      try {
        await look(deps, message, attempt, provider, looks)
      } finally {
        release()
      }
  }
}

async function look(
  deps: Deps,
  message: Message,
  attempt: EndedAttempt,
  provider: Provider,
  looks: Looks,
): Promise<void> {
  const began = deps.clock.now()
  const beganMs = deps.clock.mark().monotonicMs
  const { createdAt, request } = message
  const asked = provider.look(request, { messageId: idFromUuid('message', message.id), createdAt, startedAt: began })
  const result = await deps.inFlight.track(message.id, asked)
  deps.metrics.lookups.inc({ provider: provider.name, result: result.kind })
  const absence = countAbsence(deps, message, attempt, provider, looks, { began, beganMs }, result)
  const at = deps.clock.now()
  const event = {
    type: 'looked',
    attempt,
    result,
    absence,
    means: meansOf(provider),
    at,
    random: deps.random(),
  } as const
  const { decision } = await applyEvent(deps, message, event)
  if (decision.kind === 'transition' && decision.next.status !== 'unknown') looks.delete(attempt.id)
}

function countAbsence(
  deps: Deps,
  message: Message,
  attempt: EndedAttempt,
  { capabilities: { lookup } }: Provider,
  looks: Looks,
  { began, beganMs }: { readonly began: Date; readonly beganMs: number },
  result: LookResult,
): Absence {
  if (result.kind !== 'absent' || lookup === null) return 'early'
  const last = looks.get(attempt.id)
  const absence = absenceOf(
    { ...message, attempt },
    lookup,
    { began, ended: deps.clock.latest() },
    last === undefined ? null : beganMs - last, // the end of that one, to the beginning of this
  )
  if (absence === 'once' && last === undefined) remember(looks, attempt.id, deps.clock.mark().monotonicMs)
  return absence
}

/** Old entries of messages that were settled elsewhere go first. */
const maxLooks = 200_000

function remember(looks: Looks, attemptId: string, now: number): void {
  looks.set(attemptId, now)
  const [oldest] = looks.keys()
  if (looks.size > maxLooks && oldest !== undefined) looks.delete(oldest)
}

async function putOff(deps: Deps, message: Message, ms: number): Promise<false> {
  await deps.store.postponeDue('reconcile', message.id, ms)
  return false
}

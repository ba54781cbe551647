/**
 * A gateway to which something happens at its k-th call of the store or the provider: it dies before or after it, or the
 * store fails it, with or without having done it. What was called before a death goes on in the world; the gateway itself
 * hears nothing any more and does nothing more, as after a SIGKILL.
 */
import { setImmediate as turn } from 'node:timers/promises'
import type { Clock } from '../../src/clock.ts'
import type { Answer } from '../../src/core/answer.ts'
import type { Deps, Log } from '../../src/deps.ts'
import type { Metrics } from '../../src/metrics.ts'
import { inFlight } from '../../src/operations/in-flight.ts'
import { namesOf } from '../../src/operations/plan-message.ts'
import { providerSlots } from '../../src/operations/provider-slots.ts'
import { repeatsSeen } from '../../src/operations/repeats.ts'
import { sendMessage } from '../../src/operations/send-message.ts'
import { waitersFor } from '../../src/operations/wait-for-outcome.ts'
import type { Provider } from '../../src/providers/provider.ts'
import { StoreUnavailable } from '../../src/store/database-errors.ts'
import type { Store } from '../../src/store/store.ts'
import * as dispatcher from '../../src/workers/dispatcher.ts'
import type { Pass } from '../../src/workers/pass.ts'
import { createReconciler } from '../../src/workers/reconciler.ts'
import { createRescuer } from '../../src/workers/rescuer.ts'

export const moments = ['dies before', 'dies after', 'fails', 'in doubt, not done', 'in doubt, done'] as const
export type Moment = (typeof moments)[number]

export interface Mishap {
  /** Counts from 1. */
  readonly at: number
  /** The call that this is. */
  readonly step: string
  readonly moment: Moment
}

export type Task = 'dispatch' | 'reconcile' | 'lease'

/** What a gateway is put into. */
export interface Surroundings {
  readonly store: Store
  readonly clockOf: (isOver: () => boolean) => Clock
  readonly newUuid: () => string
  readonly log: Log
  readonly metrics: Metrics
  readonly providerOf: (step: Step) => Provider
  /** What waits for a worker of this gateway: no step where there is nothing. */
  readonly hasWork: (task: Task) => boolean
}
export type Step = <T>(name: string, work: () => T | Promise<T>) => Promise<T>
export type Asked = Parameters<typeof sendMessage>[1]

export interface Gateway {
  /** The calls that it made, by name. */
  readonly steps: readonly string[]
  readonly isDead: () => boolean
  /** Resolves when it is dead, or does nothing until time passes or somebody asks. */
  quiet(): Promise<void>
  send(asked: Asked): Promise<Answer>
  /** One pass of its workers over what waits for them. */
  work(): void
}

/** Reads of waiters come as often as time passes, and sweeps are notes of a worker to itself. */
const uncounted: readonly string[] = ['findVersions', 'readTime', 'findSweepStart', 'saveSweep']
const writes: readonly string[] = ['claimMessage', 'saveMessage', 'recordEvents', 'postponeDue']
/** What can happen at a step. */
export const momentsAt = (step: string): readonly Moment[] =>
  step === 'provider' || step === 'look'
    ? ['dies before', 'dies after']
    : writes.includes(step)
      ? moments
      : ['dies before', 'dies after', 'fails']

export function mortalGateway(around: Surroundings, mishap: Mishap | null): Gateway {
  const steps: string[] = []
  let dead = false
  const running = new Set<Promise<unknown>>()
  const goesOn = async <T>(work: Promise<T>): Promise<T> => {
    running.add(work)
    return work.finally(() => running.delete(work))
  }
  const never = async <T>(): Promise<T> => new Promise<T>(() => {})
  const step: Step = async <T>(name: string, work: () => T | Promise<T>) => {
    if (dead) return never<T>()
    const moment = steps.push(name) === mishap?.at ? mishap.moment : null
    if (moment === 'dies before') dead = true
    if (dead) return never<T>()
    if (moment === 'fails') throw new StoreUnavailable('absent', 'planned')
    if (moment === 'in doubt, not done') throw new StoreUnavailable('doubtful', 'planned')
    const result = await goesOn(Promise.resolve(work()))
    if (moment === 'dies after') dead = true
    if (dead) return never<T>()
    if (moment === 'in doubt, done') throw new StoreUnavailable('doubtful', 'planned')
    return result
  }
  const store = new Proxy(around.store, {
    get: (target, name: keyof Store) => {
      const method = target[name] as (...args: unknown[]) => Promise<unknown>
      if (!uncounted.includes(name)) return async (...args: unknown[]) => step(name, async () => method(...args))
      return async (...args: unknown[]) => {
        if (dead) return never()
        const result = await goesOn(method(...args))
        return dead ? never() : result
      }
    },
  })
  const clock = around.clockOf(() => dead)
  const provider = around.providerOf(step)
  const calls = inFlight()
  const deps: Deps = {
    store,
    clock,
    providers: { find: () => provider, route: () => [provider], all: () => [provider] },
    newUuid: around.newUuid,
    newSecret: () => '',
    random: () => 0,
    log: around.log,
    metrics: around.metrics,
    slots: providerSlots(clock),
    waiters: waitersFor(store, clock, calls),
    inFlight: calls,
    repeats: repeatsSeen(),
    leaseMarginMs: 2_000,
    acceptsClaims: () => true,
    nudgeDispatcher: () => {},
    nudgeReconciler: () => {},
  }
  const rescuer = createRescuer(deps)
  const reconciler = createReconciler(deps)
  /** As the loop does: a pass that fails is followed by the next one. */
  const pass = (run: () => Promise<Pass | object>): void => void run().catch(() => {})

  return {
    steps,
    isDead: () => dead,
    quiet: async () => {
      // All that a gateway does follows from its calls, from timers, and from what is asked of it.
      for (let calm = 0; calm < 2; calm = running.size === 0 ? calm + 1 : 0) {
        await Promise.allSettled(running)
        await turn()
      }
    },
    send: async (asked) => sendMessage(deps, asked, namesOf(asked)),
    work: () => {
      if (around.hasWork('lease')) pass(async () => rescuer.runOnce())
      if (around.hasWork('reconcile')) pass(async () => reconciler.runOnce())
      if (around.hasWork('dispatch')) pass(async () => dispatcher.runOnce(deps))
    },
  }
}

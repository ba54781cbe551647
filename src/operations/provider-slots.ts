/**
 * How many calls run to each provider at one time, and which providers are stopped. The limit is kept here, outside
 * undici: a call that waits in undici's queue honours neither a signal nor a time-out.
 *
 * L1. A slot is given before the claim, so the lease of an attempt is never spent on waiting for one.
 * L2. Whoever waits for a slot gets one in the order of asking; nobody overtakes, and nobody waits longer than it said.
 * L3. A provider that refused our credentials gets no call until its pause is over; then one call may try.
 */
import type { Clock, Mark } from '../clock.ts'
import type { Provider } from '../providers/provider.ts'
import { credentialsPauseMs } from '../core/schedule.ts'

/** Gives the slot back; more than once is once. */
export type Release = () => void

export interface ProviderSlots {
  /** Null: none is free, or the provider is stopped. */
  tryTake(provider: Provider): Release | null
  /** Waits for one, if need be. Null: none came free within `ms`, or the provider is stopped. */
  take(provider: Provider, ms: number): Promise<Release | null>
  /** For a worker: a free slot, or where requests wait for one, a place in their queue. Null: there was none. */
  takeAmongOthers(provider: Provider): Promise<Release | null>
  /** How many wait. */
  waiting(): number
  stop(provider: string): void
  /** A call was answered with anything but a refusal of our credentials. */
  resume(provider: string): void
  isStopped(provider: string): boolean
  inUse(provider: string): number
}

/** How long a worker stands in the queue; after that its message is put off. */
const workersWaitMs = 2_000

export function providerSlots(clock: Clock): ProviderSlots {
  const used = new Map<string, number>()
  const stopped = new Map<string, Mark>()
  const queues = new Map<string, Set<(release: Release | null) => void>>()
  const inUse = (name: string): number => used.get(name) ?? 0
  const waitingFor = (name: string): number => queues.get(name)?.size ?? 0

  const give = (name: string): Release => {
    used.set(name, inUse(name) + 1)
    let released = false
    return () => {
      if (released) return
      released = true
      used.set(name, inUse(name) - 1)
      const [next] = queues.get(name) ?? []
      if (next !== undefined) next(stopped.has(name) ? null : give(name))
    }
  }
  const tryTake: ProviderSlots['tryTake'] = ({ name, concurrency }) => {
    const stoppedAt = stopped.get(name)
    if (stoppedAt !== undefined) {
      if (inUse(name) > 0 || clock.elapsedMs(stoppedAt) < credentialsPauseMs) return null
    } else if (inUse(name) >= concurrency || waitingFor(name) > 0) return null
    return give(name)
  }
  const take: ProviderSlots['take'] = async (provider, ms) => {
    const { name } = provider
    const taken = tryTake(provider)
    if (taken !== null || ms <= 0 || stopped.has(name)) return taken
    return new Promise((resolve) => {
      const queue = queues.get(name) ?? new Set()
      const end = (release: Release | null): void => {
        cancel()
        queue.delete(end)
        resolve(release)
      }
      const cancel = clock.after(ms, () => end(null))
      queues.set(name, queue.add(end))
    })
  }
  const waiting = (): number => [...queues.values()].reduce((sum, { size }) => sum + size, 0)
  return {
    tryTake,
    take,
    takeAmongOthers: async (provider) => tryTake(provider) ?? (waiting() > 0 ? take(provider, workersWaitMs) : null),
    waiting,
    stop: (name) => {
      stopped.set(name, clock.mark())
      for (const end of queues.get(name) ?? []) end(null)
    },
    resume: (name) => void stopped.delete(name),
    isStopped: (name) => stopped.has(name),
    inUse,
  }
}

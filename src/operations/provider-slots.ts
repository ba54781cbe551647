/**
 * How many calls run to each provider at one time, and which providers are stopped. The limit is kept here, outside
 * undici: a call that waits in undici's queue honours neither a signal nor a time-out.
 *
 * L1. A slot is given before the claim, so the lease of an attempt is never spent on waiting for one.
 * L2. A provider that refused our credentials gets no call until its pause is over; then one call may try.
 */
import type { Clock, Mark } from '../clock.ts'
import type { Provider } from '../providers/provider.ts'
import { credentialsPauseMs } from '../core/schedule.ts'

/** Gives the slot back; more than once is once. */
export type Release = () => void

export interface ProviderSlots {
  /** Null: none is free, or the provider is stopped. */
  tryTake(provider: Provider): Release | null
  stop(provider: string): void
  /** A call was answered with anything but a refusal of our credentials. */
  resume(provider: string): void
  isStopped(provider: string): boolean
  inUse(provider: string): number
}

export function providerSlots(clock: Clock): ProviderSlots {
  const used = new Map<string, number>()
  const stopped = new Map<string, Mark>()
  const inUse = (name: string): number => used.get(name) ?? 0
  return {
    tryTake: (provider) => {
      const { name } = provider
      const stoppedAt = stopped.get(name)
      if (stoppedAt !== undefined) {
        if (inUse(name) > 0 || clock.elapsedMs(stoppedAt) < credentialsPauseMs) return null
      } else if (inUse(name) >= provider.concurrency) return null
      used.set(name, inUse(name) + 1)
      let released = false
      return () => {
        if (!released) used.set(name, inUse(name) - 1)
        released = true
      }
    },
    stop: (name) => void stopped.set(name, clock.mark()),
    resume: (name) => void stopped.delete(name),
    isStopped: (name) => stopped.has(name),
    inUse,
  }
}

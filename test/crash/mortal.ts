/**
 * A gateway that dies: before or after its k-th call of the store or the provider. What was called before goes on in the
 * world; the gateway itself hears nothing any more and does nothing more, as after a SIGKILL.
 */
import type { Outcome } from '../../src/core/outcome.ts'
import type { Deps } from '../../src/deps.ts'
import { inFlight } from '../../src/operations/in-flight.ts'
import { providerSlots } from '../../src/operations/provider-slots.ts'
import { waitersFor } from '../../src/operations/wait-for-outcome.ts'
import type { Store } from '../../src/store/store.ts'
import { fakeProvider, type Call } from '../support/gateway.ts'

export interface Death {
  /** Counts from 1. */
  readonly at: number
  readonly moment: 'before' | 'after'
}

export interface Life {
  readonly deps: Deps
  /** Resolves when it dies; never, if it does not. */
  readonly death: Promise<'dead'>
  readonly isDead: () => boolean
  /** The calls that it made, by name. */
  readonly steps: readonly string[]
}

/** Reads of waiters come as often as time passes, and change nothing. */
const uncounted = new Set(['findVersions', 'readTime'])

/**
 * What a gateway has of its own is new; the store, and the rest, are of one that lives on.
 * @param vendor what becomes of a call that reaches the provider
 */
export function mortalGateway(others: Deps, vendor: (call: Call) => Outcome, death: Death): Life {
  const steps: string[] = []
  const { promise, resolve: announce } = Promise.withResolvers<'dead'>()
  let dead = false
  const never = async <T>(): Promise<T> => new Promise<T>(() => {})
  const step = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    if (dead) return never()
    const nth = steps.push(name)
    const die = async (): Promise<T> => {
      dead = true
      announce('dead')
      return never()
    }
    if (nth === death.at && death.moment === 'before') return die()
    const result = await work()
    if (dead) return never()
    return nth === death.at ? die() : result
  }

  const provider = fakeProvider('fake', { callMs: 200 })
  provider.answer = async (call) => step('provider', async () => vendor(call))
  const store = new Proxy(others.store, {
    get: (target, name: keyof Store) => {
      const method = target[name] as (...args: unknown[]) => Promise<unknown>
      return uncounted.has(name) ? method : async (...args: unknown[]) => step(name, async () => method(...args))
    },
  })
  const calls = inFlight()
  const deps: Deps = {
    ...others,
    store,
    providers: { find: () => provider, route: () => [provider], all: () => [provider] },
    slots: providerSlots(others.clock),
    waiters: waitersFor(store, others.clock, calls),
    inFlight: calls,
    leaseMarginMs: 100,
  }
  return { deps, death: promise, isDead: () => dead, steps }
}

/** What operations and workers are given; a test gives other ones. */
import type { Clock } from './clock.ts'
import type { Channel, Environment } from './core/message-content.ts'
import type { Metrics } from './metrics.ts'
import type { InFlight } from './operations/in-flight.ts'
import type { Repeats } from './operations/repeats.ts'
import type { Waiters } from './operations/wait-for-outcome.ts'
import type { Provider } from './providers/provider.ts'
import type { ProviderSlots } from './operations/provider-slots.ts'
import type { Store } from './store/store.ts'

/** Structured log lines; no recipient, text, key or secret is ever given to it. */
export interface Log {
  debug(fields: object, text: string): void
  info(fields: object, text: string): void
  warn(fields: object, text: string): void
  error(fields: object, text: string): void
}

export interface Providers {
  find(name: string, environment: Environment): Provider | undefined
  /** The providers that the route of a channel leads to, in their order. */
  route(channel: Channel, environment: Environment): readonly Provider[]
  all(): readonly Provider[]
}

export interface Deps {
  readonly store: Store
  readonly providers: Providers
  readonly clock: Clock
  /** A UUIDv7. */
  readonly newUuid: () => string
  /** For an API key. */
  readonly newSecret: () => string
  /** In [0, 1). */
  readonly random: () => number
  readonly log: Log
  readonly metrics: Metrics
  readonly slots: ProviderSlots
  readonly waiters: Waiters
  readonly inFlight: InFlight
  readonly repeats: Repeats
  readonly leaseMarginMs: number
  /** False once a drain has let the last requests in: nothing new is begun. */
  readonly acceptsClaims: () => boolean
  /** Tells the dispatcher of this process, if it has one, that something is due now. */
  readonly nudgeDispatcher: () => void
  /** Tells the reconciler of this process, if it has one, when a step will be due. */
  readonly nudgeReconciler: (at: Date) => void
}

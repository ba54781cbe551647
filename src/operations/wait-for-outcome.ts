/**
 * Waiting for a message to be settled, in whichever process it is worked on. One batched query a process and interval,
 * no connection a waiter; what this process itself changes is told at once.
 *
 * V1. A wait ends when the message is settled, held or scheduled, or unknown with no step due in time; when its time is over;
 *     or when the process drains and the call is not its own. It never ends later than its time.
 */
import type { Clock } from '../clock.ts'
import type { Message } from '../core/message.ts'
import type { Store } from '../store/store.ts'
import type { InFlight } from './in-flight.ts'

/** How often messages that other processes work on are looked at. */
const pollMs = 40

export interface Waiters {
  /** The message as it is when the wait ends. */
  wait(message: Message, ms: number): Promise<Message>
  /** A message changed in this process. */
  publish(message: Message): void
  count(): number
  /** From now on, waits end at once unless the call is ours. */
  drain(): void
}

/** Nothing will happen by itself until then that a caller could wait for. */
export function isSettled({ state }: Message, until: Date): boolean {
  switch (state.status) {
    case 'sent':
    case 'failed':
    case 'canceled':
    case 'held':
    case 'scheduled':
      return true
    case 'unknown':
      return state.plan === null || state.plan.at > until
    case 'queued':
    case 'sending':
      return false
  }
}

interface Waiter {
  latest: Message
  /** When its time is over, by the data base's clock. */
  readonly until: Date
  end: () => void
}

export function waitersFor(store: Store, clock: Clock, calls: InFlight): Waiters {
  const waiting = new Map<string, Set<Waiter>>()
  let count = 0 // asked for by each send, so it is not counted each time
  let draining = false
  let polling = false

  const publish = (message: Message): void => {
    for (const waiter of waiting.get(message.id) ?? []) {
      if (message.version < waiter.latest.version) continue
      waiter.latest = message
      if (isSettled(message, waiter.until)) waiter.end()
    }
  }

  const poll = async (): Promise<void> => {
    const known = new Map<string, number>()
    for (const [id, waiters] of waiting)
      for (const { latest } of waiters)
        if (!calls.has(id)) known.set(id, Math.min(known.get(id) ?? Infinity, latest.version))
    if (known.size === 0) return
    const versions = await store.findVersions([...known.keys()])
    const changed = [...known].filter(([id, version]) => (versions.get(id) ?? 0) > version).map(([id]) => id)
    if (changed.length > 0) for (const message of await store.findMessages(changed)) publish(message)
  }

  const keepPolling = (): void => {
    if (polling || waiting.size === 0) return
    polling = true
    clock.after(pollMs, () => {
      void poll()
        .catch(() => {}) // the data base is away: the waits go on, and end in time with what is known
        .finally(() => {
          polling = false
          keepPolling()
        })
    })
  }

  return {
    publish,
    count: () => count,
    drain: () => {
      draining = true
      for (const [id, waiters] of waiting) if (!calls.has(id)) for (const waiter of waiters) waiter.end()
    },
    wait: async (message, ms) => {
      const until = new Date(clock.now().getTime() + ms)
      if (ms <= 0 || isSettled(message, until) || (draining && !calls.has(message.id))) return message
      return new Promise((resolve) => {
        const waiters = waiting.get(message.id) ?? new Set()
        const waiter: Waiter = {
          latest: message,
          until,
          end: () => {
            cancel()
            if (waiters.delete(waiter)) count--
            if (waiters.size === 0) waiting.delete(message.id)
            resolve(waiter.latest)
          },
        }
        const cancel = clock.after(ms, waiter.end)
        waiting.set(message.id, waiters.add(waiter))
        count++
        keepPolling()
      })
    },
  }
}

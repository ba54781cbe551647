/**
 * Time. `now()` is the data base's clock, estimated: read now and then, and carried on between by the monotonic clock,
 * so that every gateway on one data base has the same time whatever its own clock says.
 */
import { performance } from 'node:perf_hooks'

/** An instant of this process, for measuring what has passed since. */
export interface Mark {
  readonly monotonicMs: number
  readonly wallMs: number
}

export interface Clock {
  now(): Date
  mark(): Mark
  /** The larger of what the monotonic and the wall clock say: a process that was stopped must not believe it was not. */
  elapsedMs(since: Mark): number
  /** Calls back after `ms`, unless the returned function is called before. */
  after(ms: number, work: () => void): () => void
}

export interface DatabaseClock extends Clock {
  /** Reads the data base's time. */
  synchronise(): Promise<void>
}

/** What a process has of its own to measure time with. */
export interface Machine {
  readonly monotonicMs: () => number
  readonly wallMs: () => number
  readonly after: (ms: number, work: () => void) => () => void
}

const thisMachine: Machine = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  after: (ms, work) => {
    const timer = setTimeout(work, ms)
    return () => clearTimeout(timer)
  },
}

/** @param machine of a simulated process: its own */
export function databaseClock(readTime: () => Promise<Date>, machine: Machine = thisMachine): DatabaseClock {
  const { monotonicMs, wallMs, after } = machine
  let known = { databaseMs: wallMs(), atMs: monotonicMs() }
  return {
    now: () => new Date(known.databaseMs + monotonicMs() - known.atMs),
    mark: () => ({ monotonicMs: monotonicMs(), wallMs: wallMs() }),
    elapsedMs: (since) => Math.max(monotonicMs() - since.monotonicMs, wallMs() - since.wallMs),
    after,
    synchronise: async () => {
      const asked = monotonicMs()
      const time = await readTime()
      known = { databaseMs: time.getTime(), atMs: (asked + monotonicMs()) / 2 }
    },
  }
}

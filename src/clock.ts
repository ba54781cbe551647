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

export function databaseClock(readTime: () => Promise<Date>): DatabaseClock {
  let known = { databaseMs: Date.now(), atMs: performance.now() }
  return {
    now: () => new Date(known.databaseMs + performance.now() - known.atMs),
    mark: () => ({ monotonicMs: performance.now(), wallMs: Date.now() }),
    elapsedMs: (since) => Math.max(performance.now() - since.monotonicMs, Date.now() - since.wallMs),
    after: (ms, work) => {
      const timer = setTimeout(work, ms)
      return () => clearTimeout(timer)
    },
    synchronise: async () => {
      const before = performance.now()
      const time = await readTime()
      const after = performance.now()
      known = { databaseMs: time.getTime(), atMs: (before + after) / 2 }
    },
  }
}

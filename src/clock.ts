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
  /**
   * The latest that it can be by now: as `now()`, unless the wall clock says that more has passed since the data base's was
   * read. What must not be done after an instant is held against this: a machine that slept does not know that it did.
   */
  latest(): Date
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

interface Reading {
  readonly databaseMs: number
  readonly atMs: number
  readonly atWallMs: number
  /** By so much it may be wrong: half of what it took. */
  readonly errorMs: number
}

/** A reading that may be wrong by more is made again: the process was stopped meanwhile, say. The best is taken. */
const goodErrorMs = 250
const maxReadings = 3

/** @param machine of a simulated process: its own */
export function databaseClock(readTime: () => Promise<Date>, machine: Machine = thisMachine): DatabaseClock {
  const { monotonicMs, wallMs, after } = machine
  let known: Reading = { databaseMs: wallMs(), atMs: monotonicMs(), atWallMs: wallMs(), errorMs: 0 }
  const elapsedMs = (since: Mark): number => Math.max(monotonicMs() - since.monotonicMs, wallMs() - since.wallMs)
  const read = async (): Promise<Reading> => {
    const asked: Mark = { monotonicMs: monotonicMs(), wallMs: wallMs() }
    const time = await readTime()
    const tripMs = monotonicMs() - asked.monotonicMs
    return {
      databaseMs: time.getTime(),
      atMs: asked.monotonicMs + tripMs / 2,
      atWallMs: asked.wallMs + tripMs / 2,
      errorMs: elapsedMs(asked) / 2,
    }
  }
  return {
    now: () => new Date(known.databaseMs + monotonicMs() - known.atMs),
    latest: () => {
      const { databaseMs, atMs: monotonicAtMs, atWallMs, errorMs } = known
      return new Date(databaseMs + errorMs + elapsedMs({ monotonicMs: monotonicAtMs, wallMs: atWallMs }))
    },
    mark: () => ({ monotonicMs: monotonicMs(), wallMs: wallMs() }),
    elapsedMs,
    after,
    synchronise: async () => {
      let best = await read()
      for (let readings = 1; readings < maxReadings && best.errorMs > goodErrorMs; readings++) {
        const reading = await read()
        if (reading.errorMs < best.errorMs) best = reading
      }
      known = best
    },
  }
}

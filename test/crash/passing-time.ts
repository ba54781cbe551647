/**
 * Time that stands still until a test lets it pass: the data base's own `now()`, the clocks of all gateways on it, and
 * the world's (a provider that acts later). Leases, windows, absences and pauses are then what they are in production,
 * only that nobody waits for them.
 */
import type pg from 'pg'
import type { Clock } from '../../src/clock.ts'

export interface PassingTime {
  nowMs(): number
  /** When the next timer of a process that lives will go off; null if none runs. */
  nextTimerMs(): number | null
  /** Time passes until then, and timers go off. */
  passTo(ms: number): Promise<void>
  /** The clock of a process; its timers end with it. */
  clockOf(isOver: () => boolean): Clock
}

interface Timer {
  readonly atMs: number
  readonly work: () => void
  readonly isOver: () => boolean
}

/** Call it before anything else connects: connections look `now()` up by the search path that they find. */
export async function stopTime(database: pg.Client): Promise<PassingTime> {
  let nowMs = Date.now()
  let timers: Timer[] = []
  const { database: name = '' } = database
  await database.query(`
    CREATE SCHEMA passing;
    CREATE TABLE passing.time (now timestamptz NOT NULL);
    INSERT INTO passing.time VALUES ('${new Date(nowMs).toISOString()}');
    CREATE FUNCTION passing.now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT now FROM passing.time';
    ALTER TABLE messages ALTER created_at SET DEFAULT passing.now(), ALTER updated_at SET DEFAULT passing.now();
    ALTER DATABASE ${name} SET search_path = passing, pg_catalog, public`)
  return {
    nowMs: () => nowMs,
    nextTimerMs: () => {
      timers = timers.filter(({ isOver }) => !isOver())
      return timers.length === 0 ? null : Math.min(...timers.map(({ atMs }) => atMs))
    },
    passTo: async (ms) => {
      nowMs = Math.max(nowMs, ms)
      await database.query('UPDATE passing.time SET now = $1', [new Date(nowMs)])
      const due = timers.filter(({ atMs }) => atMs <= nowMs)
      timers = timers.filter(({ atMs }) => atMs > nowMs)
      for (const { work, isOver } of due.toSorted((a, b) => a.atMs - b.atMs)) if (!isOver()) work()
    },
    clockOf: (isOver) => ({
      now: () => new Date(nowMs),
      latest: () => new Date(nowMs),
      mark: () => ({ monotonicMs: nowMs, wallMs: nowMs }),
      elapsedMs: (since) => nowMs - since.monotonicMs,
      after: (ms, work) => {
        const timer = { atMs: nowMs + Math.ceil(ms), work, isOver }
        timers.push(timer)
        return () => {
          timers = timers.filter((other) => other !== timer)
        }
      },
    }),
  }
}

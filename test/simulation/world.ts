/**
 * The simulated world: one clock, one queue of events, one source of chance. Everything that takes time in a simulated
 * part is an event here; nothing in it uses a timer, a socket, the time or chance of the machine.
 *
 * W1. One seed is one history: events of one instant come in an order that chance decides, and nothing else does.
 * W2. Between two events everything that the first one made possible has run: a tick that is asked for by a microtask
 *     comes when Node's microtask queue is empty, so nothing has to guess how long a chain of promises is.
 * W3. A process that is dead runs nothing any more; one that is paused runs what became due when it goes on.
 */
import type { Chance } from './chance.ts'
import type { Seen, Sometimes } from './sometimes.ts'

interface SimEvent {
  readonly at: number
  readonly order: number
  readonly process: Process | null
  readonly work: () => void
  canceled: boolean
}

export interface World {
  readonly chance: Chance
  /** Milliseconds since the beginning: the true time, and the data base's. */
  readonly now: () => number
  /** Of the world itself, or of things that no fault of a gateway touches. @returns cancels it */
  readonly after: (ms: number, work: () => void) => () => void
  readonly newProcess: (name: string) => Process
  /** Runs events until none is due before `until`, or `isOver` says so. */
  readonly run: (until: number, isOver?: () => boolean) => Promise<void>
  /** A line of the history; only a run that is traced makes them. */
  readonly note: (who: string, what: () => string) => void
  readonly lines: readonly string[]
  /** Something that good runs show now and then. */
  readonly sometimes: (name: Sometimes) => void
  readonly seen: Seen
}

/** What lives and dies: one incarnation of a gateway. */
export interface Process {
  readonly name: string
  readonly isAlive: () => boolean
  readonly isPaused: () => boolean
  readonly after: (ms: number, work: () => void) => () => void
  readonly die: () => void
  readonly pause: () => void
  readonly resume: () => void
}

/** The data base's time when the world begins. */
export const epochMs = Date.UTC(2026, 11, 1)

export function createWorld(chance: Chance, isTraced: boolean): World {
  const queue = eventQueue()
  const lines: string[] = []
  const seen = new Map<Sometimes, number>()
  let now = 0

  const schedule = (ms: number, process: Process | null, work: () => void): (() => void) => {
    const event = { at: now + Math.max(0, Math.ceil(ms)), order: chance.random(), process, work, canceled: false }
    queue.push(event)
    return () => void (event.canceled = true)
  }

  const newProcess = (name: string): Process => {
    let state: 'alive' | 'paused' | 'dead' = 'alive'
    let held: (() => void)[] = []
    const process: Process = {
      name,
      isAlive: () => state !== 'dead',
      isPaused: () => state === 'paused',
      after: (ms, work) => {
        if (state === 'dead') return () => {}
        let canceled = false
        const cancel = schedule(ms, process, () => {
          if (canceled || state === 'dead') return
          if (state === 'paused') held.push(() => canceled || state === 'dead' || work())
          else work()
        })
        return () => {
          canceled = true
          cancel()
        }
      },
      die: () => {
        state = 'dead'
        held = []
      },
      pause: () => {
        if (state === 'alive') state = 'paused'
      },
      resume: () => {
        if (state !== 'paused') return
        state = 'alive'
        // Each is an event of its own: what waited may come in any order, and something else may come in between.
        for (const work of held.splice(0)) process.after(0, work)
      },
    }
    return process
  }

  return {
    chance,
    lines,
    seen,
    now: () => now,
    after: (ms, work) => schedule(ms, null, work),
    newProcess,
    note: (who, what) => {
      if (isTraced) lines.push(`${(now / 1000).toFixed(3).padStart(9)} s  ${who.padEnd(12)} ${what()}`)
    },
    sometimes: (name) => void seen.set(name, (seen.get(name) ?? 0) + 1),
    run: async (until, isOver = () => false) => {
      await drained()
      while (!isOver()) {
        const event = queue.popBefore(until)
        if (event === undefined) break
        now = event.at
        event.work()
        await drained()
      }
      if (!isOver()) now = Math.max(now, until)
    },
  }
}

/** Resolves when the microtask queue is empty (W2). The tick is asked for by a microtask: else it would come before them. */
const drained = async (): Promise<void> => {
  await Promise.resolve()
  await new Promise<void>((resolve) => process.nextTick(resolve))
}

/** A binary heap by time, then by chance. */
function eventQueue() {
  const heap: SimEvent[] = []
  const before = (a: SimEvent, b: SimEvent): boolean => a.at < b.at || (a.at === b.at && a.order < b.order)
  const at = (i: number): SimEvent => heap[i] as SimEvent
  const swap = (i: number, j: number): void => {
    const event = at(i)
    heap[i] = at(j)
    heap[j] = event
  }
  const pop = (): void => {
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return
    heap[0] = last
    for (let i = 0; ;) {
      const left = 2 * i + 1
      if (left >= heap.length) return
      const least = left + 1 < heap.length && before(at(left + 1), at(left)) ? left + 1 : left
      if (!before(at(least), at(i))) return
      swap(i, least)
      i = least
    }
  }
  return {
    push: (event: SimEvent): void => {
      heap.push(event)
      for (let i = heap.length - 1; i > 0;) {
        const parent = (i - 1) >> 1
        if (!before(at(i), at(parent))) return
        swap(i, parent)
        i = parent
      }
    },
    /** The next event that is not canceled, unless it is later than `until`. */
    popBefore: (until: number): SimEvent | undefined => {
      for (;;) {
        const [first] = heap
        if (first === undefined || (first.at > until && !first.canceled)) return undefined
        pop()
        if (!first.canceled) return first
      }
    },
  }
}

/**
 * Groups: what many requests want of the data base at the same moment goes there in one statement. A group forms while
 * the one before it is on the wire, so its size follows the load, and nothing ever waits on a timer.
 *
 * G1. Each member goes on only after the statement that held it was committed.
 * G2. An error that is one member's own (a constraint) fails that member alone: its group is tried again in halves.
 *     One that waits for a lock is left to wait alone: its group is tried again one by one, off the wire.
 * G3. An error that leaves the statement in doubt leaves every member in doubt; each reads its own row back.
 * G4. Bounded, in members and in bytes: the group, and what waits. Beyond that a member is refused, and not written.
 *     Two groups are on the wire at one time, beside members that are tried again alone (G2).
 */
import { StoreLocked, StoreOverloaded, StoreUnavailable } from './database-errors.ts'

const maxGroup = 256
/** A statement must be done well within the statement time-out; one larger member goes alone. */
const maxGroupBytes = 1_048_576
const maxWaitingBytes = 128 * 1_048_576
const maxOnTheWire = 2
const maxWaiting = 4_096

interface Waiting<Item, Result> {
  readonly item: Item
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

/**
 * @param flush runs one statement for all items and gives one result for each, in their order
 * @param sizeOf about how many bytes an item adds to the statement
 * @param soon runs what it is given when this turn of the event loop is over
 */
export function grouped<Item, Result>(
  flush: (items: readonly Item[]) => Promise<readonly Result[]>,
  sizeOf: (item: Item) => number = () => 0,
  soon: (work: () => void) => void = setImmediate,
): (item: Item) => Promise<Result> {
  let waiting: Waiting<Item, Result>[] = []
  let waitingBytes = 0
  let onTheWire = 0
  let scheduled = false

  const send = async (group: readonly Waiting<Item, Result>[]): Promise<void> => {
    try {
      const results = await flush(group.map(({ item }) => item))
      group.forEach(({ resolve }, i) => resolve(results[i] as Result))
    } catch (error) {
      const membersOwn = !(error instanceof StoreUnavailable || error instanceof StoreOverloaded)
      if (error instanceof StoreLocked && group.length > 1) for (const member of group) void send([member])
      else if (membersOwn && group.length > 1) {
        const half = group.length >> 1
        await send(group.slice(0, half))
        await send(group.slice(half))
      } else for (const { reject } of group) reject(error)
    }
  }
  const takeGroup = (): Waiting<Item, Result>[] => {
    let bytes = 0
    let members = 0
    for (const { item } of waiting) {
      bytes += sizeOf(item)
      if (members === maxGroup || (members > 0 && bytes > maxGroupBytes)) break
      members++
    }
    const group = waiting.slice(0, members)
    waiting = waiting.slice(members)
    waitingBytes -= group.reduce((sum, { item }) => sum + sizeOf(item), 0)
    return group
  }
  const next = (): void => {
    scheduled = false
    while (onTheWire < maxOnTheWire && waiting.length > 0) {
      const group = takeGroup()
      onTheWire++
      void send(group).finally(() => {
        onTheWire--
        next()
      })
    }
  }
  return (item) =>
    new Promise((resolve, reject) => {
      const bytes = sizeOf(item)
      if (waiting.length >= maxWaiting || waitingBytes + bytes > maxWaitingBytes) return reject(new StoreOverloaded())
      waitingBytes += bytes
      waiting.push({ item, resolve, reject })
      if (scheduled || onTheWire >= maxOnTheWire) return
      scheduled = true
      soon(next) // what arrived in this turn of the event loop goes together
    })
}

/**
 * Groups: what many requests want of the data base at the same moment goes there in one statement. A group forms while
 * the one before it is on the wire, so its size follows the load, and nothing ever waits on a timer.
 *
 * G1. Each member goes on only after the statement that held it was committed.
 * G2. An error that is one member's own (a constraint) fails that member alone: its group is tried again in halves.
 *     One that waits for a lock is left to wait alone: its group is tried again one by one, off the wire.
 * G3. An error that leaves the statement in doubt leaves every member in doubt; each reads its own row back.
 * G4. Bounded: the group, the groups on the wire, and what waits. Beyond that a member is refused, and not written.
 */
import { StoreLocked, StoreOverloaded, StoreUnavailable } from './database-errors.ts'

const maxGroup = 256
const maxOnTheWire = 2
const maxWaiting = 4_096

interface Waiting<Item, Result> {
  readonly item: Item
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

/** @param flush runs one statement for all items and gives one result for each, in their order */
export function grouped<Item, Result>(
  flush: (items: readonly Item[]) => Promise<readonly Result[]>,
): (item: Item) => Promise<Result> {
  let waiting: Waiting<Item, Result>[] = []
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
  const next = (): void => {
    scheduled = false
    while (onTheWire < maxOnTheWire && waiting.length > 0) {
      const group = waiting.slice(0, maxGroup)
      waiting = waiting.slice(maxGroup)
      onTheWire++
      void send(group).finally(() => {
        onTheWire--
        next()
      })
    }
  }
  return (item) =>
    new Promise((resolve, reject) => {
      if (waiting.length >= maxWaiting) return reject(new StoreOverloaded())
      waiting.push({ item, resolve, reject })
      if (scheduled || onTheWire >= maxOnTheWire) return
      scheduled = true
      setImmediate(next) // what arrived in this turn of the event loop goes together
    })
}

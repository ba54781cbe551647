/** Two stores on one simulated data base, in fair weather, whose world runs while something is asked of them. */
import type { Store } from '../../src/store/store.ts'
import { chanceFrom } from './chance.ts'
import { connectedStore } from './connection.ts'
import { emptyTables } from './tables.ts'
import { createWorld } from './world.ts'

export function simulatedStores(): readonly [Store, Store] {
  const world = createWorld(chanceFrom(1), false)
  const tables = emptyTables()
  const server = {
    tables,
    down: false,
    troubledUntilMs: 0,
    changed: () => {},
    received: () => {},
    executed: () => {},
    claimedBy: new Map(),
  }
  const weather = { storeFaultRate: 0, storeFaults: [], stopsInDoubt: 0 }
  const asked = new Set<Promise<unknown>>()
  let running: Promise<void> | null = null

  /** Runs the world until all that was asked is answered. */
  const run = async (): Promise<void> => {
    while (asked.size > 0) await world.run(world.now() + 10_000, () => asked.size === 0)
    running = null
  }
  const store = (name: string): Store => {
    const process = world.newProcess(name)
    const real = connectedStore({
      world,
      server,
      process,
      weather,
      stop: () => {},
      reaches: () => true,
      doubted: () => {},
    })
    return new Proxy(real, {
      get:
        (target, method: keyof Store) =>
        async (...values: unknown[]) => {
          const answer = (target[method] as (...given: unknown[]) => Promise<unknown>)(...values)
          asked.add(answer)
          const forget = (): void => void asked.delete(answer)
          answer.then(forget, forget)
          running ??= run()
          return answer
        },
    })
  }
  return [store('one'), store('other')]
}

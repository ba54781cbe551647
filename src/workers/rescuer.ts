/**
 * Finds attempts whose lease has lapsed, by the data base's clock, and makes their messages `unknown`: whoever called
 * did not say how it ended. Nothing is sent from here.
 *
 * Z1. After the last fault, no message stays `sending` for longer than its lease and two passes.
 * Z2. Synchronous claims stand in no work list, so a pass looks through those of the last minutes; the first pass of a
 *     process, and one an hour, looks back to where the last such pass began, and some: nothing falls between.
 */
import type { Deps } from '../deps.ts'
import { applyEvent } from '../operations/apply-event.ts'

const batch = 500
const deepEveryMs = 3_600_000
const deepMarginMs = 3_600_000
const lookBackMs = 300_000
const sweepName = 'leases'

export interface RescuerPass {
  readonly rescued: number
}

export function createRescuer(deps: Deps): { runOnce(): Promise<RescuerPass> } {
  let lastDeep: Date | null = null
  // A lease outlives no call; claims older than the longest of them and some were seen by earlier passes.
  const longestCallMs = Math.max(0, ...deps.providers.all().map(({ callMs }) => callMs))

  return {
    runOnce: async () => {
      const now = deps.clock.now()
      const deep = lastDeep === null || now.getTime() - lastDeep.getTime() >= deepEveryMs
      const since = deep ? await deepSince(deps) : new Date(now.getTime() - lookBackMs - 2 * longestCallMs)
      let rescued = 0
      for (;;) {
        const lapsed = await deps.store.findLapsed(since, batch)
        for (const message of lapsed) {
          const { decision } = await applyEvent(deps, message, { type: 'lease_lapsed', at: deps.clock.now() })
          if (decision.kind === 'transition') rescued++
        }
        if (lapsed.length < batch) break
      }
      if (deep) {
        await deps.store.saveSweep(sweepName, now)
        lastDeep = now
      }
      return { rescued }
    },
  }
}

async function deepSince(deps: Deps): Promise<Date> {
  const seen = await deps.store.findSweepStart(sweepName)
  return new Date(seen === null ? 0 : seen.getTime() - deepMarginMs)
}

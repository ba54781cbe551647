/**
 * Finds attempts whose lease has lapsed, by the data base's clock, and makes their messages `unknown`: whoever called
 * did not say how it ended. Nothing is sent from here.
 *
 * Z1. After the last fault, no message stays `sending` for longer than its lease and two passes.
 * Z2. Synchronous claims stand in no work list, so a pass looks through those claimed since some minutes before the pass
 *     before it; the first pass of a process, and one an hour, looks back to where the last such pass began, and an hour
 *     more: nothing falls between.
 */
import { attemptOf, type Message } from '../core/message.ts'
import type { Deps } from '../deps.ts'
import { applyEvent } from '../operations/apply-event.ts'
import { attemptedProvider, meansOf } from '../operations/recovery-means.ts'
import { StoreTrouble } from '../store/database-errors.ts'

const batch = 500
const deepEveryMs = 3_600_000
const deepMarginMs = 3_600_000
const marginMs = 300_000
const sweepName = 'leases'

export interface RescuerPass {
  readonly rescued: number
}

export function createRescuer(deps: Deps): { runOnce(): Promise<RescuerPass> } {
  let lastDeep: Date | null = null
  let lastPass = new Date(0)
  // What was claimed earlier than a lease and some before the last pass had lapsed by then, and was seen.
  const lookBackMs = marginMs + deps.leaseMarginMs + Math.max(0, ...deps.providers.all().map(({ callMs }) => callMs))

  return {
    runOnce: async () => {
      const now = deps.clock.now()
      const deep = lastDeep === null || now.getTime() - lastDeep.getTime() >= deepEveryMs
      const since = deep ? await deepSince(deps) : new Date(lastPass.getTime() - lookBackMs)
      let rescued = 0
      let left = 0
      for (;;) {
        const lapsed = await deps.store.findLapsed(since, batch)
        let leftNow = 0
        for (const message of lapsed) {
          const attemptId = attemptOf(message.state)?.id ?? ''
          const provider = attemptedProvider(deps, message)
          const means = provider === undefined ? null : meansOf(provider)
          const at = deps.clock.now()
          const event = { type: 'lease_lapsed', attemptId, means, at, random: deps.random() } as const
          // One that cannot be changed now must not keep the others waiting; the next pass finds it again.
          const applied = await applyEvent(deps, message, event).catch((error: unknown) => leave(deps, message, error))
          if (applied === null) leftNow++
          else if (applied.decision.kind === 'transition') rescued++
        }
        left += leftNow
        // What another replica was faster with counts as done: there may be more behind it.
        if (lapsed.length < batch || leftNow === lapsed.length) break
      }
      if (left > 0) return { rescued } // the next pass looks back as far as this one
      lastPass = now
      if (deep) {
        await deps.store.saveSweep(sweepName, now)
        lastDeep = now
      }
      return { rescued }
    },
  }
}

function leave(deps: Deps, message: Message, error: unknown): null {
  if (!(error instanceof StoreTrouble)) throw error
  deps.log.warn({ message: message.id, error: error.name }, 'a lapsed lease could not be told of yet')
  return null
}

async function deepSince(deps: Deps): Promise<Date> {
  const seen = await deps.store.findSweepStart(sweepName)
  return new Date(seen === null ? 0 : seen.getTime() - deepMarginMs)
}

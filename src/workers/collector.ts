/**
 * Applies receipts that were kept and not applied: the process died in between, the data base was away, or the message was
 * not there yet. Providers may never tell them again.
 *
 * R1. A pass looks through what came since some time before the pass before it; the first one of a process, to where the
 *     last process had looked, and an hour more. What is being applied at this moment is left alone.
 */
import type { Deps } from '../deps.ts'
import { applyReceipt } from '../operations/record-receipt.ts'
import { StoreTrouble } from '../store/database-errors.ts'
import type { KeptReceipt } from '../store/receipts.ts'

const batch = 200
/** Whoever received it is done by then. */
const ageMs = 10_000
const marginMs = 60_000
const firstMarginMs = 3_600_000
const sweepName = 'receipts'

export function createCollector(deps: Deps): { runOnce(): Promise<number> } {
  let seenUntil: Date | null = null
  return {
    /** @returns how many receipts were applied */
    runOnce: async () => {
      const began = deps.clock.now()
      let since = await sinceWhen(deps, seenUntil)
      let count = 0
      for (;;) {
        const kept = await deps.store.findUnapplied(since, ageMs, batch)
        for (const receipt of kept) if (await applied(deps, receipt)) count++
        const last = kept.at(-1)
        // Those that came at the same moment as the last one are looked at once more: they are applied by then.
        if (last === undefined || kept.length < batch || last.receivedAt <= since) break
        since = last.receivedAt
      }
      seenUntil = began
      await deps.store.saveSweep(sweepName, began)
      return count
    },
  }
}

/** One that cannot be applied must not keep the others waiting; if the data base is away, the next pass looks again. */
async function applied(deps: Deps, receipt: KeptReceipt): Promise<boolean> {
  try {
    return await applyReceipt(deps, receipt)
  } catch (error) {
    if (error instanceof StoreTrouble) throw error
    const fields = { provider: receipt.provider, message: receipt.messageId, error: (error as Error).name }
    deps.log.error(fields, 'a receipt cannot be applied')
    return false
  }
}

async function sinceWhen(deps: Deps, seenUntil: Date | null): Promise<Date> {
  if (seenUntil !== null) return new Date(seenUntil.getTime() - marginMs)
  const seen = await deps.store.findSweepStart(sweepName)
  return new Date(seen === null ? 0 : seen.getTime() - firstMarginMs)
}

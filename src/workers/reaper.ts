/** Retention: erases results that became final long ago, and receipts as old, in bounded batches. Keys stay for good. */
import type { Deps } from '../deps.ts'

const batch = 2_000

/** @returns how many results were erased */
export async function runOnce(deps: Deps, retentionMs: number): Promise<number> {
  const finalBefore = new Date(deps.clock.now().getTime() - retentionMs)
  while ((await deps.store.eraseReceipts(finalBefore, batch)) === batch);
  let erased = 0
  for (;;) {
    const some = await deps.store.eraseResults(finalBefore, batch)
    erased += some
    if (some < batch) return erased
  }
}

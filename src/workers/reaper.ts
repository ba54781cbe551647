/**
 * Retention: erases results that became final long ago, receipts and what came in as long ago, and what the guard against
 * duplicates needs no more, in bounded batches. Keys stay for good.
 */
import type { Deps } from '../deps.ts'

const batch = 2_000

/** @returns how many results were erased */
export async function runOnce(deps: Deps, retentionMs: number): Promise<number> {
  const finalBefore = new Date(deps.clock.now().getTime() - retentionMs)
  let erased = 0
  for (;;) {
    const some = await deps.store.eraseResults(finalBefore, batch)
    erased += some
    if (some < batch) break
  }
  while ((await deps.store.eraseReceipts(finalBefore, batch)) === batch);
  while ((await deps.store.eraseInbound(finalBefore, batch)) === batch);
  while ((await deps.store.eraseGuards(batch)) === batch);
  return erased
}

/** Bugs about what providers tell later. */
import { bug, change, type PlantedBug } from './planted-bug.ts'

const record = 'src/operations/record-receipt.ts'

export const plantedReceiptBugs: readonly PlantedBug[] = [
  bug(
    'a receipt is taken to tell of the present attempt',
    change('src/core/receipt.ts', 'byReceipt(attemptId ?? attempt.id, at)', 'byReceipt(attempt.id, at)'),
  ),
  bug(
    'a receipt of another environment is applied',
    change(
      record,
      'if (message === undefined || message.environment !== kept.environment) {',
      'if (message === undefined) {',
    ),
  ),
  bug(
    'a receipt is marked before it is applied',
    change(
      record,
      '  await applyEvent(deps, message, eventOf(kept, deps.clock.now()))\n  await deps.store.markApplied(kept)\n',
      '  await deps.store.markApplied(kept)\n  await applyEvent(deps, message, eventOf(kept, deps.clock.now()))\n',
    ),
  ),
  bug(
    'receipts that were kept and not applied are not looked for',
    change(
      'src/workers/collector.ts',
      'const kept = await deps.store.findUnapplied(since, ageMs, batch)',
      'const kept = (await deps.store.findUnapplied(since, ageMs, batch)).slice(batch)',
    ),
  ),
]

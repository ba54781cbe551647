/** One pass of a worker that begins calls: what it took, and when all of it has been dealt with. */
import type { Deps } from '../deps.ts'

export interface Pass {
  readonly taken: number
  /** Resolves when the calls that this pass began have ended: how many messages were dealt with, and not put off. */
  readonly done: Promise<number>
}

/** How many calls could begin now, over all providers. */
export const freeSlots = ({ providers, slots }: Deps): number =>
  providers.all().reduce((sum, { concurrency, name }) => sum + concurrency - slots.inUse(name), 0)

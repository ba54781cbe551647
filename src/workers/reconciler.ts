/**
 * Takes messages whose outcome is unknown and whose next step is due, and takes that step. As many at a time as their
 * providers have slots free.
 *
 * F1. What it did not finish (the process ended, the data base was away) is due again after a while: nothing is lost, and
 *     nothing rests on it having run once.
 */
import type { Deps } from '../deps.ts'
import { reconcileMessage, type Looks } from '../operations/reconcile-message.ts'
import { freeSlots, type Pass } from './pass.ts'

const batch = 64

export function createReconciler(deps: Deps): { runOnce(): Promise<Pass> } {
  const looks: Looks = new Map()
  return {
    runOnce: async () => {
      const free = freeSlots(deps)
      const messages = free > 0 ? await deps.store.takeDue('reconcile', Math.min(batch, free)) : []
      const work = messages.map(async (message) =>
        reconcileMessage(deps, message, looks).catch((error: unknown) => {
          const name = error instanceof Error ? error.name : 'error'
          deps.log.warn({ message: message.id, error: name }, 'a step could not be taken; it is due again in a while')
          return false
        }),
      )
      return { taken: messages.length, done: Promise.all(work).then((dealt) => dealt.filter(Boolean).length) }
    },
  }
}

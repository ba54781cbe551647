/**
 * Takes messages whose outcome is unknown and whose next step is due, and takes that step.
 *
 * F1. What it did not finish (the process ended, the data base was away) is due again after a while: nothing is lost, and
 *     nothing rests on it having run once.
 */
import type { Deps } from '../deps.ts'
import { reconcileMessage, type Looks } from '../operations/reconcile-message.ts'
import { passOver, type Pass } from './pass.ts'

export function createReconciler(deps: Deps): { runOnce(): Promise<Pass> } {
  const looks: Looks = new Map()
  return { runOnce: async () => passOver(deps, 'reconcile', async (message) => reconcileMessage(deps, message, looks)) }
}

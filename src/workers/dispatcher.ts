/**
 * Takes messages whose time has come and has them sent: scheduled ones, asynchronous ones, and those that a provider
 * did not accept.
 *
 * X1. A message past its notAfter is expired, never sent; of one that is held nothing else is done here.
 * X2. What cannot be called now (no slot, provider stopped, gone from the configuration or asking for a pause) is put off,
 *     not lost.
 */
import type { Message } from '../core/message.ts'
import type { Deps } from '../deps.ts'
import { applyEvent } from '../operations/apply-event.ts'
import { nextProvider } from '../operations/choose-provider.ts'
import { dispatchMessage } from '../operations/dispatch-message.ts'
import { passOver, type Pass } from './pass.ts'

const busyPauseMs = 250
const stoppedPauseMs = 5_000

export const runOnce = async (deps: Deps): Promise<Pass> =>
  passOver(deps, 'dispatch', async (message) => handle(deps, message))

/** @returns false: it was put off */
async function handle(deps: Deps, message: Message): Promise<boolean> {
  const now = deps.clock.now()
  if (now >= message.notAfter) {
    await applyEvent(deps, message, { type: 'expire', at: now })
    return true
  }
  if (message.state.status === 'held') return putOff(deps, message, message.notAfter.getTime() - now.getTime())
  const next = await nextProvider(deps, message)
  if (next === undefined) {
    deps.log.warn({ message: message.id, provider: message.provider }, 'its provider is not configured any more')
    return putOff(deps, message, stoppedPauseMs)
  }
  const { provider, pausedUntil } = next
  if (pausedUntil !== null) return putOff(deps, message, pausedUntil.getTime() - now.getTime())
  const release = await deps.slots.takeAmongOthers(provider)
  if (release === null) return putOff(deps, message, deps.slots.isStopped(provider.name) ? stoppedPauseMs : busyPauseMs)
  await dispatchMessage(deps, message, provider, release)
  return true
}

async function putOff(deps: Deps, message: Message, ms: number): Promise<false> {
  await deps.store.postponeDue('dispatch', message.id, ms)
  return false
}

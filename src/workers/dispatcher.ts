/**
 * Takes messages whose time has come and has them sent: scheduled ones, asynchronous ones, and those that a provider
 * did not accept. As many at a time as their providers have slots free.
 *
 * X1. A message past its notAfter is expired, never sent.
 * X2. What cannot be called now (no slot, provider stopped or gone from the configuration) is put off, not lost.
 */
import type { Message } from '../core/message.ts'
import type { Deps } from '../deps.ts'
import { applyEvent } from '../operations/apply-event.ts'
import { nextProvider } from '../operations/choose-provider.ts'
import { dispatchMessage } from '../operations/dispatch-message.ts'
import type { Release } from '../operations/provider-slots.ts'
import type { Provider } from '../providers/provider.ts'
import { freeSlots, type Pass } from './pass.ts'

const batch = 64
const queuedBatch = 8
const queueMs = 2_000
const busyPauseMs = 250
const stoppedPauseMs = 5_000

export async function runOnce(deps: Deps): Promise<Pass> {
  const free = freeSlots(deps)
  // Where requests queue for slots, what waits in the data base stands in the same queue, or it would wait for ever.
  const limit = free > 0 ? free : deps.slots.waiting() > 0 ? queuedBatch : 0
  const messages = limit > 0 ? await deps.store.takeDue('dispatch', Math.min(batch, limit)) : []
  const work = messages.map(async (message) =>
    handle(deps, message).catch((error: unknown) => {
      const name = error instanceof Error ? error.name : 'error'
      deps.log.warn(
        { message: message.id, error: name },
        'a dispatch failed; it is taken again, or its lease will lapse',
      )
      return false
    }),
  )
  return { taken: messages.length, done: Promise.all(work).then((dealt) => dealt.filter(Boolean).length) }
}

/** @returns false: it was put off */
async function handle(deps: Deps, message: Message): Promise<boolean> {
  const now = deps.clock.now()
  if (now >= message.notAfter) {
    await applyEvent(deps, message, { type: 'expire', at: now })
    return true
  }
  const provider = nextProvider(deps, message)
  if (provider === undefined) {
    deps.log.warn({ message: message.id, provider: message.provider }, 'its provider is not configured any more')
    return putOff(deps, message, stoppedPauseMs)
  }
  const release = deps.slots.tryTake(provider) ?? (await queueFor(deps, provider))
  if (release === null) return putOff(deps, message, deps.slots.isStopped(provider.name) ? stoppedPauseMs : busyPauseMs)
  await dispatchMessage(deps, message, provider, release)
  return true
}

const queueFor = async ({ slots }: Deps, provider: Provider): Promise<Release | null> =>
  slots.waiting() > 0 ? slots.take(provider, queueMs) : null

async function putOff(deps: Deps, message: Message, ms: number): Promise<false> {
  await deps.store.postponeDue('dispatch', message.id, ms)
  return false
}

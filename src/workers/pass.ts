/**
 * One pass of a worker that begins calls: takes what is due for a task, as many as there is room for, and deals with each.
 *
 * Q1. Where requests queue for slots, a few are taken all the same: they stand in the same queue, or what waits in the data
 *     base would wait for as long as requests keep coming.
 * Q2. One that fails keeps no other from being dealt with; it was put off when it was taken, and is due again.
 */
import type { Message } from '../core/message.ts'
import type { Deps } from '../deps.ts'
import type { Task } from '../store/due-work.ts'

const batch = 64
const queuedBatch = 8

export interface Pass {
  readonly taken: number
  /** Resolves when the calls that this pass began have ended: how many messages were dealt with, and not put off. */
  readonly done: Promise<number>
}

/** @param deal gives false for one that was put off */
export async function passOver(deps: Deps, task: Task, deal: (message: Message) => Promise<boolean>): Promise<Pass> {
  const room = roomFor(deps)
  const messages = room > 0 ? await deps.store.takeDue(task, Math.min(batch, room)) : []
  const work = messages.map(async (message) =>
    deal(message).catch((error: unknown) => {
      const fields = { message: message.id, task, error: error instanceof Error ? error.name : 'error' }
      deps.log.warn(fields, 'due work failed; it is due again in a while, or its lease will lapse')
      return false
    }),
  )
  return { taken: messages.length, done: Promise.all(work).then((dealt) => dealt.filter(Boolean).length) }
}

function roomFor({ providers, slots }: Deps): number {
  const free = providers.all().reduce((sum, { concurrency, name }) => sum + concurrency - slots.inUse(name), 0)
  return free > 0 ? free : slots.waiting() > 0 ? queuedBatch : 0
}

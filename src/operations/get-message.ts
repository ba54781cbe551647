/** A message of the caller's, by its public id. What belongs to someone else is not there. */
import type { Scope } from '../core/idempotency.ts'
import { uuidFromId } from '../core/ids.ts'
import type { Message } from '../core/message.ts'
import type { Deps } from '../deps.ts'
import { Refusal } from './refusal.ts'

/** @throws Refusal `not-found` */
export async function getMessage({ store }: Pick<Deps, 'store'>, scope: Scope, id: string): Promise<Message> {
  const uuid = uuidFromId('message', id)
  const message = uuid === undefined ? undefined : await store.findMessage(scope, uuid)
  if (message === undefined) throw new Refusal('not-found', 'There is no message with this id.')
  return message
}

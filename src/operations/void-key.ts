/** POST /v1/idempotency-keys/{key}/void: a tombstone under the constraint that claims use: nothing will ever be sent. */
import type { Scope } from '../core/idempotency.ts'
import { idFromUuid } from '../core/ids.ts'
import { sentOf } from '../core/message.ts'
import { messageReference } from '../core/message-view.ts'
import type { Deps } from '../deps.ts'
import { Refusal } from './refusal.ts'

/** Resolves if the key is void, now or already. @throws Refusal `key-taken` */
export async function voidKey({ store }: Deps, scope: Scope, key: string, apiKey: string): Promise<void> {
  if (await store.insertTombstone(scope, key, apiKey)) return
  const found = await store.findKey(scope, [key])
  if (found === undefined) throw new Refusal('in-progress', null, { sent: 'maybe' }, 1)
  if (found.kind === 'void') return
  if (found.kind === 'erased') {
    const message = { id: idFromUuid('message', found.messageId), status: found.lastStatus }
    throw new Refusal('key-taken', null, { sent: sentOf(found.lastStatus), message })
  }
  const { message } = found
  throw new Refusal('key-taken', null, { sent: sentOf(message.state.status), message: messageReference(message) })
}

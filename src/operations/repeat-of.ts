/** What a key that was seen means for whoever comes with it again. */
import { differingPaths, fingerprintMatches } from '../core/fingerprint.ts'
import { idFromUuid } from '../core/ids.ts'
import { sentOf, type Message } from '../core/message.ts'
import { messageReference } from '../core/message-view.ts'
import type { FoundKey } from '../store/read-messages.ts'
import { Refusal } from './refusal.ts'

/** What a repeat gets: the message, if the request is the same. @throws Refusal */
export function repeatOf(found: FoundKey, canonical: string): Message {
  if (found.kind === 'void') throw new Refusal('key-void', null, { sent: 'no' })
  const same = fingerprintMatches(found.fingerprint, canonical)
  if (found.kind === 'erased') {
    const message = { id: idFromUuid('message', found.messageId), status: found.lastStatus }
    const sent = sentOf(found.lastStatus)
    throw new Refusal(same ? 'result-expired' : 'idempotency-key-reused', null, { sent, message })
  }
  const { message } = found
  if (same) return message
  throw new Refusal('idempotency-key-reused', null, {
    sent: sentOf(message.state.status),
    message: messageReference(message),
    errors: differingPaths(message.canonical, canonical).map((pointer) => ({
      pointer,
      detail: 'differs from the first request under this key',
    })),
  })
}

/** POST /v1/messages/{id}/cancel: before any call that may have arrived. Again is the same; too late is 409. */
import type { Scope } from '../core/idempotency.ts'
import { sentOf, type Message } from '../core/message.ts'
import { messageReference } from '../core/message-view.ts'
import type { Deps } from '../deps.ts'
import { applyEvent } from './apply-event.ts'
import { getMessage } from './get-message.ts'
import { Refusal } from './refusal.ts'

/** @throws Refusal */
export async function cancelMessage(deps: Deps, scope: Scope, id: string, apiKey: string): Promise<Message> {
  const found = await getMessage(deps, scope, id)
  const { message } = await applyEvent(deps, found, { type: 'cancel', apiKey, at: deps.clock.now() })
  const { status } = message.state
  if (status === 'canceled') return message
  throw new Refusal('too-late', `The message is ${status}.`, {
    sent: sentOf(status),
    message: messageReference(message),
  })
}

/** A conversation as the API shows it: what went out and what came in, one list, newest first. */
import { idFromUuid } from './ids.ts'
import type { ShownMessage } from './message.ts'
import { messageView } from './message-view.ts'

/** What the other side said, as it is kept. */
export interface InboundMessage {
  readonly id: string
  /** `api`, or the provider whose webhook brought it. */
  readonly source: string
  readonly eventId: string
  /** Null: erased by retention. */
  readonly sender: string | null
  readonly text: string | null
  readonly occurredAt: Date | null
  readonly receivedAt: Date
}

export interface Entry {
  /** UUIDv7 of the message, or of what came in. */
  readonly id: string
  readonly view: object
}

export function conversationEntries(outbound: readonly ShownMessage[], inbound: readonly InboundMessage[]): Entry[] {
  const entries: Entry[] = [
    ...outbound.map((message) => ({
      id: message.id,
      view: { direction: 'outbound', at: message.createdAt.toISOString(), message: messageView(message) },
    })),
    ...inbound.map((message) => ({
      id: message.id,
      view: { direction: 'inbound', at: message.receivedAt.toISOString(), inbound: inboundView(message) },
    })),
  ]
  return entries.toSorted((a, b) => (a.id > b.id ? -1 : 1))
}

export const inboundView = ({ id, source, eventId, sender, text, occurredAt, receivedAt }: InboundMessage) => ({
  id: idFromUuid('event', id),
  eventId: eventId.startsWith('derived:') ? null : eventId,
  source,
  from: sender,
  text,
  occurredAt: occurredAt?.toISOString() ?? null,
  receivedAt: receivedAt.toISOString(),
})

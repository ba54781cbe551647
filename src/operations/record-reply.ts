/**
 * What a person wrote back, as a provider's webhook tells it: recorded in the conversation that it belongs to, once.
 *
 * R1. It belongs to the conversation of the message that it names, else of the newest that went to that person, or into that
 *     place (store/find-conversation.ts). Without one nothing is kept, and it is acknowledged: people write for other reasons, too.
 * R2. It is acknowledged after it was recorded; else the provider is asked to come again (StoreTrouble). Told again it is
 *     the same event, and changes nothing.
 * R3. No text and no address reaches a log, a metric or an error.
 */
import { uuidFromId } from '../core/ids.ts'
import type { Environment } from '../core/message-content.ts'
import type { Deps } from '../deps.ts'
import type { InboundReply, Provider } from '../providers/provider.ts'
import type { Store } from '../store/store.ts'
import { keptEventId } from './event-ids.ts'

/** What the other side of a conversation said. */
export interface InboundMessage {
  readonly account: string
  readonly environment: Environment
  readonly conversation: string
  /** The provider that told it. */
  readonly source: string
  readonly eventId: string
  readonly sender: string
  readonly text: string
  /** Null: it is not said. */
  readonly occurredAt: Date | null
}

/** A store that keeps what the other side says. */
interface Conversations {
  /** Once per (account, environment, source, event id). */
  recordInbound(inbound: InboundMessage): Promise<unknown>
}

const keepsConversations = (store: Store): store is Store & Conversations => 'recordInbound' in store

/** @throws StoreTrouble: it was not recorded, and may come again */
export async function recordReply(
  { store, metrics }: Pick<Deps, 'store' | 'metrics'>,
  { name: provider, environment }: Pick<Provider, 'name' | 'environment'>,
  reply: InboundReply,
): Promise<void> {
  const named = reply.inReplyTo
  const found = keepsConversations(store)
    ? await store.findConversation({
        provider,
        environment,
        recipients: reply.sentTo.map(storable),
        messageId: uuidFromId('message', named ?? '') ?? null,
        providerMessageId: named === null ? null : storable(named),
      })
    : undefined
  if (found === undefined || !keepsConversations(store)) {
    metrics.receipts.inc({ provider, result: 'foreign' })
    return
  }
  await store.recordInbound({
    ...found,
    environment,
    source: provider,
    eventId: keptEventId(reply.eventId),
    sender: storable(reply.from),
    text: storable(reply.text),
    occurredAt: reply.at,
  })
  metrics.receipts.inc({ provider, result: 'reply' })
}

/** PostgreSQL holds no U+0000 and no half of a character: a person who sends one must not be told to us for ever. */
const storable = (text: string): string => text.toWellFormed().replaceAll('\u0000', '\ufffd')

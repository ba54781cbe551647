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
import type { Deps } from '../deps.ts'
import type { InboundReply, Provider } from '../providers/provider.ts'
import { keptEventId } from './event-ids.ts'

/** @throws StoreTrouble: it was not recorded, and may come again */
export async function recordReply(
  { store, metrics, newUuid }: Pick<Deps, 'store' | 'metrics' | 'newUuid'>,
  { name: provider, environment }: Pick<Provider, 'name' | 'environment'>,
  reply: InboundReply,
): Promise<void> {
  const named = reply.inReplyTo
  const found = await store.findConversationOfReply({
    provider,
    environment,
    recipients: reply.sentTo.map(storable),
    messageId: uuidFromId('message', named ?? '') ?? null,
    providerMessageId: named === null ? null : storable(named),
  })
  if (found === undefined) {
    metrics.receipts.inc({ provider, result: 'foreign' })
    return
  }
  await store.recordInbound({
    ...found,
    id: newUuid(),
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

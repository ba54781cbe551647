/**
 * POST /v1/conversations/{conversation}/inbound: what the other side said, brought by a service.
 *
 * J1. Once per event id; without one the id is made of the fields that make the event that event. Content alone is no id:
 *     two honest "ok" in one conversation are two messages.
 */
import { inboundEventId } from '../core/conversation.ts'
import type { Scope } from '../core/idempotency.ts'
import type { Deps } from '../deps.ts'
import type { RecordedInbound } from '../store/conversations.ts'
import { Refusal } from './refusal.ts'

export interface ToldInbound {
  readonly eventId?: string
  readonly from: string
  readonly text: string
  readonly occurredAt?: string
}

/** @throws Refusal */
export async function recordInbound(
  deps: Deps,
  { account, environment }: Scope,
  conversation: string,
  { eventId, from, text, occurredAt }: ToldInbound,
): Promise<RecordedInbound> {
  if (eventId === undefined && occurredAt === undefined)
    throw new Refusal('invalid-request', 'Without an eventId it is not known whether this was told before.', {
      errors: [{ pointer: '/eventId', detail: 'is needed, or `occurredAt`, from which with the rest an id is made' }],
    })
  return deps.store.recordInbound({
    id: deps.newUuid(),
    account,
    environment,
    conversation,
    source: 'api',
    // The instant, however it was written.
    eventId: eventId ?? inboundEventId(from, text, new Date(occurredAt ?? '').toISOString()),
    sender: from,
    text,
    occurredAt: occurredAt === undefined ? null : new Date(occurredAt),
  })
}

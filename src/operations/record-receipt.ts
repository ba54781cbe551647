/**
 * POST /v1/providers/{provider}/webhooks: what a provider tells later is verified, kept, and applied once. What people
 * write back is record-reply.ts's.
 *
 * W1. Nothing is kept of what is forged: its event id is not burnt, and the genuine one that follows is taken in.
 * W2. Insert before effect: each event is kept under its provider's and its own id before anything follows from it. Of the
 *     same event told twice, or five times at once, one change comes; a crash in between is made good by the next telling,
 *     or by the collector (workers/collector.ts).
 * W3. What is kept is acknowledged, whatever came of it. The provider is asked to come again only if nothing was kept.
 * W4. An event of one environment finds messages of that one alone. What names none that is there is kept, not applied.
 */
import type { ReceiptEvent } from '../core/events.ts'
import { uuidFromId, uuidOf } from '../core/ids.ts'
import type { Deps } from '../deps.ts'
import type { IncomingWebhook, ParsedWebhook, Provider, WebhookEvent } from '../providers/provider.ts'
import type { KeptReceipt, Receipt } from '../store/receipts.ts'
import { applyEvent } from './apply-event.ts'
import { keptEventId, plain } from './event-ids.ts'
import { recordReply } from './record-reply.ts'
import { Refusal } from './refusal.ts'

export type Reader = Provider & { readonly parseWebhook: (request: IncomingWebhook, now: Date) => ParsedWebhook }

/** A provider that takes webhooks, of either environment: their names are never the same. @throws Refusal */
export function webhookReader(deps: Deps, name: string): Reader {
  const provider = deps.providers.all().find((each) => each.name === name)
  if (provider === undefined) throw new Refusal('not-found', 'There is no provider of that name.')
  if (!takesWebhooks(provider)) throw new Refusal('not-found', `This provider takes no webhooks: ${lackOf(provider)}.`)
  return provider
}

const takesWebhooks = (provider: Provider): provider is Reader => typeof provider.parseWebhook === 'function'
const lackOf = ({ parseWebhook }: Provider): string => ('lacks' in parseWebhook ? parseWebhook.lacks : '')

type Answer = Extract<ParsedWebhook, { events: unknown }>['answer']

/** @returns what the provider wants to read, if anything @throws Refusal, StoreTrouble: nothing was kept, it may come again */
export async function recordReceipt(deps: Deps, provider: Reader, request: IncomingWebhook): Promise<Answer> {
  const told = provider.parseWebhook(request, deps.clock.now())
  if ('refused' in told) {
    count(deps, provider, told.refused)
    if (told.refused === 'forged') throw new Refusal('webhook-forged')
    if (told.refused === 'unreadable')
      throw new Refusal('invalid-request', 'It is signed, but not what the provider documents.')
    return undefined // stale: acknowledged, and not believed
  }
  const receipts = told.events.map((event) => receiptOf(provider, event))
  for (const receipt of receipts)
    if (receipt === null) count(deps, provider, 'foreign')
    else await keepAndApply(deps, provider, receipt)
  for (const reply of told.replies) await recordReply(deps, provider, reply)
  return told.answer
}

const count = (deps: Deps, { name }: Pick<Provider, 'name'>, result: string): void =>
  deps.metrics.receipts.inc({ provider: name, result })

/** What is kept of an event; null: it names no message of ours, and there never will be one. */
function receiptOf({ name, environment }: Provider, event: WebhookEvent): Receipt | null {
  const messageId = uuidFromId('message', event.messageId ?? '')
  if (messageId === undefined) return null
  return {
    provider: name,
    eventId: keptEventId(event.eventId),
    environment,
    messageId,
    attemptId: uuidFromId('attempt', event.attemptId ?? '') ?? null,
    kind: event.kind,
    providerMessageId: plain(event.providerMessageId, mostProviderId),
    code: plain(event.code, mostCode),
    occurredAt: event.at,
  }
}

const mostProviderId = 255
const mostCode = 64

async function keepAndApply(deps: Deps, provider: Provider, receipt: Receipt): Promise<void> {
  const kept = await deps.store.keepReceipt(receipt)
  if (kept.appliedAt !== null) return count(deps, provider, 'repeated')
  try {
    await applyReceipt(deps, kept)
  } catch (error) {
    // W3: it is kept. The next telling applies it, or the collector.
    const fields = { provider: provider.name, message: kept.messageId, error: nameOf(error) }
    deps.log.warn(fields, 'a receipt could not be applied yet')
    count(deps, provider, 'put_off')
  }
}

const nameOf = (error: unknown): string => (error instanceof Error ? error.name : 'error')

/** Applies what was kept, however often it is called. @returns false: its message is not there */
export async function applyReceipt(deps: Deps, kept: KeptReceipt): Promise<boolean> {
  const [message] = await deps.store.findMessages([kept.messageId])
  if (message === undefined || message.environment !== kept.environment) {
    count(deps, { name: kept.provider }, 'unknown')
    return false
  }
  await applyEvent(deps, message, eventOf(kept, deps.clock.now()))
  await deps.store.markApplied(kept)
  count(deps, { name: kept.provider }, 'applied')
  return true
}

const eventOf = (kept: KeptReceipt, now: Date): ReceiptEvent => ({
  type: 'receipt',
  lineId: uuidOf(kept.receivedAt, [kept.provider, kept.eventId]),
  provider: kept.provider,
  evidence: kept.kind,
  attemptId: kept.attemptId,
  providerMessageId: kept.providerMessageId,
  code: kept.code,
  occurredAt: kept.occurredAt,
  at: now,
})

/**
 * GOV.UK Notify's callbacks, JSON: delivery receipts, and text messages that people send.
 * https://docs.notifications.service.gov.uk/rest-api.html#callbacks
 *
 * G4. They are not signed: they bear the token that the callback is set up with. Delivery receipts repeat our reference.
 * G5. Numbers of people come without the + that they are sent to with.
 */
import { dateOf, eventIdOf, headerOf, isSame, jsonOf, noNews, saidIn } from './incoming.ts'
import type { ParsedWebhook, WebhookEvent, WebhookRules } from './provider.ts'
import { memberOf, textAt } from './read-body.ts'

/** https://docs.notifications.service.gov.uk/rest-api.html#delivery-receipts */
const receipts: Readonly<Record<string, { readonly kind: WebhookEvent['kind']; readonly wording: string }>> = {
  delivered: { kind: 'delivered', wording: 'The message was successfully delivered.' },
  'permanent-failure': {
    kind: 'undelivered',
    wording: 'The provider could not deliver the message because the email address or phone number was wrong.',
  },
  'temporary-failure': {
    kind: 'undelivered',
    wording: "The provider could not deliver the message: the recipient's inbox was full or their phone was off.",
  },
  'technical-failure': {
    kind: 'undelivered',
    wording: 'The message was not sent because there was a problem between Notify and the provider.',
  },
}

export const govukNotifyWebhooks: WebhookRules<{ readonly webhookBearerToken?: string }> = {
  lacks: ({ webhookBearerToken }) => (webhookBearerToken === undefined ? 'webhookBearerToken' : null),
  parse(request, { webhookBearerToken = '' }) {
    const given = headerOf(request, 'authorization').replace(/^bearer +/i, '')
    if (webhookBearerToken === '' || !isSame(given, webhookBearerToken)) return { refused: 'forged' }
    const body = jsonOf(request.rawBody)
    if (typeof body !== 'object' || body === null) return { refused: 'unreadable' }
    const [id, status] = [textAt(body, 'id'), textAt(body, 'status')]
    if (id === null) return noNews
    if (status === null) return replyIn(body, id)
    const meaning = Object.hasOwn(receipts, status) ? receipts[status] : undefined
    if (meaning === undefined) return noNews
    const { kind } = meaning
    const told = { messageId: textAt(body, 'reference'), attemptId: null, providerMessageId: id }
    const code = kind === 'undelivered' ? status : null
    const at = dateOf(memberOf(body, 'completed_at'))
    return { events: [{ eventId: eventIdOf(id, status), kind, at, code, ...told }], replies: [] }
  },
}

/** https://docs.notifications.service.gov.uk/rest-api.html#received-text-messages */
function replyIn(body: object, eventId: string): ParsedWebhook {
  const source = textAt(body, 'source_number')
  if (source === null) return noNews
  const from = /^[1-9]\d{5,14}$/.test(source) ? `+${source}` : source
  return saidIn({
    eventId,
    from,
    to: textAt(body, 'destination_number'),
    sentTo: [from],
    text: textAt(body, 'message') ?? '',
    at: dateOf(memberOf(body, 'date_received')),
    inReplyTo: null,
  })
}

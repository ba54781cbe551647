/**
 * Twilio's webhooks: a form, or JSON, signed with the account's auth token over the address as Twilio called it.
 * https://www.twilio.com/docs/usage/security#validating-requests
 * Status callbacks: https://www.twilio.com/docs/messaging/guides/outbound-message-status-in-status-callbacks
 * Messages that people send: https://www.twilio.com/docs/messaging/guides/webhook-request
 *
 * T3. The address is the public one of the settings, never what a Host header says. It carries our ids, and the signature
 *     covers it: so a receipt settles a message whose answer, and with it Twilio's id, was lost.
 * T4. The event's id is made of what is signed (message, status, error code): `I-Twilio-Idempotency-Token`, which is the
 *     same in Twilio's own repeats, is not covered by the signature.
 * T5. Twilio says of no status when it was reached: the time is that of the callback.
 * T7. What answers the request for an incoming message is what the person would read next: an empty TwiML document says
 *     nothing to them.
 */
import { createHash } from 'node:crypto'
import { eventIdOf, headerOf, hmacOf, isSame, jsonOf, noNews, saidIn } from './incoming.ts'
import { webhookUrl } from './place.ts'
import { memberOf, textAt } from './read-body.ts'
import type { AttemptContext, IncomingWebhook, ParsedWebhook, WebhookEvent } from './provider.ts'

/** What Twilio calls when the status of this attempt's message changes. */
export function statusCallback(publicUrl: string, { provider, messageId, attemptId }: AttemptContext): string {
  const query = new URLSearchParams({ message: messageId, attempt: attemptId })
  return `${webhookUrl(publicUrl, provider)}?${query.toString()}`
}

interface Signing {
  readonly publicUrl: string
  readonly authToken: string
}

/** What a status says of the message, with the gist of Twilio's own explanation. The rest (`received` …) is not about ours. */
const statuses: Readonly<Record<string, { readonly kind: WebhookEvent['kind']; readonly wording: string }>> = {
  accepted: { kind: 'accepted', wording: 'Twilio has accepted it and chooses the sender in the Messaging Service' },
  scheduled: { kind: 'accepted', wording: 'It is scheduled to be sent' },
  queued: { kind: 'accepted', wording: 'It is queued to be sent out' },
  sending: { kind: 'accepted', wording: 'Twilio is dispatching it to the nearest upstream carrier' },
  sent: { kind: 'accepted', wording: 'The nearest upstream carrier accepted it' },
  delivered: { kind: 'delivered', wording: 'Confirmed by the upstream carrier, and where it can be, by the handset' },
  read: { kind: 'delivered', wording: 'Delivered, and opened by the recipient (WhatsApp, RCS)' },
  undelivered: { kind: 'undelivered', wording: 'Twilio has a receipt that says that it was not delivered' },
  failed: { kind: 'undelivered', wording: 'It could not be sent, and Twilio does not charge for it' },
  canceled: { kind: 'undelivered', wording: 'It was scheduled, and was canceled' },
}

export function parseTwilioWebhook(request: IncomingWebhook, { publicUrl, authToken }: Signing): ParsedWebhook {
  const bodyHash = request.query.get('bodySHA256')
  const form = new URLSearchParams(request.rawBody.toString('utf8'))
  const signature = headerOf(request, 'x-twilio-signature')
  const called = publicUrl.replace(/\/+$/, '') + request.url
  const isSigned = addressesOf(called)
    .map((address) => hmacOf('sha1', authToken, address + (bodyHash === null ? sorted(form) : ''), 'base64'))
    .map((right) => isSame(signature, right)) // each is compared, whichever is right
    .includes(true)
  if (!isSigned || (bodyHash !== null && !isHashOf(bodyHash, request.rawBody))) return { refused: 'forged' }
  const body = bodyHash === null ? Object.fromEntries(form) : jsonOf(request.rawBody)
  if (typeof body !== 'object' || body === null) return { refused: 'unreadable' }
  const isStatus = memberOf(body, 'MessageStatus') !== undefined
  return isStatus ? { events: eventsOf(body, request.query), replies: [] } : replyIn(body)
}

function eventsOf(body: object, query: URLSearchParams): WebhookEvent[] {
  const [sid, status] = [textAt(body, 'MessageSid'), textAt(body, 'MessageStatus')]
  const meaning = status !== null && Object.hasOwn(statuses, status) ? statuses[status] : undefined
  if (sid === null || meaning === undefined) return []
  const error = memberOf(body, 'ErrorCode')
  const code = typeof error === 'number' ? String(error) : textAt(body, 'ErrorCode')
  return [
    {
      eventId: eventIdOf(sid, status, code),
      messageId: query.get('message'),
      attemptId: query.get('attempt'),
      providerMessageId: sid,
      kind: meaning.kind,
      at: null,
      code: meaning.kind === 'undelivered' ? (code ?? status) : null,
    },
  ]
}

/** A WhatsApp message may name the one that it quotes. */
function replyIn(body: object): ParsedWebhook {
  const [eventId, from] = [textAt(body, 'MessageSid'), textAt(body, 'From')]
  const status = textAt(body, 'SmsStatus')
  if (eventId === null || from === null || (status !== null && status !== 'received')) return noNews
  const said = saidIn({
    eventId,
    from,
    to: textAt(body, 'To'),
    sentTo: [from],
    text: textAt(body, 'Body') ?? '',
    at: null,
    inReplyTo: textAt(body, 'OriginalRepliedMessageSid'),
  })
  return { ...said, answer: { contentType: 'text/xml; charset=utf-8', body: '<Response/>' } }
}

const isHashOf = (hash: string, body: Buffer): boolean =>
  isSame(hash.toLowerCase(), createHash('sha256').update(body).digest('hex'))

/** As Twilio's own library puts a form together: by name, and where a name comes several times, each value once, in order. */
function sorted(form: URLSearchParams): string {
  const names = [...new Set(form.keys())].toSorted()
  return names.flatMap((name) => [...new Set(form.getAll(name))].toSorted().map((value) => name + value)).join('')
}

/** Twilio signs the address with its standard port or without it. */
function addressesOf(url: string): string[] {
  const found = /^(https?):\/\/([^/?#]*?)(:\d+)?((?:[/?#].*)?)$/.exec(url)
  if (found === null) return [url]
  const [, scheme = '', host = '', port, rest = ''] = found
  const standard = scheme === 'https' ? ':443' : ':80'
  return [`${scheme}://${host}${rest}`, `${scheme}://${host}${port ?? standard}${rest}`]
}

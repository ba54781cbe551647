/**
 * Postmark's webhooks, JSON. https://postmarkapp.com/developer/webhooks/webhooks-overview
 * E-mails that people send: https://postmarkapp.com/developer/webhooks/inbound-webhook
 *
 * PM4. They are not signed: Postmark signs in with the user and password that stand in the webhook's address. What tells of
 *      our messages repeats their metadata.
 * PM5. Who writes may be anybody: neither the sender nor the date of an e-mail is proven. What a machine answers by
 *      itself (RFC 3834) nobody wrote.
 */
import { dateOf, dateOfMs, eventIdOf, headerOf, isSame, jsonOf, noNews, saidIn } from './incoming.ts'
import type { ParsedWebhook, WebhookRules } from './provider.ts'
import { memberOf, textAt } from './read-body.ts'

/** Under which our message id stands in a message's metadata. */
export const metadataKey = 'sendonce'

/**
 * Bounces by type, as in https://postmarkapp.com/developer/api/bounce-api#bounce-types: these were not delivered. Of all
 * others (an auto-responder, a complaint, a delay …) it is certain only that Postmark had accepted the message.
 */
const undelivered: Readonly<Record<string, string>> = {
  HardBounce: 'The server was unable to deliver your message (ex: unknown user, mailbox not found).',
  SoftBounce: 'Unable to temporarily deliver message (i.e. mailbox full, account disabled, exceeds quota).',
  DnsError: 'The server could not deliver your message: DNS error.',
  VirusNotification: 'The bounce is actually a virus notification warning about a virus/code infected message.',
  BadEmailAddress: 'The address is not a valid email address.',
  ManuallyDeactivated: 'The email was manually deactivated.',
  Blocked: 'Blocked from this ISP due to content or blacklisting.',
  SMTPApiError: 'An error occurred while accepting an email through the SMTP API.',
  DMARCPolicy: 'Email rejected due to DMARC policy.',
  TemplateRenderingFailed: 'An error occurred while attempting to render your template.',
}

interface Login {
  readonly webhookUser?: string
  readonly webhookPassword?: string
}

export const postmarkWebhooks: WebhookRules<Login> = {
  lacks: ({ webhookUser, webhookPassword }) =>
    webhookUser === undefined ? 'webhookUser' : webhookPassword === undefined ? 'webhookPassword' : null,
  parse(request, { webhookUser = '', webhookPassword = '' }) {
    const login = Buffer.from(`${webhookUser}:${webhookPassword}`).toString('base64')
    const given = headerOf(request, 'authorization').replace(/^basic +/i, '')
    if (webhookUser === '' || webhookPassword === '' || !isSame(given, login)) return { refused: 'forged' }
    const body = jsonOf(request.rawBody)
    if (typeof body !== 'object' || body === null) return { refused: 'unreadable' }
    const [record, providerMessageId] = [textAt(body, 'RecordType'), textAt(body, 'MessageID')]
    if (providerMessageId === null) return noNews
    // An e-mail that came in has no record type.
    if (record === null || record === 'Inbound') return replyIn(body, providerMessageId)
    return receiptIn(body, record, providerMessageId)
  },
}

function receiptIn(body: object, record: string, providerMessageId: string): ParsedWebhook {
  const bounce = record === 'Bounce' ? textAt(body, 'Type') : null
  const isFinal = bounce !== null && Object.hasOwn(undelivered, bounce)
  const kind = record === 'Delivery' ? 'delivered' : isFinal ? 'undelivered' : 'accepted'
  const time = textAt(body, 'DeliveredAt') ?? textAt(body, 'BouncedAt')
  const recipient = textAt(body, 'Recipient') ?? textAt(body, 'Email')
  const which = ['ID', 'ReceivedAt', 'ChangedAt'].map((name) => String(memberOf(body, name)))
  return {
    events: [
      {
        eventId: eventIdOf(record, providerMessageId, bounce, recipient, time, ...which),
        messageId: textAt(memberOf(body, 'Metadata'), metadataKey),
        attemptId: null,
        providerMessageId,
        kind,
        at: dateOf(time),
        code: isFinal ? bounce : null,
      },
    ],
    replies: [],
  }
}

function replyIn(body: object, eventId: string): ParsedWebhook {
  const from = textAt(memberOf(body, 'FromFull'), 'Email') ?? textAt(body, 'From')
  if (from === null || !/^(?:no)?$/i.test(headerIn(body, 'auto-submitted'))) return noNews
  return saidIn({
    eventId,
    from,
    to: textAt(body, 'OriginalRecipient'),
    // As it came, and as most write it: an address is compared letter by letter.
    sentTo: [...new Set([from, from.toLowerCase()])],
    text: textAt(body, 'StrippedTextReply') ?? textAt(body, 'TextBody') ?? '',
    at: dateOfMs(Date.parse(textAt(body, 'Date') ?? '')),
    // The Message-ID that Postmark gives a message is its id of it, at a domain of its own.
    inReplyTo: /^<([^<>@\s]+)@/.exec(headerIn(body, 'in-reply-to'))?.[1] ?? null,
  })
}

/** Of the e-mail; empty if it has none of that name. */
function headerIn(body: object, name: string): string {
  const headers = memberOf(body, 'Headers')
  const found = (Array.isArray(headers) ? (headers as unknown[]) : []).find(
    (each) => textAt(each, 'Name')?.toLowerCase() === name,
  )
  return textAt(found, 'Value')?.trim() ?? ''
}

/**
 * An e-mail as it goes over SMTP: its envelope, and its text in MIME, made by nodemailer's composer. Owns what is deterministic
 * about it and what may stand in a header; knows nothing of connections.
 *
 * S1. The same message is the same bytes for every attempt: Message-ID, Date and boundaries come from the message, not
 *     from the clock or from chance.
 * S2. No line break reaches a header, and no header of a caller takes the place of one of ours. Blind copies stand in the
 *     envelope only.
 * S3. The text is ASCII with lines of less than 1,000 bytes: nothing depends on what the server may extend.
 */
import { createHash } from 'node:crypto'
import MailComposer from 'nodemailer/lib/mail-composer'
import type { EmailRequest } from '../core/message-content.ts'
import type { AttemptContext } from './provider.ts'

export interface SmtpMessage {
  /** Address of the sender, where failures are reported to. */
  readonly from: string
  /** All recipients: copies and blind copies, too. */
  readonly recipients: readonly string[]
  readonly text: Buffer
}

interface Mailbox {
  readonly name: string
  readonly address: string
}

const address = "[\\w.!#$%&'*+/=?^`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?"
/** `address` or `Name <address>`; printable, on one line. */
export const mailboxPattern = `^(?:${address}|[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029<>]{1,200}<${address}>)$`
const isMailbox = new RegExp(mailboxPattern)
const isAddress = new RegExp(`^${address}$`)

/** Null: it is none. */
export function mailboxFrom(text: string): Mailbox | null {
  if (!isMailbox.test(text)) return null
  const [, name = '', inBrackets] = /^(.*)<(.*)>$/.exec(text) ?? []
  return { name: name.trim().replace(/^"(.*)"$/, '$1'), address: inBrackets ?? text }
}

/** Made by us, or by servers on the way; what describes the parts is the composer's. */
const ownHeaders =
  /^(from|sender|to|cc|bcc|reply-to|subject|date|message-id|mime-version|content-.*|return-path|received|resent-.*|dkim-signature)$/i
const controls = /[\p{Cc}\u2028\u2029]/u
/** Lines end before 1,000 bytes, and are broken at blanks only. */
const unfoldable = /\S{900}/
const tooLong = 'A word of 900 or more characters fits on no line of a header.'
const mediaType = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/

/** A sentence that names what cannot stand in an e-mail, or null. */
export function headerBroken({ to, cc = [], bcc = [], replyTo, content }: EmailRequest) {
  const wrong = (pointer: string, detail: string) => ({ pointer, detail })
  const addresses = [
    ['/to', to],
    ...cc.map((each, i) => [`/cc/${i}`, each]),
    ...bcc.map((each, i) => [`/bcc/${i}`, each]),
    ...(replyTo === undefined ? [] : [['/replyTo', replyTo]]),
  ]
  for (const [pointer = '', each = ''] of addresses)
    if (!isAddress.test(each))
      return wrong(pointer, 'This is no address that every mail server takes: ASCII, unquoted.')
  if (controls.test(content.subject)) return wrong('/content/subject', 'A subject is one line.')
  if (unfoldable.test(content.subject)) return wrong('/content/subject', tooLong)
  for (const [name, value] of Object.entries(content.headers ?? {})) {
    const pointer = `/content/headers/${name}`
    if (!/^[A-Za-z0-9-]{1,76}$/.test(name))
      return wrong('/content/headers', 'A header has a name of letters, digits and -.')
    if (ownHeaders.test(name)) return wrong(pointer, 'This header is made by the gateway or by mail servers.')
    if (controls.test(value)) return wrong(pointer, 'A header is one line.')
    if (unfoldable.test(value)) return wrong(pointer, tooLong)
  }
  for (const [i, { filename, contentType }] of (content.attachments ?? []).entries()) {
    if (controls.test(filename)) return wrong(`/content/attachments/${i}/filename`, 'A file name is one line.')
    if (!mediaType.test(contentType) || /^(multipart|message)\//i.test(contentType))
      return wrong(`/content/attachments/${i}/contentType`, 'This is no media type of an attachment.')
  }
  return null
}

/** @param from of the message, else of the configuration */
export async function smtpMessage(
  { to, cc = [], bcc = [], replyTo, content }: EmailRequest,
  from: Mailbox,
  { messageId, createdAt }: Pick<AttemptContext, 'messageId' | 'createdAt'>,
): Promise<SmtpMessage> {
  const composer = new MailComposer({
    messageId: `<${messageId}@${from.address.slice(from.address.lastIndexOf('@') + 1)}>`,
    date: createdAt,
    // Made of the id, which nobody knew who wrote the text.
    baseBoundary: createHash('sha256').update(messageId).digest('hex').slice(0, 32),
    from: { ...from },
    to,
    cc: [...cc],
    ...(replyTo === undefined ? {} : { replyTo }),
    subject: content.subject,
    ...(content.text === undefined ? {} : { text: content.text }),
    ...(content.html === undefined ? {} : { html: content.html }),
    headers: Object.entries(content.headers ?? {}).map(([key, value]) => ({ key, value })),
    attachments: (content.attachments ?? []).map(({ filename, contentType, content: base64 }) => ({
      filename,
      contentType,
      content: Buffer.from(base64, 'base64'),
      contentDisposition: 'attachment',
      contentTransferEncoding: 'base64',
    })),
    newline: 'windows',
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const text = await composer.compile().build()
  return { from: from.address, recipients: [...new Set([to, ...cc, ...bcc])], text }
}

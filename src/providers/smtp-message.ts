/**
 * An e-mail as it goes over SMTP: its envelope, and its text in MIME, made by nodemailer's composer. Owns what is deterministic
 * about it and what SMTP cannot carry; what no e-mail may hold is email-message.ts's. Knows nothing of connections.
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
import { addressesOf, pointerTo, recipientsOf, type LimitBroken } from './email-message.ts'
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
  const [, quoted] = /^"(.*)"$/.exec(name.trim()) ?? []
  return { name: quoted?.replaceAll(/\\(["\\])/g, '$1') ?? name.trim(), address: inBrackets ?? text }
}

/** Made by us: they are what makes two attempts the same e-mail. */
const ownHeaders = /^(date|message-id)$/i
/** Lines end before 1,000 bytes, and are broken at blanks only. */
const unfoldable = /\S{900}/
const tooLong = 'A word of 900 or more characters fits on no line of a header.'
const mediaType = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/

/** What SMTP cannot carry, or not to every server, of an e-mail that is right (email-message.ts); null if it can. */
export function unsendable(email: EmailRequest): LimitBroken | null {
  const { subject, headers = {}, attachments = [] } = email.content
  const foreign = addressesOf(email).find(([, each]) => !isAddress.test(each))
  if (foreign !== undefined)
    return { pointer: foreign[0], detail: 'This is no address that every mail server takes: ASCII, unquoted.' }
  if (unfoldable.test(subject)) return { pointer: '/content/subject', detail: tooLong }
  for (const [name, value] of Object.entries(headers)) {
    const pointer = pointerTo(name)
    if (!/^[A-Za-z0-9-]{1,76}$/.test(name)) return { pointer, detail: 'A header has a name of letters, digits and -.' }
    if (ownHeaders.test(name)) return { pointer, detail: 'This header is made by the gateway.' }
    if (unfoldable.test(value)) return { pointer, detail: tooLong }
  }
  const odd = attachments.findIndex(
    ({ contentType }) => !mediaType.test(contentType) || /^(multipart|message)\//i.test(contentType),
  )
  return odd < 0
    ? null
    : { pointer: `/content/attachments/${odd}/contentType`, detail: 'This is no media type of an attachment.' }
}

/** @param from of the message, else of the configuration */
export async function smtpMessage(
  email: EmailRequest,
  from: Mailbox,
  { messageId, createdAt }: Pick<AttemptContext, 'messageId' | 'createdAt'>,
): Promise<SmtpMessage> {
  const { to, cc = [], replyTo, content } = email
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
  return { from: from.address, recipients: [...new Set(recipientsOf(email))], text }
}

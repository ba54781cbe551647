/**
 * What is the same for every adapter of e-mail: whom a message goes to, how large it is, and what must not reach a
 * header. A provider's own limits are its adapter's.
 *
 * M1. What reaches a header of an e-mail is one line: no control character, no separator of lines or paragraphs.
 * M2. A message goes to those whom it names: an address is one address, and a header of its own carries none, no
 *     structure and nothing that the message says elsewhere.
 */
import type { EmailRequest, MessageRequest } from '../core/message-content.ts'

export interface LimitBroken {
  readonly pointer: string
  readonly detail: string
}

export function emailOf(message: MessageRequest, adapter: string): EmailRequest {
  if (message.channel !== 'email') throw new TypeError(`${adapter} was given a message of channel ${message.channel}`)
  return message
}

/** @param configured the sender of messages that name none */
export function senderOf({ from }: EmailRequest, configured: string | undefined): string {
  const sender = from ?? configured
  if (sender === undefined) throw new TypeError('No sender: limitBroken was not asked, or the settings changed.')
  return sender
}

export const recipientsOf = ({ to, cc = [], bcc = [] }: EmailRequest): readonly string[] => [to, ...cc, ...bcc]

/** In bytes, with attachments as Base64. */
export function sizeOf({ content }: EmailRequest): number {
  const { subject, text = '', html = '', headers = {}, attachments = [] } = content
  const said = [subject, text, html, ...Object.entries(headers).flat()]
  const attached = attachments.flatMap(({ filename, contentType, content: bytes }) => [filename, contentType, bytes])
  return [...said, ...attached].reduce((bytes, part) => bytes + Buffer.byteLength(part), 0)
}

const manyLines = /[\p{Cc}\u2028\u2029]/u
/** One address, without a name, and nothing in it that has a meaning in a list of addresses. */
const part = '[^\\s\\p{Cc}@,;:<>()[\\]"\\\\]+'
const bare = `${part}@${part}`
const address = new RegExp(`^${bare}$`, 'u')
/** A name with signs in it stands in quotes. */
const name = '(?:"(?:[^"\\\\\\p{Cc}]|\\\\["\\\\])*"|[^@,;:<>()[\\]"\\\\\\p{Cc}]*)'
export const senderPattern = `^(?:${bare}|${name} ?<${bare}>)$`
const sender = new RegExp(senderPattern, 'u')

/** What the message says elsewhere, addresses, and the structure of an e-mail. */
const notOurs =
  /^(?:to|cc|bcc|from|sender|subject|reply-to|return-path|received|mime-version|dkim-signature|content-.*|resent-.*)$/i
const headerName = /^[!-9;-~]+$/

type Field = readonly [pointer: string, value: string]

/** What would spoil a header or add a recipient; and a message that has no sender or says nothing. */
export function headersBroken(email: EmailRequest, configuredFrom: string | undefined): LimitBroken | null {
  const { from } = email
  const { text = '', html = '', headers = {} } = email.content
  if (from === undefined && configuredFrom === undefined)
    return { pointer: '/from', detail: 'A sender is needed: neither the message nor the provider names one.' }
  if (text === '' && html === '') return { pointer: '/content', detail: 'An e-mail needs a text or HTML.' }
  const spoiled = linesOf(email).find(([, line]) => manyLines.test(line) || !line.isWellFormed())
  if (spoiled !== undefined) return { pointer: spoiled[0], detail: 'A header is one line, without control characters.' }
  const several = addressesOf(email).find(([, each]) => !address.test(each))
  if (several !== undefined) return { pointer: several[0], detail: 'This is to be one address, without a name.' }
  if (from !== undefined && !sender.test(from))
    return {
      pointer: '/from',
      detail: 'The sender is one address, or a name and the address, Name <address>; signs in the name want quotes.',
    }
  const reserved = Object.keys(headers).find((each) => notOurs.test(each) || !headerName.test(each))
  if (reserved !== undefined)
    return { pointer: pointerTo(reserved), detail: 'This header is not for a message to set, or its name is none.' }
  return null
}

function linesOf({ from = '', content }: EmailRequest): Field[] {
  const { subject, headers = {}, attachments = [] } = content
  return [
    ['/from', from],
    ['/content/subject', subject],
    ...Object.entries(headers).map(([each, value]): Field => [pointerTo(each), value]),
    ...attachments.map(({ filename }, nth): Field => [`/content/attachments/${nth}/filename`, filename]),
    ...attachments.map(({ contentType }, nth): Field => [`/content/attachments/${nth}/contentType`, contentType]),
  ]
}

/** Whom it names, and where. */
export function addressesOf({ to, cc = [], bcc = [], replyTo }: EmailRequest): Field[] {
  return [
    ['/to', to],
    ...cc.map((each, nth): Field => [`/cc/${nth}`, each]),
    ...bcc.map((each, nth): Field => [`/bcc/${nth}`, each]),
    ...(replyTo === undefined ? [] : [['/replyTo', replyTo] as const]),
  ]
}

export const pointerTo = (header: string): string =>
  `/content/headers/${header.replaceAll('~', '~0').replaceAll('/', '~1')}`

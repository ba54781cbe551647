/** Times, statuses and channels in words. A time is told in the reader's zone, its exact UTC beside it. */
/** @import { Channel, Message, Status } from './types.ts' */
import { gatewayNowMs } from './api.js'
import { h } from './dom.js'

const units = /** @type {const} */ ([
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
])

/** "2 days 3 hours", "23 hours": a second unit only beside little of the first. @param {number} ms */
export function duration(ms) {
  const at = units.findIndex(([, size]) => ms >= size)
  const [first, second] = [units[at], units[at + 1]]
  if (first === undefined) return 'less than a minute'
  const count = Math.floor(ms / first[1])
  const rest = second === undefined || count > 3 ? 0 : Math.floor((ms - count * first[1]) / second[1])
  return counted(count, first[0]) + (rest > 0 && second !== undefined ? ` ${counted(rest, second[0])}` : '')
}

/** @param {string} iso */
export const passed = (iso) => gatewayNowMs() >= Date.parse(iso)

/** @param {string} iso */
function distance(iso) {
  const ms = Date.parse(iso) - gatewayNowMs()
  if (Math.abs(ms) < 60_000) return ms > 5_000 ? 'in less than a minute' : 'just now'
  return ms > 0 ? `in ${duration(ms)}` : `${duration(-ms)} ago`
}

const full = new Intl.DateTimeFormat('en-GB', {
  weekday: 'short',
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  timeZoneName: 'short',
})

/** @param {string} iso */
const local = (iso) => full.format(new Date(iso))

/** "3 minutes ago". @param {string} iso */
export const ago = (iso) => h('time', { datetime: iso, title: `${iso} (UTC) · ${local(iso)}` }, distance(iso))

/** The day and the time of day. @param {string} iso */
export const moment = (iso) => h('time', { datetime: iso, title: `${iso} (UTC)` }, local(iso))

/** @type {Record<Status, string>} */
const statusWords = {
  held: 'Held',
  scheduled: 'Scheduled',
  queued: 'Queued',
  sending: 'Sending',
  unknown: 'Outcome unknown',
  sent: 'Sent',
  failed: 'Not sent',
  canceled: 'Canceled',
}

/** @param {Pick<Message, 'status'>} message */
export const statusChip = ({ status }) => h('span', { class: `chip status-${status}` }, statusWords[status] ?? status)

/** @type {Record<Channel, string>} */
const channelWords = { sms: 'SMS', email: 'E-mail', chat: 'Chat', push: 'Push', webhook: 'Webhook' }

/** @param {Channel} channel */
export const channelName = (channel) => channelWords[channel] ?? channel

/** @param {number} count @param {string} one @param {string} [many] */
export const counted = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`

/** What follows for a person, of what ended without being sent. @type {Readonly<Record<string, string>>} */
const reasonWords = {
  provider_refused: 'The provider refused it for good.',
  expired: 'No provider had accepted it before its time was over.',
  resolved_not_sent: 'A person found that it was not sent.',
  declined: 'A person declined it.',
  lapsed: 'Nobody decided before its time was over.',
  conversation_changed: 'The conversation had moved on since it was written, so it was not sent.',
}

/** @param {Message} message one sentence, or nothing that the status does not say */
export function reasonOf({ status, statusReason }) {
  if (status === 'canceled' && statusReason === null) return 'Its sender canceled it.'
  if (status === 'failed' || status === 'canceled') return reasonWords[statusReason ?? ''] ?? statusReason ?? ''
  return ''
}

/** Marks that change how a text looks without being seen: of control (`\p{Cc}`), of direction, of no width. */
const unseen = /(?![\n\t])\p{Cc}|[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/gu

/** What was written, with what cannot be seen named: who approves a text sees what goes out. @param {unknown} text */
export const visible = (text) =>
  String(text)
    .replaceAll('\r\n', '\n')
    .replaceAll(unseen, (mark) => `[U+${mark.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}]`)

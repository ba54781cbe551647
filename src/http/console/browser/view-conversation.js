/** The conversation around a message, oldest first, and what has moved in it since the message was written. */
/** @import { Detail, Entry, Message } from './types.ts' */
/** @import { Child } from './dom.js' */
import { contentOf, gist } from './content.js'
import { h } from './dom.js'
import { idOf, readOlder } from './readings.js'
import { messageHash } from './route.js'
import { keyName, missing } from './view-frame.js'
import { ago, statusChip, visible } from './words.js'

/** Would the gateway refuse to send it now? @param {Message} message @param {Detail | null} detail */
export function hasMoved({ status, conversationVersion }, detail) {
  const present = detail?.conversation?.version
  return status === 'held' && conversationVersion !== null && present !== undefined && present !== conversationVersion
}

/** @param {Message} message @param {Detail | null} detail @returns {Child} */
export const movedNotice = (message, detail) =>
  hasMoved(message, detail) &&
  h(
    'div',
    { class: 'notice warn', role: 'status' },
    h('strong', {}, 'The conversation has moved on since this was written. '),
    `It was at version ${message.conversationVersion ?? ''} then, and is at ${detail?.conversation?.version ?? ''} now. If you approve, the message is canceled and not sent.`,
  )

/** @param {Message} message @param {Detail | null} detail @returns {Child} */
export function conversationOf(message, detail) {
  if (message.conversation === null) return h('p', { class: 'quiet' }, 'It belongs to no conversation.')
  const known = detail?.conversation ?? null
  const refused = detail?.conversationRefused ?? null
  const entries = [...(known?.entries.values() ?? [])].toSorted((a, b) => a.at.localeCompare(b.at))
  return h(
    'section',
    {},
    h(
      'h3',
      {},
      'Conversation ',
      h('bdi', {}, visible(message.conversation)),
      known !== null && h('span', { class: 'quiet' }, ` version ${known.version}`),
    ),
    refused !== null && missing(refused),
    known === null && refused === null && h('p', { class: 'quiet' }, 'Reading…'),
    known !== null &&
      known.olderCursor !== null &&
      h(
        'button',
        { type: 'button', class: 'small', onclick: () => void readOlder(message) },
        'Show what was said before',
      ),
    known !== null && entries.length === 0 && h('p', { class: 'quiet' }, 'Nothing was said in it before.'),
    h(
      'ol',
      { class: 'entries' },
      entries.map((entry) => h('li', { key: idOf(entry), class: classOf(entry, message) }, shown(entry, message))),
    ),
  )
}

/** @param {Entry} entry @param {Message} message */
const isItself = (entry, message) => entry.direction === 'outbound' && entry.message.id === message.id

/** @param {Entry} entry @param {Message} message */
const isSince = (entry, message) => entry.at > message.createdAt && !isItself(entry, message)

/** @param {Entry} entry @param {Message} message */
const classOf = (entry, message) =>
  ['entry', entry.direction, isItself(entry, message) && 'itself', isSince(entry, message) && 'since']
    .filter(Boolean)
    .join(' ')

/** @param {Entry} entry @param {Message} message @returns {Child} */
function shown(entry, message) {
  const since = isSince(entry, message) && h('span', { class: 'mark' }, 'since this was written')
  if (entry.direction === 'inbound')
    return [
      h(
        'span',
        { class: 'entry-head' },
        h('bdi', { class: 'to' }, visible(entry.inbound.from)),
        ago(entry.inbound.occurredAt ?? entry.at),
        since,
      ),
      h('p', { class: 'said', dir: 'auto' }, visible(entry.inbound.text)),
    ]
  const said = entry.message
  if (isItself(entry, message))
    return [
      h('span', { class: 'entry-head' }, h('strong', {}, 'This message'), ago(entry.at)),
      h('p', { class: 'item-gist', dir: 'auto' }, gist(said)),
    ]
  return [
    h(
      'span',
      { class: 'entry-head' },
      h('a', { href: messageHash(said.id) }, 'By ', h('bdi', {}, keyName(said.sentBy))),
      ago(entry.at),
      said.status !== 'sent' && statusChip(said),
      since,
    ),
    contentOf(said),
  ]
}

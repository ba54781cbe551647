/** The lists of what waits for a person, and beside a list the message that is open. */
/** @import { ListName, Message, Route } from './types.ts' */
/** @import { Child } from './dom.js' */
import { gist } from './content.js'
import { h } from './dom.js'
import { hashOf, messageHash } from './route.js'
import { state } from './state.js'
import { keyName, missing, shownIds } from './view-frame.js'
import { messageView } from './view-message.js'
import { ago, channelName, statusChip, visible } from './words.js'

/** @type {Record<ListName, { title: string, none: string }>} */
const texts = {
  held: { title: 'Held messages', none: 'Nothing is held. What comes in appears here by itself.' },
  unknown: {
    title: 'Unknown outcomes',
    none: 'Nothing is unknown. What a lost answer leaves open appears here by itself.',
  },
}

/** @param {Extract<Route, { view: ListName }>} route @returns {Child} */
export function listView({ view, id }) {
  const list = state.lists[view]
  const ids = shownIds(list, view)
  const { title, none } = texts[view]
  return h(
    'div',
    { key: view, class: `split${id === null ? '' : ' open'}` },
    h(
      'h1',
      { id: 'title', tabindex: -1 },
      title,
      list.ids !== null && h('span', { class: 'quiet' }, ` ${ids.length}${list.hasMore ? '+' : ''}`),
    ),
    h(
      'section',
      { key: 'list', class: 'pane', 'aria-labelledby': 'title' },
      list.refused !== null && missing(list.refused),
      list.hasMore &&
        h('p', { class: 'notice' }, 'There are older ones than these; they appear when some of these are done.'),
      list.ids === null && list.refused === null && h('p', { class: 'quiet' }, 'Reading…'),
      list.ids !== null && ids.length === 0 && h('p', { class: 'quiet none' }, none),
      items(ids, (message) => [
        hashOf({ view, id: message.id }),
        message.id === id,
        view === 'held' ? waitsFor(message) : since(message),
        view === 'held' && message.possibleDuplicateOf !== null && duplicateLink(message.possibleDuplicateOf),
      ]),
    ),
    id !== null && h('div', { key: `open ${id}`, class: 'pane' }, messageView(id, view)),
    id === null &&
      ids.length > 0 &&
      h('p', { key: 'none', class: 'pane quiet choose' }, 'Choose a message of the list.'),
  )
}

/**
 * @param {readonly string[]} ids
 * @param {(message: Message) => [href: string, isOpen: boolean, about: Child, besides: Child]} describe
 */
export const items = (ids, describe) =>
  ids.length > 0 &&
  h(
    'ul',
    { class: 'items' },
    ids.map((id) => {
      const message = state.messages.get(id)
      if (message === undefined) return null
      const [href, isOpen, about, besides] = describe(message)
      return h(
        'li',
        { key: id },
        h(
          'a',
          { href, class: 'item', 'data-item': id, 'aria-current': isOpen && 'true' },
          h(
            'span',
            { class: 'item-head' },
            h('bdi', { class: 'to' }, visible(message.to)),
            h('span', { class: 'quiet when' }, ago(message.createdAt)),
          ),
          h('span', { class: 'item-gist', dir: 'auto' }, gist(message)),
          h('span', { class: 'item-about' }, about),
        ),
        besides,
      )
    }),
  )

/** @param {Message} message @returns {Child} */
const waitsFor = ({ channel, statusReason, sentBy, notAfter }) => [
  h('span', { class: 'chip status-held' }, statusReason === 'duplicate' ? 'Possible duplicate' : 'Needs approval'),
  h('span', {}, `${channelName(channel)} by `, h('bdi', {}, keyName(sentBy))),
  h('span', {}, 'lapses ', ago(notAfter)),
]

/** @param {Message} message @returns {Child} */
const since = ({ channel, provider, plan, statusReason, attempts }) => [
  h('span', { class: 'chip status-unknown' }, plan === null ? 'Waits for a person' : 'The gateway is at it'),
  h('span', {}, `${channelName(channel)}, attempt ${attempts}, ${provider}`),
  h('span', { class: 'wide' }, 'evidence: ', h('bdi', {}, visible(plan?.lastEvidence ?? statusReason ?? 'none'))),
  plan !== null && h('span', {}, plan.step === 'look' ? 'asks again ' : 'repeats ', ago(plan.at)),
]

/** @param {string} id */
const duplicateLink = (id) => h('a', { class: 'besides', href: messageHash(id) }, 'See the first message')

/** Of a message in the lists of a search. @param {Message} message @returns {Child} */
export const stands = (message) => [
  statusChip(message),
  message.reference !== null && h('span', {}, 'reference ', h('bdi', {}, visible(message.reference))),
  h('span', {}, `${channelName(message.channel)} by `, h('bdi', {}, keyName(message.sentBy))),
]

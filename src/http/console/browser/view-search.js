/** Search by recipient, reference or idempotency key; the last tells whether a send went out. */
/** @import { Route, Search, SearchBy } from './types.ts' */
/** @import { Child } from './dom.js' */
import { h } from './dom.js'
import { isWhole } from './readings.js'
import { hashOf, messageHash, searchesBy } from './route.js'
import { state } from './state.js'
import { missing } from './view-frame.js'
import { items, stands } from './view-lists.js'
import { counted, moment } from './words.js'

/** @type {Record<SearchBy, string>} */
const names = { to: 'Recipient', reference: 'Reference', key: 'Idempotency key' }

/** @param {Extract<Route, { view: 'search' }>} route @returns {Child} */
export function searchView({ by, value }) {
  const { search } = state
  const isThis = search !== null && search.by === by && search.value === value
  return h(
    'div',
    { key: 'search', class: 'single' },
    h('h1', { id: 'title', tabindex: -1 }, 'Search'),
    h(
      'form',
      // Another search is another form: its fields begin with what it looked for.
      { key: hashOf({ view: 'search', by, value, id: null }), role: 'search', class: 'search', onsubmit: submit },
      h(
        'fieldset',
        { class: 'choices' },
        h('legend', {}, 'Look for a'),
        searchesBy.map((each) =>
          h('label', {}, h('input', { type: 'radio', name: 'by', value: each, checked: each === by }), names[each]),
        ),
      ),
      h('label', { for: 'search-for' }, 'Exactly'),
      h(
        'div',
        { class: 'row' },
        h('input', {
          id: 'search-for',
          name: 'for',
          type: 'search',
          value,
          required: true,
          autocomplete: 'off',
          autocapitalize: 'off',
          spellcheck: 'false',
        }),
        h('button', { class: 'main' }, 'Search'),
      ),
    ),
    value !== '' &&
      h('section', { 'aria-label': 'Found' }, isThis ? results(search) : h('p', { class: 'quiet' }, 'Looking…')),
  )
}

/** @param {Search} search @returns {Child} */
function results({ by, ids, hasMore, key, refused }) {
  if (refused?.type === 'key-never-seen')
    return h('p', { class: 'notice' }, 'This key was never seen. A request that is still on its way may yet arrive.')
  if (refused !== null) return missing(refused)
  if (ids === null) return h('p', { class: 'quiet' }, 'Looking…')
  return [
    key !== null && keyState(key),
    by !== 'key' &&
      h(
        'p',
        { class: 'quiet', role: 'status' },
        ids.length === 0
          ? `No message has this ${names[by].toLowerCase()}.`
          : `${counted(ids.length, 'message')}${hasMore ? ', and older ones' : ''}`,
      ),
    items(ids, (message) => [messageHash(message.id), false, stands(message), null]),
  ]
}

const sentWords = {
  yes: 'It was sent.',
  no: 'Nothing was sent, and nothing will be under this key.',
  maybe: 'It was sent, or may yet be: do not send it again under another key.',
}

/** @param {NonNullable<Search['key']>} key */
const keyState = ({ sent, message, firstSeenAt, source }) =>
  h(
    'p',
    { class: 'notice', role: 'status' },
    h('strong', {}, sentWords[sent]),
    ` First seen `,
    moment(firstSeenAt),
    source === 'derived' ? ', derived from conversation and reference.' : '.',
    message === null && ' The key was voided before any message was sent under it.',
    message !== null &&
      !isWhole(message) &&
      ` The message, ${message.id}, was erased by retention; it ended as ${message.status}.`,
  )

/** @param {Event} event */
function submit(event) {
  event.preventDefault()
  if (!(event.target instanceof HTMLFormElement)) return
  const typed = new FormData(event.target)
  const value = text(typed.get('for')).trim()
  const by = searchesBy.find((each) => each === typed.get('by')) ?? 'to'
  if (value.startsWith('msg_')) location.hash = messageHash(value)
  else location.hash = hashOf({ view: 'search', by, value, id: null })
}

/** @param {FormDataEntryValue | null} value */
const text = (value) => (typeof value === 'string' ? value : '')

/** What stands around every view: navigation, whose key this is, and whether what is shown is still true. */
/** @import { List, Problem } from './types.ts' */
/** @import { Child } from './dom.js' */
import { gatewayNowMs } from './api.js'
import { h } from './dom.js'
import { openHelp } from './keyboard.js'
import { lookNow } from './live.js'
import { hashOf } from './route.js'
import { signOut } from './session.js'
import { state } from './state.js'

/** @param {Child} content @returns {Child} */
export function frame(content) {
  const { session, route, connection } = state
  if (session === null) return null
  return [
    h(
      'header',
      { key: 'bar', class: 'bar' },
      h('button', { class: 'skip', type: 'button', onclick: skip }, 'Skip to the content'),
      h('span', { class: 'brand' }, 'Sendonce'),
      h(
        'nav',
        { 'aria-label': 'Views' },
        tab('Held', hashOf({ view: 'held', id: null }), route.view === 'held', countOf('held')),
        tab('Unknown', hashOf({ view: 'unknown', id: null }), route.view === 'unknown', countOf('unknown')),
        tab('Search', '#/search', route.view === 'search', ''),
      ),
      h(
        'span',
        { class: 'who' },
        h('span', { class: `environment ${session.environment}` }, session.environment),
        h('span', { class: 'quiet key-id' }, `key ${session.keyId}`),
      ),
      h(
        'button',
        { type: 'button', class: 'small', 'aria-label': 'Keyboard help', title: 'Keyboard help', onclick: openHelp },
        '?',
      ),
      h('button', { type: 'button', class: 'small', onclick: signOut }, 'Sign out'),
    ),
    h(
      'div',
      { key: 'connection', role: 'status', class: connection.ok ? 'unseen' : 'connection' },
      !connection.ok && [
        h('span', {}, h('strong', {}, 'Not connected. '), connection.why, ' What is shown may be out of date.'),
        h('button', { type: 'button', class: 'small', onclick: lookNow }, 'Try now'),
        h(
          'span',
          { class: 'quiet', 'aria-hidden': 'true' },
          connection.againAtMs - gatewayNowMs() > 2_500 && 'Else by itself in a moment.',
        ),
      ],
    ),
    h('main', { key: 'main', id: 'main', tabindex: -1 }, content),
  ]
}

/** @param {'held' | 'unknown'} name */
function countOf(name) {
  const { ids, hasMore } = state.lists[name]
  return ids === null ? '' : `${shownIds(state.lists[name], name).length}${hasMore ? '+' : ''}`
}

/** What is in the list and has not been seen to leave it since. @param {List} list @param {'held' | 'unknown'} name */
export const shownIds = ({ ids }, name) => (ids ?? []).filter((id) => state.messages.get(id)?.status === name)

/** @param {string} name @param {string} href @param {boolean} isHere @param {string} count */
const tab = (name, href, isHere, count) =>
  h(
    'a',
    { href, 'aria-current': isHere && 'page' },
    name,
    count !== '' && count !== '0' && [' ', h('span', { class: 'count' }, count)],
  )

function skip() {
  const main = document.querySelector('#main')
  if (main instanceof HTMLElement) main.focus()
}

/** @param {Problem} problem */
export const missing = ({ status, title, detail }) =>
  h(
    'p',
    { class: 'notice bad' },
    h('strong', {}, status === 403 ? 'This key may not see that. ' : `${title}. `),
    detail,
  )

/** A key id, and whether it is the reader's own. @param {string | null} keyId */
export function keyName(keyId) {
  if (keyId === null) return 'a key that was not noted'
  return keyId === state.session?.keyId ? `you (key ${keyId})` : `key ${keyId}`
}

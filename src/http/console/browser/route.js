/** Which view is shown: the part of the address after `#`, so that the back button works. No API key ever stands in it. */
/** @import { Route, SearchBy } from './types.ts' */

/** @type {readonly SearchBy[]} */
export const searchesBy = ['to', 'reference', 'key']

/** @param {string} hash @returns {Route} what cannot be read is the list of held messages */
export function routeOf(hash) {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?')
  const [view, id = ''] = path.split('/')
  if (view === 'messages' && id !== '') return { view: 'message', id: decoded(id) }
  if (view === 'search') {
    const asked = new URLSearchParams(query)
    const by = searchesBy.find((each) => each === asked.get('by')) ?? 'to'
    return { view, by, value: asked.get('for') ?? '', id: null }
  }
  return { view: view === 'unknown' ? 'unknown' : 'held', id: id === '' ? null : decoded(id) }
}

/** @param {Route} route */
export function hashOf(route) {
  if (route.view === 'message') return `#/messages/${encodeURIComponent(route.id)}`
  if (route.view === 'search')
    return route.value === ''
      ? '#/search'
      : `#/search?${new URLSearchParams({ by: route.by, for: route.value }).toString()}`
  return `#/${route.view}${route.id === null ? '' : `/${encodeURIComponent(route.id)}`}`
}

/** @param {string} id */
export const messageHash = (id) => hashOf({ view: 'message', id })

/** @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part)
  } catch {
    return part // someone typed a per cent sign
  }
}

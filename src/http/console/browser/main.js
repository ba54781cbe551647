/** The console: draws what is known, follows the address, and begins to read once somebody has signed in. */
import { forgetAnnounced } from './announce.js'
import { show } from './dom.js'
import { focusAfter, focusOutcome, startKeyboard } from './keyboard.js'
import { lookNow, startLive } from './live.js'
import { routeOf } from './route.js'
import { signOut } from './session.js'
import { change, drawBy, state } from './state.js'
import { frame, shownIds } from './view-frame.js'
import { listView } from './view-lists.js'
import { messageView } from './view-message.js'
import { searchView } from './view-search.js'
import { signInView } from './view-sign-in.js'

const page = document.querySelector('#page')
/** Drawn last: what was not yet shown then has been gone to since. */
let shownRoute = state.route
let shownSession = state.session
/** The button of an act that runs; disabled, it has lost the focus. @type {Element | null} */
let pressed = null

function view() {
  const { route } = state
  switch (route.view) {
    case 'held':
    case 'unknown':
      return listView(route)
    case 'message':
      return messageView(route.id, 'message')
    case 'search':
      return searchView(route)
  }
}

const titles = { held: 'Held', unknown: 'Unknown', message: 'Message', search: 'Search' }

function draw() {
  if (page === null) return
  const { session, route, lists } = state
  const focused = document.activeElement
  show(page, [session === null ? signInView() : frame(view())])
  const held = shownIds(lists.held, 'held').length
  document.title =
    session === null ? 'Sendonce console' : `${held > 0 ? `(${held}) ` : ''}${titles[route.view]} · Sendonce`

  const hasSignedIn = session !== shownSession
  if (hasSignedIn || route !== shownRoute) {
    const before = shownRoute
    shownSession = session
    shownRoute = route
    pressed = null
    if (session !== null) {
      focusAfter(route, before)
      lookNow()
    } else {
      forgetAnnounced()
      document.querySelector('input')?.focus()
    }
    return
  }
  if (focused instanceof HTMLButtonElement && (focused.disabled || !focused.isConnected)) pressed = focused
  if (pressed !== null && isOver()) {
    focusOutcome(pressed)
    pressed = null
  }
}

const isOver = () => ![...state.decisions.values(), ...state.verdicts.values()].some(({ phase }) => phase === 'running')

addEventListener('hashchange', () => {
  state.route = routeOf(location.hash)
  change()
})
// The browser may keep a page that was left, to show it again as it was: not with a key in it.
addEventListener('pagehide', signOut)
startKeyboard()
startLive()
drawBy(draw)

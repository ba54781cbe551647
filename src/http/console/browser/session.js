/** Signing in and out. The key is tried by reading what is held; what else it may do shows when it is tried. */
/** @import { Answer, Message, Page, Problem } from './types.ts' */
import { forgetKey, read, useKey } from './api.js'
import { change, forget, state } from './state.js'

/** @param {string} typed */
export async function signIn(typed) {
  if (state.signIn.busy) return
  const session = useKey(typed.trim())
  if (session === null) return say('This is no API key: one looks like so_test_… or so_live_….')
  state.signIn = { busy: true, said: null }
  change()
  /** @type {Answer<Page<Message>>} */
  const answer = await read('/v1/messages?status=held&limit=1')
  // A key that may not read is told so in the page itself: it can still be told apart from one that is not known.
  if (answer.kind === 'ok' || (answer.kind === 'refused' && answer.problem.status === 403)) {
    forget()
    state.session = session
    change()
    return
  }
  forgetKey()
  say(answer.kind === 'lost' ? answer.why : explained(answer.problem))
}

/** @type {() => void} */
let endReading = () => {}

/** @param {() => void} end what still reads then */
export function atSignOut(end) {
  endReading = end
}

export function signOut() {
  endReading()
  forgetKey()
  forget()
  change()
}

/** The gateway knows the key no more. @param {Problem} problem */
export function signedOut(problem) {
  signOut()
  say(explained(problem))
}

/** @param {string} said */
function say(said) {
  state.signIn = { busy: false, said }
  change()
}

/** @param {Problem} problem */
const explained = ({ status, title, detail }) =>
  status === 401 ? 'The gateway does not accept this key: it is not known, or it was revoked.' : `${title}. ${detail}`

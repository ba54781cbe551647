/** What the page knows, in memory only, and how it is changed: set it, then call `change`. Owns no request and no element. */
/** @import { Message, State } from './types.ts' */
import { routeOf } from './route.js'

/** @returns {Omit<State, 'route'>} */
const empty = () => ({
  session: null,
  signIn: { busy: false, said: null },
  messages: new Map(),
  lists: {
    held: { ids: null, hasMore: false, refused: null },
    unknown: { ids: null, hasMore: false, refused: null },
  },
  detail: null,
  search: null,
  decisions: new Map(),
  verdicts: new Map(),
  drafts: new Map(),
  connection: { ok: true },
})

/** @type {State} */
export const state = { ...empty(), route: routeOf(location.hash) }

/** @type {() => void} */
let draw = () => {}
let isDue = false

/** @param {() => void} how */
export function drawBy(how) {
  draw = how
  change()
}

/** Draws once, however much changes in one turn. */
export function change() {
  if (isDue) return
  isDue = true
  queueMicrotask(() => {
    isDue = false
    draw()
  })
}

/** Forgets everything that was shown. */
export function forget() {
  Object.assign(state, empty())
}

/** Answers overtake each other: an older state of a message never takes the place of a newer one. @param {Message} message */
export function keep(message) {
  const known = state.messages.get(message.id)
  if (known === undefined || known.updatedAt <= message.updatedAt) state.messages.set(message.id, message)
}

/** A page that stays open for weeks keeps what it shows, and no more. */
export function dropUnseen() {
  const { lists, search, route, detail } = state
  const seen = new Set([
    ...(lists.held.ids ?? []),
    ...(lists.unknown.ids ?? []),
    ...(search?.ids ?? []),
    route.id,
    detail?.id,
  ])
  for (const id of seen) {
    const first = state.messages.get(id ?? '')?.possibleDuplicateOf
    if (first !== undefined) seen.add(first)
  }
  for (const id of state.messages.keys()) if (!seen.has(id)) state.messages.delete(id)
}

/**
 * What keys do, and where the focus goes when the view changes. A key never decides anything: that takes a button.
 *
 * K1. The focus moves when the reader goes somewhere, and when the button that had it is gone; never because news came in.
 */
/** @import { Route } from './types.ts' */
import { hashOf } from './route.js'
import { state } from './state.js'

/** The list that was shown last: where Escape leads. */
let home = '#/held'
export const keyboardHome = () => home

export function startKeyboard() {
  document.addEventListener('keydown', onKey)
  document.querySelector('#help-close')?.addEventListener('click', () => help()?.close())
}

/** @returns {HTMLDialogElement | null} */
const help = () => document.querySelector('#help')

export function openHelp() {
  help()?.showModal()
}

const isField = (/** @type {unknown} */ element) =>
  element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement || element instanceof HTMLSelectElement

/** @param {KeyboardEvent} event */
function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || state.session === null) return
  if (help()?.open === true) return // it closes itself
  if (isField(event.target)) {
    if (event.key === 'Escape' && !focusOn('#message-title')) focusOn('#title')
    return
  }
  if (act(event.key)) event.preventDefault()
}

/** @param {string} key @returns {boolean} whether the key was one of ours */
function act(key) {
  switch (key) {
    case 'j':
    case 'k':
      return step(key === 'j' ? 1 : -1)
    case 'ArrowDown':
    case 'ArrowUp':
      // Elsewhere they scroll.
      return document.activeElement?.closest('.items') !== null && step(key === 'ArrowDown' ? 1 : -1)
    case 'Escape':
      return back()
    case '/':
      if (location.hash.startsWith('#/search')) return focusOn('#search-for')
      location.hash = '#/search'
      return true
    case '?':
      openHelp()
      return true
    default:
      return false
  }
}

/** @param {1 | -1} by */
function step(by) {
  const items = [...document.querySelectorAll('[data-item]')].filter((item) => item.checkVisibility())
  const at = items.findIndex((item) => item === document.activeElement)
  const open = items.findIndex((item) => item.getAttribute('aria-current') === 'true')
  const next = items[at === -1 ? Math.max(open, 0) : Math.min(Math.max(at + by, 0), items.length - 1)]
  if (next instanceof HTMLElement) next.focus()
  return next !== undefined
}

function back() {
  if (state.route.id === null || location.hash === home) return false
  location.hash = home
  return true
}

/** After the view that `route` names was drawn. @param {Route} route @param {Route} before */
export function focusAfter(route, before) {
  if (route.view !== 'message') home = hashOf(route.view === 'search' ? route : { view: route.view, id: null })
  if (route.id !== null) {
    scrollTo(0, 0)
    focusOn('#message-title')
    return
  }
  const left = before.id !== null && focusOn(`[data-item="${CSS.escape(before.id)}"]`)
  if (left) return
  if (route.view === 'search' && route.value === '') focusOn('#search-for')
  else focusOn('#title')
}

/** The button that was pressed is gone or disabled: what came of it takes its place. @param {Element | null} pressed */
export function focusOutcome(pressed) {
  if (pressed === null || (document.activeElement !== document.body && document.activeElement !== null)) return
  focusOn('[data-outcome]:not(:empty)')
}

/** @param {string} selector */
function focusOn(selector) {
  const element = document.querySelector(selector)
  if (!(element instanceof HTMLElement) || !element.checkVisibility()) return false
  element.focus()
  return true
}

/**
 * Keeps what is shown true: reads it every two seconds while the page is looked at, and less often while that fails.
 *
 * L1. One round at a time; another view, or signing out, ends the one that runs, and its answers count no more.
 * L2. A slow gateway is asked less: a round begins no sooner than four times as long after the last as that took.
 */
import { gatewayNowMs } from './api.js'
import { readDetail, readList, readSearch, RoundFailed } from './readings.js'
import { atSignOut, signedOut } from './session.js'
import { change, dropUnseen, state } from './state.js'

const everyMs = 2_000
const atMostMs = 30_000
/** The list that is not shown is counted in the navigation, and may be a little behind. */
const aside = 5

let rounds = 0
let failures = 0
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer
/** @type {AbortController | undefined} */
let running

export function startLive() {
  document.addEventListener('visibilitychange', () => (document.hidden ? pause() : lookNow()))
  addEventListener('online', lookNow)
  atSignOut(pause)
}

function pause() {
  clearTimeout(timer)
  running?.abort()
}

/** Reads at once: the view is another one, or the reader asks for it. */
export function lookNow() {
  pause()
  if (state.session === null || document.hidden) return
  void round()
}

async function round() {
  const own = new AbortController()
  running = own
  const began = performance.now()
  const failed = await readAll(own.signal).then(
    () => null,
    (error) => {
      if (error instanceof RoundFailed) return error
      reportError(error)
      return new RoundFailed("The gateway's answer could not be read.", null, null)
    },
  )
  if (own.signal.aborted) return
  if (failed?.problem?.status === 401) return signedOut(failed.problem)
  rounds++
  failures = failed === null ? 0 : failures + 1
  const tookMs = performance.now() - began
  const pauseMs =
    failed === null
      ? Math.max(everyMs, 4 * tookMs)
      : Math.min(atMostMs, Math.max(failed.retryAfterMs ?? 0, everyMs * 2 ** (failures - 1)))
  state.connection =
    failed === null ? { ok: true } : { ok: false, why: failed.message, againAtMs: gatewayNowMs() + pauseMs }
  dropUnseen()
  change()
  timer = setTimeout(() => void round(), pauseMs)
}

/** @param {AbortSignal} signal */
async function readAll(signal) {
  const { route } = state
  const isAside = rounds % aside === 0
  await Promise.all([
    (route.view === 'held' || isAside) && readList('held', signal),
    (route.view === 'unknown' || isAside) && readList('unknown', signal),
    route.id !== null && readDetail(route.id, signal),
    route.view === 'search' && readSearch(route.by, route.value, signal),
  ])
}

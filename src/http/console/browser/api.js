/**
 * The only place that asks the gateway, and the only one that knows the API key.
 *
 * A1. The key stands in one variable of this module: not in storage, not in an address, not in the page. Whoever reloads,
 *     leaves or signs out has none.
 * A2. An answer is `ok`, `refused` for good, or `lost`; nothing here repeats a request by itself.
 */
/** @import { Answer, Problem, Session } from './types.ts' */

/** @type {string | null} */
let apiKey = null
/** How far the reader's clock is behind the gateway's; durations are counted by the latter. */
let behindMs = 0

const readMs = 10_000

/** @param {string} typed @returns {Session | null} null: it is no API key */
export function useKey(typed) {
  const parts = /^so_(live|test)_([A-Za-z0-9-]{1,64})_[A-Za-z0-9_-]{32,128}$/.exec(typed)
  if (parts?.[2] === undefined) return null
  apiKey = typed
  return { environment: parts[1] === 'live' ? 'live' : 'test', keyId: parts[2] }
}

export function forgetKey() {
  apiKey = null
}

export const gatewayNowMs = () => Date.now() + behindMs

/**
 * @template T
 * @param {string} path
 * @param {AbortSignal} [given]
 * @returns {Promise<Answer<T>>}
 */
export async function read(path, given) {
  return ask('GET', path, undefined, readMs, given)
}

/**
 * @template T
 * @param {string} path
 * @param {unknown} body
 * @param {number} patienceMs how long an answer is waited for
 * @returns {Promise<Answer<T>>}
 */
export async function post(path, body, patienceMs) {
  return ask('POST', path, body, patienceMs)
}

/**
 * @template T
 * @param {'GET' | 'POST'} method @param {string} path @param {unknown} body @param {number} patienceMs @param {AbortSignal} [given]
 * @returns {Promise<Answer<T>>}
 */
async function ask(method, path, body, patienceMs, given) {
  const impatient = new AbortController()
  const timer = setTimeout(() => impatient.abort(), patienceMs)
  try {
    const response = await fetch(path, {
      method,
      headers: {
        authorization: `Bearer ${apiKey ?? ''}`,
        accept: 'application/json',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      cache: 'no-store',
      credentials: 'omit',
      redirect: 'error',
      signal: given === undefined ? impatient.signal : AbortSignal.any([impatient.signal, given]),
    })
    takeTime(response)
    /** @type {unknown} */
    const told = await response.json()
    if (response.ok) return { kind: 'ok', body: /** @type {T} */ (told) }
    return refusalOf(response, told)
  } catch {
    // Whatever broke, on its way there or back: this page cannot know whether the gateway has done it.
    return {
      kind: 'lost',
      why: impatient.signal.aborted ? 'The gateway did not answer in time.' : 'The gateway could not be reached.',
      retryAfterMs: null,
    }
  } finally {
    clearTimeout(timer)
  }
}

/**
 * @param {Response} response @param {unknown} told
 * @returns {Exclude<Answer<never>, { kind: 'ok' }>}
 */
function refusalOf(response, told) {
  const { type, title, detail, retryable, ...rest } = /** @type {Partial<Problem> & { retryable?: boolean }} */ (
    told ?? {}
  )
  const { status } = response
  if (status >= 500 || status === 408 || status === 429 || retryable === true) {
    const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
    const why = `The gateway answered ${status}${title === undefined ? '' : `: ${title}`}.`
    return { kind: 'lost', why, retryAfterMs: Number.isFinite(seconds) ? seconds * 1000 : null }
  }
  const name = (type ?? '').replace(/^.*\//, '')
  const problem = {
    ...rest,
    status,
    type: name,
    title: title ?? `The gateway answered ${status}`,
    detail: detail ?? '',
  }
  return { kind: 'refused', problem }
}

/** The header counts in seconds, so less than two of difference is none. @param {Response} response */
function takeTime(response) {
  const date = Date.parse(response.headers.get('date') ?? '')
  if (Number.isNaN(date)) return
  const difference = date - Date.now()
  behindMs = Math.abs(difference) < 2_000 ? 0 : difference
}

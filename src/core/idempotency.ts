/**
 * Idempotency keys: their syntax, the keys we derive, and what is no key. Owns everything about the name of an event;
 * who claimed it is the store's business, what its message became is core/message.ts's.
 *
 * K1. `"k"` and `k` are one key. A malformed header is an error, never "no key": a typo must not change the identity.
 * K2. A derived key is a hash of account, environment, conversation and reference; never random, never from a time,
 *     and no address or text stands in it. Client keys can never equal one: a new key `derived:…` is refused.
 * K3. Something that is only a time is refused for new keys, for a repeat made a second later would have another.
 */
import { hash } from 'node:crypto'
import type { Environment } from './message-content.ts'

/** Bytes; all allowed characters are one byte long. */
export const maxKeyLength = 255

export type KeyHeader =
  | { readonly kind: 'missing' }
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'invalid'; readonly detail: string }

const invalid = (detail: string): KeyHeader => ({ kind: 'invalid', detail })

/** Reads the `Idempotency-Key` header from its lines as they came (draft-ietf-httpapi-idempotency-key-header, RFC 9651). */
export function keyFromHeader(lines: readonly string[] | undefined): KeyHeader {
  const line = lines?.[0]
  if (lines === undefined || line === undefined) return { kind: 'missing' }
  if (lines.length > 1) return invalid('Give the Idempotency-Key header once; it came on several lines.')
  if (line.startsWith('"')) {
    const quoted = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/.exec(line)
    if (quoted?.[1] === undefined)
      return invalid(
        'A quoted Idempotency-Key is one string of printable ASCII, closed by a quote, without parameters or a list.',
      )
    return checkedKey(quoted[1].replaceAll(/\\(["\\])/g, '$1'))
  }
  if (line !== '' && !/^[\x21-\x7e]+$/.test(line))
    return invalid(
      'An Idempotency-Key without quotes holds visible ASCII only: no spaces, control or other characters.',
    )
  if (/[",;\\]/.test(line))
    return invalid('An Idempotency-Key that holds a quote, comma, semicolon or backslash must be quoted.')
  return checkedKey(line)
}

/** A key as it stands in a path, decoded: the same characters that a quoted header may hold. */
export function keyFromPath(key: string): KeyHeader {
  return /^[\x20-\x7e]*$/.test(key) ? checkedKey(key) : invalid('An idempotency key holds printable ASCII only.')
}

function checkedKey(key: string): KeyHeader {
  if (key.trim() === '') return invalid('The Idempotency-Key is empty.')
  if (key.length > maxKeyLength)
    return invalid(`An Idempotency-Key has at most ${maxKeyLength} bytes; this one has ${key.length}.`)
  if (key.startsWith(derivedPrefix) && !isDerived(key))
    return invalid(
      `Keys that begin with "${derivedPrefix}" name derived keys, written ${derivedPrefix}v1:<64 hex digits>.`,
    )
  return { kind: 'key', key }
}

const derivedPrefix = 'derived:'

export function isDerived(key: string): boolean {
  return /^derived:v1:[0-9a-f]{64}$/.test(key)
}

export const keySources = ['client', 'derived'] as const
export type KeySource = (typeof keySources)[number]
export const keySource = (key: string): KeySource => (isDerived(key) ? 'derived' : 'client')

export interface Scope {
  readonly account: string
  readonly environment: Environment
}

/** The key of (conversation, reference). A JSON array keeps `a:b`,`c` and `a`,`b:c` apart. */
export function derivedKey(scope: Scope, conversation: string, reference: string): string {
  const parts = JSON.stringify([scope.account, scope.environment, conversation, reference])
  return `${derivedPrefix}v1:${hash('sha256', parts)}`
}

/** `Idempotency-Key` as we echo it: an RFC 9651 string, which for printable ASCII is written as in JSON. */
export const quotedKey = (key: string): string => JSON.stringify(key)

const yearMs = 366 * 86_400_000
const epochUnitsMs = [1000, 1, 1e-3, 1e-6]
const timeShapes = [
  /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)? ?(Z|[+-]\d{2}(:?\d{2})?)?$/i, // ISO 8601, extended
  /^\d{8}T\d{4}(\d{2}([.,]\d+)?)?(Z|[+-]\d{2}(:?\d{2})?)?$/i, // ISO 8601, basic
  /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/, // HTTP date: IMF-fixdate
  /^[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/, // RFC 850
  /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/, // asctime
]

/** Is this key nothing but a time: an epoch in s, ms, µs or ns within a year of `nowMs`, ISO 8601 or an HTTP date? */
export function isTimestamp(key: string, nowMs: number): boolean {
  if (/^\d{9,20}(\.\d{1,9})?$/.test(key))
    return epochUnitsMs.some((unit) => Math.abs(Number(key) * unit - nowMs) <= yearMs)
  return timeShapes.some((shape) => shape.test(key))
}

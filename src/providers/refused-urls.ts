/**
 * URLs whose receiver asked not to be called: for a while, what a caller sends there is refused without a call. Which
 * answers ask for that is in the adapter's code table (`refusesUrlForMs`); this file only remembers them.
 *
 * R1. One provider's, in this process's memory, bounded: it spares calls, and no promise of ours rests on it.
 * R2. An entry ends by itself, so that a receiver which answered so by mistake is called again.
 * R3. The whole URL counts, query included: that is what the answer was about, and there may be others beside it.
 */
import type { Outcome } from '../core/outcome.ts'
import type { CodeRule, RenderedRequest } from './provider.ts'

/** An account's view of a URL: what one account was told is no other account's business. */
type Url = Pick<RenderedRequest, 'origin' | 'path'> & { readonly account: string }

export interface RefusedUrls {
  /** What a message to this URL comes to without a call; null: make the call. */
  refusalOf(url: Url, at: Date): Outcome | null
  note(url: Url, outcome: Outcome, at: Date): void
}

const maxUrls = 10_000

export function refusedUrls(codes: Readonly<Record<string, CodeRule>>): RefusedUrls {
  const refused = new Map<string, { readonly code: string; readonly wording: string; readonly untilMs: number }>()
  const keyOf = ({ account, origin, path }: Url): string => `${account} ${origin}${path}`
  return {
    refusalOf: (url, at) => {
      const known = refused.get(keyOf(url))
      if (known === undefined || at.getTime() >= known.untilMs) return null
      const detail = `Not called, for it answered an earlier message so: ${known.wording}`
      return { kind: 'rejected', evidence: { phase: 'not_begun', code: known.code, detail } }
    },
    note: (url, { evidence: { phase, code, unrecognised } }, at) => {
      if (phase !== 'answered' || code === undefined || unrecognised === true || !Object.hasOwn(codes, code)) return
      const { refusesUrlForMs, wording } = codes[code] ?? {}
      if (refusesUrlForMs === undefined || wording === undefined) return
      const key = keyOf(url)
      refused.delete(key) // so that the one noted last is also the last to be forgotten
      refused.set(key, { code, wording, untilMs: at.getTime() + refusesUrlForMs })
      const [oldest] = refused.keys()
      if (refused.size > maxUrls && oldest !== undefined) refused.delete(oldest)
    },
  }
}

/**
 * What a provider can do about duplicates and lost answers, as data. An adapter declares it; recovery.ts and
 * providers/http-outcome.ts act on it; nothing asks which provider it is.
 *
 * D1. A window is a promise of the provider's, and our margin is taken off it: we stop before it does.
 * D2. Only a look-up that is `exact` and `strong` can prove an absence; every other one can only find.
 */
import type { Channel } from './message-content.ts'

/** The provider takes a key of ours and acts once on it. Ours is the message id: the same for all attempts. */
export interface Deduplication {
  /** Where the key stands in the request, in the provider's words. */
  readonly keyField: string
  /** `message_id`: msg_ and a UUID. `uuid`: the UUID alone. */
  readonly keyFormat: 'message_id' | 'uuid'
  /** How long the provider knows a key, at least, and how much earlier we stop; counted from the first attempt that may have arrived. */
  readonly lifetimeMs: number
  readonly marginMs: number
  /**
   * What a repeat is answered with: the first answer; a conflict that proves acceptance (its code `accepted_before`); a
   * conflict that proves nothing; or the first answer, be it a failure. In the last two cases asking again is pointless.
   */
  readonly repeat: 'same_response' | 'conflict_is_accepted' | 'conflict_is_ambiguous' | 'stored_failure'
}

/** The provider can be asked what it accepted under a reference of ours. */
export interface Lookup {
  /** `exact`: by the reference. `scan`: we compare what a list of recent messages shows. */
  readonly match: 'exact' | 'scan'
  /** `strong`: what was accepted before we asked is shown. `weak`: it may show later, or never. */
  readonly strength: 'strong' | 'weak'
  /** How long a request that is over for us may still be running there, or on its way into the index. */
  readonly settlingMs: number
  /** How long what was accepted can be found, and how much earlier we stop believing that it would be. */
  readonly retentionMs: number
  readonly marginMs: number
}

export interface Capabilities {
  readonly channels: readonly Channel[]
  readonly deduplication: Deduplication | null
  readonly lookup: Lookup | null
  /** What its later events carry of ours: nothing, our reference, or the address that they are sent to. */
  readonly lateEvidence: 'none' | 'reference' | 'callback_url'
  /** What proves acceptance: the status line alone, or the documented body behind it. */
  readonly acceptance: 'status' | 'body'
}

/** The class of a provider in a word: what may follow a lost answer. */
export function recoveryOf({ deduplication, lookup }: Pick<Capabilities, 'deduplication' | 'lookup'>) {
  if (deduplication !== null) return 'keyed'
  if (lookup !== null) return canProveAbsence(lookup) ? 'lookup' : 'lookup-weak'
  return 'blind'
}

/** D2. */
export const canProveAbsence = ({ match, strength }: Pick<Lookup, 'match' | 'strength'>): boolean =>
  match === 'exact' && strength === 'strong'

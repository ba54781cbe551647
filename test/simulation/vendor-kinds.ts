/** The kinds of provider that the simulation plays: what each declares, and how its answers are read. */
import type { Capabilities, Deduplication, Lookup } from '../../src/core/capabilities.ts'
import type { AnswerRules } from '../../src/providers/provider.ts'

export const vendorKinds = ['blind', 'keyed', 'conflict', 'strong', 'weak', 'keyed and strong'] as const
export type VendorKind = (typeof vendorKinds)[number]

/** Short, so that one history sees the end of each; longer than a lease and what travels. */
const keys = { keyField: 'reference', keyFormat: 'message_id', lifetimeMs: 30_000, marginMs: 8_000 } as const
const sameResponse: Deduplication = { ...keys, repeat: 'same_response' }
const conflict: Deduplication = { ...keys, repeat: 'conflict_is_accepted' }
const strong: Lookup = {
  match: 'exact',
  strength: 'strong',
  settlingMs: 3_000,
  retentionMs: 90_000,
  marginMs: 10_000,
}
const weak: Lookup = { ...strong, strength: 'weak', retentionMs: 60_000 }

const means: Readonly<Record<VendorKind, Pick<Capabilities, 'deduplication' | 'lookup'>>> = {
  blind: { deduplication: null, lookup: null },
  keyed: { deduplication: sameResponse, lookup: null },
  conflict: { deduplication: conflict, lookup: null },
  strong: { deduplication: null, lookup: strong },
  weak: { deduplication: null, lookup: weak },
  'keyed and strong': { deduplication: sameResponse, lookup: strong },
}

export const capabilitiesOf = (kind: VendorKind, acceptance: Capabilities['acceptance']): Capabilities => ({
  channels: ['sms'],
  ...means[kind],
  lateEvidence: 'none',
  acceptance,
})

/** When a request has left, all that may come of it has come and can be found within the sum of these. */
export const travelMs = 2_500
export const processingMs = 800
export const indexingMs = 1_200

const memberOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
const textAt = (value: unknown, name: string): string | null => {
  const text = memberOf(value, name)
  return typeof text === 'string' ? text : null
}

export const rules: AnswerRules = {
  isAccepted: (status) => status === 201,
  messageIdOf: (body) => textAt(body, 'id'),
  errorCodeOf: (body) => textAt(memberOf(body, 'error'), 'code'),
  codes: {
    refused: { means: 'rejected', statuses: [400], wording: 'refused' },
    rate_limited: { means: 'refused_for_now', statuses: [429], wording: 'too many' },
    unauthorised: { means: 'credentials', statuses: [401], wording: 'who are you?' },
    internal_error: { means: 'unknown', statuses: [500], wording: 'something went wrong' },
    key_in_use: { means: 'key_in_use', statuses: [409], wording: 'the first request runs' },
    key_reused: { means: 'key_reused', statuses: [409], wording: 'another request has this key' },
    sent_before: { means: 'accepted_before', statuses: [409], wording: 'sent before' },
  },
}

/** How a look-up is read. */
export function shownIn(body: unknown): { count: number; providerMessageId: string | null } | null {
  const data = memberOf(body, 'data')
  if (!Array.isArray(data)) return null
  return { count: data.length, providerMessageId: textAt(data[0], 'id') }
}

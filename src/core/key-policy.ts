/**
 * What an API key is bound to beyond its scopes: whether it must have read the conversation, whether a person must approve,
 * what happens to what looks like a duplicate, and where it may send. Owns the defaults of each kind; who applies them is
 * the business of operations.
 *
 * Y1. A policy is whole: what was not given is the default of the key's kind, member by member.
 * Y2. Only what was given is stored, so that a default which becomes stricter holds for the keys that are there.
 */
import type { ApiKind } from './api-key.ts'
import type { Channel } from './message-content.ts'

export const approvalRules = ['never', 'always', 'first_contact'] as const
/** When a person must approve; by channel: for messages of these. */
export type ApprovalRule = (typeof approvalRules)[number] | { readonly channels: readonly Channel[] }

export const guardModes = ['off', 'flag', 'hold', 'refuse'] as const
export interface DuplicateGuard {
  /** What becomes of a message like one that went to the same recipient in the same conversation. */
  readonly mode: (typeof guardModes)[number]
  /** How long ago that may have been. */
  readonly windowSeconds: number
}
export const guardWindow = { minS: 1, maxS: 86_400 } as const

export interface KeyPolicy {
  readonly requireConversationVersion: boolean
  readonly requireApproval: ApprovalRule
  readonly duplicateGuard: DuplicateGuard
  /** Null: all. */
  readonly allowedChannels: readonly Channel[] | null
  readonly allowedProviders: readonly string[] | null
}

/** A policy as it is given and stored: what is absent is the default. */
export interface GivenPolicy extends Partial<Omit<KeyPolicy, 'duplicateGuard'>> {
  readonly duplicateGuard?: Partial<DuplicateGuard>
}

const trusted: KeyPolicy = {
  requireConversationVersion: false,
  requireApproval: 'never',
  duplicateGuard: { mode: 'flag', windowSeconds: 900 },
  allowedChannels: null,
  allowedProviders: null,
}

export const policyDefaults: Readonly<Record<ApiKind, KeyPolicy>> = {
  service: trusted,
  agent: {
    requireConversationVersion: true,
    requireApproval: 'always',
    duplicateGuard: { mode: 'hold', windowSeconds: guardWindow.maxS },
    allowedChannels: null,
    allowedProviders: null,
  },
  person: trusted,
}

/** @param given null: nothing */
export function policyOf(kind: ApiKind, given: GivenPolicy | null): KeyPolicy {
  const defaults = policyDefaults[kind]
  return { ...defaults, ...given, duplicateGuard: { ...defaults.duplicateGuard, ...given?.duplicateGuard } }
}

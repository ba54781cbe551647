/** An API key as it is shown: everything but its secrets, with its policy whole (key-policy.ts, Y1). */
import type { ApiKind, ApiScope } from './api-key.ts'
import type { Scope } from './idempotency.ts'
import { policyOf, type GivenPolicy } from './key-policy.ts'

/** What is known of an API key. */
export interface ApiKey extends Scope {
  readonly id: string
  readonly kind: ApiKind
  /** A label for people. */
  readonly name: string | null
  readonly scopes: readonly ApiScope[]
  /** What was given; null: nothing. */
  readonly policy: GivenPolicy | null
  readonly createdAt: Date
  /** The API key that made it, or `cli:` and the user of a command line; null: made before this was kept. */
  readonly createdBy: string | null
  /** Until when the secret before the present one holds, or did. */
  readonly previousUntil: Date | null
  readonly revokedAt: Date | null
}

export function apiKeyView(key: ApiKey, now: Date) {
  const { id, account, environment, kind, name, scopes, policy, createdAt, createdBy, previousUntil, revokedAt } = key
  const previousHolds = previousUntil !== null && previousUntil > now && revokedAt === null
  return {
    id,
    object: 'api_key' as const,
    account,
    environment,
    scopes,
    kind,
    name,
    policy: policyOf(kind, policy),
    createdAt: createdAt.toISOString(),
    createdBy,
    previousSecretUntil: previousHolds ? previousUntil.toISOString() : null,
    revokedAt: revokedAt?.toISOString() ?? null,
  }
}

/** @param text with the secret, which is shown this once */
export function apiKeyWithSecretView(key: ApiKey, text: string, now: Date) {
  const { id, ...rest } = apiKeyView(key, now)
  return { id, key: text, ...rest }
}

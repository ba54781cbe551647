/**
 * POST /v1/api-keys/{id}/rotate, `sendonce keys rotate`: another secret for the same key. Id, scopes and policy stay, and so
 * do the idempotency keys that were used with it, for those belong to the account.
 *
 * 1. The new text is given out here and never again.
 * 2. Two secrets hold at most: the present one until the grace is over, and the new one. The one before those is gone.
 */
import { apiKeyText, secretHash } from '../core/api-key.ts'
import type { Scope } from '../core/idempotency.ts'
import type { Deps } from '../deps.ts'
import { requireMaker, type MadeApiKey, type Maker } from './create-api-key.ts'
import { getApiKey } from './get-api-key.ts'
import { Refusal } from './refusal.ts'

/** @param graceS 0: the present secret ends now @throws Refusal `not-found`, `forbidden`, `api-key-revoked` */
export async function rotateApiKey(
  deps: Pick<Deps, 'store' | 'newSecret' | 'log'>,
  scope: Scope,
  id: string,
  graceS: number,
  maker: Maker,
): Promise<MadeApiKey> {
  const key = await getApiKey(deps, scope, id)
  requireMaker(maker, key.kind)
  const secret = deps.newSecret()
  const previousUntil = await deps.store.replaceSecret(scope, id, secretHash(secret), graceS)
  if (previousUntil === undefined) throw new Refusal('api-key-revoked')
  deps.log.info({ apiKey: id, graceS, by: maker.id }, 'an API key was given another secret')
  return {
    apiKey: { ...key, previousUntil },
    text: apiKeyText({ environment: key.environment, id, secret }),
  }
}

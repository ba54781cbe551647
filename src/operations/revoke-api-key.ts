/** POST /v1/api-keys/{id}/revoke, `sendonce keys revoke`: it verifies nothing any more, for good. Again is the same. */
import type { ApiKey } from '../core/api-key-view.ts'
import type { Scope } from '../core/idempotency.ts'
import type { Deps } from '../deps.ts'
import { getApiKey, noSuchKey } from './get-api-key.ts'

/** @throws Refusal `not-found` */
export async function revokeApiKey(
  deps: Pick<Deps, 'store' | 'log'>,
  scope: Scope,
  id: string,
  by: string,
): Promise<ApiKey> {
  const key = await getApiKey(deps, scope, id)
  const revokedAt = await deps.store.revokeApiKey(scope, id)
  if (revokedAt === undefined) throw noSuchKey()
  if (key.revokedAt === null) deps.log.info({ apiKey: id, by }, 'an API key was revoked')
  return { ...key, revokedAt }
}

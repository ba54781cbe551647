/** An API key of the caller's account and environment, by its id. What belongs to someone else is not there. */
import type { ApiKey } from '../core/api-key-view.ts'
import type { Scope } from '../core/idempotency.ts'
import type { Deps } from '../deps.ts'
import { Refusal } from './refusal.ts'

export const noSuchKey = (): Refusal => new Refusal('not-found', 'There is no API key with this id.')

/** @throws Refusal `not-found` */
export async function getApiKey({ store }: Pick<Deps, 'store'>, scope: Scope, id: string): Promise<ApiKey> {
  const key = await store.findApiKey(id)
  if (key === undefined || key.account !== scope.account || key.environment !== scope.environment) throw noSuchKey()
  return key
}

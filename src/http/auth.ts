/**
 * Who asks: an API key of one account and one environment, with scopes. Looked at before anything else of a request.
 *
 * U1. Of a secret only its hash is kept or compared, in constant time; an unknown id costs the same comparison.
 * U2. What a request is shown or does is bound to the account and environment of its API key.
 */
import { timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { apiScopes, parseApiKey, secretHash, type ApiScope } from '../core/api-key.ts'
import type { Scope } from '../core/idempotency.ts'
import { Refusal } from '../operations/refusal.ts'
import type { Store } from '../store/store.ts'
import type { StoredApiKey } from '../store/keys.ts'

/** Whose request it is. */
export interface Caller extends Scope {
  readonly apiKey: string
  readonly scopes: readonly ApiScope[]
}

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller | null
  }
  interface FastifyContextConfig {
    /** The scope that a route needs; a route without one is open. */
    scope?: ApiScope
  }
}

/** How long a key that was read is believed: what a revocation may lag behind. */
const believedMs = 1_000
const nobody = Buffer.alloc(32)

export type Authenticate = (request: FastifyRequest) => Promise<Caller>

/** @param bootstrapKey gives account `default` all scopes in the environment that it names */
export function authenticator(store: Store, bootstrapKey: string | null, nowMs: () => number): Authenticate {
  const bootstrap = bootstrapKey === null ? undefined : bootstrapEntry(bootstrapKey)
  const believed = new Map<string, { key: StoredApiKey | undefined; untilMs: number }>()

  const find = async (id: string): Promise<StoredApiKey | undefined> => {
    if (bootstrap?.id === id) return bootstrap
    const known = believed.get(id)
    if (known !== undefined && known.untilMs > nowMs()) return known.key
    const key = await store.findApiKey(id)
    if (believed.size >= 10_000) believed.clear() // ids are guessable, memory is not endless
    believed.set(id, { key, untilMs: nowMs() + believedMs })
    return key
  }

  return async (request) => {
    const token = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1]
    if (token === undefined) throw new Refusal('unauthorized', 'There is no bearer token.')
    const parts = parseApiKey(token)
    const key = parts === undefined ? undefined : await find(parts.id)
    const equal = timingSafeEqual(secretHash(parts?.secret ?? ''), key?.secretHash ?? nobody)
    if (key === undefined || !equal || key.environment !== parts?.environment)
      throw new Refusal('unauthorized', 'The API key is not known.')
    return { account: key.account, environment: key.environment, apiKey: key.id, scopes: key.scopes }
  }
}

function bootstrapEntry(token: string): StoredApiKey | undefined {
  const parts = parseApiKey(token)
  if (parts === undefined) return undefined
  const { id, environment, secret } = parts
  return { id, environment, account: 'default', secretHash: secretHash(secret), scopes: apiScopes }
}

export function requireScope(caller: Caller, scope: ApiScope): void {
  if (!caller.scopes.includes(scope)) throw new Refusal('forbidden', `The scope \`${scope}\` is needed.`)
}

/** The caller of a route that needs a scope. */
export function callerOf(request: FastifyRequest): Caller {
  if (request.caller === null)
    throw new Error(`${request.routeOptions.url ?? 'a route'} needs no scope, so it has no caller`)
  return request.caller
}

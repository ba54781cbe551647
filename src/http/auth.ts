/**
 * Who asks: an API key of one account and one environment, with scopes. Looked at before anything else of a request.
 *
 * U1. Of a secret only its hash is kept or compared, in constant time. Every refusal costs the same look at the
 *     data base and the same comparisons, whether the id is unknown, the key revoked, or the secret another or a lapsed one.
 * U2. What a request is shown or does is bound to the account and environment of its API key.
 * U3. A new secret holds at once, everywhere. A revocation, and the end of the secret before it, may lag by `believedMs`.
 */
import { timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { Clock } from '../clock.ts'
import { apiScopes, parseApiKey, secretHash, type ApiKind, type ApiKeyParts, type ApiScope } from '../core/api-key.ts'
import type { Scope } from '../core/idempotency.ts'
import { policyOf, type KeyPolicy } from '../core/key-policy.ts'
import { Refusal } from '../operations/refusal.ts'
import type { StoredApiKey } from '../store/api-keys.ts'
import type { Store } from '../store/store.ts'

/** Whose request it is. */
export interface Caller extends Scope {
  readonly apiKey: string
  readonly kind: ApiKind
  readonly scopes: readonly ApiScope[]
  readonly policy: KeyPolicy
  /** The key that the environment of the process gave, or that was made at the first start. It stands in no table. */
  readonly isBootstrap: boolean
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

/** A caller, and what proves that it is the one. */
interface Credentials {
  readonly caller: Caller
  readonly secretHash: Buffer
  readonly previous: { readonly secretHash: Buffer; readonly until: Date } | null
}

export type Authenticate = (request: FastifyRequest) => Promise<Caller>

/** @param bootstrapKey gives account `default` all scopes in the environment that it names */
export function authenticator(
  store: Pick<Store, 'findApiKey'>,
  bootstrapKey: string | null,
  clock: Pick<Clock, 'latest' | 'mark' | 'elapsedMs'>,
): Authenticate {
  const bootstrap = bootstrapKey === null ? undefined : bootstrapCredentials(bootstrapKey)
  const believed = new Map<string, { credentials: Credentials; since: ReturnType<Clock['mark']> }>()

  const knownOf = (id: string): Credentials | undefined => {
    if (bootstrap?.caller.apiKey === id) return bootstrap
    const known = believed.get(id)
    return known !== undefined && clock.elapsedMs(known.since) < believedMs ? known.credentials : undefined
  }

  const read = async (id: string): Promise<Credentials | undefined> => {
    const since = clock.mark()
    const key = await store.findApiKey(id)
    if (key === undefined || key.revokedAt !== null) {
      believed.delete(id)
      return undefined
    }
    const credentials = credentialsOf(key)
    if (believed.size >= 10_000) believed.clear()
    believed.set(id, { credentials, since })
    return credentials
  }

  const prove = (credentials: Credentials | undefined, parts: ApiKeyParts): Caller | undefined => {
    const hash = secretHash(parts.secret)
    const isPresent = timingSafeEqual(hash, credentials?.secretHash ?? nobody)
    const isPrevious = timingSafeEqual(hash, credentials?.previous?.secretHash ?? nobody)
    if (credentials === undefined || credentials.caller.environment !== parts.environment) return undefined
    const holds = credentials.previous !== null && credentials.previous.until > clock.latest()
    return isPresent || (isPrevious && holds) ? credentials.caller : undefined
  }

  return async (request) => {
    const token = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1]
    if (token === undefined) throw new Refusal('unauthorized', 'There is no bearer token.')
    const parts = parseApiKey(token)
    if (parts === undefined) throw new Refusal('unauthorized', 'The API key is not known.')
    // What is believed may be older than the secret that was sent: it says yes, never no.
    const caller = prove(knownOf(parts.id), parts) ?? prove(await read(parts.id), parts)
    if (caller === undefined) throw new Refusal('unauthorized', 'The API key is not known.')
    return caller
  }
}

function credentialsOf(key: StoredApiKey): Credentials {
  const { account, environment, id: apiKey, kind, scopes, previousSecretHash, previousUntil } = key
  return {
    caller: { account, environment, apiKey, kind, scopes, policy: policyOf(kind, key.policy), isBootstrap: false },
    secretHash: key.secretHash,
    previous:
      previousSecretHash === null || previousUntil === null
        ? null
        : { secretHash: previousSecretHash, until: previousUntil },
  }
}

function bootstrapCredentials(token: string): Credentials | undefined {
  const parts = parseApiKey(token)
  if (parts === undefined) return undefined
  const { id: apiKey, environment, secret } = parts
  const policy = policyOf('person', null)
  return {
    caller: { account: 'default', environment, apiKey, kind: 'person', scopes: apiScopes, policy, isBootstrap: true },
    secretHash: secretHash(secret),
    previous: null,
  }
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

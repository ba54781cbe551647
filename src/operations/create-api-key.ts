/**
 * POST /v1/api-keys, `sendonce keys create`: another API key of an account and environment.
 *
 * 1. Its text, with the secret, is given out here and never again: a hash of the secret is all that is kept.
 * 2. A kind holds only its scopes (core/api-key.ts, A1), and what was given of the policy is stored as it was given.
 * 3. The key of a person is made by persons alone: a program that makes one would approve what it sends itself.
 */
import {
  apiKeyText,
  apiKinds,
  kindFor,
  scopesOfKind,
  secretHash,
  type ApiKind,
  type ApiScope,
} from '../core/api-key.ts'
import type { ApiKey } from '../core/api-key-view.ts'
import type { Scope } from '../core/idempotency.ts'
import type { GivenPolicy } from '../core/key-policy.ts'
import type { Deps } from '../deps.ts'
import { Refusal } from './refusal.ts'

export interface AskedApiKey {
  /** Absent: by the scopes. */
  readonly kind?: ApiKind
  readonly name?: string
  readonly scopes: readonly ApiScope[]
  readonly policy?: GivenPolicy
}

export interface MadeApiKey {
  readonly apiKey: ApiKey
  /** With the secret. */
  readonly text: string
}

/** Who makes an API key, or gives it another secret: an API key, or whoever sits at the command line. */
export interface Maker {
  readonly id: string
  readonly kind: ApiKind
}

/** @throws Refusal */
export function requireMaker({ kind: maker }: Maker, kind: ApiKind): void {
  if (kind === 'person' && maker !== 'person')
    throw new Refusal('forbidden', 'The API key of a person is made and rotated by persons, or at the command line.')
}

/** @throws Refusal `invalid-request`, `forbidden` */
export async function createApiKey(
  { store, newUuid, newSecret, log }: Pick<Deps, 'store' | 'newUuid' | 'newSecret' | 'log'>,
  { account, environment }: Scope,
  asked: AskedApiKey,
  maker: Maker,
): Promise<MadeApiKey> {
  const { scopes, kind = kindFor(scopes), name = null, policy = null } = asked
  requireScopesOf(kind, scopes)
  requireMaker(maker, kind)
  const id = newUuid().replaceAll('-', '') // an id has no underscore, so that a key can be taken apart
  const secret = newSecret()
  const key = { id, account, environment, kind, name, scopes, policy, createdBy: maker.id }
  const apiKey = await store.insertApiKey({ ...key, secretHash: secretHash(secret) })
  log.info({ apiKey: id, account, environment, kind, scopes, by: maker.id }, 'an API key was made')
  return { apiKey, text: apiKeyText({ environment, id, secret }) }
}

function requireScopesOf(kind: ApiKind, scopes: readonly ApiScope[]): void {
  const at = scopes.findIndex((scope) => !scopesOfKind[kind].includes(scope))
  const scope = scopes[at]
  if (scope === undefined) return
  const others = apiKinds.filter((other) => scopesOfKind[other].includes(scope))
  const detail = `may not be ${scope} for the kind ${kind}: leave it out, or ask for the kind ${others.join(' or ')}`
  const pointer = `/scopes/${at}`
  throw new Refusal('invalid-request', `\`${pointer}\` ${detail}.`, { errors: [{ pointer, detail }] })
}

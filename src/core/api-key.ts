/**
 * API keys: `so_<environment>_<id>_<secret>`, who may hold one, and what each kind of holder may do with it. The secret has
 * high entropy, so one SHA-256 is hash enough. What else a key is bound to is key-policy.ts's.
 *
 * A1. Only a person approves or settles, and nobody who sends by itself (an agent) makes or revokes API keys.
 */
import { hash } from 'node:crypto'
import type { Environment } from './message-content.ts'

export const apiScopes = ['send', 'read', 'approve', 'resolve', 'admin'] as const
export type ApiScope = (typeof apiScopes)[number]

/** Who holds the key: a program, a model that decides by itself what to say, or someone who answers for it. */
export const apiKinds = ['service', 'agent', 'person'] as const
export type ApiKind = (typeof apiKinds)[number]

/** The scopes that a kind may hold. */
export const scopesOfKind: Readonly<Record<ApiKind, readonly ApiScope[]>> = {
  service: ['send', 'read', 'admin'],
  agent: ['send', 'read'],
  person: apiScopes,
}

/** The kind of a key that was asked for without one. Keys from before there were kinds were sorted likewise. */
export const kindFor = (scopes: readonly ApiScope[]): ApiKind =>
  scopes.every((scope) => scopesOfKind.service.includes(scope)) ? 'service' : 'person'

/** For how long the secret before the present one may go on, in seconds. */
export const grace = { minS: 0, maxS: 604_800, defaultS: 86_400 } as const

export interface ApiKeyParts {
  readonly environment: Environment
  readonly id: string
  readonly secret: string
}

export function parseApiKey(token: string): ApiKeyParts | undefined {
  const parts = /^so_(live|test)_([A-Za-z0-9-]{1,64})_([A-Za-z0-9_-]{32,128})$/.exec(token)
  if (parts?.[2] === undefined || parts[3] === undefined) return undefined
  return { environment: parts[1] as Environment, id: parts[2], secret: parts[3] }
}

/** What the caller sends. `parseApiKey` reads it back. */
export const apiKeyText = ({ environment, id, secret }: ApiKeyParts): string => `so_${environment}_${id}_${secret}`

export const secretHash = (secret: string): Buffer => hash('sha256', secret, 'buffer')

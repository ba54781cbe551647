/** API keys: `so_<environment>_<id>_<secret>`. The secret has high entropy, so one SHA-256 is hash enough. */
import { createHash } from 'node:crypto'
import type { Environment } from './message-content.ts'

export const apiScopes = ['send', 'read', 'approve', 'resolve', 'admin'] as const
export type ApiScope = (typeof apiScopes)[number]

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

export const secretHash = (secret: string): Buffer => createHash('sha256').update(secret).digest()

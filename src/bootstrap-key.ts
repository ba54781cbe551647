/** The first API key: given by the environment, or made for the owner of the embedded data base. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from './config.ts'
import { apiKeyText, parseApiKey } from './core/api-key.ts'
import { newSecret } from './new-secret.ts'

export interface BootstrapKey {
  readonly key: string | null
  /** The same, if it was made here and may be shown. */
  readonly madeKey: string | null
}

export async function bootstrapKeyFor(
  config: Pick<Config, 'bootstrapKey' | 'databaseUrl' | 'dataDir'>,
): Promise<BootstrapKey> {
  if (config.bootstrapKey !== null) return { key: config.bootstrapKey, madeKey: null }
  if (config.databaseUrl !== null) return { key: null, madeKey: null }
  const path = join(config.dataDir, 'api-key')
  const stored = (await readFile(path, 'utf8').catch(() => '')).trim() // absent at the first start
  if (parseApiKey(stored) !== undefined) return { key: stored, madeKey: stored }
  const made = apiKeyText({ environment: 'test', id: 'local', secret: newSecret() })
  await writeFile(path, `${made}\n`, { mode: 0o600 })
  return { key: made, madeKey: made }
}

/** The first API key: given by the environment, or made for the owner of the embedded data base. */
import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from './config.ts'
import { parseApiKey } from './core/api-key.ts'

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
  const made = `so_test_local_${randomBytes(32).toString('hex')}`
  await writeFile(path, `${made}\n`, { mode: 0o600 })
  return { key: made, madeKey: made }
}

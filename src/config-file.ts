/**
 * The configuration file: providers and routes of the live environment, read and checked whole. Which file, and all other
 * settings, are config.ts's.
 */
import { readFileSync } from 'node:fs'
import { parse as parseYaml } from 'yaml'
import { channels, type Channel } from './core/message-content.ts'
import { checkProvider, type ProviderSettings } from './providers/registry.ts'

type Env = Readonly<Record<string, string | undefined>>

export interface FileConfig {
  readonly providers: Map<string, ProviderSettings>
  readonly routes: Map<Channel, readonly string[]>
}

/** @param mistakes grows by a line for each */
export function readConfigFile(
  env: Env,
  named: string | null,
  publicUrl: string | null,
  mistakes: string[],
): FileConfig {
  const result: FileConfig = { providers: new Map(), routes: new Map() }
  const path = named ?? 'sendonce.yaml'
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (named !== null || code !== 'ENOENT') mistakes.push(`SENDONCE_CONFIG: ${path} cannot be read (${code})`)
    return result
  }
  let parsed: unknown
  try {
    parsed = parseYaml(text)
  } catch (error) {
    mistakes.push(`${path}: ${(error as Error).message.split('\n')[0]}`)
    return result
  }
  const file = membersOf(withVariables(parsed ?? {}, '', env, mistakes), path, mistakes)
  for (const name of Object.keys(file))
    if (name !== 'providers' && name !== 'routes')
      mistakes.push(`${name}: is not a member that is known here (providers, routes)`)
  readProviders(file['providers'], publicUrl, result, mistakes)
  readRoutes(file['routes'], result, mistakes)
  return result
}

function membersOf(value: unknown, path: string, mistakes: string[]): Record<string, unknown> {
  if (value === undefined || value === null) return {}
  if (typeof value === 'object' && !Array.isArray(value)) return value as Record<string, unknown>
  mistakes.push(`${path}: must be a mapping`)
  return {}
}

/** Deeper than any configuration; an alias that names itself has no end. */
const maxDepth = 16

/** Puts in the variables of `${NAME}`. One that is not set is a mistake: a secret must not silently be empty. */
function withVariables(value: unknown, path: string, env: Env, mistakes: string[], depth = 0): unknown {
  if (typeof value === 'string') return withVariable(value, path, env, mistakes)
  if (typeof value !== 'object' || value === null) return value
  if (depth > maxDepth) {
    mistakes.push(`${path.split('.').slice(0, 3).join('.')}: is nested too deep`)
    return {}
  }
  const inside = (member: unknown, name: string | number): unknown =>
    withVariables(member, path === '' ? String(name) : `${path}.${name}`, env, mistakes, depth + 1)
  if (Array.isArray(value)) return value.map(inside)
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, inside(member, name)]))
}

function withVariable(value: string, path: string, env: Env, mistakes: string[]): string {
  if (/\$\{[^}]*$/.test(value)) mistakes.push(`${path}: a \${ is not closed`)
  return value.replaceAll(/\$\{([^}]*)\}/g, (_, name: string) => {
    const found = env[name]
    if (found !== undefined && found !== '') return found
    mistakes.push(`${path}: the environment variable ${name} is not set`)
    return unset
  })
}

/** Stands where a variable is missing, so that the one mistake does not bring a second about an empty value. */
const unset = 'unset-'.repeat(8)

function readProviders(value: unknown, publicUrl: string | null, { providers }: FileConfig, mistakes: string[]): void {
  for (const [name, given] of Object.entries(membersOf(value, 'providers', mistakes))) {
    const path = `providers.${name}`
    // `api` is what callers bring themselves (core/conversation-view.ts): their event ids and a provider's are not one.
    if (!/^[a-z0-9][a-z0-9-]{0,62}$/.test(name) || name.startsWith('sandbox') || name === 'api')
      mistakes.push(
        `${path}: a name has small letters, digits and -, at most 63, does not begin with sandbox and is not api`,
      )
    const checked = checkProvider(membersOf(given, path, mistakes), publicUrl)
    if ('mistakes' in checked) mistakes.push(...checked.mistakes.map((mistake) => `${path}${mistake}`))
    else providers.set(name, checked)
  }
}

function readRoutes(value: unknown, { providers, routes }: FileConfig, mistakes: string[]): void {
  for (const [channel, given] of Object.entries(membersOf(value, 'routes', mistakes))) {
    const path = `routes.${channel}`
    if (!isChannel(channel)) {
      mistakes.push(`${path}: is not a channel (${channels.join(', ')})`)
      continue
    }
    const names = Array.isArray(given) ? (given as unknown[]) : []
    if (names.length === 0) mistakes.push(`${path}: must be a list with the names of providers`)
    for (const [i, name] of names.entries()) {
      const provider = typeof name === 'string' ? providers.get(name) : undefined
      if (provider === undefined)
        mistakes.push(`${path}.${i}: there is no provider ${JSON.stringify(name)} that is right`)
      else if (!provider.channels.includes(channel))
        mistakes.push(`${path}.${i}: ${String(name)} does not take ${channel}`)
      else if (names.indexOf(name) !== i) mistakes.push(`${path}.${i}: ${String(name)} is named twice`)
    }
    routes.set(
      channel,
      names.filter((name) => typeof name === 'string'),
    )
  }
}

const isChannel = (value: string): value is Channel => (channels as readonly string[]).includes(value)

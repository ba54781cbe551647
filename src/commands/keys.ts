/**
 * `sendonce keys create | list | rotate | revoke`: for whoever runs the gateway, for all accounts, by the same operations as
 * /v1/api-keys. Each prints one line of JSON; the key that create and rotate print is not shown again.
 */
import { parseArgs } from 'node:util'
import { apiKinds, apiScopes, grace } from '../core/api-key.ts'
import { apiKeyView, apiKeyWithSecretView, type ApiKey } from '../core/api-key-view.ts'
import type { Scope } from '../core/idempotency.ts'
import { environments } from '../core/message-content.ts'
import type { Deps } from '../deps.ts'
import { newApiKey } from '../http/api-key-schemas.ts'
import { parseStrictJson } from '../http/strict-json.ts'
import { checkFor } from '../http/validation.ts'
import { createApiKey, type AskedApiKey } from '../operations/create-api-key.ts'
import { revokeApiKey } from '../operations/revoke-api-key.ts'
import { rotateApiKey } from '../operations/rotate-api-key.ts'
import { plainly, whoAmI, type Write } from './terminal.ts'

export const keysUsage = `sendonce keys create --account NAME --environment live|test --scopes ${apiScopes.join(',')} [--kind ${apiKinds.join('|')}] [--name TEXT] [--policy JSON]
       sendonce keys list --account NAME --environment live|test
       sendonce keys rotate ID [--grace SECONDS]
       sendonce keys revoke ID`

const text = { type: 'string' } as const
const checkNewApiKey = checkFor(newApiKey)

/** @throws Error with one clear line */
export async function keysCommand(deps: Deps, args: readonly string[], write: Write): Promise<void> {
  const [command, ...rest] = args
  const run = command === undefined ? undefined : commands.get(command)
  if (run === undefined) throw new Error(`usage: ${keysUsage}`)
  write(`${JSON.stringify(await run(deps, rest).catch(plainly))}\n`)
}

const commands = new Map([
  ['create', create],
  ['list', list],
  ['rotate', rotate],
  ['revoke', revoke],
])

function scopeOf({ account = '', environment: asked }: { account?: string; environment?: string }): Scope {
  const environment = environments.find((known) => known === asked)
  if (!/^[a-z0-9][a-z0-9_-]{0,62}$/.test(account))
    throw new Error('--account: small letters, digits, - and _, at most 63')
  if (environment === undefined) throw new Error(`--environment: must be one of ${environments.join(', ')}`)
  return { account, environment }
}

async function create(deps: Deps, args: string[]): Promise<object> {
  const options = { account: text, environment: text, scopes: text, kind: text, name: text, policy: text }
  const { values } = parseArgs({ args, options, strict: true })
  const { kind, name, policy, scopes: words = '' } = values
  const scope = scopeOf(values)
  const scopes = [...new Set(words.split(','))]
  if (!scopes.every((one) => (apiScopes as readonly string[]).includes(one)))
    throw new Error(`--scopes: some of ${apiScopes.join(', ')}, with commas between them`)
  const asked = {
    scopes,
    ...(kind === undefined ? {} : { kind }),
    ...(name === undefined ? {} : { name }),
    ...(policy === undefined ? {} : { policy: policyFrom(policy) }),
  }
  checkNewApiKey(asked) // as a body of POST /v1/api-keys is checked
  const { apiKey, text: key } = await createApiKey(deps, scope, asked as AskedApiKey, { id: whoAmI(), kind: 'person' })
  return apiKeyWithSecretView(apiKey, key, deps.clock.now())
}

function policyFrom(json: string): unknown {
  const parsed = parseStrictJson(Buffer.from(json))
  if (parsed.ok) return parsed.value
  throw new Error(
    `--policy: must be one object of strict JSON, and is not${parsed.pointer === '' ? '' : ` at ${parsed.pointer}`}`,
  )
}

async function list(deps: Deps, args: string[]): Promise<object> {
  const { values } = parseArgs({ args, options: { account: text, environment: text }, strict: true })
  const scope = scopeOf(values)
  const keys: ApiKey[] = []
  for (let page: ApiKey[] | null = null; page?.length !== 0; keys.push(...page))
    page = await deps.store.listApiKeys(scope, 200, keys.at(-1) ?? null)
  return keys.map((key) => apiKeyView(key, deps.clock.now()))
}

async function find({ store }: Deps, [id = '(none was named)', ...more]: string[]): Promise<ApiKey> {
  const key = await store.findApiKey(id)
  if (key === undefined || more.length > 0) throw new Error(`there is no API key ${[id, ...more].join(' ')}`)
  return key
}

async function rotate(deps: Deps, args: string[]): Promise<object> {
  const options = { grace: text }
  const { values, positionals } = parseArgs({ args, options, strict: true, allowPositionals: true })
  const graceS = Number(values.grace ?? grace.defaultS)
  if (!/^\d*$/.test(values.grace ?? '') || values.grace === '' || graceS > grace.maxS)
    throw new Error(`--grace: must be a whole number from ${grace.minS} to ${grace.maxS}`)
  const found = await find(deps, positionals)
  const { apiKey, text: key } = await rotateApiKey(deps, found, found.id, graceS, { id: whoAmI(), kind: 'person' })
  return apiKeyWithSecretView(apiKey, key, deps.clock.now())
}

async function revoke(deps: Deps, args: string[]): Promise<object> {
  const { positionals } = parseArgs({ args, options: {}, strict: true, allowPositionals: true })
  const found = await find(deps, positionals)
  return apiKeyView(await revokeApiKey(deps, found, found.id, whoAmI()), deps.clock.now())
}

/**
 * Every setting, once: name, default, bounds and a sentence. Read at start, checked whole, frozen. The only file that
 * reads the environment.
 *
 * C1. Every mistake is named with its path; a name that is not known is a mistake, in the file and among SENDONCE_…
 * C2. A forgotten setting never opens a second memory or a sandbox in place of the real thing: live providers need a
 *     data base that was asked for, a named file must be there, and a `${VARIABLE}` must be set.
 */
import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { readConfigFile } from './config-file.ts'
import { parseApiKey } from './core/api-key.ts'
import type { Channel } from './core/message-content.ts'
import type { ProviderSettings } from './providers/registry.ts'
import { addressPattern } from './providers/call-settings.ts'
import { secretPattern } from './providers/standard-webhooks.ts'

export const roles = ['api', 'worker', 'all'] as const
export type Role = (typeof roles)[number]

export interface Config {
  readonly host: string
  readonly port: number
  /** Where providers reach this gateway; null: nowhere. */
  readonly publicUrl: string | null
  readonly trustedProxies: readonly string[]
  /** Null: the embedded data base. */
  readonly databaseUrl: string | null
  readonly dataDir: string
  readonly bootstrapKey: string | null
  readonly logLevel: string
  readonly leaseMarginMs: number
  readonly sweepMs: number
  readonly drainMs: number
  readonly retentionDays: number
  readonly bodyLimitBytes: number
  /** Null: the sandbox runs in this process. */
  readonly sandboxUrl: string | null
  readonly sandboxPort: number
  /** Null: one of the process's own, or none. */
  readonly sandboxWebhookSecret: string | null
  readonly role: Role
  /** Say what a newcomer needs to see. */
  readonly welcome: boolean
  readonly providers: ReadonlyMap<string, ProviderSettings>
  /** Of the live environment: the providers of each channel, in their order. */
  readonly routes: ReadonlyMap<Channel, readonly string[]>
}

/** One clear line a mistake; nothing was started. */
export class ConfigError extends Error {
  constructor(mistakes: readonly string[]) {
    super(mistakes.join('\n'))
    this.name = 'ConfigError'
  }
}

type Env = Readonly<Record<string, string | undefined>>

export interface Setting {
  readonly name: string
  readonly default: string | null
  readonly meaning: string
  /** What is wrong with a value, or null. */
  readonly check?: (value: string) => string | null
}

const oneOf =
  (...values: string[]) =>
  (value: string): string | null =>
    values.includes(value) ? null : `must be one of ${values.join(', ')}`
const whole =
  (min: number, max: number) =>
  (value: string): string | null =>
    /^\d{1,10}$/.test(value) && Number(value) >= min && Number(value) <= max
      ? null
      : `must be a whole number from ${min} to ${max}`
const url =
  (...protocols: string[]) =>
  (value: string): string | null =>
    URL.canParse(value) && protocols.includes(new URL(value).protocol)
      ? null
      : `must be a URL that begins ${protocols.join(' or ')}`

/** An address, or a network by the length of its prefix. */
function isNetwork(text: string): boolean {
  const [, address = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const family = isIP(address)
  return family > 0 && Number(bits ?? 0) <= (family === 4 ? 32 : 128)
}

const apiKeyForm = (value: string): string | null =>
  parseApiKey(value) === undefined
    ? 'must be so_live_<id>_<secret> or so_test_<id>_<secret>, the secret of 32 or more letters, digits, - and _'
    : null

/** The environment variables; the README's table is printed from here. */
export const settings = [
  { name: 'HOST', default: '127.0.0.1', meaning: 'Address to listen on.' },
  { name: 'PORT', default: '3000', meaning: 'Port to listen on.', check: whole(0, 65_535) },
  {
    name: 'PUBLIC_URL',
    default: null,
    meaning:
      'Where providers reach this gateway, to tell what became of messages (`/v1/providers/<name>/webhooks`). Without it they are not asked to. Agents may call `/mcp` by its name.',
    check: (value: string) =>
      new RegExp(addressPattern).test(value) && URL.canParse(value)
        ? null
        : 'must be an http or https URL without login and query',
  },
  {
    name: 'TRUSTED_PROXIES',
    default: null,
    meaning:
      'Addresses and networks of your reverse proxies, with commas between them: what they say in X-Forwarded-For is where a decision is noted to come from. Without it: the address that connects.',
    check: (value: string) =>
      value.split(',').every(isNetwork) ? null : 'must be addresses or networks (10.0.0.0/8), with commas between them',
  },
  {
    name: 'DATABASE_URL',
    default: null,
    meaning:
      'A PostgreSQL server, 15 or newer, migrated by `npm run db:migrate`. Without it: the embedded one, for one gateway.',
    check: url('postgres:', 'postgresql:'),
  },
  {
    name: 'SENDONCE_DATABASE',
    default: null,
    meaning: '`embedded` allows live providers on the embedded data base.',
    check: oneOf('embedded'),
  },
  {
    name: 'SENDONCE_DATA_DIR',
    default: '.sendonce',
    meaning: 'Folder of the embedded data base, the sandbox ledger and the first API key.',
  },
  {
    name: 'SENDONCE_CONFIG',
    default: null,
    meaning: 'The configuration file; it must exist. Default: `sendonce.yaml`, if it does.',
  },
  {
    name: 'SENDONCE_BOOTSTRAP_KEY',
    default: null,
    meaning:
      'An API key, `so_<environment>_<id>_<secret>`, that gives account `default` all scopes in the environment it names.',
    check: apiKeyForm,
  },
  {
    name: 'LOG_LEVEL',
    default: 'info',
    meaning: 'Level of the log.',
    check: oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
  },
  {
    name: 'SENDONCE_LEASE_MARGIN_MS',
    default: '2000',
    meaning: "Added to a provider's time-outs to make the lease of a call, in ms.",
    check: whole(100, 600_000),
  },
  {
    name: 'SENDONCE_SWEEP_MS',
    default: '5000',
    meaning: 'How often rescuer and reconciler look for lapsed leases and due steps, in ms.',
    check: whole(50, 600_000),
  },
  {
    name: 'SENDONCE_DRAIN_MS',
    default: '30000',
    meaning: 'How long SIGTERM lets open calls go on, in ms.',
    check: whole(0, 600_000),
  },
  {
    name: 'SENDONCE_RETENTION_DAYS',
    default: '30',
    meaning: 'Days after which the result of a final message is erased. Its key is kept for good.',
    check: whole(1, 36_500),
  },
  {
    name: 'SENDONCE_BODY_LIMIT',
    default: '1048576',
    meaning: 'Largest body of a request, in bytes.',
    check: whole(1024, 104_857_600),
  },
  {
    name: 'SENDONCE_URL',
    default: 'http://127.0.0.1:3000',
    meaning: 'Of `npm run -s sendonce -- mcp`: the gateway that it talks to.',
    check: url('http:', 'https:'),
  },
  {
    name: 'SENDONCE_API_KEY',
    default: null,
    meaning: 'Of the same: the API key by which its tools act.',
    check: apiKeyForm,
  },
  {
    name: 'SANDBOX_URL',
    default: null,
    meaning: 'A sandbox that runs by itself (`npm run sandbox`). Without it: one in the process.',
    check: url('http:'),
  },
  {
    name: 'SANDBOX_PORT',
    default: '0',
    meaning: 'Port of the sandbox in the process; 0: any free one.',
    check: whole(0, 65_535),
  },
  {
    name: 'SANDBOX_WEBHOOK_SECRET',
    default: null,
    meaning:
      'What a sandbox that runs by itself signs its receipts with, and gateways verify them by: `whsec_` and the base64 of 24 to 64 bytes. Without it: one for each process, and no receipts from a sandbox by itself.',
    check: (value: string) =>
      new RegExp(`^${secretPattern}$`).test(value) ? null : 'must be whsec_ and the base64 of 24 to 64 bytes',
  },
] as const satisfies readonly Setting[]

type SettingName = (typeof settings)[number]['name']

/** @throws ConfigError */
export function loadConfig(env: Env = process.env, argv: readonly string[] = process.argv.slice(2)): Config {
  const mistakes: string[] = []
  const value = readSettings(env, mistakes)
  const { role, welcome } = readArguments(argv, mistakes)
  const publicUrl = value('PUBLIC_URL')
  const { providers, routes } = readConfigFile(env, value('SENDONCE_CONFIG'), publicUrl, mistakes)
  const databaseUrl = value('DATABASE_URL')
  const embedded = value('SENDONCE_DATABASE') === 'embedded'
  if (databaseUrl === null && !embedded && providers.size > 0)
    mistakes.push(
      'DATABASE_URL: is not set, and there are live providers; set it, or SENDONCE_DATABASE=embedded to use the embedded data base',
    )
  if (databaseUrl === null && role !== 'all')
    mistakes.push(`--role ${role}: needs DATABASE_URL; the embedded data base serves one gateway`)
  if (mistakes.length > 0) throw new ConfigError(mistakes)
  const number = (name: SettingName): number => Number(value(name))
  return Object.freeze({
    host: value('HOST') ?? '',
    port: number('PORT'),
    publicUrl,
    trustedProxies: value('TRUSTED_PROXIES')?.split(',') ?? [],
    databaseUrl,
    dataDir: resolve(value('SENDONCE_DATA_DIR') ?? ''),
    bootstrapKey: value('SENDONCE_BOOTSTRAP_KEY'),
    logLevel: value('LOG_LEVEL') ?? '',
    leaseMarginMs: number('SENDONCE_LEASE_MARGIN_MS'),
    sweepMs: number('SENDONCE_SWEEP_MS'),
    drainMs: number('SENDONCE_DRAIN_MS'),
    retentionDays: number('SENDONCE_RETENTION_DAYS'),
    bodyLimitBytes: number('SENDONCE_BODY_LIMIT'),
    sandboxUrl: value('SANDBOX_URL'),
    sandboxPort: number('SANDBOX_PORT'),
    sandboxWebhookSecret: value('SANDBOX_WEBHOOK_SECRET'),
    role,
    welcome,
    providers,
    routes,
  })
}

/** What the tools beside the gateway need. @throws ConfigError */
export function loadToolConfig(
  env: Env = process.env,
): Pick<Config, 'databaseUrl' | 'dataDir' | 'host' | 'sandboxPort'> {
  const mistakes: string[] = []
  const value = readSettings(env, mistakes)
  if (mistakes.length > 0) throw new ConfigError(mistakes)
  return {
    databaseUrl: value('DATABASE_URL'),
    dataDir: resolve(value('SENDONCE_DATA_DIR') ?? ''),
    host: value('HOST') ?? '',
    sandboxPort: Number(value('SANDBOX_PORT')),
  }
}

/** What the tools of an agent need, beside a gateway. @throws ConfigError */
export function loadAgentConfig(env: Env = process.env): { readonly gatewayUrl: string; readonly apiKey: string } {
  const mistakes: string[] = []
  const value = readSettings(env, mistakes)
  const apiKey = value('SENDONCE_API_KEY')
  if (apiKey === null) mistakes.push('SENDONCE_API_KEY: is not set; it is the API key by which the tools act')
  if (mistakes.length > 0 || apiKey === null) throw new ConfigError(mistakes)
  return { gatewayUrl: value('SENDONCE_URL') ?? '', apiKey }
}

function readSettings(env: Env, mistakes: string[]): (name: SettingName) => string | null {
  const known = new Set<string>(settings.map(({ name }) => name))
  for (const name of Object.keys(env))
    if (name.startsWith('SENDONCE_') && !known.has(name)) mistakes.push(`${name}: is not a setting that is known`)
  const values = new Map<string, string | null>()
  for (const setting of settings as readonly Setting[]) {
    const given = env[setting.name]
    const wrong = given === undefined ? null : given === '' ? 'is set but empty' : (setting.check?.(given) ?? null)
    if (wrong !== null) mistakes.push(`${setting.name}: ${wrong}`)
    values.set(setting.name, given ?? setting.default)
  }
  return (name) => values.get(name) ?? null
}

function readArguments(argv: readonly string[], mistakes: string[]): { role: Role; welcome: boolean } {
  try {
    const options = { role: { type: 'string', default: 'all' }, welcome: { type: 'boolean', default: false } } as const
    const { values } = parseArgs({ args: [...argv], options, strict: true, allowPositionals: false })
    const role = roles.find((known) => known === values.role)
    if (role === undefined) mistakes.push(`--role: must be one of ${roles.join(', ')}`)
    return { role: role ?? 'all', welcome: values.welcome }
  } catch (error) {
    mistakes.push((error as Error).message)
    return { role: 'all', welcome: false }
  }
}

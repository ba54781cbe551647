/**
 * Which adapters there are, and what configuration makes of them. The only file that knows them all: adding a provider
 * is one adapter file and one line here.
 */
import { Ajv2020 } from 'ajv/dist/2020.js'
import { channels, type Channel, type Environment } from '../core/message-content.ts'
import { govukNotify } from './govuk-notify.ts'
import { capabilitiesOf, httpProvider } from './http-provider.ts'
import { line } from './line.ts'
import { webhookUrl } from './place.ts'
import { postmark } from './postmark.ts'
import type { HttpAdapter, OwnAdapter, Provider } from './provider.ts'
import { resend } from './resend.ts'
import { defaultSandbox, sandboxAdapters } from './sandbox.ts'
import { slack } from './slack.ts'
import { smtp } from './smtp.ts'
import { twilio } from './twilio.ts'
import { webhook } from './webhook.ts'

/** Adapters that a configuration may name. The sandbox is not among them: it never serves live. */
export const adapters: Readonly<Record<string, HttpAdapter<never> | OwnAdapter<never>>> = {
  'govuk-notify': govukNotify,
  line,
  postmark,
  resend,
  slack,
  smtp,
  twilio,
  webhook,
}

/** A provider's settings, checked; made into a Provider under a name. */
export interface ProviderSettings {
  readonly channels: readonly Channel[]
  readonly create: (name: string) => Provider
}

const ajv = new Ajv2020({ strict: true, strictTypes: false, allErrors: true, useDefaults: true })

/**
 * Checks one provider of the configuration file. The paths of mistakes begin with a dot.
 * @param publicUrl where providers reach this gateway, unless the provider's own settings say otherwise
 */
export function checkProvider(
  given: Readonly<Record<string, unknown>>,
  publicUrl: string | null = null,
): ProviderSettings | { mistakes: string[] } {
  const { adapter: named, ...rest } = given
  const names = Object.keys(adapters).join(', ')
  const adapter = typeof named === 'string' && Object.hasOwn(adapters, named) ? adapters[named] : undefined
  if (adapter === undefined) return { mistakes: [`.adapter: must be one of ${names}`] }
  const settings: Record<string, unknown> = structuredClone(rest)
  if (publicUrl !== null && Object.hasOwn(adapter.settings.properties, 'publicUrl')) settings['publicUrl'] ??= publicUrl
  const validate = ajv.compile(adapter.settings)
  if (!validate(settings))
    return { mistakes: (validate.errors ?? []).filter(({ keyword }) => keyword !== 'if').map(mistakeOf) }
  const { baseUrl } = settings as { baseUrl?: unknown }
  if (typeof baseUrl === 'string' && !URL.canParse(baseUrl)) return { mistakes: ['.baseUrl: is not a URL'] }
  return {
    channels: capabilitiesOf(adapter, settings as never).channels,
    create: (name) =>
      'create' in adapter
        ? adapter.create(name, 'live', settings as never)
        : httpProvider(name, 'live', adapter, settings as never),
  }
}

function mistakeOf({
  instancePath,
  keyword,
  params,
  message,
}: {
  instancePath: string
  keyword: string
  params: unknown
  message?: string
}): string {
  const path = instancePath.replaceAll('/', '.')
  const { missingProperty, additionalProperty } = params as Record<string, string | undefined>
  if (keyword === 'required') return `${path}.${missingProperty}: is missing`
  if (keyword === 'additionalProperties') return `${path}.${additionalProperty}: is not a setting of this adapter`
  if (keyword === 'dependentRequired') return `${path}.${missingProperty}: is missing`
  if (keyword === 'false schema') return `${path}: must not be set with these other settings`
  return `${path}: ${message ?? 'is not right'}`
}

export interface ProviderSet {
  find(name: string, environment: Environment): Provider | undefined
  route(channel: Channel, environment: Environment): readonly Provider[]
  all(): readonly Provider[]
  close(): Promise<void>
}

/** What the sandbox needs in order to tell what became of messages, and to be known again. */
export interface SandboxContext {
  /** Where the sandbox reaches this gateway; known once it listens. */
  readonly publicUrl: () => string | null
  readonly secret: string | null
  /** What one that listens anywhere is known by: a gateway that was started anew finds in it what it sent before. */
  readonly ledger?: string
}

/** Live providers as configured, and the sandbox for `test`: neither environment ever reaches the other's. */
export function createProviders(
  configured: ReadonlyMap<string, ProviderSettings>,
  routes: ReadonlyMap<Channel, readonly string[]>,
  sandboxUrl: string,
  context: SandboxContext = { publicUrl: () => null, secret: null },
): ProviderSet {
  const all = [...[...configured].map(([name, { create }]) => create(name)), ...sandboxes(sandboxUrl, context)]
  const testRoutes = new Map<Channel, readonly string[]>(channels.map((channel) => [channel, [defaultSandbox]]))
  const find = (name: string, environment: Environment): Provider | undefined =>
    all.find((provider) => provider.name === name && provider.environment === environment)
  return {
    find,
    route: (channel, environment) =>
      ((environment === 'live' ? routes : testRoutes).get(channel) ?? [])
        .map((name) => find(name, environment))
        .filter((provider) => provider !== undefined),
    all: () => all,
    close: async () => {
      await Promise.all(all.map(async (provider) => provider.close()))
    },
  }
}

function sandboxes(baseUrl: string, { publicUrl, secret, ledger = baseUrl }: SandboxContext): Provider[] {
  const settings = {
    baseUrl,
    connectTimeoutMs: 1000,
    answerTimeoutMs: 5000,
    concurrency: 64,
    refusedUrl: 'http://127.0.0.1:1',
    receiptSecret: secret,
    ledger,
  }
  return sandboxAdapters.map((adapter) => {
    const receiptUrl = (): string | null => {
      const url = publicUrl()
      return url === null ? null : webhookUrl(url, adapter.adapter)
    }
    return httpProvider(adapter.adapter, 'test', adapter, { ...settings, receiptUrl })
  })
}

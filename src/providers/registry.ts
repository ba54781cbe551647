/**
 * Which adapters there are, and what configuration makes of them. The only file that knows them all: adding a provider
 * is one adapter file and one line here.
 */
import { Ajv2020 } from 'ajv/dist/2020.js'
import { channels, type Channel, type Environment } from '../core/message-content.ts'
import type { Outcome } from '../core/outcome.ts'
import { agentFor, callProvider, judgeCall } from './http-outcome.ts'
import type { CallSettings, HttpAdapter, Provider } from './provider.ts'
import { refusedUrls } from './refused-urls.ts'
import { sandbox, type SandboxSettings } from './sandbox.ts'
import { twilio } from './twilio.ts'
import { webhook } from './webhook.ts'

/** Adapters that a configuration may name. The sandbox is not among them: it never serves live. */
const adapters: Readonly<Record<string, HttpAdapter<never>>> = { twilio, webhook }

/** A provider's settings, checked; made into a Provider under a name. */
export interface ProviderSettings {
  readonly channels: readonly Channel[]
  readonly create: (name: string) => Provider
}

const ajv = new Ajv2020({ strict: true, strictTypes: false, allErrors: true, useDefaults: true })

/** Checks one provider of the configuration file. The paths of mistakes begin with a dot. */
export function checkProvider(given: Readonly<Record<string, unknown>>): ProviderSettings | { mistakes: string[] } {
  const { adapter: named, ...rest } = given
  const names = Object.keys(adapters).join(', ')
  const adapter = typeof named === 'string' && Object.hasOwn(adapters, named) ? adapters[named] : undefined
  if (adapter === undefined) return { mistakes: [`.adapter: must be one of ${names}`] }
  const settings = structuredClone(rest)
  const validate = ajv.compile(adapter.settings)
  if (!validate(settings)) return { mistakes: (validate.errors ?? []).map(mistakeOf) }
  const { baseUrl } = settings as { baseUrl?: unknown }
  if (typeof baseUrl === 'string' && !URL.canParse(baseUrl)) return { mistakes: ['.baseUrl: is not a URL'] }
  return {
    channels: adapter.capabilities.channels,
    create: (name) => httpProvider(name, 'live', adapter, settings as never),
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
  return `${path}: ${message ?? 'is not right'}`
}

function httpProvider<Settings extends CallSettings>(
  name: string,
  environment: Environment,
  adapter: HttpAdapter<Settings>,
  settings: Settings,
): Provider {
  const agent = agentFor(settings, adapter.connector?.(settings))
  const { capabilities } = adapter
  const refused = refusedUrls(adapter.answers.codes)
  return {
    name,
    adapter: adapter.adapter,
    environment,
    capabilities,
    callMs: settings.connectTimeoutMs + settings.answerTimeoutMs,
    concurrency: settings.concurrency,
    limitBroken: (message) => adapter.limitBroken(message, settings),
    send: async (message, attempt, gate) => {
      const request = rendered(() => adapter.render(message, settings, attempt))
      if (request === null) return notRendered
      const refusal = refused.refusalOf({ ...request, account: attempt.account }, attempt.startedAt)
      if (refusal !== null) return refusal
      const result = await callProvider(agent, request, settings, gate)
      const outcome = judgeCall(result, adapter.answers, capabilities.acceptance)
      refused.note({ ...request, account: attempt.account }, outcome, attempt.startedAt)
      return outcome
    },
    close: async () => agent.destroy(),
  }
}

/** An adapter that throws before anything is called is a bug of ours; but it is certain that nothing was sent. */
function rendered<T>(render: () => T): T | null {
  try {
    return render()
  } catch {
    return null // the evidence says so; what was thrown may repeat the message
  }
}

const notRendered: Outcome = {
  kind: 'not_sent',
  reason: 'not_begun',
  retryAfterMs: null,
  evidence: {
    phase: 'not_begun',
    code: 'not_rendered',
    detail: 'The adapter could not make a request of the message.',
  },
}

export const sandboxProviderName = 'sandbox-blind'

export interface ProviderSet {
  find(name: string, environment: Environment): Provider | undefined
  routed(channel: Channel, environment: Environment): Provider | undefined
  all(): readonly Provider[]
  close(): Promise<void>
}

/** Live providers as configured, and the sandbox for `test`: neither environment ever reaches the other's. */
export function createProviders(
  configured: ReadonlyMap<string, ProviderSettings>,
  routes: ReadonlyMap<Channel, string>,
  sandboxUrl: string,
): ProviderSet {
  const defaults: SandboxSettings = {
    baseUrl: sandboxUrl,
    connectTimeoutMs: 1000,
    answerTimeoutMs: 5000,
    concurrency: 64,
    providerName: sandboxProviderName,
    refusedUrl: 'http://127.0.0.1:1',
  }
  const all = [
    ...[...configured].map(([name, { create }]) => create(name)),
    httpProvider(sandboxProviderName, 'test', sandbox, defaults),
  ]
  const testRoutes = new Map(channels.map((channel) => [channel, sandboxProviderName]))
  const find = (name: string, environment: Environment): Provider | undefined =>
    all.find((provider) => provider.name === name && provider.environment === environment)
  return {
    find,
    routed: (channel, environment) =>
      find((environment === 'live' ? routes : testRoutes).get(channel) ?? '', environment),
    all: () => all,
    close: async () => {
      await Promise.all(all.map(async (provider) => provider.close()))
    },
  }
}

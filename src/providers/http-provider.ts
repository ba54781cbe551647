/**
 * An adapter with its settings, made into a Provider over HTTP: what is the same for all of them. It renders, authorises,
 * calls and judges; how, the adapter says as data.
 *
 * V1. What is rendered for a provider that takes keys is sent again as it was, byte for byte; credentials and signature
 *     times alone are fresh.
 * V2. The identity is a digest: what it is made of may be a secret.
 */
import { createHash } from 'node:crypto'
import type { Capabilities } from '../core/capabilities.ts'
import type { Environment } from '../core/message-content.ts'
import type { LookResult, Outcome } from '../core/outcome.ts'
import { agentFor, callProvider } from './http-outcome.ts'
import { judgeCall, judgeLook } from './judge-answer.ts'
import type { AdapterFacts, CallSettings, HttpAdapter, Provider, RenderedRequest } from './provider.ts'
import { refusedUrls } from './refused-urls.ts'

export const capabilitiesOf = <Settings>(
  { capabilities }: Pick<AdapterFacts<Settings>, 'capabilities'>,
  settings: Settings,
): Capabilities => (typeof capabilities === 'function' ? capabilities(settings) : capabilities)

export function httpProvider<Settings extends CallSettings>(
  name: string,
  environment: Environment,
  adapter: HttpAdapter<Settings>,
  settings: Settings,
): Provider {
  const agent = agentFor(settings, adapter.connector?.(settings))
  const capabilities = capabilitiesOf(adapter, settings)
  const refused = refusedUrls(adapter.answers.codes)
  const authorised = (request: RenderedRequest, at: Date): RenderedRequest => ({
    ...request,
    headers: { ...request.headers, ...adapter.authorise(request, settings, at) },
  })
  return {
    name,
    adapter: adapter.adapter,
    environment,
    capabilities,
    identity: identityOf([adapter.adapter, ...adapter.identity(settings)]),
    callMs: settings.connectTimeoutMs + settings.answerTimeoutMs,
    concurrency: settings.concurrency,
    limitBroken: (message) => adapter.limitBroken(message, settings),
    render: (message, attempt) => {
      const request = orNull(() => adapter.render(message, settings, attempt))
      return request === null ? null : JSON.stringify(request)
    },
    send: async (message, attempt, gate, rendered) => {
      const request = orNull(() => {
        const fresh = adapter.render(message, settings, attempt)
        // Where it is sent to is not part of what is kept: the identity says whether it is the same provider.
        const kept = rendered === null ? fresh : { ...(JSON.parse(rendered) as RenderedRequest), origin: fresh.origin }
        return authorised(kept, attempt.startedAt)
      })
      if (request === null) return notRendered
      const refusal = refused.refusalOf({ ...request, account: attempt.account }, attempt.startedAt)
      if (refusal !== null) return refusal
      const result = await callProvider(agent, request, settings, gate)
      const outcome = judgeCall(result, adapter.answers, capabilities, attempt.startedAt)
      refused.note({ ...request, account: attempt.account }, outcome, attempt.startedAt)
      return outcome
    },
    look: async (message, look) => {
      const { lookup } = adapter
      const request =
        lookup === undefined ? null : orNull(() => authorised(lookup.render(message, settings, look), look.startedAt))
      if (lookup === undefined || request === null) return notAsked
      const result = await callProvider(agent, request, settings, () => true)
      return judgeLook(result, (body) => lookup.read(body, look))
    },
    close: async () => agent.destroy(),
  }
}

/** V2. */
export const identityOf = (parts: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 22)

/** An adapter that throws before anything is called is a bug of ours; but it is certain that nothing was sent. */
function orNull<T>(render: () => T): T | null {
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

const notAsked: LookResult = {
  kind: 'failed',
  retryAfterMs: null,
  evidence: {
    phase: 'not_begun',
    code: 'not_rendered',
    detail: 'The adapter could not make a look-up of the message.',
  },
}

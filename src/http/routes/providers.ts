/** GET /v1/providers: where messages of the caller's environment go. */
import type { FastifyInstance } from 'fastify'
import type { Deps } from '../../deps.ts'
import { recoveryOf } from '../../core/capabilities.ts'
import type { Environment } from '../../core/message-content.ts'
import { callerOf } from '../auth.ts'
import { answers, problemAnswers, secured } from '../openapi.ts'

const example = {
  data: [
    {
      name: 'sandbox-blind',
      adapter: 'sandbox',
      environment: 'test',
      channels: ['sms'],
      routes: ['sms'],
      capabilities: {
        recovery: 'blind',
        deduplication: null,
        lookup: null,
        lateEvidence: 'none',
        acceptance: 'status',
      },
      state: 'ready',
      callsInFlight: 0,
      concurrency: 64,
    },
  ],
}

export function providerRoutes(app: FastifyInstance, deps: Deps): void {
  app.get('/v1/providers', {
    config: { scope: 'read' },
    schema: {
      operationId: 'listProviders',
      tags: ['providers'],
      summary: 'The providers of this environment',
      description: 'What each can do about duplicates, and whether this gateway may call it now.',
      security: secured,
      response: {
        200: answers('The providers.', 'ProviderList', example),
        ...problemAnswers(['unauthorized', 'forbidden', 'internal-error', 'store-unavailable']),
      },
    },
    handler: (request) => ({ data: providersOf(deps, callerOf(request).environment) }),
  })
}

function providersOf({ providers, slots }: Deps, environment: Environment) {
  return providers
    .all()
    .filter((provider) => provider.environment === environment)
    .map(({ name, adapter, capabilities, concurrency }) => ({
      name,
      adapter,
      environment,
      channels: capabilities.channels,
      routes: capabilities.channels.filter((channel) =>
        providers.route(channel, environment).some((provider) => provider.name === name),
      ),
      capabilities: {
        recovery: recoveryOf(capabilities),
        deduplication: capabilities.deduplication,
        lookup: capabilities.lookup,
        lateEvidence: capabilities.lateEvidence,
        acceptance: capabilities.acceptance,
      },
      state: slots.isStopped(name) ? 'stopped' : 'ready',
      callsInFlight: slots.inUse(name),
      concurrency,
    }))
}

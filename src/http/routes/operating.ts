/** /livez, /readyz, /metrics, /openapi.json: for whoever runs the gateway. Open: they show nothing of any account. */
import type { FastifyInstance } from 'fastify'
import type { Deps } from '../../deps.ts'
import { Refusal } from '../../operations/refusal.ts'
import { problemAnswers } from '../openapi.ts'

const plain = (description: string, type: string, example: unknown) => ({
  200: {
    description,
    content: {
      [type]: {
        schema: { type: typeof example === 'string' ? 'string' : 'object' },
        examples: { example: { value: example } },
      },
    },
  },
})

export interface Readiness {
  draining(): boolean
}

export function operatingRoutes(app: FastifyInstance, deps: Deps, readiness: Readiness): void {
  const { metrics, store } = deps
  app.get('/livez', {
    schema: {
      operationId: 'getLiveness',
      tags: ['operating'],
      summary: 'Is the process alive?',
      response: plain('It is.', 'application/json', { status: 'alive' }),
    },
    handler: () => ({ status: 'alive' }),
  })

  app.get('/readyz', {
    schema: {
      operationId: 'getReadiness',
      tags: ['operating'],
      summary: 'Can it take requests?',
      description:
        'The data base answers (that it is migrated was made sure of at the start), and the gateway is not shutting down.',
      response: {
        ...plain('It can.', 'application/json', { status: 'ready' }),
        ...problemAnswers(['store-unavailable', 'shutting-down']),
      },
    },
    handler: async () => {
      if (readiness.draining()) throw new Refusal('shutting-down', null, {}, 5)
      await store.readTime().then(
        () => metrics.storeUp.set(1),
        (error: unknown) => {
          metrics.storeUp.set(0)
          throw error
        },
      )
      return { status: 'ready' }
    },
  })

  app.get('/metrics', {
    schema: {
      operationId: 'getMetrics',
      tags: ['operating'],
      summary: 'Metrics for Prometheus',
      response: plain('In the text format of Prometheus.', 'text/plain', '# HELP sendonce_claims_total …'),
    },
    handler: async (_, reply) => {
      metrics.inFlight.set(deps.inFlight.count())
      metrics.waiting.set(deps.waiters.count())
      for (const { name } of deps.providers.all())
        metrics.providerStopped.set({ provider: name }, deps.slots.isStopped(name) ? 1 : 0)
      await store.countDueWork().then(
        ({ waiting, held, reconciled, unknown, oldestUnknownS }) => {
          metrics.storeUp.set(1)
          metrics.dueWork.set(waiting)
          metrics.held.set(held)
          metrics.unknown.set({ waits_for: 'gateway' }, reconciled)
          metrics.unknown.set({ waits_for: 'person' }, unknown)
          metrics.unknownOldest.set(oldestUnknownS)
        },
        () => metrics.storeUp.set(0),
      )
      return reply.type(metrics.registry.contentType).send(await metrics.registry.metrics())
    },
  })

  app.get('/openapi.json', {
    schema: {
      operationId: 'getOpenApi',
      tags: ['operating'],
      summary: 'This description',
      response: plain('OpenAPI 3.1.', 'application/json', { openapi: '3.1.0' }),
    },
    handler: () => app.swagger(),
  })
}

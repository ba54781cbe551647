/** The OpenAPI document as it is committed: made from the routes alone, without a data base. */
import type { FastifyBaseLogger } from 'fastify'
import { buildApp } from './app.ts'
import type { Deps } from './deps.ts'

export async function openApiText(): Promise<string> {
  const silent: FastifyBaseLogger = {
    level: 'silent',
    child: () => silent,
    fatal() {},
    error() {},
    warn() {},
    info() {},
    debug() {},
    trace() {},
    silent() {},
  }
  // No request is ever served by this application: its routes are described, not called.
  const deps = {} as Deps
  const { fastify: app } = await buildApp({
    deps,
    logger: silent,
    authenticate: () => Promise.reject(new Error('nobody is served')),
    readiness: { draining: () => true },
    bodyLimitBytes: 1_048_576,
  })
  await app.ready()
  const text = `${JSON.stringify(app.swagger(), null, 2)}\n`
  await app.close()
  return text
}

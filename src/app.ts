/** The HTTP application: Fastify with its limits, the order of checks, the routes and the docs. Reads no environment, does not listen. */
import type { IncomingMessage } from 'node:http'
import fastify, { LogController, type FastifyBaseLogger, type FastifyInstance } from 'fastify'
import type { Deps } from './deps.ts'
import { requireScope, type Authenticate } from './http/auth.ts'
import { answerClientError } from './http/client-errors.ts'
import { consolePages } from './http/console/pages.ts'
import { docsPages } from './http/docs/pages.ts'
import { headerLines } from './http/header-lines.ts'
import { describeApi } from './http/openapi.ts'
import { answerProblem, handleProblems } from './http/problem-answers.ts'
import { approvalRoutes } from './http/routes/approvals.ts'
import { conversationRoutes } from './http/routes/conversations.ts'
import { apiKeyRoutes } from './http/routes/api-keys.ts'
import { keyRoutes } from './http/routes/keys.ts'
import { messageRoutes } from './http/routes/messages.ts'
import { operatingRoutes, type Readiness } from './http/routes/operating.ts'
import { providerRoutes } from './http/routes/providers.ts'
import { sendingRoutes } from './http/routes/sending.ts'
import { webhookRoutes } from './http/routes/webhooks.ts'
import { parseStrictJson } from './http/strict-json.ts'
import { invalid, validatorCompiler } from './http/validation.ts'
import { mcpEndpoint } from './mcp/http-endpoint.ts'
import { Refusal } from './operations/refusal.ts'

export interface AppOptions {
  readonly deps: Deps
  readonly logger: FastifyBaseLogger
  readonly authenticate: Authenticate
  readonly readiness: Readiness
  readonly bodyLimitBytes: number
  /** Where others reach this gateway; null or absent: nowhere but here. */
  readonly publicUrl?: string | null
  /** Addresses and networks whose X-Forwarded-For is believed. */
  readonly trustedProxies?: readonly string[]
}

/** Milliseconds; against clients that are slow on purpose. A request's own wait for an outcome is not part of them. */
const times = { headers: 10_000, request: 30_000, keepAlive: 72_000, looked: 1_000 }
const maxConnections = 10_000

export interface App {
  readonly fastify: FastifyInstance
  /** Resolves when no request is being answered. */
  idle(): Promise<void>
}

export async function buildApp(options: AppOptions): Promise<App> {
  const { deps, logger, authenticate, readiness, bodyLimitBytes, publicUrl = null, trustedProxies = [] } = options
  const app: FastifyInstance = fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }), // a line of our own, without the address
    bodyLimit: bodyLimitBytes,
    trustProxy: trustedProxies.length > 0 && [...trustedProxies],
    genReqId: () => deps.newUuid(),
    requestIdHeader: false,
    requestTimeout: times.request,
    keepAliveTimeout: times.keepAlive,
    forceCloseConnections: true, // once `idle` has resolved: what is connected then asks for nothing
    return503OnClosing: false,
    routerOptions: { maxParamLength: 1024, ignoreTrailingSlash: false },
    http: {
      maxHeaderSize: 16_384,
      headersTimeout: times.headers,
      connectionsCheckingInterval: times.looked, // node looks every 30 s, and a time-out is late by as much
      requireHostHeader: false, // node's own refusal is no problem document; ours is below
    },
    frameworkErrors: (_, request, reply) => {
      reply.header('x-request-id', request.id).header('cache-control', 'no-store')
      answerProblem(reply, new Refusal('not-found', 'The path cannot be read.'))
    },
    clientErrorHandler: (error, socket) => answerClientError(deps, error, socket),
  })
  app.server.maxConnections = maxConnections
  // RFC 9110, 10.1.1: an expectation that is not known may be passed over; node would answer a bare 417.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(() => (data) => JSON.stringify(data))
  app.decorateRequest('caller', null)
  handleProblems(app)
  strictBodies(app)

  // The order of checks: first who asks, before a byte of the body is read.
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
    const { scope } = request.routeOptions.config
    if (scope !== undefined || request.url.startsWith('/v1')) reply.header('cache-control', 'no-store')
    requireOneHost(request.raw)
    if (scope === undefined) return
    if (readiness.draining()) throw new Refusal('shutting-down', null, {}, 1)
    request.caller = await authenticate(request)
    requireScope(request.caller, scope)
  })
  const open = openRequests(app)
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'none'
    deps.metrics.answered(request.method, route, String(reply.statusCode)).observe(reply.elapsedTime / 1000)
    request.log.debug(
      { method: request.method, route, status: reply.statusCode, ms: Math.round(reply.elapsedTime) },
      'answered',
    )
    done()
  })

  await describeApi(app)
  sendingRoutes(app, deps)
  messageRoutes(app, deps)
  approvalRoutes(app, deps)
  conversationRoutes(app, deps)
  keyRoutes(app, deps)
  apiKeyRoutes(app, deps)
  providerRoutes(app, deps)
  await webhookRoutes(app, deps)
  operatingRoutes(app, deps, readiness)
  mcpEndpoint(app, { authenticate, publicUrl })
  await docsPages(app)
  consolePages(app)
  return { fastify: app, idle: open.idle }
}

/** RFC 9112, 3.2: what names no host, or two, may mean another one to whoever stands before us. */
function requireOneHost(request: IncomingMessage): void {
  const hosts = headerLines(request, 'host')?.length ?? 0
  if (hosts > 1 || (hosts === 0 && request.httpVersion !== '1.0'))
    throw new Refusal('invalid-request', 'A request names its host, once.')
}

function openRequests(app: FastifyInstance): Pick<App, 'idle'> {
  let open = 0
  let waiting: (() => void)[] = []
  const closed = (): void => {
    open--
    if (open > 0) return
    for (const resolve of waiting) resolve()
    waiting = []
  }
  app.server.on('request', (_, response) => {
    open++
    response.once('close', closed)
  })
  return { idle: async () => (open === 0 ? undefined : new Promise((resolve) => void waiting.push(resolve))) }
}

/** JSON only, strict; nothing compressed, for a small body may unpack to a large one. */
function strictBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, bytes: Buffer, done) => {
    const charset = /;\s*charset="?([^";\s]+)/i.exec(request.headers['content-type'] ?? '')?.[1]
    if (charset !== undefined && !/^utf-?8$/i.test(charset))
      return done(new Refusal('unsupported-media-type', 'JSON is UTF-8 (RFC 8259).'))
    const encoding = request.headers['content-encoding']
    if (encoding !== undefined && encoding !== 'identity')
      return done(new Refusal('unsupported-media-type', 'The body is compressed.'))
    if (bytes.length === 0) return done(null, undefined)
    const parsed = parseStrictJson(bytes)
    return parsed.ok ? done(null, parsed.value) : done(invalid(parsed.pointer, parsed.detail))
  })
}

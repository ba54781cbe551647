/** The HTTP application: Fastify with its limits, the order of checks, the routes and the docs. Reads no environment, does not listen. */
import { STATUS_CODES, type ServerResponse } from 'node:http'
import fastify, { LogController, type FastifyBaseLogger, type FastifyInstance } from 'fastify'
import type { Deps } from './deps.ts'
import { requireScope, type Authenticate } from './http/auth.ts'
import { docsPages } from './http/docs/pages.ts'
import { describeApi } from './http/openapi.ts'
import { answerProblem, handleProblems, occurrence } from './http/problem-answers.ts'
import { keyRoutes } from './http/routes/keys.ts'
import { messageRoutes } from './http/routes/messages.ts'
import { operatingRoutes, type Readiness } from './http/routes/operating.ts'
import { providerRoutes } from './http/routes/providers.ts'
import { parseStrictJson } from './http/strict-json.ts'
import { invalid, validatorCompiler } from './http/validation.ts'
import { problemBody, type ProblemType } from './core/problems.ts'
import { problemType } from './core/answer.ts'
import { Refusal } from './operations/refusal.ts'

export interface AppOptions {
  readonly deps: Deps
  readonly logger: FastifyBaseLogger
  readonly authenticate: Authenticate
  readonly readiness: Readiness
  readonly bodyLimitBytes: number
}

/** Milliseconds; against clients that are slow on purpose. A request's own wait for an outcome is not part of them. */
const times = { headers: 10_000, request: 30_000, keepAlive: 72_000 }
const maxConnections = 10_000
/** Node's codes for what is no request. */
const clientErrors: Readonly<Record<string, ProblemType>> = {
  HPE_HEADER_OVERFLOW: 'header-too-large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request-timeout',
}

export interface App {
  readonly fastify: FastifyInstance
  /** Resolves when no request is being answered. */
  idle(): Promise<void>
}

export async function buildApp({ deps, logger, authenticate, readiness, bodyLimitBytes }: AppOptions): Promise<App> {
  const app: FastifyInstance = fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }), // a line of our own, without the address
    bodyLimit: bodyLimitBytes,
    genReqId: () => deps.newUuid(),
    requestIdHeader: false,
    requestTimeout: times.request,
    keepAliveTimeout: times.keepAlive,
    forceCloseConnections: true, // once `idle` has resolved: what is connected then asks for nothing
    return503OnClosing: false,
    routerOptions: { maxParamLength: 1024, ignoreTrailingSlash: false },
    http: { maxHeaderSize: 16_384, headersTimeout: times.headers },
    frameworkErrors: (_, request, reply) => {
      reply.header('x-request-id', request.id)
      answerProblem(reply, new Refusal('not-found', 'The path cannot be read.'))
    },
    clientErrorHandler(error, socket) {
      // Not even a request: a raw answer is all there can be.
      if (error.code === 'ECONNRESET' || socket.destroyed) return
      const pending = (socket as { _httpMessage?: ServerResponse })._httpMessage
      if (pending !== undefined && pending !== null) {
        // What came behind a good request is no request; that one is answered, and then the connection ends.
        pending.once('close', () => socket.destroy())
        return
      }
      const type = clientErrors[error.code ?? ''] ?? 'invalid-request'
      const requestId = deps.newUuid()
      const problem = problemBody(type, occurrence(requestId), 'The request cannot be read.')
      const body = JSON.stringify(problem)
      socket.end(
        [
          `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
          `X-Request-Id: ${requestId}`,
          `Content-Type: ${problemType}`,
          `Content-Length: ${Buffer.byteLength(body)}`,
          'Connection: close',
          '',
          body,
        ].join('\r\n'),
      )
    },
  })
  app.server.maxConnections = maxConnections
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
    if (scope === undefined) return
    if (readiness.draining()) throw new Refusal('shutting-down', null, {}, 1)
    request.caller = await authenticate(request)
    requireScope(request.caller, scope)
  })
  const open = openRequests(app)
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? 'none'
    deps.metrics.requests.observe({ method: request.method, route, status: reply.statusCode }, reply.elapsedTime / 1000)
    request.log.debug(
      { method: request.method, route, status: reply.statusCode, ms: Math.round(reply.elapsedTime) },
      'answered',
    )
  })

  await describeApi(app)
  messageRoutes(app, deps)
  keyRoutes(app, deps)
  providerRoutes(app, deps)
  operatingRoutes(app, deps, readiness)
  await docsPages(app)
  return { fastify: app, idle: open.idle }
}

function openRequests(app: FastifyInstance): Pick<App, 'idle'> {
  let open = 0
  let waiting: (() => void)[] = []
  app.server.on('request', (_, response) => {
    open++
    response.once('close', () => {
      open--
      if (open > 0) return
      for (const resolve of waiting) resolve()
      waiting = []
    })
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

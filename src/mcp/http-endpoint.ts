/**
 * The tools over streamable HTTP, at /mcp of the gateway itself.
 *
 * E1. Tools call the gateway's own routes, in process, with the Authorization of whoever asks: scopes, policies and
 *     tenants are those of any request. There is no second set of rules.
 * E2. No session: each POST has a server of its own, so that any gateway on one data base answers any request. There is
 *     nothing to stream or to end, so GET and DELETE are 405 (MCP, transports).
 * E3. A page that a browser was lured to reaches nothing here, whatever name it gave this address (`strangerIn`).
 * What is refused before the protocol begins is a problem, where the catalogue has it, else an error of JSON-RPC.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { isIP } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Authenticate } from '../http/auth.ts'
import { jsonOf, NoAnswer, type Call } from './call.ts'

export interface EndpointOptions {
  readonly authenticate: Authenticate
  /** Where others reach this gateway; its name is believed beside this machine's own. */
  readonly publicUrl: string | null
}

/** Loaded when an agent first asks: a gateway that has none need not hold what speaks their protocol in its memory. */
async function loadProtocol() {
  const [{ WebStandardStreamableHTTPServerTransport: Transport }, { agentServer }] = await Promise.all([
    import('@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'),
    import('./server.ts'),
  ])
  return { Transport, agentServer }
}

export function mcpEndpoint(app: FastifyInstance, { authenticate, publicUrl }: EndpointOptions): void {
  const onRequest = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    reply.header('cache-control', 'no-store')
    const { headers, raw } = request
    const stranger = strangerIn(headers, raw.socket.localAddress, publicUrl)
    if (stranger !== null) return refuse(reply, 403, stranger)
    request.caller = await authenticate(request)
    return undefined
  }
  const schema = { hide: true } // its description is the protocol's: tools/list

  app.post('/mcp', { onRequest, schema }, async (request, reply) => {
    const { Transport, agentServer } = await loadProtocol()
    const transport = new Transport({ enableJsonResponse: true })
    const server = agentServer(inProcess(app, request.headers.authorization ?? ''))
    await server.connect(transport)
    try {
      const answer = await transport.handleRequest(asWebRequest(request), { parsedBody: request.body ?? null })
      reply.code(answer.status)
      for (const [name, value] of answer.headers) reply.header(name, value)
      return reply.send(await answer.text())
    } finally {
      await server.close()
    }
  })

  app.route({
    method: ['GET', 'DELETE'],
    url: '/mcp',
    exposeHeadRoute: false,
    onRequest,
    schema,
    handler: async (_, reply) => {
      reply.header('allow', 'POST')
      return refuse(reply, 405, 'There is no session here, and no stream: POST alone.')
    },
  })
}

function refuse(reply: FastifyReply, status: number, message: string): FastifyReply {
  return reply.code(status).send({ jsonrpc: '2.0', error: { code: -32_000, message }, id: null })
}

/** A request of the routes, made here (E1). */
const inProcess =
  (app: FastifyInstance, authorization: string): Call =>
  async (method, path, headers = {}, body) => {
    const answer = await app
      .inject({
        method,
        url: path,
        headers: {
          ...headers,
          authorization,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
      })
      .catch((error: unknown) => {
        throw new NoAnswer('The gateway is ending.', error)
      })
    return { status: answer.statusCode, headers: answer.headers, json: jsonOf(answer.body) }
  }

function asWebRequest({ method, headers }: FastifyRequest): Request {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, Array.isArray(value) ? value.join(', ') : value] as [string, string]],
  )
  return new Request('http://localhost/mcp', { method, headers: lines })
}

/**
 * DNS rebinding: a page of a name that was made to mean this machine. Browsers say where a page is from, and by what name
 * they reached us: an Origin must be this machine or `publicUrl`; and who comes in by loopback must call it by a name of
 * this machine, by an address, or by the name in `publicUrl`. Where others may connect, any name may be a right one.
 * @returns what is strange, or null
 */
export function strangerIn(
  { origin, host = '' }: Pick<IncomingHttpHeaders, 'origin' | 'host'>,
  localAddress: string | undefined,
  publicUrl: string | null,
): string | null {
  const publicly = publicUrl === null ? null : new URL(publicUrl)
  if (origin !== undefined) {
    const url = URL.canParse(origin) ? new URL(origin) : null
    if (url === null || !(isThisMachine(url.hostname) || url.origin === publicly?.origin))
      return 'The Origin is not one of this gateway.'
  }
  if (localAddress !== undefined && !isThisMachine(localAddress)) return null
  const name = URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : ''
  const isKnown = isThisMachine(name) || isIP(bare(name)) !== 0 || name === publicly?.hostname
  return isKnown ? null : 'The Host is not one of this gateway; set PUBLIC_URL to the address that it is reached by.'
}

const bare = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, '$1')
const isThisMachine = (hostname: string): boolean =>
  hostname === 'localhost' || /^(::ffff:)?127\.|^::1$/.test(bare(hostname))

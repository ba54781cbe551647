/**
 * /console: the page of the person who decides. Serves the files of browser/ as they stand there, and nothing else; what
 * the page does it does by /v1, with the API key that is typed into it.
 *
 * P1. No script, style, image or request from or to another host, nothing inline, no HTML made of strings: the policy
 *     below has the browser refuse it, should a fault of ours ever try.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Refusal } from '../../operations/refusal.ts'

const folder = join(import.meta.dirname, 'browser')

/** What is not listed here is not served: the types and settings that the browser's modules are checked with. */
const mediaTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

const headers = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  // Kept by the browser, and asked for anew by its ETag: after an upgrade no page runs half of the old one.
  'cache-control': 'no-cache',
}

interface Served {
  readonly bytes: Buffer
  readonly mediaType: string
  readonly etag: string
}

/** Read once: what is asked for is a name in this map, and never a path. */
function readFiles(): ReadonlyMap<string, Served> {
  const named = readdirSync(folder).flatMap((name): [string, Served][] => {
    const mediaType = mediaTypes[extname(name)]
    if (mediaType === undefined) return []
    const bytes = readFileSync(join(folder, name))
    const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 27)}"`
    return [[name, { bytes, mediaType, etag }]]
  })
  return new Map(named)
}

export function consolePages(app: FastifyInstance): void {
  const files = readFiles()
  const serve = (name: string, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const file = files.get(name)
    if (file === undefined) throw new Refusal('not-found', 'The console has no such file.')
    reply.headers(headers).header('etag', file.etag)
    const known = request.headers['if-none-match']?.split(',').map((tag) => tag.trim().replace(/^W\//, ''))
    if (known?.includes(file.etag)) return reply.code(304).send()
    return reply.type(file.mediaType).send(file.bytes)
  }
  const hidden = { schema: { hide: true } }
  app.get('/console', hidden, async (request, reply) => serve('index.html', request, reply))
  app.get('/console/', hidden, async (_, reply) => reply.redirect('/console', 308))
  app.get<{ Params: { file: string } }>('/console/:file', hidden, async (request, reply) =>
    serve(request.params.file, request, reply),
  )
}

/** What the programs that are compared with share: an undici Pool of 64 to the provider, raw bodies, a port. */
import type { AddressInfo } from 'node:net'
import fastify, { type FastifyInstance } from 'fastify'
import { Pool } from 'undici'
import { answerParent } from '../parent.ts'

export interface ProviderAnswer {
  readonly code: number
  readonly body: string
}

const pool = new Pool(process.env['STUB_URL'] ?? '', { connections: 64 })

export async function callProvider(body: string): Promise<ProviderAnswer> {
  const headers = { 'content-type': 'application/json' }
  const answer = await pool.request({ path: '/', method: 'POST', headers, body })
  return { code: answer.statusCode, body: await answer.body.text() }
}

/** Fastify as it comes, but for bodies: they are hashed and passed on as they are, so nobody pays for parsing them. */
export function bareApp(): FastifyInstance {
  const app = fastify()
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_, body, done) => done(null, body))
  return app
}

/** Listens, and tells the parent the address when it asks. */
export async function serve(app: FastifyInstance): Promise<void> {
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  answerParent(() => `http://127.0.0.1:${port}`)
}

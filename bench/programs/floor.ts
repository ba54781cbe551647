/**
 * The floor: what a good engineer writes in an afternoon. Fastify, a pg pool of 16, one table, an INSERT and an UPDATE,
 * each its own commit. No authentication, no validation, no attempt, no recovery: after a crash it does not know.
 */
import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import pg from 'pg'
import { bareApp, callProvider, serve } from './common.ts'

interface Send {
  readonly fingerprint: Buffer
  readonly code: number | null
  readonly body: string | null
}
type Request = FastifyRequest<{ Body: string }>

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 16 })
const app = bareApp()

const keyOf = (request: Request): string => String(request.headers['idempotency-key'])
const fingerprintOf = (body: string): Buffer => createHash('sha256').update(body).digest()

const insert = async (key: string, fingerprint: Buffer): Promise<boolean> => {
  const { rowCount } = await pool.query(
    `INSERT INTO sends (key, fingerprint, status) VALUES ($1, $2, 'sending') ON CONFLICT DO NOTHING`,
    [key, fingerprint],
  )
  return rowCount === 1
}

const repeat = async (key: string, fingerprint: Buffer, reply: FastifyReply): Promise<FastifyReply> => {
  const { rows } = await pool.query<Send>('SELECT fingerprint, code, body FROM sends WHERE key = $1', [key])
  const found = rows[0]
  if (found === undefined) return reply.code(404).send()
  if (!found.fingerprint.equals(fingerprint)) return reply.code(422).send({ error: 'another message has this key' })
  if (found.code === null) return reply.code(409).send({ error: 'in progress' })
  return reply.code(found.code).type('application/json').send(found.body)
}

app.post<{ Body: string }>('/v1/messages', async (request, reply) => {
  const key = keyOf(request)
  const fingerprint = fingerprintOf(request.body)
  if (!(await insert(key, fingerprint))) return repeat(key, fingerprint, reply)
  const answer = await callProvider(request.body)
  await pool.query(`UPDATE sends SET status = 'sent', code = $2, body = $3 WHERE key = $1`, [
    key,
    answer.code,
    answer.body,
  ])
  return reply.code(answer.code).type('application/json').send(answer.body)
})

/** A repeat by one who knows that it is one: reads one row. */
app.post<{ Body: string }>('/replay', async (request, reply) =>
  repeat(keyOf(request), fingerprintOf(request.body), reply),
)

/** The insert alone. */
app.post<{ Body: string }>('/accept', async (request, reply) =>
  (await insert(keyOf(request), fingerprintOf(request.body)))
    ? reply.code(202).send({ status: 'queued' })
    : reply.code(409).send({ error: 'known' }),
)

await serve(app)

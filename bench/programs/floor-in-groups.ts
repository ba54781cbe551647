/**
 * The floor in groups: the same as the floor, but what waits for the data base goes there together: one INSERT … SELECT
 * FROM unnest and one UPDATE … FROM unnest, two flushes of each in flight.
 */
import { createHash } from 'node:crypto'
import pg from 'pg'
import { bareApp, callProvider, serve } from './common.ts'

interface Send {
  readonly key: string
  readonly fingerprint: Buffer
  readonly code: number | null
  readonly body: string | null
}
interface Outcome {
  readonly key: string
  readonly code: number
  readonly body: string
}

const maxGroup = 256
const maxInFlight = 2

/** Whatever waits when a flush returns goes with the next one. */
function inGroups<Item, Result>(flush: (items: Item[]) => Promise<Result[]>): (item: Item) => Promise<Result> {
  const waiting: { item: Item; resolve: (result: Result) => void; reject: (error: unknown) => void }[] = []
  let inFlight = 0
  let scheduled = false
  const next = (): void => {
    scheduled = false
    while (inFlight < maxInFlight && waiting.length > 0) {
      const group = waiting.splice(0, maxGroup)
      inFlight++
      flush(group.map(({ item }) => item))
        .then((results) => group.forEach(({ resolve }, i) => resolve(results[i] as Result)))
        .catch((error: unknown) => group.forEach(({ reject }) => reject(error)))
        .finally(() => {
          inFlight--
          next()
        })
    }
  }
  return async (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      if (scheduled || inFlight >= maxInFlight) return
      scheduled = true
      setImmediate(next)
    })
}

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 16 })
const app = bareApp()

const insert = inGroups(async (asked: { key: string; fingerprint: Buffer }[]) => {
  const { rows } = await pool.query<{ key: string }>(
    `INSERT INTO sends (key, fingerprint, status)
     SELECT key, fingerprint, 'sending' FROM unnest($1::text[], $2::bytea[]) AS asked (key, fingerprint) ORDER BY key
     ON CONFLICT DO NOTHING RETURNING key`,
    [asked.map(({ key }) => key), asked.map(({ fingerprint }) => fingerprint)],
  )
  const inserted = new Set(rows.map(({ key }) => key))
  // Of two with one key in one group the first has it.
  return asked.map(({ key }) => inserted.delete(key))
})

const update = inGroups(async (outcomes: Outcome[]) => {
  await pool.query(
    `UPDATE sends SET status = 'sent', code = told.code, body = told.body
     FROM unnest($1::text[], $2::int[], $3::text[]) AS told (key, code, body) WHERE sends.key = told.key`,
    [outcomes.map(({ key }) => key), outcomes.map(({ code }) => code), outcomes.map(({ body }) => body)],
  )
  return outcomes
})

const find = inGroups(async (keys: string[]) => {
  const { rows } = await pool.query<Send>('SELECT key, fingerprint, code, body FROM sends WHERE key = ANY ($1)', [keys])
  const found = new Map(rows.map((row) => [row.key, row]))
  return keys.map((key) => found.get(key))
})

app.post<{ Body: string }>('/v1/messages', async (request, reply) => {
  const key = String(request.headers['idempotency-key'])
  const fingerprint = createHash('sha256').update(request.body).digest()
  if (!(await insert({ key, fingerprint }))) {
    const found = await find(key)
    if (found?.fingerprint.equals(fingerprint) !== true) return reply.code(422).send({ error: 'another message' })
    if (found.code === null) return reply.code(409).send({ error: 'in progress' })
    return reply.code(found.code).type('application/json').send(found.body)
  }
  const answer = await callProvider(request.body)
  await update({ key, code: answer.code, body: answer.body })
  return reply.code(answer.code).type('application/json').send(answer.body)
})

await serve(app)

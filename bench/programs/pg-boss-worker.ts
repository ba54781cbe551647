/**
 * A pg-boss worker of the same two steps as the gateway's dispatch: take, call the provider, complete. It fetches the
 * next batch as soon as one is done (`work()` would pause half a second between batches), two batches of 32 at a time:
 * as many calls open as the gateway has slots.
 */
import { PgBoss } from 'pg-boss'
import { bodyOf } from '../message.ts'
import { answerParent } from '../parent.ts'
import { callProvider } from './common.ts'

const queue = 'sends'
const batchSize = 32
const batchesAtOnce = 2
const fillAtOnce = 1_000

interface Job {
  readonly body: string
}
export type PgBossQuestion = { readonly fill: number; readonly prefix: string } | { readonly work: boolean }

const boss = new PgBoss({
  connectionString: process.env['DATABASE_URL'] ?? '',
  max: 16,
  supervise: false,
  schedule: false,
})
boss.on('error', (error) => process.stderr.write(`pg-boss: ${error.message}\n`))
await boss.start()
await boss.createQueue(queue)
let working = false

async function fill(count: number, prefix: string): Promise<void> {
  for (let from = 0; from < count; from += fillAtOnce) {
    const keys = Array.from({ length: Math.min(fillAtOnce, count - from) }, (_, i) => `${prefix}${from + i}`)
    await boss.insert(
      queue,
      keys.map((key) => ({ data: { body: bodyOf(key) } satisfies Job })),
    )
  }
}

/** Until there is nothing left, or nothing more is wanted. */
async function work(): Promise<void> {
  while (working) {
    const jobs = await boss.fetch<Job>(queue, { batchSize })
    if (jobs.length === 0) return
    await Promise.all(jobs.map(async ({ data }) => callProvider(data.body)))
    await boss.complete(
      queue,
      jobs.map(({ id }) => id),
    )
  }
}

answerParent(async (asked: PgBossQuestion) => {
  if ('fill' in asked) return fill(asked.fill, asked.prefix)
  working = asked.work
  if (working) await Promise.all(Array.from({ length: batchesAtOnce }, work))
})

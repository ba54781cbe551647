/**
 * A pg-boss worker of the same two steps as the gateway's dispatch: take, call the provider, complete. Two
 * batches of 32 at a time, as many calls as the gateway has slots, and the next batch as soon as one is done: the fastest
 * that it has. One job at a time, as it comes, it pauses for half a second between jobs at the least.
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

async function fill(count: number, prefix: string): Promise<void> {
  for (let from = 0; from < count; from += fillAtOnce) {
    const keys = Array.from({ length: Math.min(fillAtOnce, count - from) }, (_, i) => `${prefix}${from + i}`)
    await boss.insert(
      queue,
      keys.map((key) => ({ data: { body: bodyOf(key) } satisfies Job })),
    )
  }
}

async function work(): Promise<void> {
  const options = {
    batchSize,
    localConcurrency: batchesAtOnce,
    pollingIntervalSeconds: 0.5,
    burstWhenBatchFull: true,
  }
  await boss.work<Job>(queue, options, async (jobs) => {
    await Promise.all(jobs.map(async ({ data }) => callProvider(data.body)))
  })
}

answerParent(async (asked: PgBossQuestion) => {
  if ('fill' in asked) await fill(asked.fill, asked.prefix)
  else if (asked.work) await work()
  else await boss.offWork(queue, { wait: true })
})

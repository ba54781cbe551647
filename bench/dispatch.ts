/** The asynchronous path: acceptance against the floor's insert alone, then dispatch of what was accepted against pg-boss. */
import { setTimeout as pause } from 'node:timers/promises'
import { startHelper, type Helper } from './children.ts'
import { startContender, startGatewayOn, type Contender, type Surroundings } from './contenders.ts'
import { costs, meter, stubCounts, underLoad, type Bench, type Sample } from './measure.ts'
import { residentMb } from './processor-time.ts'
import type { PgBossQuestion } from './programs/pg-boss-worker.ts'
import type { Plan } from './plan.ts'
import { nextPrefix, type Block } from './scenarios.ts'

const connections = 64
const pgBossDatabase = 'bench_pg_boss'
/** Jobs that no worker of a run can finish in its time. */
const jobsPerSecond = 8_000

export async function acceptAndDispatch(block: Block, surroundings: Surroundings): Promise<void> {
  const { bench, plan, cells, contenders, keys, say } = block
  const floor = contenders.get('floor')
  if (floor === undefined) return
  await stubCounts(bench, { delayMs: 0 })
  const api = await startContender(surroundings, 'gateway, api')
  await bench.server.createDatabase(pgBossDatabase)
  const env = { STUB_URL: surroundings.stubUrl, DATABASE_URL: bench.server.urlOf(pgBossDatabase) }
  const pgBoss = await startHelper('pg-boss-worker', env)
  const put = (what: string, program: string, sample: Sample): void => {
    cells.add({ what, keys, connections, delayMs: 0 }, program, sample)
    say(`${what}: ${program} ${Math.round(sample.perSecond)}/s`)
  }
  for (let round = 0; round < plan.rounds; round++) {
    put('async acceptance', 'floor', await accept(block, floor, { path: '/accept' }))
    put('async acceptance', 'gateway', await accept(block, api, { headers: { Prefer: 'respond-async' } }))
    put('dispatch', 'pg-boss', await dispatchByPgBoss(bench, pgBoss, plan))
    put('dispatch', 'gateway', await dispatchByGateway(bench, surroundings, api, plan))
  }
  await pgBoss.stop()
  await api.stop()
}

async function accept(
  { bench, plan }: Block,
  contender: Contender,
  request: { path?: string; headers?: Record<string, string> },
): Promise<Sample> {
  const { warmMs, measureMs } = plan
  const keys = { kind: 'fresh', prefix: nextPrefix() } as const
  const asked = { connections, warmMs, measureMs, keys, expected: 202, calls: 'none', ...request } as const
  return (await underLoad(bench, contender, asked)).sample
}

async function dispatchByPgBoss(bench: Bench, worker: Helper, plan: Plan): Promise<Sample> {
  const ask = async (question: PgBossQuestion): Promise<void> => void (await worker.ask(question))
  await ask({ fill: Math.ceil((jobsPerSecond * (plan.warmMs + plan.measureMs)) / 1000), prefix: nextPrefix() })
  return whileDispatching(bench, worker.pid, pgBossDatabase, plan, {
    start: async () => ask({ work: true }),
    end: async () => ask({ work: false }),
  })
}

async function dispatchByGateway(
  bench: Bench,
  surroundings: Surroundings,
  { database }: Contender,
  plan: Plan,
): Promise<Sample> {
  if (database === null) throw new Error('a gateway has a data base')
  // It finds what waits as soon as it has started: that moment is not measured, only what follows the first call.
  const { child } = await startGatewayOn(surroundings, database, 'worker')
  return whileDispatching(bench, child.pid, database, plan, {
    start: async () => {},
    end: async () => child.stop(),
  })
}

/** From a while after the first call that the provider sees, for the time that is measured; a rate by the last call, should they run out. */
async function whileDispatching(
  bench: Bench,
  pid: number,
  database: string,
  plan: Plan,
  { start, end }: { start: () => Promise<void>; end: () => Promise<void> },
): Promise<Sample> {
  const before = await stubCounts(bench, { delayMs: 0 })
  await start()
  const giveUp = performance.now() + 30_000
  while ((await stubCounts(bench)).callsSince === 0 && performance.now() < giveUp) await pause(5)
  await pause(plan.warmMs)
  const first = { counts: await stubCounts(bench), reading: await meter(bench, pid, database) }
  await pause(plan.measureMs)
  const last = await stubCounts(bench)
  const reading = await meter(bench, pid, database)
  const memory = residentMb(pid)
  await end()
  const after = await stubCounts(bench)
  const duplicates = after.duplicates - before.duplicates
  if (duplicates > 0) bench.faults.push(`dispatch, ${database}: the provider saw ${duplicates} messages twice`)
  const calls = last.callsSince - first.counts.callsSince
  if (calls === 0) bench.faults.push(`dispatch, ${database}: nothing was dispatched`)
  return {
    perSecond: (calls * 1000) / (last.lastAt - first.counts.lastAt),
    p50Ms: null,
    p99Ms: null,
    ...costs(first.reading, reading, calls, true),
    residentMb: memory,
  }
}

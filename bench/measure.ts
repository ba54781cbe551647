/**
 * One measurement: a program under the load for some seconds, and what that cost in processor time, memory, WAL and
 * commits. Owns the rule that fails a run: a message that the provider saw twice, or an answer that was not expected.
 */
import { availableParallelism } from 'node:os'
import type { Helper } from './children.ts'
import type { Contender } from './contenders.ts'
import { busySeconds, cpuSecondsOf, residentMb } from './processor-time.ts'
import type { Server } from './postgres.ts'
import type { LoadJob, LoadResult } from './programs/load.ts'
import type { StubCounts, StubQuestion } from './programs/provider-stub.ts'

/** Null: not measured. Costs are of one message. */
export interface Sample {
  readonly perSecond: number
  readonly p50Ms: number | null
  readonly p99Ms: number | null
  readonly nodeCpuMs: number | null
  readonly postgresCpuMs: number | null
  readonly walBytes: number | null
  readonly commits: number | null
  readonly residentMb: number | null
  /** Of all processors, from 0 to 1: what processes that are not of the run took meanwhile. */
  readonly others: number | null
}

export interface Bench {
  readonly server: Server
  readonly stub: Helper
  readonly load: Helper
  /** What must not be; the run goes on, and fails. */
  readonly faults: string[]
}

export const stubCounts = async (bench: Bench, question: StubQuestion = {}): Promise<StubCounts> =>
  bench.stub.ask<StubCounts>(question)

/** Sums since the start of everything, at one moment. */
export async function meter(bench: Bench, pid: number, database: string | null) {
  const { cpuS: postgresS, ...store } = await bench.server.work(database)
  const [nodeS, busyS] = [cpuSecondsOf(pid), busySeconds()]
  const helpersS = [bench.load.pid, bench.stub.pid, process.pid].reduce(
    (sum, helper) => sum + (cpuSecondsOf(helper) ?? 0),
    0,
  )
  const othersS = nodeS === null || busyS === null || postgresS === null ? null : busyS - nodeS - postgresS - helpersS
  return { atS: performance.now() / 1000, nodeS, postgresS, othersS, ...store }
}
type Reading = Awaited<ReturnType<typeof meter>>

/** What `count` messages cost between two readings, each. */
export function costs(before: Reading, after: Reading, count: number, hasStore: boolean) {
  const each = (to: number | null, from: number | null, scale: number): number | null =>
    to === null || from === null || count === 0 ? null : ((to - from) * scale) / count
  const others = each(after.othersS, before.othersS, count / (after.atS - before.atS) / availableParallelism())
  return {
    others: others === null ? null : Math.max(others, 0),
    nodeCpuMs: each(after.nodeS, before.nodeS, 1000),
    postgresCpuMs: hasStore ? each(after.postgresS, before.postgresS, 1000) : 0,
    walBytes: hasStore ? each(after.walBytes, before.walBytes, 1) : 0,
    commits: hasStore ? each(after.commits, before.commits, 1) : 0,
  }
}

export type Request = Pick<LoadJob, 'connections' | 'warmMs' | 'measureMs' | 'keys' | 'expected'> &
  Partial<Pick<LoadJob, 'path' | 'changed' | 'limit' | 'headers'>> & {
    /** Calls that the provider must see: one a request, one in all, or none; null: they come later. */
    readonly calls: 'each' | 'one' | 'none' | null
  }

/** Puts the load on a program, and looks at what came of it. */
export async function underLoad(
  bench: Bench,
  contender: Contender,
  { calls, ...request }: Request,
): Promise<{ result: LoadResult; sample: Sample }> {
  const job: LoadJob = {
    path: '/v1/messages',
    changed: false,
    limit: Infinity,
    ...request,
    url: contender.url,
    headers: { ...contender.headers, ...request.headers },
  }
  const read = async (): Promise<Reading> => meter(bench, contender.child.pid, contender.database)
  const before = await stubCounts(bench)
  const begun = bench.load.told('measuring').then(read)
  const ended = bench.load.told('measured').then(read)
  // JSON has no Infinity.
  const result = await bench.load.ask<LoadResult>({ ...job, limit: Math.min(job.limit, Number.MAX_SAFE_INTEGER) })
  const cost = costs(await begun, await ended, result.measured, contender.database !== null)
  const after = await stubCounts(bench)

  const where = `${contender.name}, ${job.path}, ${job.connections} connections`
  for (const [what, count] of Object.entries(result.unexpected)) bench.faults.push(`${where}: ${what}, ${count} times`)
  const seen = after.calls - before.calls
  const due = calls === 'each' ? result.answered : calls === 'one' ? 1 : 0
  if (calls !== null && seen !== due) bench.faults.push(`${where}: the provider saw ${seen} calls for ${due} messages`)
  const duplicates = after.duplicates - before.duplicates
  if (duplicates > 0) bench.faults.push(`${where}: the provider saw ${duplicates} messages twice`)
  return {
    result,
    sample: {
      perSecond: (result.measured * 1000) / result.measuredMs,
      p50Ms: result.p50Ms,
      p99Ms: result.p99Ms,
      ...cost,
      residentMb: residentMb(contender.child.pid),
    },
  }
}

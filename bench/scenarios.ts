/** What is measured of programs that take requests: first sends, replays, conflicts, and what needs the gateway alone. */
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { startGateway } from './children.ts'
import type { Cells } from './cells.ts'
import type { Contender, Name } from './contenders.ts'
import { bodyOf, keyPrefix } from './message.ts'
import { stubCounts, underLoad, type Bench, type Request } from './measure.ts'
import { residentMb } from './processor-time.ts'
import { freePort } from '../src/store/postgres-programs.ts'
import type { Plan } from './plan.ts'

let runs = 0
/** Unique to one measurement, so that a key is never met again by chance. */
export const nextPrefix = (): string => keyPrefix((++runs).toString(36))

export interface Block {
  readonly bench: Bench
  readonly plan: Plan
  readonly cells: Cells
  readonly contenders: ReadonlyMap<Name, Contender>
  readonly keys: number
  /** Keys that every program has stored. */
  readonly stored: { readonly prefix: string; readonly count: number }
  readonly say: (text: string) => void
}

/** All programs in turn, and that again for every round. */
async function inTurn(
  { bench, plan, cells, contenders, keys, say }: Block,
  place: { what: string; connections: number; delayMs: number },
  programs: readonly { name: Name; as?: string; request: () => Partial<Request> & Pick<Request, 'keys' | 'calls'> }[],
): Promise<void> {
  await stubCounts(bench, { delayMs: place.delayMs })
  for (let round = 1; round <= plan.rounds; round++)
    for (const { name, as = name, request } of programs) {
      const contender = contenders.get(name)
      if (contender === undefined) throw new Error(`${name} does not run`)
      const { warmMs, measureMs } = plan
      const common = { connections: place.connections, warmMs, measureMs, expected: 201 }
      const { sample } = await underLoad(bench, contender, { ...common, ...request() })
      cells.add({ ...place, keys }, as, sample)
      say(
        `${place.what}, ${keys} keys, ${place.connections} connections, ${place.delayMs} ms, round ${round}: ${as} ${Math.round(sample.perSecond)}/s, p50 ${sample.p50Ms?.toFixed(1)} ms, p99 ${sample.p99Ms?.toFixed(1)} ms`,
      )
    }
}

export async function firstSends(block: Block): Promise<void> {
  const programs = (['pass-through', 'floor', 'floor in groups', 'gateway'] as const).map((name) => ({
    name,
    request: () => ({ keys: { kind: 'fresh', prefix: nextPrefix() }, calls: 'each' }) as const,
  }))
  for (const delayMs of block.plan.delaysMs)
    for (const connections of delayMs === 0 ? block.plan.connections : [64])
      await inTurn(block, { what: 'first sends', connections, delayMs }, programs)
}

export async function replays(block: Block): Promise<void> {
  const { prefix, count } = block.stored
  const request = { keys: { kind: 'among', prefix, count }, calls: 'none' } as const
  await inTurn(block, { what: 'replays', connections: 64, delayMs: 0 }, [
    { name: 'floor', as: 'floor, one row read', request: () => ({ ...request, path: '/replay' }) },
    { name: 'floor', request: () => request },
    { name: 'floor in groups', request: () => request },
    { name: 'gateway', request: () => request },
  ])
}

/** Another message under a key that is taken. */
export async function conflicts(block: Block): Promise<void> {
  const { prefix, count } = block.stored
  const request = { keys: { kind: 'among', prefix, count }, calls: 'none', changed: true, expected: 422 } as const
  await inTurn(
    block,
    { what: 'conflicts', connections: 64, delayMs: 0 },
    (['floor', 'floor in groups', 'gateway'] as const).map((name) => ({ name, request: () => request })),
  )
}

export const stormSize = 200
export const stormDelayMs = 50

/** Equal requests at once: one call, and all are answered. @returns ms to the last answer, once a round */
export async function storm({ bench, plan, contenders, say }: Block): Promise<number[]> {
  const gateway = contenders.get('gateway')
  if (gateway === undefined) return []
  await stubCounts(bench, { delayMs: stormDelayMs })
  const times: number[] = []
  for (let round = 0; round < Math.max(plan.rounds, 3); round++) {
    const { result } = await underLoad(bench, gateway, {
      connections: stormSize,
      limit: stormSize,
      warmMs: 0,
      measureMs: 20_000,
      keys: { kind: 'one', key: `${nextPrefix()}0` },
      expected: 201,
      calls: 'one',
    })
    times.push(result.totalMs)
    say(`${stormSize} equal requests at once: ${Math.round(result.totalMs)} ms`)
  }
  await stubCounts(bench, { delayMs: 0 })
  return times
}

export interface Memory {
  readonly sends: number
  readonly beforeMb: number | null
  readonly halfwayMb: number | null
  readonly afterMb: number | null
  readonly mostMb: number
}

/** Many sends through a gateway just started, and its memory meanwhile. */
export async function soak(block: Block, startAgain: () => Promise<Contender>): Promise<Memory | null> {
  const { bench, plan, say } = block
  if (plan.soak === 0) return null
  await stubCounts(bench, { delayMs: 0 })
  const gateway = await startAgain()
  const { pid } = gateway.child
  const beforeMb = residentMb(pid)
  const readings: number[] = []
  const watch = setInterval(() => readings.push(residentMb(pid) ?? 0), 500)
  const { result } = await underLoad(bench, gateway, {
    connections: 64,
    limit: plan.soak,
    warmMs: 0,
    measureMs: 3_600_000,
    keys: { kind: 'fresh', prefix: nextPrefix() },
    expected: 201,
    calls: 'each',
  })
  clearInterval(watch)
  const memory = {
    sends: result.answered,
    beforeMb,
    halfwayMb: readings[readings.length >> 1] ?? null,
    afterMb: residentMb(pid),
    mostMb: Math.max(...readings),
  }
  await gateway.stop()
  say(`memory over ${memory.sends} sends: ${JSON.stringify(memory)}`)
  return memory
}

/** A gateway on a data folder that it knows, its own PostgreSQL included: ms from its start to the first accepted send. */
export async function startTimes({ plan, say }: Block, folder: string): Promise<number[]> {
  const key = `so_test_bench_${'k'.repeat(40)}`
  const env = { SENDONCE_DATA_DIR: join(folder, 'start'), SENDONCE_BOOTSTRAP_KEY: key }
  const times: number[] = []
  for (let round = 0; round <= plan.rounds; round++) {
    const url = `http://127.0.0.1:${await freePort()}`
    const begin = performance.now()
    const starting = startGateway(url, env, { log: join(folder, 'start.log') })
    const until = begin + 30_000
    while (performance.now() < until) {
      const headers = {
        authorization: `Bearer ${key}`,
        'idempotency-key': nextPrefix(),
        'content-type': 'application/json',
      }
      const sent = await fetch(`${url}/v1/messages`, { method: 'POST', headers, body: bodyOf('start') }).catch(
        () => null, // not listening yet
      )
      await sent?.body?.cancel()
      if (sent?.status === 201) break
      await pause(10)
    }
    const ms = performance.now() - begin
    await (await starting).stop()
    if (round > 0) times.push(ms) // the first one makes the data base
    say(`start ${round === 0 ? 'on a new' : 'on a warm'} folder: ${Math.round(ms)} ms`)
  }
  return times
}

/** `npm run bench`: starts the server, the stub and the load, measures what the plan says, writes the results, and fails if it must. */
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Cells } from './cells.ts'
import { root, startHelper, stopAll } from './children.ts'
import { restartGateway, startContender, type Contender, type Name, type Surroundings } from './contenders.ts'
import { acceptAndDispatch } from './dispatch.ts'
import { stubCounts, type Bench } from './measure.ts'
import { help, planFrom, type Plan } from './plan.ts'
import { startServer, type Server } from './postgres.ts'
import { report } from './report.ts'
import { conflicts, firstSends, nextPrefix, replays, soak, startTimes, storm, type Block } from './scenarios.ts'
import type { Alone } from './targets.ts'

const begin = performance.now()
const say = (text: string): void =>
  void process.stdout.write(`${String(Math.round((performance.now() - begin) / 1000)).padStart(5)} s  ${text}\n`)
const names: readonly Name[] = ['pass-through', 'floor', 'floor in groups', 'gateway']
/** Stored keys that replays and conflicts need where none were asked for. */
const fewKeys = 10_000

async function runBlock(bench: Bench, plan: Plan, cells: Cells, surroundings: Surroundings, keys: number) {
  const contenders = new Map<Name, Contender>()
  const prefix = nextPrefix()
  const fill = async (count: number): Promise<void> => {
    say(`${count} stored keys`)
    for (const contender of contenders.values()) await contender.fill(prefix, count)
    await bench.server.query('postgres', 'CHECKPOINT')
  }
  for (const name of names) contenders.set(name, await startContender(surroundings, name))
  const stored = { prefix, count: Math.max(keys, fewKeys) }
  const block: Block = { bench, plan, cells, contenders, keys, stored, say }
  const alone: { -readonly [Member in keyof Alone]: Alone[Member] } = { stormMs: [], startMs: [], memory: null }
  const wants = (part: Plan['parts'][number]): boolean => plan.parts.includes(part)
  const isFirst = keys === plan.keys[0]
  if (keys > 0) await fill(keys)
  if (wants('sends')) await firstSends(block)
  if (keys === 0 && (wants('replays') || wants('conflicts'))) await fill(fewKeys)
  if (wants('replays')) await replays(block)
  if (wants('conflicts')) await conflicts(block)
  if (isFirst && wants('storm')) alone.stormMs = await storm(block)
  if (isFirst && wants('async')) await acceptAndDispatch(block, surroundings)
  for (const contender of contenders.values()) await contender.stop()
  if (isFirst && wants('soak')) alone.memory = await soak(block, async () => restartGateway(surroundings))
  if (isFirst && wants('start')) alone.startMs = await startTimes(block, surroundings.folder)
  return alone
}

const commit = (): string => {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim()
  } catch {
    return '' // not a checkout
  }
}

async function run(plan: Plan, command: string): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'sendonce-bench-'))
  let server: Server | undefined
  const end = async (): Promise<void> => {
    await stopAll()
    await server?.stop()
    await rm(folder, { recursive: true, force: true })
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void end().finally(() => process.exit(130)))
  try {
    server = await startServer(folder)
    const [stub, load] = [await startHelper('provider-stub'), await startHelper('load')]
    const bench: Bench = { server, stub, load, faults: [] }
    const profileDir = plan.profileDir === null ? null : resolve(plan.profileDir)
    const surroundings: Surroundings = { server, stubUrl: (await stubCounts(bench)).url, folder, profileDir }
    const cells = new Cells()
    let alone: Alone | undefined
    for (const keys of plan.keys) alone = { ...(await runBlock(bench, plan, cells, surroundings, keys)), ...alone }
    const { calls, duplicates } = await stubCounts(bench)
    if (duplicates > 0) bench.faults.push(`in all, the provider saw ${duplicates} messages twice`)
    const told = { cells, plan, command, postgres: server.version, commit: commit(), faults: bench.faults }
    await writeFile(plan.out, report({ ...told, alone: alone ?? { stormMs: [], startMs: [], memory: null } }))
    for (const fault of bench.faults) process.stderr.write(`FAULT ${fault}\n`)
    say(`${calls} messages, ${duplicates} of them twice; the results are in ${plan.out}`)
    return bench.faults.length === 0 ? 0 : 1
  } finally {
    await end()
  }
}

try {
  const argv = process.argv.slice(2)
  const plan = planFrom(argv)
  if (plan === null) process.stdout.write(help)
  else process.exitCode = await run(plan, ['npm run bench', ...(argv.length > 0 ? ['--', ...argv] : [])].join(' '))
} catch (error) {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}

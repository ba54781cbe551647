/** `npm run torture`: real processes, every fault, and then the question whether anything was sent twice, lost, or told wrongly. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Callers } from './callers.ts'
import { chanceFrom, type Chance } from './chance.ts'
import { closeConnections } from './client.ts'
import { evidenceFrom, readLedger, type Evidence } from './evidence.ts'
import { History } from './history.ts'
import { askedUnder, type Asked } from './keys.ts'
import { outcomeNames, outcomesIn, timesOf } from './outcomes.ts'
import { help, planFrom, wholeRunSeconds, type Plan } from './plan.ts'
import { providerFates } from './provider-proxy.ts'
import { quieten } from './quiet.ts'
import { countViolations, statusesOf, storyOf, textOf, type Report } from './report.ts'
import { rules, violationsIn, type Stop, type Violation } from './rules.ts'
import { oldestInFlight, readTables } from './tables.ts'
import { faultKinds, longStopSeconds, stoppedForLong, Tormentor } from './tormentor.ts'
import { Ends, leaseMs, startWorld, type World } from './world.ts'

const begin = performance.now()
const say = (text: string): void =>
  void process.stdout.write(`${String(Math.round((performance.now() - begin) / 1000)).padStart(5)} s  ${text}\n`)

/** Beyond this a run tells nothing more; it bounds memory and the time to check. */
const maxKeys = 20_000
const maxStories = 5

/** What chance did not bring in the run's own time is waited for in so many more storms, of so many seconds. */
const moreStorms = 2
const moreSeconds = 30

/** @param asked grows @returns how long the oldest call in flight was, ms */
async function storm(
  plan: Plan,
  asked: Asked[],
  world: World,
  callers: Callers,
  tormentor: Tormentor,
  chance: Chance,
): Promise<number> {
  const untilMs = Date.now() + plan.seconds * 1_000
  const isOver = (): boolean => Date.now() >= untilMs
  let oldestMs = 0
  const call = async (name: string): Promise<void> => {
    const own = chance.fork(name)
    while (!isOver() && asked.length < maxKeys) {
      const one = askedUnder(plan.seed, asked.length, chance)
      asked.push(one)
      await callers.pursue(one, isOver)
      await pause(own.between(20, 400))
    }
  }
  const watch = async (): Promise<void> => {
    while (!isOver()) {
      oldestMs = Math.max(oldestMs, await oldestInFlight(world.postgres))
      await pause(500)
    }
  }
  const calling = Array.from({ length: plan.callers }, async (_, i) => call(`caller ${i}`))
  await Promise.all([...calling, watch(), tormentor.run(untilMs)])
  return oldestMs
}

/** What a gateway's log must never say. */
const misdeeds =
  /"illegal event"|"ending after a bug"|"an adapter threw"|accepted_twice|verdict_corrected|provider_key_conflict/

async function processViolations({ gateways }: World): Promise<Violation[]> {
  const all: Violation[] = []
  for (const { number, log, misdeeds: own } of gateways) {
    const lines = (await readFile(log, 'utf8')).split('\n').filter((line) => misdeeds.test(line))
    for (const what of [...own, ...lines]) all.push({ rule: 'process', key: null, what: `gateway ${number} ${what}` })
  }
  return all
}

function printViolations(evidence: Evidence, violations: readonly Violation[]): void {
  for (const [rule, all] of Map.groupBy(violations, ({ rule: name }) => name)) {
    for (const { key, what } of all.slice(0, maxStories)) {
      process.stdout.write(`\n${rule}: ${what}\n`)
      const of = evidence.keys.find(({ asked }) => asked.key === key)
      if (of !== undefined) process.stdout.write(storyOf(of))
    }
    if (all.length > maxStories) process.stdout.write(`… and ${all.length - maxStories} more of "${rule}"\n`)
  }
}

function neverMet(plan: Plan, faults: ReadonlyMap<string, number>, outcomes: Report['outcomes']): string[] {
  if (plan.seconds < wholeRunSeconds) return []
  const long = plan.seconds >= longStopSeconds ? [stoppedForLong] : []
  const wanted = [...faultKinds, ...long, ...providerFates.map((fate) => `provider: ${fate}`)]
  const unmet = outcomeNames.filter((name) => outcomes[name] === 0)
  return [...wanted.filter((fault) => !faults.has(fault)), ...unmet]
}

async function run(plan: Plan, folder: string, ends: Ends): Promise<boolean> {
  const chance = chanceFrom(plan.seed)
  const faults = new Map<string, number>()
  const count = (fault: string): void => void faults.set(fault, (faults.get(fault) ?? 0) + 1)
  say(`seed ${plan.seed}; logs in ${folder}`)
  const world = await startWorld(plan, folder, ends, chance.fork('provider'), count)
  const history = new History()
  const callers = new Callers(world.gateways, history)
  const tormentor = new Tormentor(world, chance.fork('tormentor'), count)
  const asked: Asked[] = []
  const stopsOf = (gateway: number): readonly Stop[] => world.gateways[gateway]?.stops ?? []

  /** Faults, then quiet, then everything that is known since the start of the run. */
  const weather = async (seconds: number, name: string) => {
    say(`${plan.gateways} gateways are up: ${seconds} s of faults`)
    const oldestMs = await storm({ ...plan, seconds }, asked, world, callers, tormentor, chance.fork(`keys${name}`))
    say(`${asked.length} keys; quiet, until everything is settled`)
    const quietFrom = Date.now()
    const until = quietFrom + plan.quietSeconds * 1_000
    const open = await quieten(world, callers, asked, chance.fork(`quiet${name}`), until)
    say(`${open.length} keys without a definite answer; checking`)
    const tables = await readTables(world.postgres)
    const ledger = await readLedger(world.sandbox.ledgerFile)
    const evidence = evidenceFrom(asked, history, ledger, world.provider.log, tables)
    // Now, and not after more storms: what is stuck may be freed by the next restart.
    const violations = [...violationsIn(evidence, rules(leaseMs, stopsOf)), ...(await processViolations(world))]
    const outcomes = outcomesIn(evidence, history.heard, tormentor.struck)
    const unmet = neverMet(plan, faults, outcomes)
    return { seconds, oldestMs, quietMs: Date.now() - quietFrom, evidence, violations, outcomes, unmet }
  }
  const all = [await weather(plan.seconds, '')]
  for (let n = 1; n <= moreStorms; n++) {
    const { unmet: lacking = [], violations: found = [] } = all[n - 1] ?? {}
    if (lacking.length === 0 || found.length > 0) break
    say(`not met yet: ${lacking.join(', ')}`)
    all.push(await weather(lacking.includes(stoppedForLong) ? longStopSeconds : moreSeconds, ` ${n}`))
  }
  const { evidence, violations, outcomes, unmet } = all.at(-1) as (typeof all)[number]
  const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0)
  const report: Report = {
    seed: plan.seed,
    seconds: sum(all.map(({ seconds }) => seconds)),
    quietSeconds: Math.round(sum(all.map(({ quietMs }) => quietMs)) / 1_000),
    gateways: plan.gateways,
    keys: asked.length,
    asked: history.heard.length,
    ...statusesOf(evidence),
    violations: countViolations(violations),
    oldestInFlightMs: Math.max(...all.map(({ oldestMs }) => oldestMs)),
    times: timesOf(history.heard, stopsOf),
    faults: Object.fromEntries([...faults].toSorted(([a], [b]) => (a < b ? -1 : 1))),
    outcomes,
    neverMet: unmet,
  }
  printViolations(evidence, violations)
  process.stdout.write(`\n${textOf(report)}`)
  if (plan.out !== null) await writeFile(plan.out, `${JSON.stringify({ ...report, found: violations }, null, 2)}\n`)
  const isWell = violations.length === 0 && report.neverMet.length === 0
  if (!isWell) say(`FAILED; once more with: npm run torture -- --seconds ${plan.seconds} --seed ${plan.seed}`)
  else say('nothing was sent twice, lost, told wrongly or got stuck')
  return isWell
}

async function main(): Promise<number> {
  const plan = planFrom(process.argv.slice(2), () => Math.floor(Math.random() * 100_000))
  if (plan === null) {
    process.stdout.write(help)
    return 0
  }
  const folder = await mkdtemp(join(tmpdir(), 'sendonce-torture-'))
  const ends = new Ends()
  const interrupted = new Promise<null>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(null))
  })
  let isWell: boolean | null = false
  try {
    isWell = await Promise.race([run(plan, folder, ends), interrupted])
  } finally {
    closeConnections()
    await ends.all()
  }
  if (isWell !== false && !plan.keep) await rm(folder, { recursive: true, force: true })
  return isWell === null ? 130 : isWell ? 0 : 1
}

// A child or a socket that lingers must not keep a run that is over.
process.exit(await main())

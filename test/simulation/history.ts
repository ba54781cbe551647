/**
 * One history: a world from a seed, its faults, then calm; and what the checker says of it. Which faults there are, and
 * how many, is chance of its own: a history in which all goes wrong hides what one fault alone would show.
 */
import { createApprovers } from './approvers.ts'
import { createAsking } from './asking.ts'
import { createCallers } from './callers.ts'
import { chanceFrom } from './chance.ts'
import { createChecker } from './checker.ts'
import { storeFaults, type DatabaseServer, type StoreFault } from './connection.ts'
import { createGateway, type SimGateway, type Surroundings, type Weather } from './gateway.ts'
import { createOtherSide } from './other-side.ts'
import { createPeople } from './people.ts'
import { createReceipts, stranger } from './receipts.ts'
import type { Seen } from './sometimes.ts'
import { emptyTables, type Tables } from './tables.ts'
import { createVendor, type Vendor } from './vendor.ts'
import { vendorKinds } from './vendor-kinds.ts'
import { createWorld, type World } from './world.ts'
import { createWriters, type Place } from './writers.ts'

export interface History {
  readonly seed: number
  /** The rule that did not hold, and what broke it; undefined: all held. */
  readonly broken: string | undefined
  /** What happened, line by line, if it was traced. */
  readonly lines: readonly string[]
  readonly seen: Seen
}

/** Faults of the data base that are worse together. */
const storms: readonly (readonly StoreFault[])[] = [
  storeFaults,
  ['reply lost'],
  ['reply lost', 'slow'],
  ['executed late', 'overloaded'],
  ['executed late', 'refused', 'locked'],
  ['request lost', 'rolled back'],
]

/** The first one is of those who write in no conversation, too. */
const allPlaces: readonly Place[] = [
  { account: 'one', conversation: 'c', to: '+447700900200' },
  { account: 'two', conversation: 'd', to: '+447700900201' },
]

/** After the last fault everything must have come to rest within this. */
const calmMs = 240_000
/** Whoever was stopped goes on, and whoever waits for an answer has it. */
const settlingMs = 35_000

export async function playHistory(seed: number, isTraced = false): Promise<History> {
  const world = createWorld(chanceFrom(seed), isTraced)
  const { chance } = world
  const activeMs = chance.between(12_000, 45_000)
  const tables = emptyTables()
  const checker = createChecker(world, tables)
  const server: DatabaseServer = {
    tables,
    down: false,
    troubledUntilMs: 0,
    changed: checker.changed,
    received: checker.received,
    executed: checker.executed,
    claimedBy: new Map(),
  }
  const rate = (most: number): number => most * chance.pick([0, 0, chance.random(), 1])
  const weather: Weather = {
    network: { unconnected: rate(0.4), unanswered: rate(0.9), buggy: rate(0.05), stalled: rate(0.3) },
    storeFaultRate: rate(0.3),
    storeFaults: chance.pick(storms),
    stopsInDoubt: rate(0.6),
    crashes: rate(0.08),
  }
  const receipts = createReceipts(world, checker, () => asking.anyUp(), { tells: rate(0.8) }, activeMs)
  const vendors = ['ven', 'dor'].slice(0, chance.between(1, 2)).map((name) => {
    const vendor = createVendor(world, name, chance.pick(vendorKinds), (write) => {
      checker.accepted(write)
      receipts.accepted(write)
    })
    Object.assign(vendor.moods, { lost: rate(0.4), limited: rate(0.3), troubled: rate(0.4) })
    return vendor
  })
  const around: Surroundings = {
    world,
    server,
    vendors,
    weather,
    checker,
    leaseMarginMs: 1_000,
    concurrency: chance.pick([1, 2, 8]),
    retentionMs: chance.pick([10_000, 20_000, 3_600_000, 3_600_000]),
    sweepMs: chance.between(500, 3_000),
  }
  const gateways = ['g1', 'g2', 'g3'].slice(0, chance.between(1, 3)).map((name) => createGateway(name, around))
  for (const gateway of gateways) gateway.start()
  const asking = createAsking(world, gateways, checker)
  const callers = createCallers(world, asking, checker, activeMs)
  for (const { request } of callers.sayings)
    if (chance.happens(0.1)) for (const { refuses } of vendors) refuses.add(request.content.text)
  const places = allPlaces.slice(0, chance.pick([0, 0, 1, 1, 2]))
  const writers = createWriters(world, asking, checker, places, activeMs)
  createOtherSide(world, asking, checker, places, activeMs)
  if (places.length > 0) createApprovers(world, asking, checker, activeMs)
  createPeople(world, gateways, checker, { mistakes: chance.pick([0, 0, 0.5, 1]), activeMs })
  trouble(world, { server, vendors, gateways, activeMs })

  const isBroken = (): boolean => checker.broken.length > 0
  await world.run(activeMs, isBroken)
  calm(world, around, gateways)
  await untilAtRest(world, tables, isBroken)
  if (!isBroken()) for (const each of [callers, writers]) each.askAll()
  await untilAtRest(world, tables, isBroken)
  if (!isBroken()) checker.atEnd()
  return { seed, broken: checker.broken[0], lines: world.lines, seen: world.seen }
}

/** Runs until nothing is left that happens by itself. */
async function untilAtRest(world: World, tables: Tables, isBroken: () => boolean): Promise<void> {
  const earliest = world.now() + settlingMs
  const isAtRest = (): boolean =>
    world.now() > earliest &&
    [...tables.dueWork.values()].every(({ task }) => task === 'unknown') &&
    [...tables.messages.values()].every(({ status }) => status !== 'sending') &&
    [...tables.receipts.values()].every(
      ({ appliedAt, provider, messageId }) =>
        appliedAt !== null || provider === stranger || !tables.messages.has(messageId),
    )
  await world.run(world.now() + calmMs, () => isBroken() || isAtRest())
}

interface Troubled {
  readonly server: DatabaseServer
  readonly vendors: readonly Vendor[]
  readonly gateways: readonly SimGateway[]
  readonly activeMs: number
}

/** Faults that come of themselves, each with its own frequency. */
function trouble(world: World, { server, vendors, gateways, activeMs }: Troubled): void {
  const { chance } = world
  /** @param everyMs on average, where it happens at all */
  const nowAndThen = (everyMs: number, fault: () => void): void => {
    if (chance.happens(0.5)) return
    const next = (): void =>
      void world.after(chance.between(1, 2 * everyMs), () => {
        if (world.now() >= activeMs) return
        fault()
        next()
      })
    next()
  }
  for (const gateway of gateways) {
    nowAndThen(15_000, () => {
      gateway.crash()
      world.after(chance.between(100, 10_000), () => gateway.start())
    })
    nowAndThen(40_000, () => gateway.drain(chance.between(100, 5_000)))
    nowAndThen(15_000, () =>
      gateway.pause(
        chance.pick([chance.between(50, 1_000), chance.between(2_000, 12_000), chance.between(5_000, 25_000)]),
      ),
    )
    // A machine that sleeps, and whose wall clock is set back before it reads the time again, cannot know that it slept.
    if (chance.happens(0.5)) nowAndThen(15_000, () => gateway.pause(chance.between(5_000, 30_000), true))
    else nowAndThen(20_000, () => gateway.stepWallClock(chance.pick([-3_600_000, -5_000, 5_000, 3_600_000])))
    nowAndThen(60_000, () => gateway.changeAccount())
  }
  // Whoever died in the moment of a call is started again.
  const restart = (): void =>
    void world.after(3_000, () => {
      for (const gateway of gateways) if (chance.happens(world.now() < activeMs ? 0.5 : 1)) gateway.start()
      restart()
    })
  restart()
  nowAndThen(20_000, () => {
    world.note('data base', () => 'is away')
    server.down = true
    world.after(chance.between(200, 6_000), () => {
      world.note('data base', () => 'is back')
      server.down = false
    })
  })
  for (const { name, moods } of vendors)
    nowAndThen(40_000, () => {
      world.note(name, () => 'refuses our credentials')
      moods.refusesUs = true
      world.after(chance.between(500, 10_000), () => void (moods.refusesUs = false))
    })
}

/** All faults end; who is down starts again. */
function calm(world: World, { server, vendors, weather }: Surroundings, gateways: readonly SimGateway[]): void {
  world.note('world', () => 'CALM from here on')
  server.down = false
  weather.storeFaultRate = 0
  weather.stopsInDoubt = 0
  weather.crashes = 0
  Object.assign(weather.network, { unconnected: 0, unanswered: 0, buggy: 0, stalled: 0 })
  for (const { moods } of vendors) Object.assign(moods, { lost: 0, limited: 0, troubled: 0, refusesUs: false })
  for (const gateway of gateways) gateway.start()
}

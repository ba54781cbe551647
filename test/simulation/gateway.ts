/**
 * A simulated gateway: the real operations, workers, store and clock of src/, in a process that can die between any two
 * of its awaits, be stopped and go on, drain, and start again, with other credentials if need be. What it has of its own
 * (slots, waiters, calls in flight, looks) is new with each start.
 */
import { databaseClock } from '../../src/clock.ts'
import type { Deps, Log } from '../../src/deps.ts'
import { createMetrics } from '../../src/metrics.ts'
import { inFlight } from '../../src/operations/in-flight.ts'
import { providerSlots } from '../../src/operations/provider-slots.ts'
import { waitersFor } from '../../src/operations/wait-for-outcome.ts'
import * as reaper from '../../src/workers/reaper.ts'
import { startWorkers, type Workers } from '../../src/workers/workers.ts'
import type { Checker } from './checker.ts'
import { connectedStore, type DatabaseServer, type StoreWeather } from './connection.ts'
import { simulatedProvider, type NetworkMoods } from './provider.ts'
import type { Vendor } from './vendor.ts'
import { epochMs, type Process, type World } from './world.ts'

export interface Weather extends StoreWeather {
  readonly network: NetworkMoods
  /** How often a gateway dies in the moment that it makes a call. */
  crashes: number
}

export interface Surroundings {
  readonly world: World
  readonly server: DatabaseServer
  readonly vendors: readonly Vendor[]
  readonly weather: Weather
  readonly checker: Checker
  readonly leaseMarginMs: number
  readonly concurrency: number
  readonly retentionMs: number
  readonly sweepMs: number
}

/** What runs in one process. */
export interface Incarnation {
  readonly process: Process
  readonly deps: Deps
  /** It was stopped for a while: what it promised about time does not count. */
  wasPaused: boolean
}

export interface SimGateway {
  readonly name: string
  /** Null: it is down, or not up yet. */
  up(): Incarnation | null
  start(): void
  crash(): void
  /** As SIGTERM does: what runs is finished, nothing new is begun, then it ends. */
  drain(graceMs: number): void
  /** @param isAsleep its machine is suspended: it does not see the time pass on its monotonic clock */
  pause(ms: number, isAsleep?: boolean): void
  /** Its own clock steps; what it measures monotonically does not. */
  stepWallClock(ms: number): void
  changeAccount(): void
}

const metrics = createMetrics()

export function createGateway(name: string, around: Surroundings): SimGateway {
  const { world, server, vendors, weather, checker, leaseMarginMs, concurrency, retentionMs, sweepMs } = around
  const { chance } = world
  let starts = 0
  let account = 1
  let wallErrorMs = 0
  /** The machine's monotonic clock stands still while it sleeps. */
  let sleptMs = 0
  let running: Incarnation | null = null
  let isUp = false

  const crash = (): void => {
    if (running === null) return
    world.note(running.process.name, () => 'DIES')
    running.process.die()
    running = null
    isUp = false
  }

  const pause = (ms: number, isAsleep = false): void => {
    const incarnation = running
    if (incarnation === null || incarnation.process.isPaused()) return
    world.note(incarnation.process.name, () => `${isAsleep ? 'sleeps with its machine' : 'is stopped'} for ${ms} ms`)
    incarnation.wasPaused = true
    incarnation.process.pause()
    world.after(ms, () => {
      if (!incarnation.process.isAlive()) return
      if (isAsleep) {
        sleptMs += ms
        world.sometimes('a machine slept')
      }
      world.note(incarnation.process.name, () => 'goes on')
      incarnation.process.resume()
    })
  }

  const start = (): void => {
    if (running !== null) return
    const process = world.newProcess(`${name}.${++starts}`)
    world.note(process.name, () => `starts, with account ${account}`)
    /** Before a call is made its process may die. */
    const reaches = (isPoll = false): boolean => {
      if (!isPoll && process.isAlive() && chance.happens(weather.crashes)) {
        world.sometimes('a gateway died in the moment of a call')
        crash()
      }
      return process.isAlive()
    }
    const store = connectedStore({
      world,
      server,
      process,
      weather,
      stop: pause,
      reaches,
      doubted: checker.doubted,
    })
    const clock = databaseClock(async () => store.readTime(), {
      monotonicMs: () => world.now() - sleptMs,
      wallMs: () => epochMs + world.now() + wallErrorMs,
      after: process.after,
    })
    const providers = vendors.map((vendor) =>
      simulatedProvider({
        world,
        process,
        vendor,
        account,
        network: weather.network,
        concurrency,
        eventOf: checker.eventOf,
        reaches,
        stop: pause,
        writeBegins: checker.writeBegins,
      }),
    )
    const calls = inFlight()
    let closed = false
    let workers: Workers | null = null
    const deps: Deps = {
      store,
      providers: {
        find: (wanted) => providers.find((one) => one.name === wanted),
        route: () => providers,
        all: () => providers,
      },
      clock,
      newUuid: () => uuidFrom(world),
      newSecret: () => '',
      random: chance.random,
      log: logOf(world, process.name, checker),
      metrics,
      slots: providerSlots(clock),
      waiters: waitersFor(store, clock, calls),
      inFlight: calls,
      repeats: { note: () => {}, areLikely: () => chance.random() < 0.5 },
      leaseMarginMs,
      acceptsClaims: () => !closed,
      nudgeDispatcher: () => workers?.nudgeDispatcher(),
      nudgeReconciler: (at) => workers?.nudgeReconciler(at),
    }
    const incarnation: Incarnation = { process, deps, wasPaused: false }
    running = incarnation
    stopping = () => {
      closed = true
      return { workers, deps }
    }
    const begin = (): void => {
      clock.synchronise().then(
        () => {
          workers = startWorkers(deps, clock, { role: 'all', sweepMs, retentionDays: retentionMs / 86_400_000 })
          reap(incarnation)
          isUp = true
        },
        () => void process.after(500, begin), // it does not serve before it knows the time
      )
    }
    begin()
  }
  /** The hourly pass of the reaper, oftener. */
  const reap = ({ process, deps }: Incarnation): void =>
    void process.after(chance.between(5_000, 60_000), () => {
      reaper.runOnce(deps, retentionMs).then(
        () => reap({ process, deps, wasPaused: false }),
        () => reap({ process, deps, wasPaused: false }),
      )
    })

  let stopping: () => { workers: Workers | null; deps: Deps } | null = () => null
  return {
    name,
    up: () => (isUp ? running : null),
    start,
    crash,
    drain: (graceMs) => {
      const incarnation = running
      if (incarnation === null || !isUp) return
      world.note(incarnation.process.name, () => 'drains')
      const { workers, deps } = stopping() ?? { workers: null, deps: incarnation.deps }
      const end = (): void => {
        if (running !== incarnation) return
        world.sometimes('a gateway drained')
        crash()
      }
      incarnation.process.after(graceMs, end)
      deps.waiters.drain()
      const idle = async (): Promise<void> => {
        await workers?.stop()
        await workers?.idle()
        await deps.inFlight.idle()
      }
      void idle().then(() => incarnation.process.after(50, end))
    },
    pause,
    stepWallClock: (ms) => {
      world.note(name, () => `its wall clock steps by ${ms} ms`)
      wallErrorMs += ms
    },
    changeAccount: () => {
      account = account === 1 ? 2 : 1
    },
  }
}

/** A UUIDv7 of the world's time and chance. */
function uuidFrom({ chance, now }: World): string {
  const time = (epochMs + now()).toString(16).padStart(12, '0')
  const hex = (digits: number): string =>
    chance
      .between(0, 16 ** digits - 1)
      .toString(16)
      .padStart(digits, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(3)}-8${hex(3)}-${hex(6)}${hex(6)}`
}

function logOf(world: World, who: string, checker: Checker): Log {
  const line =
    (level: string) =>
    (fields: object, text: string): void => {
      world.note(who, () => `${level}: ${text} ${JSON.stringify(fields)}`)
      if (level === 'error') checker.errorLogged(who, text, fields)
    }
  return { debug: () => {}, info: () => {}, warn: line('warn'), error: line('error') }
}

/**
 * The way from a gateway to the data base, with all that may happen on it: what was sent may be executed though its
 * sender is told otherwise, or is dead. The store itself is the real one; only its SQL is played (statements.ts).
 */
import { StoreLocked, StoreOverloaded, StoreUnavailable } from '../../src/store/database-errors.ts'
import type { Database, Statement } from '../../src/store/database.ts'
import { shownFromRow } from '../../src/store/message-rows.ts'
import { createStore, type Store } from '../../src/store/store.ts'
import type { TimelineEntry } from '../../src/core/events.ts'
import { isClaim, isSave, rowsOf, type Execution } from './execution.ts'
import { play } from './statements.ts'
import { keyOf, type Tables } from './tables.ts'
import { epochMs, type Process, type World } from './world.ts'

export interface DatabaseServer {
  readonly tables: Tables
  /** While true nothing reaches it. */
  down: boolean
  troubledUntilMs: number
  readonly changed: Execution['changed']
  readonly received: Execution['received']
  /** Told of each statement that was executed, when it is. */
  readonly executed: (statement: Statement, values: readonly unknown[], rows: readonly object[], by: Process) => void
  /** Who claimed each message. */
  readonly claimedBy: Map<string, string>
}

/** What may happen to a statement. */
export const storeFaults = [
  'slow',
  'refused',
  'rolled back',
  'request lost',
  'reply lost',
  'executed late',
  'overloaded',
  'locked',
] as const
export type StoreFault = (typeof storeFaults)[number]

/** What workers and waiters ask again and again: to die there is to die at any time. */
const polls: readonly string[] = [
  'take-due',
  'lapsed-leases',
  'versions-by-ids',
  'time',
  'erase-results',
  'sweep-start',
  'unapplied-receipts',
]

const queryTimeoutMs = 4_000
const lockTimeoutMs = 500
export const never = async <T>(): Promise<T> => new Promise<T>(() => {})

export interface StoreWeather {
  /** How often a statement meets a fault, and which there are in this history. */
  storeFaultRate: number
  readonly storeFaults: readonly StoreFault[]
  /** How often a gateway is stopped before it hears that its statement is in doubt. */
  stopsInDoubt: number
}

export interface Line {
  readonly world: World
  readonly server: DatabaseServer
  readonly process: Process
  readonly weather: StoreWeather
  /** Stops the gateway at once. */
  readonly stop: (ms: number) => void
  /** Is asked before each call: whoever makes it may be dead by then. */
  readonly reaches: (isPoll: boolean) => boolean
  /** Statements that were executed although their sender was told that it is in doubt. */
  readonly doubted: (statement: Statement, values: readonly unknown[]) => void
}

/** The real store, over the simulated data base. */
export function connectedStore(line: Line): Store {
  const { server, process } = line
  const database = {
    run: async (statement: Statement, values: readonly unknown[]) => send(line, statement, values),
    cold: async () => Promise.reject(new Error('the simulated data base knows no Prisma client')),
    soon: (work: () => void) => void process.after(0, work),
    close: async () => {},
  } as unknown as Database
  return {
    ...createStore(database),
    listMessages: async ({ account, environment }, { conversation }, limit, before) => {
      await database.run({ name: 'time', text: '' }, []) // the way there and back
      return [...server.tables.messages.values()]
        .filter((row) => row.accountId === account && row.environment === environment)
        .filter((row) => row.conversation === conversation && (before === null || row.id < before))
        .toSorted((a, b) => (a.id > b.id ? -1 : 1))
        .slice(0, limit)
        .map(shownFromRow)
    },
    findEvents: async (id) => {
      await database.run({ name: 'time', text: '' }, []) // the way there and back
      return (server.tables.events.get(id) ?? []).map(({ data, type, ...event }) => ({
        ...event,
        type: type as TimelineEntry['type'],
        data: JSON.parse(data) as TimelineEntry['data'],
      }))
    },
  }
}

function faultOf({ world, server, weather }: Line, { name }: Statement): StoreFault | null {
  const { chance } = world
  // Trouble comes in spells: where one statement met it, the next one may well.
  const rate = weather.storeFaultRate * (world.now() < server.troubledUntilMs ? 4 : 1)
  if (!chance.happens(rate)) return null
  server.troubledUntilMs = world.now() + 300
  const fault = chance.pick(weather.storeFaults)
  return fault === 'locked' && !isClaim(name) && !isSave(name) ? null : fault
}

async function send(line: Line, statement: Statement, values: readonly unknown[]): Promise<object[]> {
  const { world, server, process, reaches } = line
  const { chance } = world
  if (!reaches(polls.includes(statement.name))) return never()
  const fault = faultOf(line, statement)
  if (fault !== null) world.note(process.name, () => `  ${statement.name}: ${fault}`)
  if (fault === 'overloaded') throw new StoreOverloaded()
  return new Promise((resolve, reject) => {
    const tripMs = (): number => chance.between(1, 6) + (fault === 'slow' ? chance.between(0, queryTimeoutMs / 3) : 0)
    const fail = (ms: number, error: Error): void => void process.after(ms, () => reject(error))
    const doubtful = (): Error => new StoreUnavailable('doubtful', new Error('simulated'))
    const absent = (): Error => new StoreUnavailable('absent', new Error('simulated'))
    /** @returns how it ended, to be told */
    const execute = (): (() => void) => {
      try {
        const nowMs = epochMs + world.now()
        const { tables, changed, received } = server
        const rows = play(statement, values, { tables, nowMs, changed, received })
        server.executed(statement, values, rows, process)
        if (isClaim(statement.name)) noteClaim(line, values, rows)
        return () => resolve([...rows])
      } catch (error) {
        return () => reject(error)
      }
    }
    const arrive = (then: (end: () => void) => void): void =>
      void world.after(tripMs(), () => {
        if (server.down) fail(chance.between(1, queryTimeoutMs), doubtful())
        else then(execute())
      })
    const untoldMs = (): number => chance.pick([chance.between(5, 100), queryTimeoutMs])
    switch (fault) {
      case null:
      case 'slow':
        return server.down && chance.happens(0.7)
          ? fail(chance.between(1, 50), absent())
          : arrive((end) => process.after(tripMs(), end))
      case 'refused':
        return fail(chance.between(1, 50), absent())
      case 'rolled back':
        return fail(chance.between(1, 3_500), absent())
      case 'locked':
        return fail(lockTimeoutMs, new StoreLocked(new Error('simulated')))
      case 'request lost':
        return fail(untoldMs(), doubtful())
      case 'reply lost':
        return arrive(() => {
          line.doubted(statement, values)
          fail(untoldMs(), doubtful())
          if (!chance.happens(line.weather.stopsInDoubt)) return
          world.sometimes('a gateway was stopped while a statement was in doubt')
          line.stop(chance.between(4_000, 20_000))
        })
      case 'executed late': {
        const toldMs = untoldMs()
        fail(toldMs, doubtful())
        world.after(toldMs + chance.between(1, 3_000), () =>
          arrive(() => world.sometimes('a statement in doubt was executed after its sender had read back')),
        )
      }
    }
  })
}

/** Within so long two claims of one key are a race. */
const raceMs = 100

function noteClaim({ world, server, process }: Line, [json]: readonly unknown[], claimed: readonly object[]): void {
  const { tables, claimedBy } = server
  for (const { id } of claimed as readonly { id: string }[]) claimedBy.set(id, process.name)
  for (const { account_id: account, idempotency_key: key } of rowsOf(json)) {
    const { messageId = null } = tables.keys.get(keyOf(String(account), 'live', String(key))) ?? {}
    const row = tables.messages.get(messageId ?? '')
    const isFresh = row !== undefined && epochMs + world.now() - row.createdAt.getTime() < raceMs
    if (isFresh && claimedBy.get(row.id) !== process.name) world.sometimes('two gateways raced for one key')
  }
}

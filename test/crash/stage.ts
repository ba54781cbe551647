/**
 * Plays many small worlds side by side on one data base and in one time: in each, a caller, a gateway to which something
 * happens, the gateways that follow it, and a provider. Time passes from one event to the next, until nothing is due.
 *
 * S1. A world sees nothing of the others: its gateways are given the work of its own message, and its account is its own.
 * S2. What a gateway of it begins is over, or dead, before time passes.
 */
import pg from 'pg'
import { newUuid as uuidv7 } from '../../src/new-uuid.ts'
import type { Answer } from '../../src/core/answer.ts'
import type { Message } from '../../src/core/message.ts'
import { createMetrics } from '../../src/metrics.ts'
import { Refusal } from '../../src/operations/refusal.ts'
import { openDatabase } from '../../src/store/database.ts'
import { createStore, type Store } from '../../src/store/store.ts'
import { fakeProvider } from '../support/gateway.ts'
import { mortalGateway, type Asked, type Gateway, type Mishap, type Task } from './mortal.ts'
import { stopTime } from './passing-time.ts'
import { callMs, faults, kinds, newVendor, type FaultName, type Kind, type Vendor } from './vendors.ts'
import { plainSender } from '../support/plain-message.ts'

export const ways = ['synchronous', 'asynchronous', 'scheduled'] as const
export type Way = (typeof ways)[number]

export interface Case {
  readonly kind: Kind
  readonly fault: FaultName
  readonly way: Way
  /** What happens to the first gateway, and to the one that follows it; null: nothing. */
  readonly first: Mishap | null
  readonly second: Mishap | null
}

export interface Row {
  readonly status: string
  readonly plan: string | null
  readonly attempts: number
}
/** A request of the caller's, and what stood there when it came. */
export interface Request {
  readonly before: Row | null
  heard: Answer | Refusal | null
}

export interface World extends Case {
  readonly id: string
  readonly vendor: Vendor
  readonly gateways: Gateway[]
  readonly requests: Request[]
  /** Lines at the level `error`: bugs and alarms. */
  readonly errors: string[]
  /** How it ended; null: no message is there. */
  row: Row | null
  /** Something was due all the time. */
  isRestless: boolean
}

export interface Stage {
  play(cases: readonly Case[]): Promise<World[]>
  close(): Promise<void>
}

const silent = { debug: () => {}, info: () => {}, warn: () => {} }
const maxTurns = 1_000
/** How often workers look: what is due waits for the next time. */
const sweepMs = 5_000
const hourMs = 3_600_000
/** Nobody waits longer than the first pause of a recovery: the table of api.md tells what is known by then. */
const waitMs = 30

export async function openStage(url: string): Promise<Stage> {
  const database = new pg.Client({ connectionString: url })
  await database.connect()
  const time = await stopTime(database)
  const connected = openDatabase(url, () => {})
  const store = createStore(connected)
  const metrics = createMetrics()
  let worlds = 0
  let since = new Date(time.nowMs())
  /** What was taken for each world, by task. */
  let work = new Map<string, Message[]>()
  const taken = (task: Task, id: string): Message[] => work.get(`${task} ${id}`) ?? []

  const storeOf = (id: string): Store => ({
    ...store,
    takeDue: async (task) => taken(task, id),
    findLapsed: async () => taken('lease', id),
    // A sweep of one world has not seen what happened in the others.
    findSweepStart: async () => null,
    saveSweep: async () => {},
  })

  const start = (world: World): void => {
    const { id, kind, vendor, gateways } = world
    gateways.push(
      mortalGateway(
        {
          store: storeOf(id),
          clockOf: (isOver) => time.clockOf(isOver),
          newUuid: uuidv7,
          log: { ...silent, error: (fields, text) => void world.errors.push(`${text} ${JSON.stringify(fields)}`) },
          metrics,
          hasWork: (task) => taken(task, id).length > 0,
          providerOf: (step) => {
            const provider = fakeProvider('fake', { capabilities: kinds[kind], callMs })
            provider.answer = async (call, gate) => {
              const outcome = await step('provider', () => vendor.send(call, gate))
              vendor.wasHeard()
              return outcome
            }
            provider.show = async ({ messageId }) => step('look', () => vendor.look(messageId))
            return provider
          },
        },
        [world.first, world.second][gateways.length] ?? null,
      ),
    )
  }
  const present = (world: World): Gateway => {
    const gateway = world.gateways.at(-1)
    if (gateway === undefined) throw new Error('a world begins with a gateway')
    return gateway
  }
  const quiet = async (all: readonly World[]): Promise<void> => {
    await Promise.all(all.flatMap(({ gateways }) => gateways.map(async (gateway) => gateway.quiet())))
  }

  const rows = async (all: readonly World[]): Promise<Map<string, Row>> =>
    new Map(
      (
        await database.query<Row & { account: string }>(
          'SELECT account_id AS account, status, plan, attempts FROM messages WHERE account_id = ANY ($1)',
          [all.map(({ id }) => id)],
        )
      ).rows.map((row) => [row.account, row]),
    )

  const request = async (all: readonly World[]): Promise<void> => {
    const before = await rows(all)
    for (const world of all) {
      const asked: Request = { before: before.get(world.id) ?? null, heard: null }
      world.requests.push(asked)
      void present(world)
        .send(askedBy(world))
        .then((answer) => (asked.heard = answer))
        .catch((error: unknown) => {
          if (!(error instanceof Refusal)) world.errors.push(String(error))
          else asked.heard = error
        })
    }
    await quiet(all)
  }

  /** Who died is followed by another; whose answer did not come, or was a 503, asks again. */
  const follow = async (all: readonly World[]): Promise<void> => {
    for (;;) {
      const dead = all.filter((world) => present(world).isDead())
      for (const world of dead) start(world)
      const refused = all.filter(
        (world) =>
          !dead.includes(world) && world.requests.at(-1)?.heard instanceof Refusal && world.requests.length < 9,
      )
      if (dead.length + refused.length === 0) return
      await request([...dead, ...refused])
    }
  }

  const nextDueMs = async (): Promise<number | null> => {
    const {
      rows: [due],
    } = await database.query<{ at: Date | null }>(
      `
      SELECT min(at) AS at FROM (
        SELECT due_at AS at FROM due_work WHERE task IN ('dispatch', 'reconcile')
        UNION ALL SELECT lease_until FROM messages WHERE created_at >= $1 AND status = 'sending') waiting`,
      [since],
    )
    const times = [due?.at?.getTime() ?? null, time.nextTimerMs()].filter((at) => at !== null)
    return times.length === 0 ? null : Math.min(...times)
  }

  const take = async (): Promise<void> => {
    const found = {
      dispatch: await store.takeDue('dispatch', 100_000),
      reconcile: await store.takeDue('reconcile', 100_000),
      lease: await store.findLapsed(since, 100_000),
    }
    work = new Map()
    for (const task of ['dispatch', 'reconcile', 'lease'] as const)
      for (const message of found[task]) work.set(`${task} ${message.account}`, [message])
  }

  /** Until nothing is due any more, nor asked. */
  const settle = async (all: readonly World[]): Promise<void> => {
    for (let turns = 0; turns < maxTurns; turns++) {
      await follow(all)
      const next = await nextDueMs()
      if (next === null) return
      await time.passTo(Math.ceil(next / sweepMs) * sweepMs)
      await quiet(all)
      await take()
      for (const world of all) present(world).work()
      await quiet(all)
      work = new Map()
    }
    const { rows: restless } = await database.query<{ account: string }>(`
      SELECT account_id AS account FROM messages WHERE status = 'sending'
        OR id IN (SELECT message_id FROM due_work WHERE task IN ('dispatch', 'reconcile'))`)
    for (const world of all) world.isRestless = restless.some(({ account }) => account === world.id)
    await database.query("DELETE FROM due_work; UPDATE messages SET lease_until = 'infinity' WHERE status = 'sending'")
  }

  return {
    play: async (cases) => {
      const all = cases.map((one): World => {
        worlds += 1
        const vendor = newVendor(one.kind, faults[one.fault], () => time.nowMs())
        const id = `world-${worlds}`
        return { ...one, id, vendor, gateways: [], requests: [], errors: [], row: null, isRestless: false }
      })
      // The same phase of sweeps for all that are played.
      await time.passTo(Math.ceil((time.nowMs() + 1) / hourMs) * hourMs)
      since = new Date(time.nowMs())
      for (const world of all) start(world)
      await request(all)
      await settle(all)
      // Of what is settled, two repeats to yet another gateway are told the same.
      for (const world of all) start(world)
      await request(all)
      await request(all)
      const ends = await rows(all)
      for (const world of all) world.row = ends.get(world.id) ?? null
      return all
    },
    close: async () => {
      await connected.close()
      await database.end()
    },
  }
}

const askedBy = ({ id, way }: World): Asked => ({
  scope: { account: id, environment: 'live' },
  keyHeader: { kind: 'key', key: 'order-42' },
  request: {
    channel: 'sms',
    to: '+447700900123',
    content: { text: 'crash' },
    ...(way === 'scheduled' ? { delaySeconds: 600 } : {}),
  },
  waitMs,
  async: way === 'asynchronous',
  traceparent: null,
  ifMatch: null,
  sender: plainSender,
})

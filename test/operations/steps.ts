/** What a test does in the place of loops and of passing time. */
import type { Clock } from '../../src/clock.ts'
import * as dispatcher from '../../src/workers/dispatcher.ts'
import { createRescuer } from '../../src/workers/rescuer.ts'
import type { TestDatabase } from '../support/database.ts'
import { until, type TestGateway } from '../support/gateway.ts'
import { present, uuidOf } from './told.ts'

/** Passes of the dispatcher until `count` messages were taken and dealt with. */
export async function dispatch({ deps }: Pick<TestGateway, 'deps'>, count = 1): Promise<void> {
  let taken = 0
  await until(async () => {
    const pass = await dispatcher.runOnce(deps)
    await pass.done
    taken += pass.taken
    return taken >= count
  })
}

/** One pass, which finds nothing due. */
export async function dispatchNothing({ deps }: Pick<TestGateway, 'deps'>): Promise<void> {
  const pass = await dispatcher.runOnce(deps)
  await pass.done
  if (pass.taken !== 0) throw new Error(`${pass.taken} messages were due`)
}

/** A first pass of a rescuer. @returns how many leases had lapsed */
export async function rescue({ deps }: Pick<TestGateway, 'deps'>): Promise<number> {
  return (await createRescuer(deps).runOnce()).rescued
}

/** A millisecond ago: times are stored in whole ones, and rounded. */
const justPast = `now() - interval '1 millisecond'`

/** The time of a message's lease is over. */
export async function lapse(database: TestDatabase, id: string): Promise<void> {
  await database.query(`UPDATE messages SET lease_until = ${justPast} WHERE id = $1`, [uuidOf(id)])
  await database.query(`UPDATE due_work SET due_at = ${justPast} WHERE message_id = $1 AND task = 'lease'`, [
    uuidOf(id),
  ])
}

/** The time for which waiting messages were waiting has come; what a gateway holds at this moment is left alone. */
export async function makeDue(database: TestDatabase): Promise<void> {
  await database.query(
    `UPDATE due_work SET due_at = ${justPast} WHERE message_id IN (
       SELECT message_id FROM due_work WHERE task = 'dispatch' ORDER BY message_id FOR UPDATE SKIP LOCKED)`,
  )
}

/** When a message's next dispatch is due, in milliseconds from now by the data base's clock; null: nothing is due. */
export async function dueInMs(database: TestDatabase, id: string): Promise<number | null> {
  const [row] = await database.query<{ ms: number }>(
    `SELECT (extract(epoch FROM due_at - now()) * 1000)::float8 AS ms FROM due_work WHERE message_id = $1 AND task = 'dispatch'`,
    [uuidOf(id)],
  )
  return row?.ms ?? null
}

export async function untilStatus(gateway: TestGateway, id: string, status: string): Promise<void> {
  await until(async () => (await present(gateway, id)).status === status)
}

/** Puts a gateway's clock ahead, or makes time pass since every mark that it took. */
export function steerableClock(): { steer: { aheadMs: number; lagMs: number }; clock: (real: Clock) => Clock } {
  const steer = { aheadMs: 0, lagMs: 0 }
  return {
    steer,
    clock: (real) => ({
      ...real,
      now: () => new Date(real.now().getTime() + steer.aheadMs),
      latest: () => new Date(real.latest().getTime() + steer.aheadMs),
      elapsedMs: (since) => real.elapsedMs(since) + steer.lagMs,
    }),
  }
}

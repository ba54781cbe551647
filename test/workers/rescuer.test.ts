/** Leases that lapsed (rescuer.ts, Z1, Z2; behaviour.md, F2, F3, F6, F9, D6). */
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { StoreUnavailable } from '../../src/store/database-errors.ts'
import * as dispatcher from '../../src/workers/dispatcher.ts'
import { createRescuer } from '../../src/workers/rescuer.ts'
import { useDatabase } from '../support/database.ts'
import { accepted, lost, notSent, rejected, sms, testGateway, until, type TestGateway } from '../support/gateway.ts'
import { dispatch, dispatchNothing, lapse, makeDue, rescue, steerableClock, untilStatus } from '../operations/steps.ts'
import {
  heldOutcome,
  isReplay,
  messageIn,
  present,
  timelineOf,
  told,
  uuidOf,
  type HeldOutcome,
} from '../operations/told.ts'

const database = useDatabase()
const { steer, clock } = steerableClock()
let gateway: TestGateway
let replica: TestGateway
beforeAll(async () => {
  gateway = await testGateway(database.url)
  replica = await testGateway(database.url, { clock })
})
beforeEach(() => {
  for (const { provider } of [gateway, replica]) {
    provider.calls.length = 0
    provider.answer = () => accepted()
  }
  steer.aheadMs = 0
})
afterAll(async () => {
  await gateway.close()
  await replica.close()
})

let keys = 0
const key = (): string => `rescue-${keys++}`

interface Running extends HeldOutcome {
  readonly id: string
  readonly key: string
}

/** A call that does not end until the test says so: of a request that waits, or of a worker. */
async function running(by: 'request' | 'worker' = 'request'): Promise<Running> {
  const outcome = heldOutcome()
  gateway.provider.answer = async () => outcome.promise
  const name = key()
  const prefer = by === 'request' ? 'wait=0' : 'respond-async'
  const { id } = messageIn(await gateway.send(sms(), { key: name, prefer }))
  if (by === 'worker')
    await until(async () => {
      const { taken } = await dispatcher.runOnce(gateway.deps)
      return taken === 1
    })
  await until(() => gateway.provider.calls.length === 1)
  gateway.provider.calls.length = 0
  return { ...outcome, id, key: name }
}

/** A message is as old as `interval` says, and its lease lapsed a moment ago. */
async function aged(id: string, interval: string): Promise<void> {
  await database.query(
    `UPDATE messages SET created_at = now() - $2::interval, lease_until = now() - interval '1 millisecond' WHERE id = $1`,
    [uuidOf(id), interval],
  )
}

test.each(['request', 'worker'] as const)(
  'Z1, F3 a call of a %s whose lease lapsed makes its message unknown, and nothing is sent from here',
  async (by) => {
    const call = await running(by)
    expect(await rescue(replica)).toBe(0) // its lease has not lapsed
    await lapse(database, call.id)
    expect(await rescue(replica)).toBe(1)
    expect(await present(replica, call.id)).toMatchObject({
      status: 'unknown',
      statusReason: 'lease lapsed',
      attempts: 1,
    })
    expect(await rescue(replica)).toBe(0)
    await makeDue(database)
    await dispatchNothing(replica)
    expect(told(await replica.send(sms(), { key: call.key }))).toBe('504 outcome-unknown')
    const lapsed = (await timelineOf(replica, call.id)).filter(({ type }) => type === 'lease_lapsed')
    expect(lapsed).toHaveLength(1)
    expect(lapsed[0]?.attempt).toMatch(/^att_/)
    expect(await database.query('SELECT task FROM due_work WHERE message_id = $1', [uuidOf(call.id)])).toEqual([
      { task: 'unknown' },
    ])
    call.resolve(lost())
    await gateway.deps.inFlight.idle()
    expect([gateway.provider.calls.length, replica.provider.calls.length]).toEqual([0, 0])
    expect((await present(replica, call.id)).status).toBe('unknown')
  },
)

test.each(['request', 'worker'] as const)(
  'F6, D6 accepted, told after the rescue of a %s: sent, by late_answer',
  async (by) => {
    const call = await running(by)
    await lapse(database, call.id)
    await rescue(replica)
    call.resolve(accepted('late'))
    await untilStatus(replica, call.id, 'sent')
    const { resolution, providerMessageId } = await present(replica, call.id)
    expect([providerMessageId, resolution]).toMatchObject([
      'late',
      { by: 'late_answer', outcome: 'sent', apiKey: null },
    ])
    const again = await replica.send(sms(), { key: call.key })
    expect([told(again), isReplay(again), messageIn(again).id]).toEqual(['201 sent', true, call.id])
    expect((await timelineOf(replica, call.id)).map(({ type }) => type)).toEqual(
      expect.arrayContaining(['lease_lapsed', 'late_outcome']),
    )
  },
)

test('F6 refused, told after the rescue: failed, by late_answer', async () => {
  const call = await running()
  await lapse(database, call.id)
  await rescue(replica)
  call.resolve(rejected())
  await untilStatus(replica, call.id, 'failed')
  expect((await present(replica, call.id)).resolution).toMatchObject({ by: 'late_answer', outcome: 'not_sent' })
  expect(told(await replica.send(sms(), { key: call.key }))).toBe('422 message-rejected')
})

test.each(['request', 'worker'] as const)(
  'F6 not sent, told after the rescue of a %s: it waits again, and the next call sends it',
  async (by) => {
    const call = await running(by)
    await lapse(database, call.id)
    await rescue(replica)
    call.resolve(notSent())
    await untilStatus(replica, call.id, 'queued')
    await dispatch(replica)
    expect(await present(replica, call.id)).toMatchObject({ status: 'sent', attempts: 2 })
    expect(replica.provider.calls).toMatchObject([{ messageId: call.id, attemptNumber: 2 }])
  },
)

test('F9 two rescuers at once tell each message once', async () => {
  const outcome = heldOutcome()
  gateway.provider.answer = async () => outcome.promise
  const ids: string[] = []
  for (let i = 0; i < 40; i++) ids.push(messageIn(await gateway.send(sms(), { key: key(), prefer: 'wait=0' })).id)
  await Promise.all(ids.map(async (id) => lapse(database, id)))
  const rescued = await Promise.all([rescue(gateway), rescue(replica), rescue(gateway), rescue(replica)])
  expect(rescued.reduce((sum, some) => sum + some)).toBe(40)
  const [row] = await database.query<{ events: number; unknown: number }>(
    `SELECT count(*)::int AS events, count(DISTINCT message_id)::int AS unknown FROM events
     WHERE type = 'lease_lapsed' AND message_id = ANY ($1)`,
    [ids.map(uuidOf)],
  )
  expect(row).toEqual({ events: 40, unknown: 40 })
  outcome.resolve(accepted())
  await gateway.deps.inFlight.idle()
  for (const id of ids) expect((await present(replica, id)).status).toBe('sent')
})

test('a rescue and an outcome at the same moment: sent in the end, whichever came first', async () => {
  for (let round = 0; round < 12; round++) {
    const call = await running()
    await lapse(database, call.id)
    const rescuing = rescue(replica)
    if (round % 2 === 0) await Promise.resolve()
    call.resolve(accepted())
    await rescuing
    await gateway.deps.inFlight.idle()
    expect((await present(replica, call.id)).status).toBe('sent')
  }
})

test.each([5 * 60_000, -5 * 60_000])(
  'F9 a gateway whose wall clock is %i ms off changes nothing: it rescues what has lapsed, and nothing else',
  async (offMs) => {
    const { now } = Date
    vi.spyOn(Date, 'now').mockImplementation(() => now() + offMs)
    try {
      const off = await testGateway(database.url)
      const [lapsed, live] = [await running(), await running()]
      await lapse(database, lapsed.id)
      expect(await rescue(off)).toBe(1)
      expect((await present(off, lapsed.id)).status).toBe('unknown')
      expect((await present(off, live.id)).status).toBe('sending')
      const own = messageIn(await off.send(sms('own', { ttlSeconds: 60 }), { key: key() }))
      const later = messageIn(await off.send(sms('own', { ttlSeconds: 60 }), { key: key(), prefer: 'respond-async' }))
      for (const { notAfter } of [own, later])
        expect(Math.abs(Date.parse(notAfter) - now() - 60_000)).toBeLessThan(5_000)
      await dispatch(replica) // and to a gateway whose clock is right it has not expired, nor is it early
      expect([off.provider.calls.length, replica.provider.calls.length]).toEqual([1, 1])
      expect([own.status, (await present(off, later.id)).status]).toEqual(['sent', 'sent'])
      expect(await rescue(off)).toBe(0)
      live.resolve(accepted())
      await untilStatus(off, live.id, 'sent')
      lapsed.resolve(accepted())
      await gateway.deps.inFlight.idle()
      await off.close()
    } finally {
      vi.restoreAllMocks()
    }
  },
)

test('Z2 the first pass of all finds one from long ago; later passes look through the last minutes, and deeply once an hour', async () => {
  await database.query('DELETE FROM sweeps')
  const rescuer = createRescuer(replica.deps)
  const [ancient, recent, missed] = [await running(), await running(), await running()]
  await aged(ancient.id, '40 days')
  expect(await rescuer.runOnce()).toEqual({ rescued: 1 })
  await aged(recent.id, '4 minutes')
  expect(await rescuer.runOnce()).toEqual({ rescued: 1 })
  await aged(missed.id, '50 minutes')
  steer.aheadMs = 59 * 60_000
  await rescuer.runOnce()
  steer.aheadMs = 61 * 60_000
  await rescuer.runOnce()
  expect((await present(replica, missed.id)).status).toBe('unknown')
  for (const call of [ancient, recent, missed]) call.resolve(accepted())
  await gateway.deps.inFlight.idle()
})

test('Z2 the first pass of a process looks back to where the last deep one began, and an hour more', async () => {
  await database.query('DELETE FROM sweeps')
  await rescue(replica)
  const found = await running()
  await aged(found.id, '55 minutes')
  expect(await rescue(gateway)).toBe(1)
  found.resolve(accepted())
  await gateway.deps.inFlight.idle()
})

test('Z1, Z2 a lease that is longer than the look-back, and passes that failed, hide nothing from the next pass', async () => {
  await database.query('DELETE FROM sweeps')
  const patient = await testGateway(database.url, { leaseMarginMs: 600_000 })
  const rescuer = createRescuer(patient.deps)
  await rescuer.runOnce()
  const longLeased = await running()
  await aged(longLeased.id, '10 minutes 5 seconds')
  expect(await rescuer.runOnce()).toEqual({ rescued: 1 })
  await patient.close()

  const down = { on: false }
  const { store } = replica.deps
  const findLapsed: typeof store.findLapsed = async (...since) => {
    if (down.on) throw new StoreUnavailable('absent', 'planned')
    return store.findLapsed(...since)
  }
  const interrupted = createRescuer({ ...replica.deps, store: { ...store, findLapsed } })
  await interrupted.runOnce()
  const orphan = await running()
  down.on = true
  for (let minute = 1; minute < 40; minute++) {
    steer.aheadMs = minute * 60_000
    await expect(interrupted.runOnce()).rejects.toBeInstanceOf(StoreUnavailable)
  }
  down.on = false
  steer.aheadMs = 40 * 60_000
  await lapse(database, orphan.id)
  expect(await interrupted.runOnce()).toEqual({ rescued: 1 })
})

test('Z2 a call of a worker is found however long ago its message was claimed', async () => {
  await database.query('DELETE FROM sweeps')
  const rescuer = createRescuer(replica.deps)
  await rescuer.runOnce()
  const call = await running('worker')
  await aged(call.id, '300 days')
  await lapse(database, call.id)
  expect(await rescuer.runOnce()).toEqual({ rescued: 1 })
  call.resolve(accepted())
  await gateway.deps.inFlight.idle()
})

test('Z1 one pass rescues all that have lapsed, however many', async () => {
  await database.query('DELETE FROM sweeps')
  await database.query(
    `INSERT INTO messages (id, account_id, environment, idempotency_key, request, fingerprint_version, metadata, channel,
       recipient, provider, not_after, version, status, attempts, attempt_number, attempt_id, attempt_provider, attempt_started_at, lease_until)
     SELECT gen_random_uuid(), 'default', 'live', 'many-' || i, '{"channel":"sms"}', 1, '{}', 'sms', '+44', 'fake',
       now() + interval '1 day', 1, 'sending', 1, 1, gen_random_uuid(), 'fake', now(), now() - interval '1 millisecond' FROM generate_series(1, 1101) AS i`,
  )
  expect(await rescue(replica)).toBe(1101)
  const left = await database.query(`SELECT 1 FROM messages WHERE status = 'sending' AND lease_until <= now()`)
  expect(left).toEqual([])
})

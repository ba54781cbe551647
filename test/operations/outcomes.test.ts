/** Each outcome of a call, and the answer that follows from it (behaviour.md, E and F). */
import { request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Outcome } from '../../src/core/outcome.ts'
import { StoreOverloaded, StoreUnavailable } from '../../src/store/database-errors.ts'
import type { Store } from '../../src/store/store.ts'
import { useDatabase } from '../support/database.ts'
import {
  accepted,
  apiKey,
  lost,
  notSent,
  rejected,
  sms,
  testGateway,
  until,
  type TestGateway,
} from '../support/gateway.ts'
import { dispatch, dispatchNothing, makeDue, rescue, steerableClock, untilStatus } from './steps.ts'
import { heldOutcome, isReplay, messageIn, present, problemIn, timelineOf, told } from './told.ts'

const database = useDatabase()
const { steer, clock } = steerableClock()
let gateway: TestGateway
/** Stands before the store's saveMessage when a test sets it. */
let beforeSave: ((save: () => Promise<boolean>) => Promise<boolean>) | null = null
const wrapStore = (store: Store): Store => ({
  ...store,
  saveMessage: async (change) => {
    const save = async (): Promise<boolean> => store.saveMessage(change)
    return beforeSave === null ? save() : beforeSave(save)
  },
})

beforeAll(async () => {
  gateway = await testGateway(database.url, { clock, wrapStore })
})
beforeEach(() => {
  gateway.provider.calls.length = 0
  gateway.provider.answer = () => accepted()
  Object.assign(steer, { aheadMs: 0, lagMs: 0 })
  beforeSave = null
})
afterAll(async () => gateway.close())

/** The n-th call meets the n-th outcome, the last one all that follow. */
function answers(...outcomes: readonly Outcome[]): void {
  let nth = 0
  gateway.provider.answer = () => {
    const outcome = outcomes[Math.min(nth++, outcomes.length - 1)]
    if (outcome === undefined) throw new Error('no outcome')
    return outcome
  }
}

test.each([
  { name: 'accepted', outcome: accepted('SM1'), says: '201 sent', providerMessageId: 'SM1' },
  { name: 'accepted, its id unread', outcome: accepted(null), says: '201 sent', providerMessageId: null },
])('E3 $name: 201, never sent again', async ({ name, outcome, says, providerMessageId }) => {
  answers(outcome)
  const first = await gateway.send(sms(), { key: name.replaceAll(/\W/g, '-') })
  expect(told(first)).toBe(says)
  expect(messageIn(first)).toMatchObject({ providerMessageId, attempts: 1 })
  await dispatchNothing(gateway)
  expect(gateway.provider.calls).toHaveLength(1)
})

test('E6 refused by the provider: 422 message-rejected, `sent: no`, not of use to repeat, never called again', async () => {
  answers(rejected())
  const first = await gateway.send(sms(), { key: 'rejected' })
  const again = await gateway.send(sms(), { key: 'rejected' })
  expect(told(first)).toBe('422 message-rejected')
  expect(problemIn(first)).toMatchObject({ sent: 'no', retryable: false, message: { status: 'failed' } })
  expect(problemIn(first).detail).toContain('21211')
  expect([again.body, isReplay(again)]).toEqual([first.body, true])
  await dispatchNothing(gateway)
  expect(gateway.provider.calls).toHaveLength(1)
})

test.each([
  { name: 'the answer is lost', answer: (): Outcome => lost() },
  {
    name: 'the adapter throws',
    answer: (): Outcome => {
      throw new Error('a bug')
    },
  },
])('E2 $name: 504 outcome-unknown, `sent: maybe`; every repeat the same, 0 further calls', async ({ name, answer }) => {
  gateway.provider.answer = answer
  const key = name.replaceAll(' ', '-')
  const first = await gateway.send(sms(), { key })
  expect(told(first)).toBe('504 outcome-unknown')
  expect(problemIn(first)).toMatchObject({ sent: 'maybe', retryable: false, message: { status: 'unknown' } })
  expect(first.headers['retry-after']).toBeUndefined() // no automatic step is due
  gateway.provider.answer = () => accepted()
  await makeDue(database)
  await dispatchNothing(gateway)
  expect(await rescue(gateway)).toBe(0)
  for (const prefer of ['wait=0', 'wait=10', 'respond-async']) {
    const again = await gateway.send(sms(), { key, prefer })
    expect([told(again), isReplay(again)]).toEqual(['504 outcome-unknown', true])
  }
  expect(gateway.provider.calls).toHaveLength(1)
})

test.each(['not_begun', 'refused_for_now'] as const)(
  'E1 %s: the message waits, is called again under the same message id, and the first request hears how it ended',
  async (reason) => {
    answers(notSent(reason), accepted('p2'))
    const first = gateway.send(sms(), { key: reason })
    await until(async () => (await gateway.send(sms(), { key: reason, prefer: 'wait=0' })).statusCode === 202)
    const meanwhile = await gateway.send(sms(), { key: reason, prefer: 'wait=0' })
    expect([told(meanwhile), isReplay(meanwhile)]).toEqual(['202 queued', true])
    expect(Number(meanwhile.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    expect(messageIn(meanwhile).statusReason).toBe(reason)
    await dispatch(gateway)
    expect(told(await first)).toBe('201 sent')
    expect(messageIn(await first)).toMatchObject({ attempts: 2, providerMessageId: 'p2' })
    const { id } = messageIn(await first)
    expect(gateway.provider.calls).toMatchObject([
      { messageId: id, attemptNumber: 1 },
      { messageId: id, attemptNumber: 2 },
    ])
    const events = (await timelineOf(gateway, id)).filter(({ type }) => type !== 'claimed')
    expect(events.map(({ type, data }) => `${type} ${String(data['number'])}`)).toEqual([
      'attempt_started 1',
      'attempt_ended 1',
      'attempt_started 2',
      'attempt_ended 2',
    ])
  },
)

test('E3a an answer lost after an earlier "not sent" is unknown, and is not called a third time', async () => {
  answers(notSent(), lost())
  const first = gateway.send(sms(), { key: 'e3a' })
  await dispatch(gateway)
  expect(told(await first)).toBe('504 outcome-unknown')
  await makeDue(database)
  await dispatchNothing(gateway)
  expect(gateway.provider.calls).toHaveLength(2)
})

test('E6 refused after an earlier "not sent" is failed', async () => {
  answers(notSent(), rejected())
  const first = gateway.send(sms(), { key: 'e6-later' })
  await dispatch(gateway)
  expect(told(await first)).toBe('422 message-rejected')
})

test('E10 not accepted by notAfter: 422 message-expired, stored, and no call however long the outage was', async () => {
  answers(notSent('refused_for_now'), accepted())
  const asked = sms('soon', { ttlSeconds: 60 })
  const first = gateway.send(asked, { key: 'e10' })
  await until(async () => (await gateway.send(asked, { key: 'e10', prefer: 'wait=0' })).statusCode === 202)
  steer.aheadMs = 7 * 86_400_000
  await dispatch(gateway)
  expect(told(await first)).toBe('422 message-expired')
  expect(problemIn(await first)).toMatchObject({ sent: 'no', retryable: false, message: { status: 'failed' } })
  const again = await gateway.send(asked, { key: 'e10' })
  expect([again.body, isReplay(again)]).toEqual([(await first).body, true])
  await dispatchNothing(gateway)
  expect(gateway.provider.calls).toHaveLength(1)
})

test('E10, B2 the write gate is open within half the lease, and shut after it or after notAfter', async () => {
  const gates: boolean[] = []
  gateway.provider.answer = (_, gate) => {
    const halfMs = (gateway.provider.callMs + 2_000) / 2
    for (const [lagMs, aheadMs] of [
      [0, 0],
      [halfMs - 500, 0],
      [halfMs + 1, 0],
      [0, 61_000],
    ] as const) {
      Object.assign(steer, { lagMs, aheadMs })
      gates.push(gate())
    }
    Object.assign(steer, { lagMs: 0, aheadMs: 0 })
    return accepted()
  }
  await gateway.send(sms('gate', { ttlSeconds: 60 }), { key: 'gate' })
  await gateway.send(sms('gate', { ttlSeconds: 60 }), { key: 'gate-async', prefer: 'respond-async' })
  await dispatch(gateway)
  expect(gates).toEqual([true, true, false, false, true, true, false, false])
})

test('E10 a call that the gate stopped after notAfter is no call: expired', async () => {
  gateway.provider.answer = (_, gate) => {
    steer.aheadMs = 61_000
    return gate() ? accepted() : notSent()
  }
  const first = gateway.send(sms('late', { ttlSeconds: 60 }), { key: 'gate-shut' })
  await until(async () => (await database.query(`SELECT 1 FROM messages WHERE status = 'queued'`)).length === 1)
  await makeDue(database)
  await dispatch(gateway)
  expect(told(await first)).toBe('422 message-expired')
  expect(gateway.provider.calls).toHaveLength(1)
})

test.each([
  { name: 'was not written', effect: 'absent', written: false },
  { name: 'was written, its commit in doubt', effect: 'doubtful', written: true },
  { name: 'may have been written, and was not', effect: 'doubtful', written: false },
] as const)(
  'F5, B3 an outcome that $name is stored by trying again: 201, one call',
  async ({ effect, written, name }) => {
    let failures = 0
    beforeSave = async (save) => {
      if (failures++ > 0) return save()
      if (written) await save()
      throw new StoreUnavailable(effect, 'planned')
    }
    const key = `f5-${name.replaceAll(/\W/g, '-')}`
    const first = await gateway.send(sms('f5'), { key })
    expect(told(first)).toBe('201 sent')
    expect((await gateway.send(sms('f5'), { key })).body).toBe(first.body)
    expect(gateway.provider.calls).toHaveLength(1)
    const events = await timelineOf(gateway, messageIn(first).id)
    expect(events.map(({ type }) => type).toSorted()).toEqual(['attempt_ended', 'attempt_started', 'claimed'])
  },
)

test('F5, B3 too much waiting for the data base does not lose an outcome either', async () => {
  let failures = 0
  beforeSave = async (save) => {
    if (failures++ === 0) throw new StoreOverloaded()
    return save()
  }
  expect(told(await gateway.send(sms('f5'), { key: 'f5-overloaded' }))).toBe('201 sent')
})

test('Y1 an outcome decided on a stale reading is decided again, not written over the change that came first', async () => {
  const outcome = heldOutcome()
  gateway.provider.answer = async () => outcome.promise
  const first = gateway.send(sms('y1'), { key: 'y1' })
  await until(() => gateway.provider.calls.length === 1)
  const { id } = problemIn(await gateway.send(sms('y1'), { key: 'y1', prefer: 'wait=0' })).message ?? { id: '' }
  await database.query(`UPDATE messages SET lease_until = now() - interval '1 millisecond' WHERE status = 'sending'`)
  expect(await rescue(gateway)).toBe(1)
  expect(told(await first)).toBe('504 outcome-unknown')
  outcome.resolve(accepted('late'))
  await untilStatus(gateway, id, 'sent')
  expect((await present(gateway, id)).resolution).toMatchObject({ by: 'late_answer', outcome: 'sent' })
})

test('F7 the client hangs up: the call goes on, its result is stored, and a repeat replays it', async () => {
  const outcome = heldOutcome()
  gateway.provider.answer = async () => outcome.promise
  await gateway.app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = gateway.app.server.address() as AddressInfo
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', 'idempotency-key': 'f7' }
  const client = httpRequest({ port, host: '127.0.0.1', method: 'POST', path: '/v1/messages', headers })
  client.on('error', () => {}) // it is we who end it
  client.end(JSON.stringify(sms('f7')))
  await until(() => gateway.provider.calls.length === 1)
  const closed = new Promise((done) => client.once('close', done))
  client.destroy()
  await closed
  outcome.resolve(accepted())
  const again = await gateway.send(sms('f7'), { key: 'f7' })
  expect([told(again), isReplay(again)]).toEqual(['201 sent', true])
  expect(gateway.provider.calls).toHaveLength(1)
})

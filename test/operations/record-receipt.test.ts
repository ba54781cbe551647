/** J1: webhooks come again and again, at once, early, late, for what is not known, and forged (record-receipt.ts, W1 to W4). */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createCollector } from '../../src/workers/collector.ts'
import { StoreUnavailable } from '../../src/store/database-errors.ts'
import type { Store } from '../../src/store/store.ts'
import { useDatabase } from '../support/database.ts'
import { accepted, sms, testGateway, until, type TestGateway } from '../support/gateway.ts'
import { deliveryIn, eventOf, hook, keptOf, linesOf, receivingProvider } from './receiving.ts'
import { alarmsOf } from './recovery-steps.ts'
import { untilStatus } from './steps.ts'
import { heldOutcome, isReplay, messageIn, present, told } from './told.ts'

const database = useDatabase()
let gateway: TestGateway
let replica: TestGateway
/** What the first gateway's store cannot do at the moment. */
const trouble: { fails: 'keepReceipt' | 'findMessages' | 'markApplied' | null } = { fails: null }

function failing(store: Store): Store {
  const unless = (name: string): void => {
    if (name === trouble.fails) throw new StoreUnavailable('absent', new Error('away'))
  }
  return {
    ...store,
    keepReceipt: async (receipt) => {
      unless('keepReceipt')
      return store.keepReceipt(receipt)
    },
    findMessages: async (ids) => {
      unless('findMessages')
      return store.findMessages(ids)
    },
    markApplied: async (receipt) => {
      unless('markApplied')
      return store.markApplied(receipt)
    },
  }
}

beforeAll(async () => {
  gateway = await testGateway(database.url, { provider: receivingProvider(), wrapStore: failing })
  replica = await testGateway(database.url, { provider: receivingProvider() })
})
beforeEach(() => {
  trouble.fails = null
  gateway.provider.answer = () => accepted()
})
afterAll(async () => {
  await gateway.close()
  await replica.close()
})

const sent = async (name: string): Promise<string> =>
  messageIn(await gateway.send(sms(name), { key: name.replaceAll(/\W/g, '-') })).id
const message = async (id: string) => gateway.get(`/v1/messages/${id}`)

test('J1 one event 46 times, 5 at once, on two replicas: one change, all 2xx', async () => {
  const id = await sent('46')
  const { version } =
    (await database.query<{ version: number }>('SELECT max(version) AS version FROM messages'))[0] ?? {}
  const event = eventOf(id)
  const statuses: number[] = []
  const deliver = async (lane: number): Promise<void> => {
    for (let n = lane; n < 46; n += 5) {
      const answer = await hook(n % 2 === 0 ? gateway : replica, event)
      statuses.push(answer.statusCode)
    }
  }
  await Promise.all([0, 1, 2, 3, 4].map(deliver))
  expect(statuses).toEqual(Array.from({ length: 46 }, () => 200))
  expect(await keptOf(database, id)).toEqual([{ event_id: event.eventId, applied: true }])
  expect(await linesOf(gateway, id)).toEqual([
    expect.objectContaining({ provider: 'fake', evidence: 'delivered', providerMessageId: 'p1', attempt: null }),
  ])
  expect(deliveryIn(await message(id))).toMatchObject({ status: 'delivered', code: null })
  const rows = await database.query<{ version: number }>('SELECT max(version) AS version FROM messages')
  expect(rows[0]?.version).toBe((version ?? 0) + 1)
})

test('J1 W2 a crash between insert and effect: the next telling completes it', async () => {
  const id = await sent('crash')
  const event = eventOf(id)
  trouble.fails = 'findMessages'
  expect((await hook(gateway, event)).statusCode).toBe(200)
  expect(await keptOf(database, id)).toEqual([{ event_id: event.eventId, applied: false }])
  trouble.fails = null
  expect(deliveryIn(await message(id))).toBeNull()
  expect((await hook(gateway, event)).statusCode).toBe(200)
  expect(deliveryIn(await message(id))?.status).toBe('delivered')
  expect(await keptOf(database, id)).toEqual([{ event_id: event.eventId, applied: true }])
})

test('J1 W2 a crash between effect and its mark: the next telling changes nothing, and marks it', async () => {
  const id = await sent('unmarked')
  const event = eventOf(id, { kind: 'undelivered', code: '30005' })
  trouble.fails = 'markApplied'
  expect((await hook(gateway, event)).statusCode).toBe(200)
  trouble.fails = null
  const after = (await message(id)).body
  expect((await hook(replica, event)).statusCode).toBe(200)
  expect((await message(id)).body).toBe(after)
  expect(await linesOf(gateway, id)).toHaveLength(1)
  expect(await keptOf(database, id)).toEqual([{ event_id: event.eventId, applied: true }])
})

test('W2 what is told no more is applied by the collector, once it is not fresh', async () => {
  const id = await sent('collected')
  trouble.fails = 'findMessages'
  await hook(gateway, eventOf(id))
  trouble.fails = null
  const collector = createCollector(replica.deps)
  expect(await collector.runOnce()).toBe(0) // whoever received it may be applying it at this moment
  await database.query(`UPDATE receipts SET received_at = received_at - interval '11 seconds'`)
  expect(await collector.runOnce()).toBe(1)
  expect(deliveryIn(await message(id))?.status).toBe('delivered')
  expect(await collector.runOnce()).toBe(0)
})

test('J1 delivered before our own answer is stored: no error, sent, and delivered', async () => {
  const held = heldOutcome()
  gateway.provider.answer = async () => held.promise
  const { id } = messageIn(await gateway.send(sms('early'), { key: 'early', prefer: 'wait=0' }))
  const event = eventOf(id)
  expect((await hook(gateway, event)).statusCode).toBe(200)
  expect(told(await message(id))).toBe('200 sending')
  held.resolve(accepted())
  await untilStatus(gateway, id, 'sent')
  expect(messageIn(await message(id))).toMatchObject({ providerMessageId: 'p1', resolution: null })
  expect(deliveryIn(await message(id))?.status).toBe('delivered')
  expect((await hook(gateway, event)).statusCode).toBe(200)
  expect(await alarmsOf(gateway)).toEqual({})
})

test('J1 G2 delivered, then a late sent: stays delivered; the stored answer is what it was, and GET shows the delivery', async () => {
  const first = await gateway.send(sms('late'), { key: 'late' })
  const { id } = messageIn(first)
  await hook(gateway, eventOf(id))
  const delivered = (await message(id)).body
  expect((await hook(gateway, eventOf(id, { kind: 'accepted' }))).statusCode).toBe(200)
  expect((await message(id)).body).toBe(delivered)
  const replay = await gateway.send(sms('late'), { key: 'late' })
  expect([replay.statusCode, replay.body, isReplay(replay)]).toEqual([201, first.body, true])
  expect(deliveryIn(replay)).toBeNull()
})

test('of two deliveries the one that happened later counts, whichever is told first', async () => {
  const at = (second: number): string => new Date(Date.now() - 60_000 + second * 1_000).toISOString()
  const [early, late] = [at(1), at(2)]
  for (const order of [
    [early, late],
    [late, early],
  ]) {
    const id = await sent(`order ${order.join()}`)
    for (const when of order)
      await hook(gateway, eventOf(id, { at: when, kind: when === early ? 'undelivered' : 'delivered' }))
    expect(deliveryIn(await message(id))).toEqual({ status: 'delivered', at: late, code: null })
  }
  const id = await sent('future')
  await hook(gateway, eventOf(id, { at: '2199-01-01T00:00:00.000Z', kind: 'undelivered' }))
  const { at: seen = '' } = deliveryIn(await message(id)) ?? {}
  expect(Math.abs(Date.parse(seen) - Date.now())).toBeLessThan(60_000)
})

test('J1 W4 an unknown message: kept, 2xx; applied when it turns up', async () => {
  const id = await sent('not yet')
  await database.query('CREATE TABLE hidden AS SELECT * FROM messages WHERE idempotency_key = $1', ['not-yet'])
  await database.query('DELETE FROM messages WHERE idempotency_key = $1', ['not-yet'])
  const event = eventOf(id)
  expect((await hook(gateway, event)).statusCode).toBe(200)
  expect((await hook(gateway, event)).statusCode).toBe(200)
  expect(await keptOf(database, id)).toEqual([{ event_id: event.eventId, applied: false }])
  await database.query(`UPDATE receipts SET received_at = received_at - interval '11 seconds'`)
  const collector = createCollector(gateway.deps)
  expect(await collector.runOnce()).toBe(0)
  await database.query('INSERT INTO messages SELECT * FROM hidden')
  expect(await collector.runOnce()).toBe(1)
  expect(deliveryIn(await message(id))?.status).toBe('delivered')
})

test.each(['order-42', '', `msg_${'g'.repeat(32)}`])(
  'a reference that is none of ours (%s): 2xx, nothing kept',
  async (messageId) => {
    const [before] = await database.query('SELECT count(*) FROM receipts')
    expect((await hook(gateway, eventOf(messageId))).statusCode).toBe(200)
    expect(await database.query('SELECT count(*) FROM receipts')).toEqual([before])
  },
)

test('J1 W1 forged: 401, nothing kept; the genuine one with the same id is taken in', async () => {
  const id = await sent('forged')
  const event = eventOf(id, { kind: 'undelivered' })
  const forged = await hook(gateway, { ...event, kind: 'delivered' }, { signed: 'by somebody' })
  expect(told(forged)).toBe('401 webhook-forged')
  expect(forged.headers['www-authenticate']).toBe('Webhook-Signature')
  expect(await keptOf(database, id)).toEqual([])
  expect((await hook(gateway, event)).statusCode).toBe(200)
  expect(deliveryIn(await message(id))?.status).toBe('undelivered')
})

test('a stale one is acknowledged, and changes nothing', async () => {
  const id = await sent('stale')
  expect((await hook(gateway, eventOf(id), { signed: 'stale' })).statusCode).toBe(200)
  expect(await keptOf(database, id)).toEqual([])
})

test('what is signed and cannot be read: 400; an answer that the provider wants to read is given', async () => {
  expect(told(await hook(gateway, '{"events":'))).toBe('400 invalid-request')
  const challenge = await hook(gateway, [], { more: { challenge: 'once upon a time' } })
  expect([challenge.statusCode, challenge.headers['content-type'], challenge.body]).toEqual([
    200,
    'text/plain',
    'once upon a time',
  ])
})

test('several events of one request are taken in, each for itself', async () => {
  const [one, two] = [await sent('one of two'), await sent('two of two')]
  const events = [eventOf(one), eventOf(two, { kind: 'undelivered', code: 'x y' }), eventOf('not ours')]
  expect((await hook(gateway, events)).statusCode).toBe(200)
  expect(deliveryIn(await message(one))?.status).toBe('delivered')
  // A code with a blank may be a text.
  expect(deliveryIn(await message(two))).toMatchObject({ status: 'undelivered', code: null })
})

test('W3 the store is away before it was kept: 503, and the provider comes again', async () => {
  const id = await sent('away')
  trouble.fails = 'keepReceipt'
  const away = await hook(gateway, eventOf(id))
  expect([told(away), away.headers['retry-after']]).toEqual(['503 store-unavailable', '1'])
})

test('an id longer than a key, or of other letters, is kept by its digest', async () => {
  const id = await sent('long id')
  for (const eventId of ['e'.repeat(10_000), 'ünïcode \u0000']) {
    const event = eventOf(id, { eventId })
    expect([(await hook(gateway, event)).statusCode, (await hook(gateway, event)).statusCode]).toEqual([200, 200])
  }
  expect((await keptOf(database, id)).map(({ event_id: eventId }) => eventId.length)).toEqual([36, 36])
})

test('nothing of a body is logged', async () => {
  const id = await sent('logged')
  gateway.logged.length = 0
  await hook(gateway, eventOf(id, { code: 'SECRET-CODE' }))
  await hook(gateway, { ...eventOf(id), code: 'SECRET-CODE' }, { signed: 'no' })
  await hook(gateway, '{"SECRET-CODE":')
  expect(gateway.logged.join('\n')).not.toContain('SECRET-CODE')
})

test('what is counted: applied, repeated, unknown, foreign, forged', async () => {
  const text = (await gateway.app.inject('/metrics')).body
  for (const result of ['applied', 'repeated', 'unknown', 'foreign', 'forged', 'stale', 'unreadable', 'put_off'])
    expect(text).toMatch(new RegExp(`sendonce_receipts_total\\{provider="fake",result="${result}"\\} [1-9]`))
  await until(async () => (await present(gateway, await sent('done'))).status === 'sent')
})

/** What receipts settle, correct and never touch (record-receipt.ts, W4; receipt.ts; behaviour.md, E2, E9). */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { uuidFromId } from '../../src/core/ids.ts'
import { createReconciler } from '../../src/workers/reconciler.ts'
import { useDatabase } from '../support/database.ts'
import { accepted, lost, notSent, rejected, sms, testGateway, type TestGateway } from '../support/gateway.ts'
import { able, alarmsOf } from './recovery-steps.ts'
import { deliveryIn, eventOf, hook, keptOf, linesOf, receivingProvider } from './receiving.ts'
import { lapse, rescue, untilStatus } from './steps.ts'
import { attemptIn, heldOutcome, isReplay, messageIn, newApiKey, told, uuidOf, type Asker } from './told.ts'

const database = useDatabase()
const byKey = receivingProvider('keyed', { capabilities: able({ key: true }) })
const sandbox = receivingProvider('sandbox-blind', { environment: 'test' })
let gateway: TestGateway
let tester: Asker
beforeAll(async () => {
  gateway = await testGateway(database.url, { provider: receivingProvider(), others: [byKey, sandbox] })
  tester = await newApiKey(gateway, 'default', { environment: 'test' })
})
beforeEach(() => {
  for (const provider of [gateway.provider, byKey, sandbox]) provider.answer = () => accepted()
})
afterAll(async () => gateway.close())

const message = async (id: string) => gateway.get(`/v1/messages/${id}`)
const dueWork = async (id: string): Promise<unknown[]> =>
  database.query('SELECT task FROM due_work WHERE message_id = $1', [uuidOf(id)])

test('E9 a receipt for an unknown message: sent, by receipt; the next repeat is told so, and nothing is due', async () => {
  gateway.provider.answer = () => lost()
  const first = await gateway.send(sms('settled'), { key: 'settled' })
  expect(told(first)).toBe('504 outcome-unknown')
  const { id } = first.json<{ message: { id: string } }>().message
  const attemptId = await attemptIn(gateway, id)
  expect((await hook(gateway, eventOf(id, { attemptId, providerMessageId: 'SM9' }))).statusCode).toBe(200)
  expect(messageIn(await message(id))).toMatchObject({
    status: 'sent',
    providerMessageId: 'SM9',
    resolution: { by: 'receipt', attempt: attemptId, outcome: 'sent', apiKey: null },
    plan: null,
    openAttempts: [],
  })
  expect(deliveryIn(await message(id))?.status).toBe('delivered')
  expect(await dueWork(id)).toEqual([])
  const repeat = await gateway.send(sms('settled'), { key: 'settled' })
  expect([told(repeat), isReplay(repeat)]).toEqual(['201 sent', true])
  const again = await gateway.send(sms('settled'), { key: 'settled' })
  expect(again.body).toBe(repeat.body)
  expect(await linesOf(gateway, id)).toHaveLength(1)
  expect((await gateway.app.inject('/metrics')).body).toContain('sendonce_settled_total{by="receipt",to="sent"} 1')
})

test('E9 a failed delivery proves acceptance, too: sent and undelivered, and nothing is sent again', async () => {
  gateway.provider.answer = () => lost()
  const { id } = (await gateway.send(sms('bounced'), { key: 'bounced' })).json<{ message: { id: string } }>().message
  await hook(gateway, eventOf(id, { kind: 'undelivered', code: '30005' }))
  expect(told(await message(id))).toBe('200 sent')
  expect(deliveryIn(await message(id))).toMatchObject({ status: 'undelivered', code: '30005' })
})

test('a receipt while the answer is on its way: it settles what is lost, and what nobody tells', async () => {
  for (const [key, end] of [
    ['lost', 'outcome'],
    ['lapsed', 'lease'],
  ] as const) {
    const held = heldOutcome()
    gateway.provider.answer = async () => held.promise
    const { id } = messageIn(await gateway.send(sms(key), { key, prefer: 'wait=0' }))
    await hook(gateway, eventOf(id))
    if (end === 'outcome') held.resolve(lost())
    else {
      await lapse(database, id)
      await rescue(gateway)
    }
    await untilStatus(gateway, id, 'sent')
    expect(messageIn(await message(id)).resolution).toMatchObject({ by: 'receipt' })
    expect(await dueWork(id)).toEqual([])
  }
})

test('whoever waits for the outcome is answered as soon as a receipt settles it', async () => {
  const id = await unknownOfKeyed('waiting')
  const waiting = gateway.send(sms('waiting', { provider: 'keyed' }), { key: 'waiting', prefer: 'wait=20' })
  await hook(gateway, eventOf(id), { provider: 'keyed' })
  expect(told(await waiting)).toBe('201 sent')
})

test('a step that was planned about it is not taken any more', async () => {
  const id = await unknownOfKeyed('planned')
  expect(await dueWork(id)).toEqual([{ task: 'reconcile' }])
  await hook(gateway, eventOf(id), { provider: 'keyed' })
  expect(await dueWork(id)).toEqual([])
  const calls = byKey.calls.length
  const pass = await createReconciler(gateway.deps).runOnce()
  expect([await pass.done, byKey.calls.length]).toEqual([pass.taken, calls])
})

async function unknownOfKeyed(key: string): Promise<string> {
  byKey.answer = () => lost()
  const answer = await gateway.send(sms(key, { provider: 'keyed' }), { key, prefer: 'wait=0' })
  const id = answer.json<{ id?: string; message?: { id: string } }>()
  const messageId = id.id ?? id.message?.id ?? ''
  await untilStatus(gateway, messageId, 'unknown')
  return messageId
}

test.each([
  ['refused', rejected()],
  ['not begun, then settled', null],
])(
  'E9 a verdict that a receipt contradicts (%s) is corrected: sent, a new stored answer, an alarm',
  async (key, outcome) => {
    const before = (await alarmsOf(gateway))['verdict_corrected'] ?? 0
    const name = key.replaceAll(/\W+/g, '-')
    gateway.provider.answer = () => outcome ?? lost()
    const first = await gateway.send(sms(key), { key: name })
    const { id } = first.json<{ message: { id: string } }>().message
    if (outcome === null) {
      const verdict = { attempt: await attemptIn(gateway, id), outcome: 'not_sent', evidence: 'not in the console' }
      await gateway.post(`/v1/messages/${id}/resolve`, verdict)
    }
    const failed = await gateway.send(sms(key), { key: name })
    expect(told(failed)).toBe('422 message-rejected')
    await hook(gateway, eventOf(id))
    const corrected = await gateway.send(sms(key), { key: name })
    expect([told(corrected), isReplay(corrected)]).toEqual(['201 sent', true])
    expect(messageIn(corrected).resolution).toMatchObject({ by: 'receipt', outcome: 'sent' })
    expect((await alarmsOf(gateway))['verdict_corrected']).toBe(before + 1)
  },
)

test('E9 one that waits for another try is not tried again', async () => {
  gateway.provider.answer = () => notSent('refused_for_now', 60_000)
  const { id } = messageIn(await gateway.send(sms('waits', { provider: 'fake' }), { key: 'waits', prefer: 'wait=0' }))
  await untilStatus(gateway, id, 'queued')
  await hook(gateway, eventOf(id))
  expect(told(await message(id))).toBe('200 sent')
  expect(await dueWork(id)).toEqual([])
})

test('what was never begun is left alone by whatever a provider tells of it', async () => {
  const { id } = messageIn(await gateway.send(sms('tomorrow', { delaySeconds: 3600 }), { key: 'tomorrow' }))
  const event = eventOf(id)
  expect((await hook(gateway, event)).statusCode).toBe(200)
  expect(told(await message(id))).toBe('200 scheduled')
  expect(await keptOf(database, id)).toEqual([{ event_id: event.eventId, applied: true }])
})

test('H1 W4 a receipt of one environment never touches a message of the other, in either direction', async () => {
  const live = messageIn(await gateway.send(sms('live'), { key: 'both' })).id
  const test_ = messageIn(await gateway.send(sms('test'), { key: 'both', headers: tester.headers })).id
  const inTest = async () => gateway.get(`/v1/messages/${test_}`, tester.headers)
  expect((await hook(gateway, eventOf(test_))).statusCode).toBe(200)
  expect((await hook(gateway, eventOf(live), { provider: 'sandbox-blind' })).statusCode).toBe(200)
  expect([deliveryIn(await message(live)), deliveryIn(await inTest())]).toEqual([null, null])
  expect((await keptOf(database, live)).map(({ applied }) => applied)).toEqual([false])
  await hook(gateway, eventOf(live))
  await hook(gateway, eventOf(test_), { provider: 'sandbox-blind' })
  expect([deliveryIn(await message(live))?.status, deliveryIn(await inTest())?.status]).toEqual([
    'delivered',
    'delivered',
  ])
})

test('one event id of two providers is two events', async () => {
  const [one, two] = [
    messageIn(await gateway.send(sms('one'), { key: 'id-one' })).id,
    messageIn(await gateway.send(sms('two', { provider: 'keyed' }), { key: 'id-two' })).id,
  ]
  await hook(gateway, eventOf(one, { eventId: 'same' }))
  await hook(gateway, eventOf(two, { eventId: 'same' }), { provider: 'keyed' })
  expect([deliveryIn(await message(one))?.status, deliveryIn(await message(two))?.status]).toEqual([
    'delivered',
    'delivered',
  ])
})

test('a receipt that names another id of the provider: it has the message twice, and says so', async () => {
  const before = (await alarmsOf(gateway))['accepted_twice'] ?? 0
  const { id } = messageIn(await gateway.send(sms('twice'), { key: 'twice' }))
  await hook(gateway, eventOf(id, { providerMessageId: 'p2', kind: 'accepted' }))
  expect((await alarmsOf(gateway))['accepted_twice']).toBe(before + 1)
  expect(uuidFromId('message', id)).toBe(uuidOf(id))
})

/** What people write back is recorded where it belongs, once (record-reply.ts, R1 to R3). */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { InboundReply } from '../../src/providers/provider.ts'
import { StoreUnavailable } from '../../src/store/database-errors.ts'
import type { Inbound } from '../../src/store/conversations.ts'
import type { Store } from '../../src/store/store.ts'
import { useDatabase } from '../support/database.ts'
import { sms, testGateway, type TestGateway } from '../support/gateway.ts'
import { deliveryIn, eventOf, hook, receivingProvider } from './receiving.ts'
import { messageIn, told } from './told.ts'

const database = useDatabase()
let gateway: TestGateway
/** What a store of conversations was told. */
const recorded: Inbound[] = []
let isAway = false

const recording = (store: Store): Store => ({
  ...store,
  recordInbound: async (inbound) => {
    if (isAway) throw new StoreUnavailable('absent', new Error('away'))
    recorded.push(inbound)
    return store.recordInbound(inbound)
  },
})

beforeAll(async () => {
  gateway = await testGateway(database.url, { provider: receivingProvider(), wrapStore: recording })
})
beforeEach(() => {
  recorded.length = 0
  isAway = false
})
afterAll(async () => gateway.close())

let people = 0
async function sentTo(conversation: string | null, to = `+4477009${String(10_000 + ++people)}`) {
  const message = { ...sms(), to, ...(conversation === null ? {} : { conversation }) }
  return { to, id: messageIn(await gateway.send(message, { key: `reply-${Math.random()}` })).id }
}
const reply = (from: string, more: Partial<InboundReply> = {}): InboundReply => ({
  eventId: 'in-1',
  from,
  to: null,
  sentTo: [from],
  text: 'yes please',
  at: null,
  inReplyTo: null,
  ...more,
})
const tell = async (...replies: readonly InboundReply[]) => hook(gateway, [], { more: { replies } })
const heardIn = async (conversation: string): Promise<object[]> => {
  const { data } = (await gateway.get(`/v1/conversations/${conversation}/messages`)).json<{
    data: { direction: string; inbound?: object }[]
  }>()
  return data.flatMap(({ inbound }) => inbound ?? [])
}
const counted = async (result: string): Promise<number> => {
  const text = (await gateway.app.inject('/metrics')).body
  return Number(
    new RegExp(`sendonce_receipts_total\\{provider="fake",result="${result}"\\} (\\d+)`).exec(text)?.[1] ?? 0,
  )
}

test('R1 it goes into the conversation of the newest message to that person', async () => {
  const { to } = await sentTo('ticket-1')
  await sentTo('ticket-2', to)
  const before = await counted('reply')
  const answer = await tell(reply(to, { at: new Date('2026-12-01T08:00:00Z') }))
  expect([answer.statusCode, answer.body]).toEqual([200, ''])
  expect(recorded).toMatchObject([
    {
      account: 'default',
      environment: 'live',
      conversation: 'ticket-2',
      source: 'fake',
      eventId: 'in-1',
      sender: to,
      text: 'yes please',
      occurredAt: new Date('2026-12-01T08:00:00Z'),
    },
  ])
  expect(await counted('reply')).toBe(before + 1)
})

test('R1 the message that it names comes first, by our id or the provider\u2019s', async () => {
  const { to, id } = await sentTo('named')
  await sentTo('newest', to)
  await tell(reply(to, { inReplyTo: id }), reply('somebody', { inReplyTo: id }), reply(to, { inReplyTo: 'unheard' }))
  expect(recorded.map(({ conversation }) => conversation)).toEqual(['named', 'named', 'newest'])
})

test.each([
  ['to whom nothing was sent', async () => reply('+15550100')],
  ['to whom nothing was sent in a conversation', async () => reply((await sentTo(null)).to)],
  ['who names a message that is none', async () => reply('+15550100', { inReplyTo: 'msg_1' })],
  ['who is nobody', async () => reply('', { sentTo: [] })],
])('R1 of a person %s nothing is kept: acknowledged, and counted', async (_, of) => {
  const before = await counted('foreign')
  expect((await tell(await of())).statusCode).toBe(200)
  expect(recorded).toEqual([])
  expect(await counted('foreign')).toBe(before + 1)
})

test('R2 the store is away: 503, and told again it is recorded; receipts beside it are kept meanwhile', async () => {
  const { to, id } = await sentTo('away')
  isAway = true
  const both = () => hook(gateway, eventOf(id, { eventId: 'beside' }), { more: { replies: [reply(to)] } })
  expect(told(await both())).toBe('503 store-unavailable')
  expect(deliveryIn(await gateway.get(`/v1/messages/${id}`))?.status).toBe('delivered')
  isAway = false
  expect((await both()).statusCode).toBe(200)
  expect(recorded.map(({ conversation }) => conversation)).toEqual(['away'])
})

test('what a data base cannot hold is replaced, and no reason to be told it for ever', async () => {
  const { to } = await sentTo('odd')
  const odd = reply(to, {
    eventId: 'ü'.repeat(300),
    text: 'a\u0000b\ud83d',
    inReplyTo: 'x\u0000',
    sentTo: ['\u0000', to],
  })
  expect((await tell(odd)).statusCode).toBe(200)
  expect(recorded).toMatchObject([{ text: 'a\ufffdb\ufffd', conversation: 'odd' }])
  expect(recorded[0]?.eventId).toMatch(/^[\da-f-]{36}$/)
})

test('a forged one is not looked at', async () => {
  const { to } = await sentTo('forged')
  const forged = await hook(gateway, [], { signed: 'by somebody', more: { replies: [reply(to)] } })
  expect(told(forged)).toBe('401 webhook-forged')
  expect(recorded).toEqual([])
})

test('R3 no text and no address is logged, whatever becomes of it', async () => {
  const { to } = await sentTo('quiet')
  gateway.logged.length = 0
  await tell(reply(to, { text: 'SECRET-TEXT' }), reply('SECRET-SENDER', { text: 'SECRET-TEXT' }))
  isAway = true
  await tell(reply(to, { text: 'SECRET-TEXT' }))
  const said = `${gateway.logged.join('\n')}\n${(await gateway.app.inject('/metrics')).body}`
  expect(said).not.toMatch(/SECRET|4477009/)
})

test('R2 told again it is the same event, also after the person was written to in another conversation', async () => {
  const { to } = await sentTo('first')
  await tell(reply(to, { eventId: 'again' }))
  await sentTo('second', to)
  expect((await tell(reply(to, { eventId: 'again' }))).statusCode).toBe(200)
  expect(await heardIn('first')).toMatchObject([{ text: 'yes please', from: to, source: 'fake', eventId: 'again' }])
  expect(await heardIn('second')).toEqual([])
})

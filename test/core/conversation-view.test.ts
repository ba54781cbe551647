/** A conversation as the API shows it (conversation-view.ts). */
import { expect, test } from 'vitest'
import { conversationEntries, inboundView, type InboundMessage } from '../../src/core/conversation-view.ts'
import { messageView } from '../../src/core/message-view.ts'
import { after, messageIn, states, uuid } from './fixtures.ts'

const told = (n: number, more: Partial<InboundMessage> = {}): InboundMessage => ({
  id: uuid(n),
  source: 'api',
  eventId: `event-${n}`,
  sender: '+447700900123',
  text: 'ok',
  occurredAt: after(n * 1_000 - 500),
  receivedAt: after(n * 1_000),
  ...more,
})

test('what came in is shown with who said what, when it happened and when it was received', () => {
  expect(inboundView(told(3))).toEqual({
    id: `evt_${uuid(3).replaceAll('-', '')}`,
    eventId: 'event-3',
    source: 'api',
    from: '+447700900123',
    text: 'ok',
    occurredAt: '2026-12-01T09:00:02.500Z',
    receivedAt: '2026-12-01T09:00:03.000Z',
  })
})

test('what its sender did not give, and what retention has erased, is null', () => {
  expect(inboundView(told(3, { occurredAt: null, eventId: `derived:v1:${'0'.repeat(64)}` }))).toMatchObject({
    eventId: null,
    occurredAt: null,
  })
  expect(inboundView(told(3, { sender: null, text: null }))).toMatchObject({
    eventId: 'event-3',
    from: null,
    text: null,
  })
})

test('both sides are one list, newest first, each entry with its direction, its time and what it is', () => {
  const sent = [
    messageIn(states.sent, { id: uuid(1) }),
    messageIn(states.held, { id: uuid(4), createdAt: after(4_000) }),
  ]
  const entries = conversationEntries(sent, [told(2), told(3), told(5)])
  expect(entries.map(({ id }) => id)).toEqual([5, 4, 3, 2, 1].map(uuid))
  expect(entries.map(({ view }) => view)).toEqual([
    { direction: 'inbound', at: '2026-12-01T09:00:05.000Z', inbound: inboundView(told(5)) },
    { direction: 'outbound', at: '2026-12-01T09:00:04.000Z', message: messageView(sent[1] ?? messageIn(states.held)) },
    { direction: 'inbound', at: '2026-12-01T09:00:03.000Z', inbound: inboundView(told(3)) },
    { direction: 'inbound', at: '2026-12-01T09:00:02.000Z', inbound: inboundView(told(2)) },
    { direction: 'outbound', at: '2026-12-01T09:00:00.000Z', message: messageView(sent[0] ?? messageIn(states.sent)) },
  ])
})

test('a conversation in which nothing was said has no entries', () => {
  expect(conversationEntries([], [])).toEqual([])
})

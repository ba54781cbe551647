/** The message as the API shows it (message-view.ts; api.md). */
import { describe, expect, test } from 'vitest'
import { messagePath } from '../../src/core/answer.ts'
import { statuses, type Message } from '../../src/core/message.ts'
import { messageView } from '../../src/core/message-view.ts'
import type { Event } from '../../src/core/events.ts'
import { advance } from '../../src/core/state-machine.ts'
import {
  after,
  approve,
  attempt,
  begin,
  cancel,
  decided,
  decline,
  expire,
  messageIn,
  moved,
  outcomeOf,
  play,
  settle,
  states,
  uuid,
} from './fixtures.ts'

describe('the message as it is shown', () => {
  const members =
    'id object environment status statusReason channel to from content conversation reference intent idempotencyKey keySource fingerprint sentBy approval conversationVersion possibleDuplicateOf provider providerMessageId attempts sendAt notAfter createdAt updatedAt sentAt delivery resolution plan openAttempts metadata'.split(
      ' ',
    )

  test.each(statuses)('has every member of api.md when it is %s', (status) => {
    expect(Object.keys(messageView(messageIn(states[status]))).toSorted()).toEqual(members.toSorted())
  })

  test('is what was asked and what became of it', () => {
    const message = advance(
      messageIn(states.sending, { metadata: { team: 'shipping' } }),
      states.sent,
      {},
      after(1_100),
    )
    expect(messageView(message)).toMatchObject({
      id: `msg_${message.id.replaceAll('-', '')}`,
      object: 'message',
      environment: 'live',
      status: 'sent',
      channel: 'sms',
      to: '+447700900123',
      from: null,
      intent: null,
      keySource: 'client',
      providerMessageId: 'SM1',
      attempts: 1,
      sendAt: null,
      sentAt: '2026-12-01T09:00:01.100Z',
      updatedAt: '2026-12-01T09:00:01.100Z',
      notAfter: '2026-12-02T09:00:00.000Z',
      delivery: null,
      metadata: { team: 'shipping' },
    })
    expect(messagePath(message)).toBe(`/v1/messages/${messageView(message).id}`)
  })

  test('tells who settled it, and on what evidence', () => {
    expect(messageView(play(messageIn(states.unknown), settle('not_sent'))).resolution).toEqual({
      by: 'operator',
      at: '2026-12-01T09:00:09.000Z',
      attempt: `att_${attempt().id.replaceAll('-', '')}`,
      outcome: 'not_sent',
      apiKey: 'key1',
      evidence: 'Seen in the console.',
    })
  })

  test('of an e-mail has its further recipients', () => {
    const email = { channel: 'email', to: 'a@example.com', content: { subject: 's', text: 't' } } as const
    expect(messageView(messageIn(states.queued, { request: email }))).toMatchObject({ cc: [], bcc: [], replyTo: null })
    const request = { ...email, cc: ['c@example.com'], bcc: ['b@example.com'], replyTo: 'r@example.com' }
    expect(messageView(messageIn(states.queued, { request }))).toMatchObject({
      cc: ['c@example.com'],
      bcc: ['b@example.com'],
      replyTo: 'r@example.com',
    })
  })
})

describe('the approval of a message', () => {
  const undecided = { by: null, at: null }
  const by = { by: 'key2', at: '2026-12-01T09:00:06.000Z' }
  const called = [approve(), begin(1), outcomeOf(attempt(1), 'accepted')]

  test.each<[string, Event[], string, object]>([
    ['waits', [], 'held', { status: 'pending', ...undecided }],
    ['was approved, and waits for its call', [approve()], 'queued', { status: 'approved', ...by }],
    ['was approved, and is being sent', [approve(), begin(1)], 'sending', { status: 'approved', ...by }],
    ['was approved and sent', called, 'sent', { status: 'approved', ...by }],
    ['was approved, and approved and declined again', [approve(), decline(), approve(after(7_000))], 'queued', by],
    ['was declined', [decline(), approve(after(7_000))], 'canceled', { status: 'declined', ...by }],
    ['lapsed', [expire], 'canceled', { status: 'ended', ...undecided }],
    ['was canceled by its sender', [cancel], 'canceled', { status: 'ended', ...undecided }],
    ['was canceled for its conversation moved', [moved()], 'canceled', { status: 'ended', ...undecided }],
    ['was approved in vain', [moved(decided('approved'))], 'canceled', { status: 'approved', ...by }],
  ])('of one that %s', (_, events, status, shown) => {
    for (const heldFor of ['approval', 'duplicate'] as const) {
      const view = messageView(play(messageIn(states.held, { heldFor }), ...events))
      expect(view.status).toBe(status)
      expect(view.approval).toMatchObject({ ...shown, reason: heldFor })
      expect(Object.keys(view.approval ?? {}).toSorted()).toEqual(['at', 'by', 'reason', 'status'])
    }
  })

  test('says not from where it was decided: that stands in the time line', () => {
    expect(JSON.stringify(messageView(play(messageIn(states.held), approve())))).not.toContain('203.0.113.7')
  })

  test.each(statuses.filter((status) => status !== 'held'))(
    'is null of one that is %s, and was never held',
    (status) => {
      expect(messageView(messageIn(states[status])).approval).toBeNull()
    },
  )
})

test('who sent it, on which version, and which one it looks like are shown as ids of the API', () => {
  const shown = (more: Partial<Message>) => messageView(messageIn(states.held, more))
  const first = uuid(7)
  expect(shown({ conversationVersion: 3, possibleDuplicateOf: first, heldFor: 'duplicate' })).toMatchObject({
    sentBy: 'key1',
    statusReason: 'duplicate',
    conversationVersion: 3,
    possibleDuplicateOf: `msg_${first.replaceAll('-', '')}`,
  })
  expect(shown({ conversationVersion: 0, sentBy: null })).toMatchObject({
    sentBy: null,
    statusReason: 'approval',
    conversationVersion: 0,
    possibleDuplicateOf: null,
  })
})

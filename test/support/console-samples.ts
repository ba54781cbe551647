/** Messages and keys of the fake that the console is tested and looked at with. */
import { randomBytes } from 'node:crypto'
import type { Message } from '../../src/http/console/browser/types.ts'
import type { ConsoleFake } from './console-fake.ts'

export interface Person {
  readonly name: string
  readonly id: string
  readonly token: string
  readonly kind: 'person' | 'service' | 'agent'
  readonly scopes: readonly string[]
}

const person = (name: string, id: string, kind: Person['kind'], ...scopes: string[]): Person => ({
  name,
  id,
  kind,
  scopes,
  token: `so_test_${id}_${name.charAt(0).repeat(40)}`,
})
export const ada = person('ada', 'ada-desk', 'person', 'send', 'read', 'approve', 'resolve')
export const ben = person('ben', 'ben-phone', 'person', 'send', 'read', 'approve', 'resolve')
export const reader = person('reader', 'reports', 'service', 'read')
export const sender = person('sender', 'shop', 'service', 'send')
export const people = [ada, ben, reader, sender]

export const keyOf = (authorization: string | undefined): Person | undefined =>
  people.find(({ token }) => authorization === `Bearer ${token}`)

/** What a test says of a message; the rest is ordinary. `agoMs`: how long ago it was asked for. */
export type Some = Partial<Message> & { readonly agoMs?: number }

const hour = 3_600_000
const hex = (): string => randomBytes(16).toString('hex')
let made = 0

export function messageOf({ agoMs = 60_000, ...some }: Some): Message {
  made++
  const createdAt = new Date(Date.now() - agoMs - 1000 + made).toISOString()
  const { status = 'held', possibleDuplicateOf = null } = some
  const reason = possibleDuplicateOf === null ? 'approval' : 'duplicate'
  return {
    id: `msg_${hex()}`,
    environment: 'test',
    status,
    statusReason: status === 'held' ? reason : null,
    channel: 'sms',
    to: '+447700900123',
    from: 'ACME',
    content: { text: 'Your parcel is on its way.' },
    conversation: null,
    conversationVersion: null,
    reference: null,
    intent: null,
    idempotencyKey: `order-${made}-shipped`,
    keySource: 'client',
    fingerprint: `v1:${hex()}${hex()}`,
    possibleDuplicateOf,
    approval: status === 'held' ? { status: 'pending', reason, by: null, at: null } : null,
    sentBy: 'support-agent',
    provider: 'twilio-eu',
    providerMessageId: null,
    attempts: 0,
    sendAt: null,
    notAfter: new Date(Date.parse(createdAt) + 24 * hour).toISOString(),
    createdAt,
    updatedAt: createdAt,
    sentAt: null,
    delivery: null,
    resolution: null,
    plan: null,
    openAttempts: [],
    metadata: {},
    ...some,
  }
}

export const attemptId = (): string => `att_${hex()}`

/** An unknown one with its evidence. */
export function addUnknown(fake: ConsoleFake, some: Some = {}, attempts = 1): Message {
  const openAttempts = Array.from({ length: attempts }, attemptId)
  const message = fake.add({
    status: 'unknown',
    statusReason: 'UND_ERR_SOCKET',
    attempts,
    openAttempts,
    agoMs: 3 * hour,
    sentBy: 'shop',
    ...some,
  })
  const began = Date.parse(message.createdAt)
  fake.events.set(
    message.id,
    openAttempts.flatMap((attempt, index) => {
      const [start, end] = [began + index * 60_000 + 40, began + index * 60_000 + 10_060].map((ms) =>
        new Date(ms).toISOString(),
      )
      const data = { provider: message.provider, number: index + 1 }
      return [
        { id: `evt_${hex()}`, type: 'attempt_started', at: start ?? '', attempt, data },
        {
          id: `evt_${hex()}`,
          type: 'attempt_ended',
          at: end ?? '',
          attempt,
          data: {
            ...data,
            outcome: 'unknown',
            phase: 'begun',
            code: 'UND_ERR_SOCKET',
            detail: 'The connection closed before an answer came.',
          },
        },
      ]
    }),
  )
  return message
}

/** One of everything that can be seen. */
export function fill(fake: ConsoleFake): {
  held: Message
  moved: Message
  mail: Message
  unknown: Message
  duplicate: Message
} {
  const first = fake.add({
    status: 'sent',
    sentAt: new Date(Date.now() - 2 * hour).toISOString(),
    agoMs: 2 * hour,
    attempts: 1,
    providerMessageId: 'SM9f3c',
    content: { text: 'Your refund of £42.00 was approved and reaches you within five days.' },
    conversation: 'ticket-991',
    reference: 'refund-991',
    idempotencyKey: 'refund-991',
    delivery: { status: 'delivered', at: new Date(Date.now() - 2 * hour).toISOString(), code: null },
  })
  const mail = fake.add({
    channel: 'email',
    to: 'jo.fairweather@example.org',
    from: 'billing@acme.example',
    cc: ['accounts@example.org'],
    bcc: [],
    replyTo: 'billing+4411@acme.example',
    agoMs: 3 * hour + 60_000,
    provider: 'resend',
    sentBy: 'billing-agent',
    content: {
      subject: 'Your invoice 4411 and a question about the delivery address',
      text: 'Dear Jo,\n\nthank you for your order. Invoice 4411 is attached; it is due on 14 December.\n\nOne question: the parcel goes to 12 Harbour Lane, is that still right?\n\nKind regards\nACME billing',
      html: '<p>Dear Jo,</p>\n<p>thank you for your order. Invoice <b>4411</b> is attached; it is due on 14 December.</p>\n<img src="x" onerror="alert(1)">',
      attachments: [{ filename: 'invoice-4411.pdf', contentType: 'application/pdf', content: 'JVBERi0x'.repeat(4000) }],
    },
    metadata: { team: 'billing' },
  })
  const inbound = (agoMs: number, text: string) => {
    const at = new Date(Date.now() - agoMs).toISOString()
    return {
      direction: 'inbound',
      at,
      inbound: { id: `evt_${hex()}`, source: 'api', from: '+447700900123', text, occurredAt: at, receivedAt: at },
    } as const
  }
  const duplicate = fake.add({
    possibleDuplicateOf: first.id,
    agoMs: 26 * 60_000,
    conversation: 'ticket-991',
    conversationVersion: 3,
    reference: 'refund-991-b',
    content: { text: 'Your refund of £42.00 was approved and reaches you within five days.' },
  })
  const moved = fake.add({
    agoMs: 12 * 60_000,
    to: '+447700900456',
    conversation: 'ticket-1007',
    conversationVersion: 2,
    content: { text: 'Shall we book the engineer for Thursday at 9:00? Answer YES and it is done.' },
  })
  const held = fake.add({
    agoMs: 4 * 60_000,
    conversation: 'ticket-991',
    conversationVersion: 3,
    reference: 'refund-991-when',
    intent: 'refund-date:991',
    content: {
      text: 'It left our bank this morning, so it should be on your account by Friday at the latest. Sorry for the wait!',
    },
  })
  fake.add({
    channel: 'chat',
    to: '#on-call',
    sentBy: 'deploy-bot',
    provider: 'slack',
    agoMs: 2 * 60_000,
    content: { text: 'Release 2026.48 is out: 14 changes, no migration.', threadId: '1764.0021' },
  })
  fake.add({
    channel: 'push',
    to: 'device-8f21',
    sentBy: 'support-agent',
    provider: 'line',
    agoMs: 70_000,
    content: { title: 'Your table is ready', body: 'We keep it for 15 minutes.', data: { booking: 7718 } },
  })
  fake.add({
    channel: 'webhook',
    to: 'https://hooks.partner.example/v2/orders',
    sentBy: 'support-agent',
    provider: 'hooks',
    agoMs: 20_000,
    content: { type: 'order.refunded', data: { order: 991, amount: 4200, currency: 'GBP' } },
  })
  fake.conversations.set('ticket-991', {
    version: 3,
    entries: [
      inbound(3 * hour, 'Hello, I returned the lamp two weeks ago and still have no refund. Order 991.'),
      { direction: 'outbound', at: first.createdAt, message: first },
      inbound(40 * 60_000, 'Thanks. When exactly will it be there?'),
      { direction: 'outbound', at: duplicate.createdAt, message: duplicate },
      { direction: 'outbound', at: held.createdAt, message: held },
    ],
  })
  const asked = fake.add({
    status: 'sent',
    agoMs: 50 * 60_000,
    to: '+447700900456',
    conversation: 'ticket-1007',
    sentBy: 'shop',
    attempts: 1,
    sentAt: new Date(Date.now() - 50 * 60_000).toISOString(),
    content: { text: 'Which day would suit you for the repair?' },
  })
  fake.conversations.set('ticket-1007', {
    version: 4,
    entries: [
      { direction: 'outbound', at: asked.createdAt, message: asked },
      inbound(31 * 60_000, 'Thursday or Friday, mornings.'),
      { direction: 'outbound', at: moved.createdAt, message: moved },
      inbound(6 * 60_000, 'Sorry, Thursday does not work any more. Only Friday.'),
      inbound(5 * 60_000, 'Or next Monday.'),
    ],
  })
  const unknown = addUnknown(fake, {
    to: '+447700900789',
    content: { text: 'Your code is 481 552.' },
    reference: 'login-5512',
    provider: 'twilio-eu',
  })
  addUnknown(fake, {
    channel: 'email',
    to: 'lee@example.org',
    provider: 'postmark',
    agoMs: 25 * 60_000,
    content: { subject: 'Welcome to ACME', text: 'Hello Lee, welcome.' },
    plan: {
      step: 'look',
      at: new Date(Date.now() + 90_000).toISOString(),
      givesUpAt: new Date(Date.now() + 20 * hour).toISOString(),
      steps: 2,
      lastEvidence: 'The connection closed before an answer came.',
    },
  })
  return { held, moved, mail, unknown, duplicate }
}

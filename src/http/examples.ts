/** Examples of the OpenAPI document. The requests work as they stand on the sandbox; the answers are made by the code that makes real ones. */
import { fingerprintOf, fingerprintText, canonicalText } from '../core/fingerprint.ts'
import { messageReference, messageView } from '../core/message-view.ts'
import type { MessageRequest } from '../core/message-content.ts'
import type { Message, State } from '../core/message.ts'
import { problemBody, problems, type ProblemBody, type ProblemType } from '../core/problems.ts'
import { messagePath } from '../core/answer.ts'
import { timelineView } from '../core/timeline.ts'

export const requestExamples: Readonly<Record<string, { summary: string; value: MessageRequest }>> = {
  sms: {
    summary: 'A text message',
    value: { channel: 'sms', to: '+447700900123', content: { text: 'Your parcel is on its way' } },
  },
  email: {
    summary: 'An e-mail',
    value: {
      channel: 'email',
      to: 'someone@example.com',
      content: { subject: 'Your order', text: 'It is on its way.' },
    },
  },
  chat: {
    summary: 'A chat message, with a derived key',
    value: {
      channel: 'chat',
      to: 'C024BE91L',
      content: { text: 'Deployed.' },
      conversation: 'deploys',
      reference: 'build-4711',
    },
  },
  push: {
    summary: 'A push notification',
    value: { channel: 'push', to: 'device-token-1', content: { title: 'Your parcel', body: 'It is on its way.' } },
  },
  webhook: {
    summary: 'A webhook',
    value: {
      channel: 'webhook',
      to: 'https://example.com/hooks',
      content: { type: 'order.shipped', data: { order: 42 } },
    },
  },
  lostReply: {
    summary: 'The sandbox accepts, and its answer is lost: 504, unknown',
    value: { channel: 'sms', to: '+15005550005', content: { text: 'Did it go out?' } },
  },
  scheduled: {
    summary: 'In a minute, and not later than in an hour',
    value: { channel: 'sms', to: '+447700900123', content: { text: 'Reminder' }, delaySeconds: 60, ttlSeconds: 3600 },
  },
}

const at = new Date('2026-12-01T09:00:00.000Z')
const attempt = {
  id: '0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b',
  number: 1,
  provider: 'sandbox-blind',
  identity: '',
  startedAt: at,
  leaseUntil: at,
}
const evidence = { phase: 'answered', httpStatus: 201, detail: 'The provider accepted the message.' } as const
const ended = { ...attempt, endedAt: at, outcome: 'accepted', evidence } as const

function exampleMessage(state: State): Message {
  const request: MessageRequest = {
    channel: 'sms',
    to: '+447700900123',
    content: { text: 'Your parcel is on its way' },
    reference: 'order-42',
    conversation: 'ticket-991',
  }
  const canonical = canonicalText(request)
  return {
    id: '0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5c',
    account: 'default',
    environment: 'test',
    idempotencyKey: 'order-42-shipped',
    fingerprint: fingerprintText(fingerprintOf(canonical)),
    request,
    canonical,
    metadata: { team: 'shipping' },
    provider: 'sandbox-blind',
    allowedProviders: null,
    sentBy: 'a1b2c3d4',
    heldFor: state.status === 'held' ? 'approval' : null,
    decision: null,
    conversationVersion: state.status === 'held' ? 3 : null,
    possibleDuplicateOf: null,
    createdAt: at,
    updatedAt: at,
    sendAt: null,
    notAfter: new Date(at.getTime() + 86_400_000),
    traceparent: null,
    version: 2,
    attempts: state.status === 'queued' || state.status === 'held' ? 0 : 1,
    open: [],
    resolution: null,
    delivery: null,
    state,
    answer: null,
    rendered: null,
    proof: null,
  }
}

const states = {
  sent: { status: 'sent', attempt: ended, providerMessageId: 'sbx_1', sentAt: at },
  queued: { status: 'queued', last: null, dueAt: at },
  held: { status: 'held' },
  canceled: { status: 'canceled', reason: null, last: null },
  sending: { status: 'sending', attempt },
  unknown: {
    status: 'unknown',
    attempt: {
      ...ended,
      outcome: 'unknown',
      evidence: { phase: 'begun', code: 'UND_ERR_SOCKET', detail: 'The request had begun; no answer was read.' },
    },
    plan: null,
  },
  failed: { status: 'failed', reason: 'provider_refused', last: { ...ended, outcome: 'rejected' } },
} as const satisfies Record<string, State>

export const messageExample = (status: 'sent' | 'held' | 'queued' | 'canceled') =>
  messageView(exampleMessage(states[status]))
const outboundExample = {
  direction: 'outbound',
  at: at.toISOString(),
  message: messageExample('sent'),
}
export const conversationExample = {
  conversation: 'ticket-991',
  object: 'conversation',
  environment: 'test',
  version: 3,
  updatedAt: at.toISOString(),
  lastMessage: outboundExample,
}
export const conversationMessagesExample = { version: 3, data: [outboundExample], nextCursor: null }
export const inboundExample = {
  version: 4,
  inbound: {
    id: 'evt_0197a1b2c3d47e5f8a9b0c1d2e3f4a5e',
    eventId: 'chat-8812',
    source: 'api',
    from: '+447700900123',
    text: 'Where is it?',
    occurredAt: null,
    receivedAt: at.toISOString(),
  },
}
export const checkExample = {
  verdict: 'hold',
  reason: 'It would wait for a person to approve it.',
  problem: null,
  key: { key: 'order-42-shipped', source: 'client', message: null },
  provider: 'sandbox-blind',
  conversation: { conversation: 'ticket-991', version: 3, matches: true },
  intent: null,
  duplicate: { mode: 'hold', message: null },
  approval: { required: true, reason: 'approval' },
  text: { encoding: 'GSM-7', characters: 25, segments: 1 },
}
export const timelineExample = timelineView(exampleMessage(states.sent), [])
export const keyExample = {
  key: 'order-42-shipped',
  source: 'client',
  firstSeenAt: at.toISOString(),
  sent: 'yes',
  message: messageExample('sent'),
}

/** The state that a problem speaks of, where it speaks of a message. */
const spokenOf: Partial<Record<ProblemType, keyof typeof states>> = {
  'in-progress': 'sending',
  'outcome-unknown': 'unknown',
  'message-rejected': 'failed',
  'message-expired': 'failed',
  'message-canceled': 'canceled',
  'possible-duplicate': 'sent',
  'idempotency-key-reused': 'sent',
  'key-taken': 'sent',
  'too-late': 'sent',
  'not-held': 'sent',
  'fingerprint-mismatch': 'held',
  'not-unknown': 'sent',
}
const sentOfExample = {
  sent: 'yes',
  held: 'maybe',
  queued: 'maybe',
  canceled: 'no',
  sending: 'maybe',
  unknown: 'maybe',
  failed: 'no',
} as const

export function problemExamples(type: ProblemType): ProblemBody {
  const status = spokenOf[type]
  const message = status === undefined ? undefined : exampleMessage(states[status])
  const errors =
    problems[type].status === 400 && type === 'invalid-request'
      ? { errors: [{ pointer: '/to', detail: 'is missing' }] }
      : {}
  const about =
    status === undefined || message === undefined
      ? {}
      : {
          sent: type === 'possible-duplicate' ? ('no' as const) : sentOfExample[status],
          message: messageReference(message),
        }
  const instance = message === undefined ? 'urn:uuid:0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5d' : messagePath(message)
  const conversation =
    type === 'conversation-changed'
      ? { sent: 'no' as const, conversation: { conversation: 'ticket-991', version: 4 } }
      : {}
  return problemBody(type, instance, null, { ...errors, ...about, ...conversation })
}

/** Bodies of POST /v1/messages for the tests of validation, and what validation says of them. */
import type { Channel } from '../../src/core/message-content.ts'
import { sendCompiler } from '../../src/http/validation.ts'
import { Refusal } from '../../src/operations/refusal.ts'

export type Body = Readonly<Record<string, unknown>>

const common = {
  conversation: 'ticket-991',
  reference: 'order-42',
  intent: 'ship-notice:order-42',
  provider: 'twilio-eu',
  sendAt: '2026-12-01T10:00:00Z',
  notAfter: '2026-12-01T11:00:00.000+01:00',
  metadata: { team: 'shipping', '': '' },
}

export const minimal = {
  sms: { channel: 'sms', to: '+447700900123', content: { text: 'hi' } },
  email: { channel: 'email', to: 'someone@example.com', content: { subject: 'Your order', text: 'hi' } },
  chat: { channel: 'chat', to: 'C024BE91L', content: { text: 'hi' } },
  push: { channel: 'push', to: 'device-token-1', content: { title: 'Your order', body: 'hi' } },
  webhook: { channel: 'webhook', to: 'https://example.com/hooks', content: { type: 'order.shipped', data: null } },
} as const satisfies Record<Channel, Body>

export const full = {
  sms: { ...common, ...minimal.sms, from: 'ACME' },
  email: {
    ...common,
    channel: 'email',
    to: 'someone@example.com',
    from: 'ACME <orders@example.com>',
    cc: ['cc@example.com'],
    bcc: ['bcc@example.com', 'other@example.com'],
    replyTo: 'reply@example.com',
    content: {
      subject: 'Your order',
      text: 'two\r\nlines',
      html: '<p>two\nlines</p>',
      headers: { 'X-Entity-Ref-ID': 'order-42', 'List-Unsubscribe': '<https://example.com/u>' },
      attachments: [{ filename: 'a b.pdf', contentType: 'application/pdf', content: 'JVBERi0xLjc=' }],
    },
  },
  chat: { ...common, ...minimal.chat, from: 'bot', content: { text: 'two\nlines', threadId: '1355517523.000005' } },
  push: {
    ...common,
    ...minimal.push,
    from: 'com.example.app',
    content: {
      title: 'Your order',
      body: 'two\nlines',
      data: { order: 42, tags: ['a', null], deep: { a: { b: true } } },
    },
  },
  webhook: {
    ...common,
    ...minimal.webhook,
    from: 'gateway',
    content: { type: 'order.shipped', data: { order: 42, lines: ['a\r\nb'] } },
  },
} as const satisfies Record<Channel, Body>

type Verdict =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly pointer: string; readonly detail: string; readonly sentence: string }

const compiled = sendCompiler({ schema: {}, method: 'POST', url: '/v1/messages', httpPart: 'body' })

export function verdictOf(result: unknown): Verdict {
  const { error, value } = result as { error?: unknown; value?: unknown }
  if (error === undefined) return { ok: true, value }
  if (!(error instanceof Refusal)) throw error
  const [first] = error.extras.errors ?? []
  if (error.type !== 'invalid-request' || first === undefined) throw error
  return { ok: false, ...first, sentence: error.detail ?? '' }
}

/** What validation says of a body. @throws what is no refusal: a bug */
export const check = (body: unknown): Verdict => verdictOf(compiled(body))
/** The pointer to what is refused; null if the body is accepted. */
export function refusedAt(body: unknown): string | null {
  const verdict = check(body)
  return verdict.ok ? null : verdict.pointer
}

const partsOf = (pointer: string): string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))

/** A copy of the body with another value at the pointer; `undefined` takes the member away. */
export function withAt(body: unknown, pointer: string, value: unknown): unknown {
  const change = (at: unknown, [part, ...rest]: string[]): unknown => {
    if (part === undefined) return value
    if (Array.isArray(at)) return at.map((item: unknown, i) => (String(i) === part ? change(item, rest) : item))
    const members = Object.entries(at ?? {}).filter(([name]) => name !== part)
    const next = change((at as Body | undefined)?.[part], rest)
    return Object.fromEntries(next === undefined ? members : [...members, [part, next]])
  }
  return change(body, partsOf(pointer))
}

export function valueAt(body: unknown, pointer: string): unknown {
  return partsOf(pointer).reduce<unknown>((at, part) => (at as Body | undefined)?.[part], body)
}

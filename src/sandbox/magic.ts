/**
 * The magic recipients: addresses at which the sandbox misbehaves on purpose, so that every way a send can end may be
 * seen without a real provider. This file owns the table; server.ts plays it, and providers/sandbox.ts dials the closed
 * port for `refuse-connection`. Any other recipient is accepted at once, and its receipt says `delivered` a moment later.
 *
 * G1. A number, a name, an address belongs to one row.
 * G2. A fault hits the first request of a message only, so that a second one shows up in the ledger as what it is: a
 *     double on a provider that was given no key. `reject` alone hits every request: it is the recipient that is refused, not the call.
 */
import type { Channel } from '../core/message-content.ts'

/** The errors that the sandbox documents: `{ "error": { "code", "message" } }` under this status. */
export const sandboxErrors = {
  recipient_refused: { status: 400, message: 'This recipient never receives messages. Nothing was accepted.' },
  invalid_request: { status: 400, message: 'The request cannot be read. Nothing was accepted.' },
  key_reused: {
    status: 409,
    message: 'This key was used with another request. Whether that one was accepted is not said.',
  },
  key_in_use: { status: 409, message: 'The first request with this key is still running. Ask again.' },
  rate_limited: { status: 429, message: 'Too many requests. Nothing was accepted; try again later.' },
  unavailable: { status: 503, message: 'Not available. Nothing was accepted; try again later.' },
  internal_error: { status: 500, message: 'Something went wrong. The message may have been accepted.' },
} as const
export type SandboxError = keyof typeof sandboxErrors

/** What is told later of a message that was accepted. */
export interface ReceiptPlan {
  readonly status: 'delivered' | 'undelivered'
  readonly comes: 'before_answer' | 'after_answer'
  readonly times: 1 | 2
}

const delivered: ReceiptPlan = { status: 'delivered', comes: 'after_answer', times: 1 }

/** How a request ends whose message was accepted. */
export interface Accepting {
  /** `later`: some seconds after the request came. */
  readonly accepts: 'at_once' | 'later'
  /** `late`: the 201 comes after the caller's time-out; `cut`: it ends within its body. */
  readonly answers: 'created' | 'late' | 'cut' | 'nothing' | 'garbage' | SandboxError
  /** Absent: nothing is told, so that what is unknown stays so. */
  readonly receipt?: ReceiptPlan
}

export interface Refusing {
  readonly accepts: 'never'
  readonly answers: SandboxError
}

export type Behaviour = { readonly hits: 'first_request' | 'every_request' } & (Accepting | Refusing)

const fault = (ends: Accepting | Refusing): Behaviour => ({ hits: 'first_request', ...ends })

const acceptedWith = (receipt: ReceiptPlan): Behaviour => fault({ accepts: 'at_once', answers: 'created', receipt })

export const accepted = acceptedWith(delivered)

export const magics = [
  {
    number: '+15005550001',
    name: 'reject',
    meaning: 'refuses it for good: `failed`',
    behaviour: { hits: 'every_request', accepts: 'never', answers: 'recipient_refused' },
  },
  {
    number: '+15005550002',
    name: 'rate-limited',
    meaning: '429 with Retry-After 1, then accepts: `sent` after a second',
    behaviour: fault({ accepts: 'never', answers: 'rate_limited' }),
  },
  {
    number: '+15005550003',
    name: 'unavailable',
    meaning: '503, documented as not accepted, then accepts',
    behaviour: fault({ accepts: 'never', answers: 'unavailable' }),
  },
  {
    number: '+15005550004',
    name: 'refuse-connection',
    meaning: 'is dialled on a closed port the first time, then accepts',
    behaviour: accepted,
  },
  {
    number: '+15005550005',
    name: 'lost-reply',
    meaning: 'accepts, and drops the connection without an answer: `unknown`',
    behaviour: fault({ accepts: 'at_once', answers: 'nothing' }),
  },
  {
    number: '+15005550007',
    name: 'late-reply',
    meaning: 'accepts, and answers after the time-out: `unknown`',
    behaviour: fault({ accepts: 'at_once', answers: 'late' }),
  },
  {
    number: '+15005550008',
    name: 'half-answer',
    meaning: 'accepts, and cuts its 201 in the body: `sent`, without a provider id',
    behaviour: fault({ accepts: 'at_once', answers: 'cut' }),
  },
  {
    number: '+15005550009',
    name: 'garbage',
    meaning: 'accepts, and answers what is no HTTP: `unknown`',
    behaviour: fault({ accepts: 'at_once', answers: 'garbage' }),
  },
  {
    number: '+15005550010',
    name: 'error-after',
    meaning: 'accepts, and answers 500: `unknown`',
    behaviour: fault({ accepts: 'at_once', answers: 'internal_error' }),
  },
  {
    number: '+15005550011',
    name: 'error-before',
    meaning: 'answers 500 without accepting: `unknown`',
    behaviour: fault({ accepts: 'never', answers: 'internal_error' }),
  },
  {
    number: '+15005550012',
    name: 'slow',
    meaning: 'accepts after 3 s',
    behaviour: fault({ accepts: 'later', answers: 'created', receipt: delivered }),
  },
  {
    number: '+15005550013',
    name: 'duplicate-receipt',
    meaning: 'accepts; its receipt, `delivered`, comes twice',
    behaviour: acceptedWith({ ...delivered, times: 2 }),
  },
  {
    number: '+15005550014',
    name: 'receipt-first',
    meaning: 'accepts; its receipt, `delivered`, comes before its answer',
    behaviour: acceptedWith({ ...delivered, comes: 'before_answer' }),
  },
  {
    number: '+15005550015',
    name: 'undelivered',
    meaning: 'accepts; its receipt says `undelivered`',
    behaviour: acceptedWith({ ...delivered, status: 'undelivered' }),
  },
  {
    number: '+15005550016',
    name: 'receipt-settles',
    meaning: 'accepts, and drops the connection: `unknown`, until its receipt settles it: `sent`',
    behaviour: fault({ accepts: 'at_once', answers: 'nothing', receipt: delivered }),
  },
] as const satisfies readonly { number: string; name: string; meaning: string; behaviour: Behaviour }[]

export interface Magic {
  readonly number: string
  readonly name: (typeof magics)[number]['name']
  /** For people: what it does, and what the gateway makes of it the first time. */
  readonly meaning: string
  readonly behaviour: Behaviour
}

/** The row whose recipient on this channel is `to`; `undefined` for every ordinary recipient. */
export function magicFor(channel: Channel, to: string): Magic | undefined {
  return magics.find((magic) => magicRecipient(channel, magic) === to)
}

/** The address of a row on a channel; null where there is none: a webhook's recipient is its own URL. */
export function magicRecipient(channel: Channel, magic: Magic): string | null {
  switch (channel) {
    case 'sms':
      return magic.number
    case 'email':
      return `${magic.name}@sandbox.test`
    case 'chat':
    case 'push':
      return `sandbox:${magic.name}`
    case 'webhook':
      return null
  }
}

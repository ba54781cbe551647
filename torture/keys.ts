/** What is asked under each key: by the seed and the key's number alone. */
import { magicRecipient, magics } from '../src/sandbox/magic.ts'
import type { Chance } from './chance.ts'

export const providers = ['sandbox-blind', 'sandbox-keyed', 'sandbox-lookup', 'sandbox-lookup-eventual'] as const
export type ProviderName = (typeof providers)[number]

/** How one request is made. */
export interface Manner {
  /** Seconds, or not at all. */
  readonly wait: number | 'respond-async'
  /** The socket is cut then, if no answer has come. */
  readonly giveUpMs: number | null
}

export interface Asked {
  readonly key: string
  readonly provider: ProviderName
  /** Of the sandbox's table; null: an ordinary one. */
  readonly recipient: string | null
  readonly body: string
  /** Another message under the same key: never sent. */
  readonly otherBody: string
  /** Callers that come with it at once. */
  readonly racers: number
  readonly cancels: boolean
  readonly voids: boolean
  /** With conversation and reference it has a second name: a repeat may come without its header. */
  readonly isNamed: boolean
  readonly chance: Chance
}

/** Finds the keys in what a gateway says to the data base. */
export const keyPattern = /torture-\d+-\d{6}/g

const channels = ['sms', 'sms', 'sms', 'email', 'chat', 'push'] as const
const ordinary = { sms: '+447700900123', email: 'a@example.com', chat: 'C024BE91L', push: 'token-1' } as const

export function askedUnder(seed: number, number: number, chance: Chance): Asked {
  const key = `torture-${seed}-${String(number).padStart(6, '0')}`
  const own = chance.fork(key)
  const provider = own.pick(providers)
  const channel = own.pick(channels)
  const magic = own.happens(0.6) ? own.pick(magics) : null
  const to = (magic === null ? null : magicRecipient(channel, magic)) ?? ordinary[channel]
  const isNamed = own.happens(0.2)
  const later = own.happens(0.1) ? { delaySeconds: own.whole(1, 4) } : {}
  const ends = own.happens(0.2) ? { ttlSeconds: own.whole(2, 9) + (later.delaySeconds ?? 0) } : {}
  const named = isNamed ? { conversation: 'torture', reference: `ref-${key}` } : {}
  const bodyWith = (text: string): string =>
    JSON.stringify({ channel, to, content: contentOf(channel, text), provider, ...named, ...later, ...ends })
  return {
    key,
    provider,
    recipient: magic?.name ?? null,
    body: bodyWith(`of ${key}`),
    otherBody: bodyWith(`not of ${key}`),
    racers: own.happens(0.15) ? own.whole(2, 7) : 1,
    cancels: own.happens(0.12),
    voids: own.happens(0.05),
    isNamed,
    chance: own,
  }
}

function contentOf(channel: (typeof channels)[number], text: string): object {
  switch (channel) {
    case 'sms':
    case 'chat':
      return { text }
    case 'email':
      return { subject: 'torture', text }
    case 'push':
      return { title: 'torture', body: text }
  }
}

export function manner(chance: Chance): Manner {
  const wait = chance.pick([0, 1, 1, 2, 3, 6, 10, 'respond-async', 'respond-async'] as const)
  return { wait, giveUpMs: chance.happens(0.25) ? chance.between(1, 1_500) : null }
}

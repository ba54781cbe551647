/**
 * Random histories of a message: what may be told of it, in any order and as often as it likes, by a provider of any kind
 * and by persons who are wrong. Time passes, a second a step or many hours; the provider may become another one.
 */
import fc from 'fast-check'
import type { ApprovalDecision, Attempt, EndedAttempt, Message } from '../../src/core/message.ts'
import { heldReasons } from '../../src/core/message.ts'
import { outcomeKinds, type LookResult, type OutcomeKind } from '../../src/core/outcome.ts'
import type { Event, ReceiptEvent } from '../../src/core/events.ts'
import type { Absence, RecoveryMeans } from '../../src/core/recovery.ts'
import {
  after,
  asked,
  begin,
  blind,
  both,
  decided,
  keyed,
  look,
  messageIn,
  moved,
  outcomeOf,
  receipt,
  states,
  weak,
} from './fixtures.ts'

export const providers = { blind, keyed, asked, weak, both } as const
export type Provider = keyof typeof providers

export type Step =
  | { readonly do: 'begin' | 'expire' | 'cancel' | 'replan' | 'become another provider' }
  | { readonly do: 'decide'; readonly decision: ApprovalDecision['decision'] }
  | { readonly do: 'move'; readonly inVain: boolean }
  | { readonly do: 'lapse'; readonly which: number }
  | { readonly do: 'tell'; readonly which: number; readonly kind: OutcomeKind; readonly isReplayPointless: boolean }
  | { readonly do: 'settle'; readonly which: number; readonly outcome: 'sent' | 'not_sent'; readonly resend: boolean }
  | { readonly do: 'look'; readonly which: number; readonly kind: LookResult['kind']; readonly absence: Absence }
  | { readonly do: 'wait'; readonly ms: number }
  | {
      readonly do: 'receive'
      readonly which: number
      readonly evidence: ReceiptEvent['evidence']
      readonly isNamed: boolean
      readonly agoMs: number
    }

export interface Start {
  readonly provider: Provider
  readonly message: Message
}

/** What an event may speak of. */
export interface World {
  readonly means: RecoveryMeans
  readonly at: Date
  readonly message: Message
  /** In the order in which they began. */
  readonly begun: readonly Attempt[]
  /** What was to be looked for at some time: attempts as they stood there while the message was unknown. */
  readonly stood: readonly EndedAttempt[]
}

/** 0 is the attempt that began last, 1 the one before it; most news is of the last. */
const which = fc.oneof(
  { weight: 4, arbitrary: fc.constant(0) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 3 }) },
)
const kinds = fc.constantFrom(...outcomeKinds)
const kind = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom<OutcomeKind>('not_sent', 'unknown') },
  { weight: 2, arbitrary: kinds },
)
const isReplayPointless = fc.integer({ min: 0, max: 9 }).map((n) => n === 0)
const absence = fc.constantFrom<Absence>('early', 'once', 'proven')
const hourMs = 3_600_000

export const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ do: fc.constant('begin' as const) }) },
  { weight: 12, arbitrary: fc.record({ do: fc.constant('tell' as const), which, kind, isReplayPointless }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('lapse' as const), which }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('expire' as const, 'cancel' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('settle' as const),
      which,
      outcome: fc.constantFrom('not_sent' as const, 'not_sent' as const, 'sent' as const),
      resend: fc.boolean(),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('look' as const),
      which,
      kind: fc.constantFrom<LookResult['kind']>('absent', 'absent', 'absent', 'failed', 'found'),
      absence,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('replan' as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('decide' as const),
      decision: fc.constantFrom('approved' as const, 'approved' as const, 'declined' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('move' as const), inVain: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('wait' as const),
      ms: fc.constantFrom(60_000, hourMs, 6 * hourMs, 22 * hourMs),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('become another provider' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('receive' as const),
      which,
      evidence: fc.constantFrom('accepted' as const, 'delivered' as const, 'undelivered' as const),
      isNamed: fc.boolean(),
      agoMs: fc.constantFrom(0, 0, 1_000, 3_000),
    }),
  },
)
export const history = fc.array(step, { maxLength: 40, size: 'max' })

/** Some are allowed to go out for longer than a provider knows a key. */
const notAfter = fc.constantFrom(after(24 * hourMs), after(24 * hourMs), after(20_000), after(96 * hourMs))
const first = fc.constantFrom<Message['state']>(states.sending, states.scheduled, states.held, {
  status: 'queued',
  last: null,
  dueAt: after(0),
})
/** Of one that is held: why, and when it is to go once it may. */
const held = fc.record({
  heldFor: fc.constantFrom(...heldReasons),
  sendAt: fc.constantFrom(null, null, after(14_000), after(hourMs)),
})
export const starts: fc.Arbitrary<Start> = fc
  .tuple(fc.constantFrom(...(Object.keys(providers) as Provider[])), first, held, notAfter)
  .map(([provider, state, waits, until]) => {
    const rendered = state.status === 'sending' && providers[provider].deduplication !== null ? 'as it was sent' : null
    const more = state.status === 'held' ? waits : {}
    return { provider, message: messageIn(state, { notAfter: until, rendered, ...more }) }
  })

export const firstWorld = ({ provider, message }: Start): World => ({
  means: providers[provider],
  at: after(10_000),
  message,
  begun: message.state.status === 'sending' ? [message.state.attempt] : [],
  stood: [],
})

/** A step later, before it is known what came of it. */
export function passed({ means, at, ...world }: World, { do: what, ...rest }: Step): World {
  return {
    ...world,
    at: new Date(at.getTime() + ('ms' in rest ? rest.ms : 1_000)),
    means: what === 'become another provider' ? { ...means, identity: `${means.identity}!` } : means,
  }
}

/** After an event: the message as it is now. */
export function grown(world: World, message: Message, event: Event): World {
  const { state } = message
  const hasBegun = event.type === 'begin' && message !== world.message
  const isNew = state.status === 'unknown' && world.stood.every(({ id }) => id !== state.attempt.id)
  return {
    ...world,
    message,
    begun: hasBegun ? [...world.begun, event.attempt] : world.begun,
    stood: isNew ? [...world.stood, state.attempt] : world.stood,
  }
}

/** The event that a step stands for; undefined if it is none, or speaks of an attempt that was never begun. */
export function eventOf({ message, begun, stood, means, at }: World, given: Step): Event | undefined {
  const of = 'which' in given ? begun.at(-1 - given.which) : undefined
  switch (given.do) {
    case 'begin': {
      const waits = ['held', 'scheduled', 'queued'].includes(message.state.status)
      if (waits && at >= message.notAfter) return { type: 'expire', at } // as the dispatcher does
      const leaseUntil = new Date(at.getTime() + 4_000)
      return begin(message.attempts + 1, means, { startedAt: at, leaseUntil, identity: means.identity })
    }
    case 'lapse':
      return of === undefined ? undefined : { type: 'lease_lapsed', attemptId: of.id, means, at, random: 0.5 }
    case 'expire':
      return { type: 'expire', at }
    case 'cancel':
      return { type: 'cancel', apiKey: 'key1', at }
    case 'decide':
      return { type: 'decide', decision: { ...decided(given.decision, at), by: `key${at.getTime()}` }, at }
    case 'move':
      return moved(given.inVain && message.state.status === 'held' ? decided('approved', at) : null, at)
    case 'replan':
      return { type: 'replan', means, at, random: 0.5 }
    case 'tell': {
      if (of === undefined) return undefined
      const told = outcomeOf(of, given.kind, at, means)
      if (told.outcome.kind !== 'unknown' || !given.isReplayPointless) return told
      return { ...told, outcome: { ...told.outcome, isReplayPointless: true } }
    }
    case 'look': {
      const sought = stood.at(-1 - given.which)
      if (sought === undefined || means.lookup === null) return undefined
      // Only a strong look-up ever says more of what it did not find.
      const proves = means.lookup.strength === 'strong' ? given.absence : 'early'
      const { state } = message
      const asItStands = state.status === 'unknown' && state.attempt.id === sought.id ? state.attempt : sought
      return look(given.kind, { absence: proves, at, of: asItStands, means })
    }
    case 'settle':
      return of === undefined
        ? undefined
        : {
            type: 'settle',
            attemptId: of.id,
            outcome: given.outcome,
            resend: given.outcome === 'not_sent' && given.resend,
            providerMessageId: null,
            evidence: 'seen',
            apiKey: 'key1',
            at,
          }
    case 'receive':
      return of === undefined
        ? undefined
        : receipt(given.evidence, {
            attemptId: given.isNamed ? of.id : null,
            providerMessageId: `SM${of.number}`,
            occurredAt: new Date(at.getTime() - given.agoMs),
            at,
          })
    case 'wait':
    case 'become another provider':
      return undefined
  }
}

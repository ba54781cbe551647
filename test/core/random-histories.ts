/** Random histories of a message: what may be told of it, in any order and as often as it likes. */
import fc from 'fast-check'
import type { Attempt, Message } from '../../src/core/message.ts'
import { outcomeKinds, type OutcomeKind } from '../../src/core/outcome.ts'
import type { Event } from '../../src/core/events.ts'
import { after, attempt, blind, messageIn, outcomeOf, states } from './fixtures.ts'

export type Step =
  | { readonly do: 'begin' | 'expire' | 'cancel' }
  | { readonly do: 'lapse'; readonly which: number }
  | { readonly do: 'tell'; readonly which: number; readonly kind: OutcomeKind }
  | { readonly do: 'settle'; readonly which: number; readonly outcome: 'sent' | 'not_sent' }

/** 0 is the attempt that began last, 1 the one before it; most news is of the last. */
const which = fc.oneof(
  { weight: 4, arbitrary: fc.constant(0) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 3 }) },
)
const kinds = fc.constantFrom(...outcomeKinds)
const news = fc.oneof({ weight: 3, arbitrary: fc.constant<OutcomeKind>('not_sent') }, { weight: 2, arbitrary: kinds })
const verdicts = fc.constantFrom('sent' as const, 'not_sent' as const)
export const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('begin' as const) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('tell' as const), which, kind: news }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('lapse' as const), which }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('expire' as const, 'cancel' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('settle' as const), which, outcome: verdicts }) },
)

export const starts = fc.constantFrom<Message>(
  messageIn(states.sending),
  messageIn(states.scheduled),
  messageIn({ status: 'queued', last: null, dueAt: after(0) }),
)

/** The event that a step stands for; undefined if it speaks of an attempt that was never begun. */
export function eventOf(message: Message, begun: readonly Attempt[], asked: Step, at: Date): Event | undefined {
  const of = 'which' in asked ? begun.at(-1 - asked.which) : undefined
  switch (asked.do) {
    case 'begin':
      return {
        type: 'begin',
        attempt: { ...attempt(message.attempts + 1), startedAt: at },
        means: blind,
        rendered: null,
      }
    case 'lapse':
      return of === undefined ? undefined : { type: 'lease_lapsed', attemptId: of.id, means: blind, at, random: 0.5 }
    case 'expire':
      return { type: 'expire', at }
    case 'cancel':
      return { type: 'cancel', apiKey: 'key1', at }
    case 'tell':
      return of === undefined ? undefined : outcomeOf(of, asked.kind, at)
    case 'settle': {
      if (of === undefined) return undefined
      const { outcome } = asked
      return {
        type: 'settle',
        attemptId: of.id,
        outcome,
        resend: false,
        providerMessageId: null,
        evidence: 'seen',
        apiKey: 'key1',
        at,
      }
    }
  }
}

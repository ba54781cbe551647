/**
 * Plays random histories and keeps what is known of each attempt, told without the code under test: whoever made a call is
 * believed, and an acceptance always is; a person and a proven absence are believed of what is unknown, and of nothing else.
 */
import fc from 'fast-check'
import type { Status } from '../../src/core/message.ts'
import type { OutcomeKind } from '../../src/core/outcome.ts'
import type { Event } from '../../src/core/events.ts'
import { applied } from './fixtures.ts'
import {
  eventOf,
  firstWorld,
  grown,
  history as histories,
  passed,
  starts,
  type Provider,
  type Start,
  type Step,
  type World,
} from './random-histories.ts'

export type Knowledge = OutcomeKind | 'running'

export interface History extends World {
  readonly provider: Provider
  /** By the attempt's id, in the order in which they began. */
  readonly known: ReadonlyMap<string, Knowledge>
  /** Attempts that may have arrived, for all that their owners told; whatever a person or a look-up said. */
  readonly doubts: ReadonlySet<string>
  /** Attempts of which a receipt came while a call ran: they are proven, and the call may yet tell more. */
  readonly proven: ReadonlySet<string>
  /** How often a person had it sent again. */
  readonly resends: number
}

/** What must hold of every step: before it, what happened, after it. */
export type Rule = (before: History, event: Event, now: History) => boolean

export const learnt = ({ known }: History): Knowledge[] => [...known.values()]
export const unknownIds = ({ known }: History): string[] =>
  [...known].flatMap(([id, k]) => (k === 'unknown' ? [id] : []))
export const statusOf = ({ message }: History): Status => message.state.status

/** The first step that breaks the rule, in words; null if none does. */
function firstBreach(rule: Rule, start: Start, steps: readonly Step[]): string | null {
  const world = firstWorld(start)
  const known = new Map(world.begun.map(({ id }) => [id, 'running' as const]))
  let history: History = { ...world, provider: start.provider, known, doubts: new Set(), proven: new Set(), resends: 0 }
  for (const [i, given] of steps.entries()) {
    const before = { ...history, ...passed(history, given) }
    const event = eventOf(before, given)
    history = before
    if (event === undefined) continue
    const { message, decision } = applied(before.message, event)
    if (decision.kind === 'illegal') return decision.because
    history = { ...before, ...grown(before, message, event), ...learn(before, event, decision.kind === 'transition') }
    if (!rule(before, event, history))
      return `step ${i}, ${event.type}: ${before.message.state.status} -> ${message.state.status}`
  }
  return null
}

function learn(
  before: History,
  event: Event,
  hasChanged: boolean,
): Pick<History, 'known' | 'doubts' | 'proven' | 'resends'> {
  const known = new Map(before.known)
  const doubts = new Set(before.doubts)
  const proven = new Set(before.proven)
  let { resends } = before
  switch (event.type) {
    case 'begin':
      if (hasChanged) known.set(event.attempt.id, 'running')
      break
    case 'lease_lapsed':
      if (known.get(event.attemptId) !== 'running') break
      known.set(event.attemptId, 'unknown')
      doubts.add(event.attemptId)
      break
    case 'outcome': {
      const { id } = event.attempt
      const said = known.get(id)
      const told = event.outcome.kind
      // An attempt that is settled says nothing new but that it was accepted after all.
      if (said === 'running' || said === 'unknown' || told === 'accepted')
        known.set(id, said === 'accepted' ? said : told)
      if (told === 'accepted' || (told === 'unknown' && said === 'running')) doubts.add(id)
      if (said === 'unknown' && (told === 'rejected' || told === 'not_sent')) doubts.delete(id)
      break
    }
    case 'looked':
      if (event.result.kind === 'found') known.set(event.attempt.id, 'accepted')
      else if (isProof(before, event)) for (const id of unknownIds(before)) known.set(id, 'not_sent')
      break
    case 'settle':
      // A person may only speak of a message that nothing is done about at the moment.
      if (known.get(event.attemptId) !== 'unknown' || learnt(before).some(isRunningOrAccepted)) break
      if (event.resend && event.at >= before.message.notAfter && unknownIds(before).length === 1) break
      known.set(event.attemptId, event.outcome === 'sent' ? 'accepted' : 'not_sent')
      if (event.resend && unknownIds(before).length === 1) resends++
      break
    case 'receipt': {
      const id = event.attemptId ?? before.begun.at(-1)?.id
      if (id === undefined) break
      doubts.add(id)
      if (learnt(before).includes('running') && statusOf(before) === 'sending') proven.add(id)
      else known.set(id, 'accepted')
      break
    }
    case 'replan':
    case 'expire':
    case 'cancel':
    case 'decide':
    case 'conversation_moved':
      break
  }
  // Once the call has ended, what came while it ran is known.
  if (proven.size > 0 && statusOf(before) === 'sending' && !isStillRunning(before, event)) {
    for (const id of proven) known.set(id, 'accepted')
    proven.clear()
  }
  return { known, doubts, proven, resends }
}

/** The call that runs is not what the event ends. */
function isStillRunning({ message: { state } }: History, event: Event): boolean {
  if (state.status !== 'sending') return false
  switch (event.type) {
    case 'outcome':
      return event.attempt.id !== state.attempt.id && event.outcome.kind !== 'accepted'
    case 'lease_lapsed':
      return event.attemptId !== state.attempt.id
    case 'looked':
      return event.result.kind !== 'found'
    case 'begin':
    case 'replan':
    case 'expire':
    case 'cancel':
    case 'decide':
    case 'conversation_moved':
    case 'settle':
    case 'receipt':
      return true
  }
}

const isRunningOrAccepted = (known: Knowledge): boolean => known === 'running' || known === 'accepted'

/** An absence that is proven, of the provider that was called, told while the attempt is the last and none runs. */
export function isProof(before: History, event: Event): boolean {
  if (event.type !== 'looked' || event.result.kind !== 'absent' || event.absence !== 'proven') return false
  const last = before.begun.at(-1)
  return (
    last !== undefined &&
    last.id === event.attempt.id &&
    last.identity === event.means.identity &&
    unknownIds(before).length > 0 &&
    !learnt(before).some(isRunningOrAccepted)
  )
}

/** A history that breaks the rule, the shortest that was found, with its seed; null if there is none. */
export function counterexample(rule: Rule): string | null {
  const property = fc.property(starts, histories, (start, steps) => {
    const breach = firstBreach(rule, start, steps)
    if (breach !== null) throw new Error(breach)
  })
  return fc.defaultReportMessage(fc.check(property, { numRuns: 2_000 })) ?? null
}

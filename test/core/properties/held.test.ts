/** Of a message that is held, whatever is told of it, in whatever order (state-machine.ts, M4, M7). */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Event } from '../../../src/core/events.ts'
import { heldReasons, type Message } from '../../../src/core/message.ts'
import { outcomeKinds } from '../../../src/core/outcome.ts'
import {
  after,
  applied,
  approve,
  attempt,
  begin,
  blind,
  both,
  cancel,
  decided,
  decline,
  lapse,
  look,
  messageIn,
  moved,
  outcomeOf,
  play,
  receipt,
  settle,
  states,
} from '../fixtures.ts'

const notAfterMs = 20_000
const at = fc.integer({ min: 0, max: 2 * notAfterMs }).map(after)
const number = fc.integer({ min: 1, max: 3 })

/** Everything that can happen to any message, at any time, but for an approval. */
const unapproved: fc.Arbitrary<Event> = fc.oneof(
  fc.tuple(number, fc.constantFrom(blind, both), at).map(([n, means, startedAt]) => begin(n, means, { startedAt })),
  fc.tuple(number, fc.constantFrom(...outcomeKinds), at).map(([n, kind, when]) => outcomeOf(attempt(n), kind, when)),
  fc.tuple(number, at).map(([n, when]) => ({ ...lapse, attemptId: attempt(n).id, at: when })),
  fc
    .tuple(fc.constantFrom('found', 'absent', 'failed'), fc.constantFrom('early', 'proven'), at)
    .map(([kind, absence, when]) => look(kind, { absence, at: when })),
  at.map((when) => ({ type: 'replan', means: both, at: when, random: 0.5 }) as const),
  at.map((when) => ({ type: 'expire', at: when }) as const),
  at.map((when) => ({ ...cancel, at: when })),
  at.map(decline),
  fc.tuple(fc.boolean(), at).map(([inVain, when]) => moved(inVain ? decided('approved', when) : null, when)),
  fc.tuple(fc.constantFrom('sent', 'not_sent'), number, fc.boolean()).map((verdict) => settle(...verdict)),
  fc
    .tuple(fc.constantFrom('accepted', 'delivered', 'undelivered'), at)
    .map(([kind, when]) => receipt(kind, { at: when })),
)
const anything: fc.Arbitrary<Event> = fc.oneof(
  { weight: 9, arbitrary: unapproved },
  { weight: 2, arbitrary: at.map(approve) },
)

const held = fc
  .tuple(fc.constantFrom(...heldReasons), fc.constantFrom(null, after(5_000), after(30_000)))
  .map(([heldFor, sendAt]) => messageIn(states.held, { heldFor, sendAt, notAfter: after(notAfterMs) }))

/** A call that nobody made was accepted: an acceptance that is learnt always wins. */
const isAcceptance = (event: Event): boolean => event.type === 'outcome' && event.outcome.kind === 'accepted'

/** Each message of a history, with the event that made it. */
function steps(start: Message, events: readonly Event[]): { before: Message; event: Event; now: Message }[] {
  let before = start
  return events.map((event) => {
    const step = { before, event, now: applied(before, event).message }
    before = step.now
    return step
  })
}

test('M7 without an approval nothing leads from held to a call: it is canceled or stays, until an acceptance is learnt', () => {
  fc.assert(
    fc.property(held, fc.array(unapproved, { maxLength: 12 }), (start, events) => {
      for (const { now } of steps(
        start,
        events.filter((event) => !isAcceptance(event)),
      ))
        expect(['held', 'canceled']).toContain(now.state.status)
    }),
    { numRuns: 2_000 },
  )
})

test('M7 an approval that comes in time, and before all else, leads on; one that comes after another decision does not', () => {
  fc.assert(
    fc.property(held, at, fc.array(anything, { minLength: 1, maxLength: 6 }), (start, when, events) => {
      const approved = play(start, approve(when))
      const waits = start.sendAt !== null && start.sendAt > when ? 'scheduled' : 'queued'
      expect(approved.state.status).toBe(when < start.notAfter ? waits : 'canceled')
      const decidedBefore = play(start, ...events)
      fc.pre(decidedBefore.state.status !== 'held')
      expect(play(decidedBefore, approve(when))).toBe(decidedBefore)
    }),
    { numRuns: 2_000 },
  )
})

test.each([
  ['was declined', (message: Message): Message => play(message, decline(after(6_000)))],
  ['lapsed', (message: Message): Message => play(message, { type: 'expire', at: after(notAfterMs) })],
  ['was written on an old reading', (message: Message): Message => play(message, moved())],
  ['was approved on an old reading', (message: Message): Message => play(message, moved(decided('approved')))],
])('M4 of what %s nothing is changed by any event but an acceptance learnt late, and then it is sent', (_, end) => {
  fc.assert(
    fc.property(held, fc.array(anything, { maxLength: 12 }), (start, events) => {
      const ended = end(start)
      expect(ended.state.status).toBe('canceled')
      let isCorrected = false
      for (const { before, event, now } of steps(ended, events)) {
        const isNews = isCorrected || isAcceptance(event)
        expect(isNews || now === before).toBe(true)
        isCorrected ||= isAcceptance(event)
        expect(now.state.status).toBe(isCorrected ? 'sent' : 'canceled')
        expect(now.decision).toBe(ended.decision)
      }
    }),
    { numRuns: 1_000 },
  )
})

/** What a look that found nothing proves, and when it is taken; and that every plan ends (core/recovery.ts, R2, R4). */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Lookup } from '../../src/core/capabilities.ts'
import type { EndedAttempt, Message, Plan } from '../../src/core/message.ts'
import type { Event } from '../../src/core/events.ts'
import { absenceOf, openAttempt, planFor, type Absence, type RecoveryMeans } from '../../src/core/recovery.ts'
import {
  after,
  applied,
  asked,
  begin,
  both,
  ended,
  entries,
  keyed,
  look,
  messageIn,
  outcomeOf,
  play,
  states,
  told,
  weak,
} from './fixtures.ts'

const hourMs = 3_600_000
const strong = asked.lookup as Lookup
const settlingMs = strong.settlingMs
/** Attempt 1 began at 1 s with a lease of 4 s. */
const counts = 1_000 + 4_000 + settlingMs
const retentionEnds = 1_000 + 167 * hourMs

type Unsettled = Message & { readonly attempt: EndedAttempt }
const unseen = (number = 1): EndedAttempt => ({
  ...ended('unknown', number),
  evidence: { phase: 'begun', detail: 'Its lease lapsed.', endUnseen: true },
})
const unsettled = (attempt: EndedAttempt, ...open: EndedAttempt[]): Unsettled => ({
  ...messageIn(states.unknown, { open: open.map(openAttempt), notAfter: after(1_000 * hourMs) }),
  attempt,
})
const first = unsettled(ended('unknown'))

describe('a look that found nothing', () => {
  const proves = (message: Unsettled, lookup: Lookup, began: number, ms = 10, sinceLastMs: number | null = null) =>
    absenceOf(message, lookup, { began: after(began), ended: after(began + ms) }, sinceLastMs)

  const weakly = weak.lookup as Lookup
  test.each<[string, Absence, Parameters<typeof proves>]>([
    ['before the lease and a settling time is early', 'early', [first, strong, counts - 1]],
    ['that began too early and ended in time is early', 'early', [first, strong, counts - 5]],
    ['early is no second one either', 'early', [first, strong, counts - 1, 10, 10_000]],
    ['from then on is the first half', 'once', [first, strong, counts]],
    ['again a settling time later is the proof', 'proven', [first, strong, counts + 600, 10, settlingMs]],
    ['again too soon is the first half still', 'once', [first, strong, counts + 600, 10, settlingMs - 1]],
    ['without one of this process before it is the first half', 'once', [first, strong, 50_000, 10, null]],
    ['that ends before the retention does is the proof', 'proven', [first, strong, retentionEnds - 11, 10, hourMs]],
    ['that ends with the retention is early', 'early', [first, strong, retentionEnds - 10, 10, hourMs]],
    ['after the retention is early', 'early', [first, strong, retentionEnds + hourMs, 10, hourMs]],
    ['in a weak look-up never counts', 'early', [first, weakly, 50_000, 10, hourMs]],
    ['in a scan never counts', 'early', [first, { ...strong, match: 'scan' }, 50_000, 10, hourMs]],
    ['where nobody saw the end: ten leases, early', 'early', [unsettled(unseen()), strong, 41_499, 10, hourMs]],
    ['where nobody saw the end: after ten leases', 'proven', [unsettled(unseen()), strong, 41_500, 10, hourMs]],
    [
      'counts from the lease of the last attempt, early',
      'early',
      [unsettled(ended('unknown', 9), ended('unknown')), strong, 13_499],
    ],
    [
      'counts from the lease of the last attempt, in time',
      'once',
      [unsettled(ended('unknown', 9), ended('unknown')), strong, 13_500],
    ],
    [
      'counts from the lease of a refused repeat, too',
      'early',
      [unsettled(ended('not_sent', 9), ended('unknown')), strong, 13_499],
    ],
    [
      'counts from the latest end of all: an earlier one that nobody saw',
      'early',
      [unsettled(ended('unknown', 9), unseen()), strong, 41_499],
    ],
    ['counts from the latest end of all, in time', 'once', [unsettled(ended('unknown', 9), unseen()), strong, 41_500]],
    [
      'is within the retention of the first attempt',
      'early',
      [unsettled(ended('unknown', 9), ended('unknown')), strong, retentionEnds - 10, 10, hourMs],
    ],
  ])('R2 %s', (_, expected, args) => {
    expect(proves(...args)).toBe(expected)
  })

  test('R2 proves only what two in-time looks of one process, a settling time apart, would', () => {
    const ms = fc.integer({ min: 0, max: 200_000 })
    const since = fc.option(fc.integer({ min: 0, max: 2_000 }))
    const lookups = fc.constantFrom<Lookup>(strong, weakly, { ...strong, match: 'scan' })
    fc.assert(
      fc.property(lookups, ms, fc.nat(1_000), since, fc.boolean(), (lookup, began, took, sinceMs, isSeen) => {
        const counted = isSeen ? counts : 41_500
        const inTime = lookup === strong && began >= counted && began + took < retentionEnds
        const expected = !inTime ? 'early' : sinceMs !== null && sinceMs >= settlingMs ? 'proven' : 'once'
        expect(proves(isSeen ? first : unsettled(unseen()), lookup, began, took, sinceMs)).toBe(expected)
      }),
    )
  })
})

describe('the next look', () => {
  const next = (message: Unsettled, nowMs: number, more: Partial<Parameters<typeof planFor>[2]> = {}, means = asked) =>
    (planFor(message, means, { now: after(nowMs), random: 0.5, steps: 0, ...more })?.at.getTime() ?? NaN) -
    after(0).getTime()

  test('R2 of a strong look-up is never planned past the first instant at which absence counts', () => {
    expect(next(first, 2_000, { steps: 9 })).toBe(counts)
    expect(next(unsettled(unseen()), 2_000, { steps: 9 })).toBe(41_500)
    fc.assert(
      fc.property(
        fc.nat(counts - 1),
        fc.nat(20),
        fc.double({ min: 0, max: 0.99, noNaN: true }),
        (ms, steps, random) => {
          expect(next(first, ms, { steps, random })).toBeLessThanOrEqual(counts)
        },
      ),
    )
  })

  test('R2 comes sooner than that where its pause is over sooner, and after it as the pauses say', () => {
    expect(next(first, 2_000)).toBe(2_750)
    expect(next(first, counts, { steps: 9 })).toBe(counts + 384_000)
  })

  test('R2 of a look-up that proves nothing keeps its pauses', () => {
    expect(next(first, 2_000, { steps: 9 }, weak)).toBe(386_000)
    const scan: RecoveryMeans = { ...asked, lookup: { ...strong, match: 'scan' } }
    expect(next(first, 2_000, { steps: 9 }, scan)).toBe(386_000)
  })

  test('R2 after the first half of the proof comes a settling time later, however many steps there were', () => {
    for (const steps of [0, 5, 50]) expect(next(first, 9_000, { steps, absence: 'once' })).toBe(9_000 + settlingMs)
    expect(next(first, retentionEnds - settlingMs, { absence: 'once' })).toBeNaN()
  })

  test('keeps the pause that the provider asked for, also where absence would count earlier', () => {
    expect(next(first, 2_000, { pauseMs: 60_000 })).toBe(62_000)
    expect(next(first, 9_000, { pauseMs: 60_000, absence: 'once' })).toBe(69_000)
    expect(next(first, 2_000, { pauseMs: 168 * hourMs })).toBeNaN()
  })
})

describe('R4 every plan ends', () => {
  /** What the provider does at each step. */
  type Answer = 'lost' | 'no connection' | 'credentials' | 'refused' | 'pointless' | 'restart' | 'failed'
  const answers = fc.constantFrom<Answer>('lost', 'no connection', 'credentials', 'failed')
  const rare = fc.oneof(
    { weight: 60, arbitrary: answers },
    { weight: 1, arbitrary: fc.constantFrom<Answer>('refused', 'pointless', 'restart') },
  )
  const lateMs = fc.nat(60_000)

  const outcomes = {
    lost: told.unknown,
    failed: told.unknown,
    restart: told.unknown,
    'no connection': told.not_sent,
    credentials: { ...told.not_sent, reason: 'credentials' },
    refused: told.rejected,
    pointless: { ...told.unknown, isReplayPointless: true },
  } as const

  interface Taken {
    readonly plan: Plan
    readonly at: Date
  }

  /** Takes every step that is planned, each a little late, and answers it so that nothing is settled. */
  function stepsOf(means: RecoveryMeans, notAfter: Date, given: readonly Answer[], lates: readonly number[]) {
    const of = { number: 1, startedAt: after(0), leaseUntil: after(4_000) }
    let message = play(
      messageIn({ status: 'queued', last: null, dueAt: after(0) }, { notAfter }),
      begin(1, means, of),
      { type: 'lease_lapsed', attemptId: begin(1).attempt.id, means, at: after(4_000), random: 0.5 },
    )
    const taken: Taken[] = []
    let lastLook: number | null = null
    for (let i = 0; i < 2_000; i++) {
      const { state } = message
      if (state.status !== 'unknown' || state.plan === null) return { taken, message }
      const answer = given[i % given.length] ?? 'lost'
      const at = new Date(state.plan.at.getTime() + (lates[i % lates.length] ?? 0))
      if (answer === 'restart' && i < given.length) lastLook = null // not for ever
      taken.push({ plan: state.plan, at })
      const random = 0
      const again: Event = { type: 'replan', means, at, random }
      if (at >= state.plan.givesUpAt) message = applied(message, again).message
      else if (state.plan.step === 'replay') {
        const number = message.attempts + 1
        const startedAt = at
        const begun = begin(number, means, { startedAt, leaseUntil: new Date(at.getTime() + 4_000) })
        const outcome = outcomes[answer]
        const ending = { ...outcomeOf(begun.attempt, 'unknown', at, means), outcome, random }
        message = play(message, begun, ending)
        if (message.attempts !== number) throw new Error(`the replay ${number} that was planned did not begin`)
      } else {
        const sinceMs = lastLook === null ? null : at.getTime() - lastLook
        const absence =
          means.lookup === null
            ? 'early'
            : absenceOf({ ...message, attempt: state.attempt }, means.lookup, { began: at, ended: at }, sinceMs)
        const kind = answer === 'failed' ? 'failed' : 'absent'
        if (kind === 'absent' && absence === 'once') lastLook ??= at.getTime()
        message = play(message, { ...look(kind, { absence, at, of: state.attempt, means }), random })
      }
    }
    throw new Error('the plan does not end')
  }

  const lates = fc.array(lateMs, { minLength: 1 })
  const given = fc.array(rare, { minLength: 1, maxLength: 40 })
  const notAfters = fc.constantFrom(30_000, hourMs, 24 * hourMs, 1_000 * hourMs)

  test.each([
    ['keyed', keyed],
    ['strong', asked],
    ['weak', weak],
    ['keyed and strong', both],
    ['keyed and weak', { ...both, lookup: weak.lookup }],
  ])('of a %s provider, within its window and after a bounded number of steps', (_, means) => {
    fc.assert(
      fc.property(notAfters, given, lates, (notAfterMs, all, late) => {
        const { taken, message } = stepsOf(means, after(notAfterMs), all, late)
        const replays = taken.filter(({ plan: { step } }) => step === 'replay')
        const looks = taken.filter(({ plan: { step } }) => step === 'look')
        // Doubling from half a second to half an hour is 13 steps, and the rest are half an hour apart.
        expect(replays.length).toBeLessThanOrEqual(13 + 23 * 2)
        expect(looks.length).toBeLessThanOrEqual(13 + 167 * 2 + all.length)
        for (const { plan } of replays) expect(plan.at < after(Math.min(notAfterMs, 23 * hourMs))).toBe(true)
        for (const { plan } of looks) expect(plan.at < after(167 * hourMs)).toBe(true)
        expect(taken.findLastIndex(({ plan: { step } }) => step === 'replay')).toBe(replays.length - 1)
        expect(message.state.status).toMatch(/unknown|queued|failed/)
        expect(message.state.status === 'unknown').toBe(message.resolution === null)
      }),
      { numRuns: 150 },
    )
  })

  test('and tells in the time line that it gave up, and at what', () => {
    const message = play(
      messageIn(states.sending, { notAfter: after(60_000), rendered: 'as it was sent' }),
      outcomeOf(states.sending.attempt, 'unknown', after(1_200), keyed),
    )
    const { decision } = applied(message, { type: 'replan', means: keyed, at: after(60_000), random: 0 })
    expect(decision).toMatchObject({ next: { status: 'unknown', plan: null } })
    expect(entries(decision)).toMatchObject([{ type: 'gave_up', at: after(60_000), data: { step: 'replay' } }])
  })
})

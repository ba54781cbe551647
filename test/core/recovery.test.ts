/** What may follow an unknown outcome, by table and by property: plans and the warrant by key (core/recovery.ts). */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canProveAbsence, recoveryOf, type Lookup } from '../../src/core/capabilities.ts'
import type { EndedAttempt, Message } from '../../src/core/message.ts'
import {
  isSameProvider,
  keyWarrantHolds,
  mayBeginUntil,
  openAttempt,
  planFor,
  repeatsSoFar,
  type RecoveryMeans,
} from '../../src/core/recovery.ts'
import { after, asked, blind, both, ended, keyed, messageIn, states, weak } from './fixtures.ts'

const hourMs = 3_600_000
/** Attempt 1 began a second after t0, and a margin of an hour is taken off all that a provider promises. */
const windowEnds = after(1_000 + 23 * hourMs)
const retentionEnds = after(1_000 + 167 * hourMs)
const weakLooksEnd = after(1_000 + 24 * hourMs + 2_000)

type Unsettled = Message & { readonly attempt: EndedAttempt }
const unsettled = (attempt = ended('unknown'), more: Partial<Message> = {}): Unsettled => ({
  ...messageIn(states.unknown, { notAfter: after(1_000 * hourMs), rendered: 'as it was sent', ...more }),
  attempt,
})
const replayed = (outcome: 'unknown' | 'not_sent' | 'rejected', more: Partial<Message> = {}): Unsettled =>
  unsettled(ended(outcome, 2), { open: [openAttempt(ended('unknown'))], ...more })

const scan: RecoveryMeans = { ...blind, lookup: { ...(asked.lookup as Lookup), match: 'scan' } }
const elsewhere = { ...both, identity: 'another' }
const now = after(2_000)
const plan = (message: Unsettled, means: RecoveryMeans | null, more: Partial<Parameters<typeof planFor>[2]> = {}) =>
  planFor(message, means, { now, random: 0.5, steps: 0, ...more })

describe('the class of a provider', () => {
  test.each([
    ['blind', blind],
    ['keyed', keyed],
    ['keyed', both],
    ['lookup', asked],
    ['lookup-weak', weak],
    ['lookup-weak', scan],
    ['lookup-weak', { ...blind, lookup: { ...(weak.lookup as Lookup), match: 'scan' } }],
  ] as const)('D2 is %s by what it can do', (expected, means) => {
    expect(recoveryOf(means)).toBe(expected)
    expect(means.lookup !== null && canProveAbsence(means.lookup)).toBe(means === asked || means === both)
  })
})

describe('the first plan', () => {
  const soon = after(2_750)
  test.each<[string, Unsettled, RecoveryMeans | null, object | null]>([
    ['of a blind provider is none', unsettled(), blind, null],
    ['R3 of a provider that is not configured is none', unsettled(), null, null],
    ['R3 of another identity is none', unsettled(), elsewhere, null],
    ['R3 where no identity was recorded is none', unsettled({ ...ended('unknown'), identity: '' }), both, null],
    [
      'R3 where none was recorded and none is known is none',
      unsettled({ ...ended('unknown'), identity: '' }),
      { ...both, identity: '' },
      null,
    ],
    ['R1 of a keyed one is a replay', unsettled(), keyed, { step: 'replay', at: soon, givesUpAt: windowEnds }],
    ['R1 of one with both is a replay', unsettled(), both, { step: 'replay', at: soon, givesUpAt: windowEnds }],
    ['R1 without the stored request is none', unsettled(undefined, { rendered: null }), keyed, null],
    [
      'R1 without the stored request is a look where one can be',
      unsettled(undefined, { rendered: null }),
      both,
      { step: 'look', at: soon },
    ],
    ['R2 of one that can be asked is a look', unsettled(), asked, { step: 'look', at: soon, givesUpAt: retentionEnds }],
    ['R2 of a weak look-up is a look, for a day', unsettled(), weak, { step: 'look', givesUpAt: weakLooksEnd }],
    [
      'R2 of a scan is a look, for a day',
      unsettled(),
      scan,
      { step: 'look', givesUpAt: after(1_000 + 24 * hourMs + 500) },
    ],
    ['R1 counts the window from the first attempt', replayed('unknown'), keyed, { givesUpAt: windowEnds }],
    ['R1 counts from the first, also if the last was refused', replayed('not_sent'), keyed, { givesUpAt: windowEnds }],
    ['R2 counts the retention from the first attempt', replayed('unknown'), asked, { givesUpAt: retentionEnds }],
    [
      'R1 is not past notAfter',
      unsettled(undefined, { notAfter: after(60_000) }),
      keyed,
      { step: 'replay', givesUpAt: after(60_000) },
    ],
    ['R1 is none where notAfter is nearer than the pause', unsettled(undefined, { notAfter: soon }), keyed, null],
    [
      'R2 is a look after notAfter: it sends nothing',
      unsettled(undefined, { notAfter: now }),
      both,
      { step: 'look', at: soon, givesUpAt: retentionEnds },
    ],
  ])('%s', (_, message, means, expected) => {
    const made = { plan: plan(message, means) }
    expect(made).toMatchObject({ plan: expected === null ? null : { ...expected, steps: 0 } })
  })

  test.each([
    [0, 0, 500],
    [0, 0.999, 1_000],
    [1, 0.5, 1_500],
    [4, 0, 8_000],
    [11, 0.5, 1_536_000],
    [12, 0, 1_800_000],
    [12, 0.999, 3_598_200],
    [5_000, 0.5, 2_700_000],
  ])('R4 after %d steps and by chance %d comes %d ms later', (steps, random, ms) => {
    expect(plan(unsettled(), keyed, { steps, random })).toMatchObject({ at: after(2_000 + ms), steps })
  })

  test('R1 keeps the pause that the provider asked for, and falls back to a look if that is over too late', () => {
    expect(plan(unsettled(), both, { pauseMs: 7_000 })).toMatchObject({ step: 'replay', at: after(9_000) })
    expect(plan(unsettled(), both, { pauseMs: 100 })).toMatchObject({ at: after(2_750) })
    expect(plan(unsettled(), both, { pauseMs: 24 * hourMs })).toMatchObject({ step: 'look' })
    expect(plan(unsettled(), keyed, { pauseMs: 24 * hourMs })).toBeNull()
  })

  test('R4 that would come after its end comes once more just before it, if there is time for that', () => {
    const message = unsettled(undefined, { notAfter: after(62_000) })
    const at = (nowMs: number, pauseMs = 0) => plan(message, keyed, { now: after(nowMs), steps: 10, pauseMs })?.at
    expect([at(2_000), at(52_000), at(52_001)]).toEqual([after(57_000), after(57_000), undefined])
    expect([at(2_000, 55_000), at(2_000, 55_001), at(2_000, 60_000)]).toEqual([after(57_000), undefined, undefined])
  })

  test('R1 is no replay that would tell nothing new', () => {
    expect(plan(unsettled(), keyed, { isReplayPointless: true })).toBeNull()
    expect(plan(unsettled(), both, { isReplayPointless: true })).toMatchObject({ step: 'look' })
  })

  test.each([
    [keyed, windowEnds],
    [asked, retentionEnds],
    [weak, weakLooksEnd],
  ])('R4 ends where it gives up: the last step comes before it, and none on it', (means, end) => {
    const at = (ms: number) => plan(unsettled(), means, { now: new Date(end.getTime() - 750 + ms) })
    expect(at(-1)).toMatchObject({ at: new Date(end.getTime() - 1), givesUpAt: end })
    expect(at(0)).toBeNull()
  })

  test('R2 a weak look-up ends with the retention if that is shorter than a day', () => {
    const short = { ...weak, lookup: { ...(weak.lookup as Lookup), retentionMs: 3 * hourMs } }
    expect(plan(unsettled(), short)).toMatchObject({ givesUpAt: after(1_000 + 2 * hourMs) })
  })
})

describe('the warrant by key', () => {
  const msBefore = (ms: number): Date => new Date(windowEnds.getTime() - ms)
  test.each<[string, Unsettled, RecoveryMeans, Date, boolean]>([
    ['holds within the window', unsettled(), keyed, now, true],
    ['holds in the last millisecond of the window', unsettled(), keyed, msBefore(1), true],
    ['ends with the window', unsettled(), keyed, windowEnds, false],
    ['ends with the window of the first attempt', replayed('unknown'), keyed, windowEnds, false],
    ['holds until the window of the first attempt ends', replayed('rejected'), keyed, msBefore(1), true],
    ['ends with notAfter', unsettled(undefined, { notAfter: now }), keyed, now, false],
    ['holds until notAfter', unsettled(undefined, { notAfter: after(2_001) }), keyed, now, true],
    ['wants the stored request', unsettled(undefined, { rendered: null }), keyed, now, false],
    ['R3 wants the same provider', unsettled(), elsewhere, now, false],
    ['R3 wants a known provider', unsettled({ ...ended('unknown'), identity: '' }), keyed, now, false],
    ['wants a provider that takes keys', unsettled(), asked, now, false],
  ])('R1 %s', (_, message, means, at, holds) => {
    expect(keyWarrantHolds(message, means, at)).toBe(holds)
  })

  test('R1 holds of every replay that is planned, until the plan gives up and not longer', () => {
    const offsets = fc.integer({ min: 0, max: 30 * hourMs })
    fc.assert(
      fc.property(
        offsets,
        offsets,
        fc.nat(20),
        fc.double({ min: 0, max: 0.99, noNaN: true }),
        (ms, until, steps, r) => {
          const message = unsettled(undefined, { notAfter: after(until) })
          const made = plan(message, both, { now: after(ms), steps, random: r })
          if (made?.step !== 'replay') return
          expect(keyWarrantHolds(message, both, made.at)).toBe(true)
          expect(made.givesUpAt.getTime()).toBe(Math.min(windowEnds.getTime(), until + after(0).getTime()))
          expect(keyWarrantHolds(message, both, made.givesUpAt)).toBe(false)
        },
      ),
    )
  })
})

describe('the first byte', () => {
  const notAfter = after(1_000 * hourMs)
  const open = [openAttempt(ended('unknown')), openAttempt(ended('unknown', 2))]
  test.each<[string, readonly ReturnType<typeof openAttempt>[], Date, RecoveryMeans, Date]>([
    ['of a first attempt may leave until notAfter', [], notAfter, keyed, notAfter],
    ['R1 of a replay may leave until the window of the first attempt ends', open, notAfter, keyed, windowEnds],
    ['R1 of a replay may leave until notAfter, if that is earlier', open, after(5_000), keyed, after(5_000)],
    ['of a provider without keys may leave until notAfter', open, notAfter, asked, notAfter],
  ])('%s', (_, before, until, means, expected) => {
    expect(mayBeginUntil(messageIn(states.sending, { open: before, notAfter: until }), means)).toEqual(expected)
  })
})

test('R3 two attempts without a recorded identity went to nobody that is known, and not to the same', () => {
  expect(isSameProvider({ identity: 'a' }, { identity: 'a' })).toBe(true)
  expect(isSameProvider({ identity: 'a' }, { identity: 'b' })).toBe(false)
  expect(isSameProvider({ identity: '' }, { identity: '' })).toBe(false)
})

test('R4 repeats count from the first attempt that is open, refused ones too', () => {
  expect(repeatsSoFar({ open: [] }, ended('unknown', 5))).toBe(0)
  expect(repeatsSoFar({ open: [openAttempt(ended('unknown', 2))] }, ended('not_sent', 5))).toBe(3)
})

test('an attempt stays open with what was seen of its end', () => {
  const { id, number, startedAt, leaseUntil } = ended('unknown')
  expect(openAttempt(ended('unknown'))).toEqual({ id, number, startedAt, leaseUntil, endSeen: true })
  const unseen = { ...ended('unknown'), evidence: { phase: 'begun', detail: 'Lapsed.', endUnseen: true } } as const
  expect(openAttempt(unseen)).toMatchObject({ endSeen: false })
})

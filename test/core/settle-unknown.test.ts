/** How a message that is unknown goes on: repeats by warrant, look-ups, persons, overtaken attempts (engine.md, "Warrants"). */
import { describe, expect, test } from 'vitest'
import { openAttemptIds, type EndedAttempt, type Message } from '../../src/core/message.ts'
import type { Event } from '../../src/core/events.ts'
import type { Outcome } from '../../src/core/outcome.ts'
import type { RecoveryMeans } from '../../src/core/recovery.ts'
import { decide } from '../../src/core/state-machine.ts'
import {
  after,
  alarms,
  applied,
  asked,
  attempt,
  begin,
  blind,
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
  uuid,
  whatFollows,
} from './fixtures.ts'

const hourMs = 3_600_000
const windowEnds = after(1_000 + 23 * hourMs)
const sending = messageIn(states.sending, { notAfter: after(1_000 * hourMs), rendered: 'as it was sent' })
const lost = (number: number, means: RecoveryMeans) => outcomeOf(attempt(number), 'unknown', undefined, means)
/** Attempt 1 is unknown, of a provider that takes keys. */
const unknown = play(sending, lost(1, keyed))
/** Attempt 2 repeats it. */
const replaying = play(unknown, begin(2, keyed))
const openIds = (message: Message) => openAttemptIds(message).map((id) => Number.parseInt(id.slice(-4), 16))
const typesOf = (message: Message, event: Event) => entries(decide(message, event)).map(({ type }) => type)
const given = (number: number, outcome: Outcome, means = keyed) => ({ ...lost(number, means), outcome })
const heldUp = { ...told.unknown, retryAfterMs: 30_000 } as const
const paused = { ...told.not_sent, reason: 'refused_for_now', retryAfterMs: 30_000 } as const
const credentials = { ...told.not_sent, reason: 'credentials' } as const
const pointless = { ...told.unknown, isReplayPointless: true } as const
const conflict = { ...pointless, isKeyConflict: true } as const

describe('a repeat by key', () => {
  test('M3 is recorded with its warrant and what it is for, and what it repeats stays open', () => {
    const { message, decision } = applied(unknown, begin(2, keyed))
    expect(message).toMatchObject({ state: { status: 'sending', attempt: attempt(2) }, attempts: 2 })
    expect(message.open).toMatchObject([{ id: uuid(1), number: 1, endSeen: true }])
    expect(message.rendered).toBe('as it was sent')
    expect(entries(decision)).toMatchObject([
      { type: 'attempt_ended', attemptId: uuid(1), data: { outcome: 'unknown' } },
      { type: 'warranted', at: after(2_000), attemptId: uuid(2), data: { warrant: 'key', for: 1 } },
    ])
  })

  test('M3 keeps the bytes of the first call, whatever it is given', () => {
    expect(play(unknown, { ...begin(2, keyed), rendered: 'other bytes' }).rendered).toBe('as it was sent')
  })

  test.each<[string, Message, RecoveryMeans, Partial<EndedAttempt>]>([
    ['nothing is planned', { ...unknown, state: { ...states.unknown } }, keyed, {}],
    ['a look is planned', play(unknown, replan(both, windowEnds)), both, {}],
    ['the provider is another one', unknown, { ...keyed, identity: 'another' }, {}],
    ['the provider takes no keys any more', unknown, asked, {}],
    ['its window is over', unknown, keyed, { startedAt: windowEnds }],
    ['notAfter has passed', { ...unknown, notAfter: after(2_000) }, keyed, {}],
    ['nothing was stored of the request', { ...unknown, rendered: null }, keyed, {}],
  ])('M3 does not begin where %s', (_, message, means, of) => {
    expect(decide(message, begin(2, means, of))).toMatchObject({ kind: 'ignored', effects: [] })
  })

  test.each<[string, Message, number]>([
    ['of one that is unknown', play(replaying, given(2, told.unknown)), 3],
    ['of one that waits', messageIn(states.queued), 2],
  ])('M3 that was planned on an old reading does not begin: %s', (_, message, number) => {
    const decided = (n: number) => decide(message, begin(n, keyed))
    for (const n of [number - 1, number + 1]) expect(decided(n)).toMatchObject({ kind: 'ignored', effects: [] })
    expect(whatFollows(decided(number))).toBe('sending')
  })

  test('M3 begins in the last millisecond of the window, which the first attempt opened', () => {
    const at = new Date(windowEnds.getTime() - 1)
    const refused = play(replaying, given(2, told.not_sent))
    expect(whatFollows(decide(refused, begin(3, keyed, { startedAt: at })))).toBe('sending')
    expect(whatFollows(decide(refused, begin(3, keyed, { startedAt: windowEnds })))).toBe('ignored')
  })

  test('that is accepted makes it sent, and says how', () => {
    const { message } = applied(replaying, outcomeOf(attempt(2), 'accepted', undefined, keyed))
    expect(message).toMatchObject({
      state: { status: 'sent', attempt: { number: 2 }, providerMessageId: 'SM1' },
      resolution: { by: 'provider_replay', at: after(2_200), attemptId: uuid(2), outcome: 'sent' },
      open: [],
      rendered: null,
      answer: { status: 201 },
    })
  })

  const soon = 1_500
  test.each<[string, Outcome, RecoveryMeans, string | null, number, number[], string[]]>([
    ['lost', told.unknown, keyed, 'replay', soon, [1, 2], []],
    ['told to wait', heldUp, keyed, 'replay', 30_000, [1, 2], []],
    ['refused a connection', told.not_sent, keyed, 'replay', soon, [1], []],
    ['refused for now', paused, keyed, 'replay', 30_000, [1], []],
    ['refused for credentials', credentials, keyed, 'replay', 60_000, [1], ['provider_credentials']],
    ['refused for good', told.rejected, keyed, null, 0, [1], []],
    ['refused for good, and can be looked for', told.rejected, both, 'look', soon, [1], []],
    ['given the failure that is stored', pointless, keyed, null, 0, [1, 2], []],
    ['given the failure that is stored, and can be looked for', pointless, both, 'look', soon, [1, 2], []],
    ['told of a key conflict', conflict, keyed, null, 0, [1, 2], ['provider_key_conflict']],
  ])('E3a that is %s leaves the message unknown', (_, outcome, means, next, pauseMs, open, alarmed) => {
    const { message, decision } = applied(replaying, given(2, outcome, means))
    const plan = next === null ? null : { step: next, at: after(2_200 + pauseMs), steps: 1 }
    expect(message).toMatchObject({ state: { status: 'unknown', plan }, resolution: null, answer: null })
    expect(openIds(message)).toEqual(open)
    expect(message.rendered).toBe('as it was sent')
    expect(alarms(decision)).toEqual(alarmed)
    expect(entries(decision).map(({ type }) => type)).toEqual(next === null ? ['gave_up'] : [])
  })

  test('R4 that is refused a connection is tried again ever more seldom, within the window of the first', () => {
    let message = replaying
    for (let number = 2; number < 9; number++) {
      message = play(message, given(number, told.not_sent))
      expect(message.state).toMatchObject({ plan: { steps: number - 1, givesUpAt: windowEnds } })
      message = play(message, begin(number + 1, keyed))
    }
    const lapse = { type: 'lease_lapsed', attemptId: uuid(9), means: keyed, at: after(14_000), random: 0.5 } as const
    expect(play(message, lapse).state).toMatchObject({
      plan: { step: 'replay', steps: 8, at: after(14_000 + 192_000) },
    })
  })

  test('E8 O2 that was not sent is no reason to go to another provider; a first attempt that was not sent is one', () => {
    const notSent = { ...given(2, told.not_sent), canFailOver: true }
    expect(play(replaying, notSent).state).toMatchObject({ status: 'unknown', plan: { step: 'replay' } })
    const first = { ...given(1, told.not_sent), canFailOver: true }
    expect(play(sending, first).state).toMatchObject({ status: 'queued', dueAt: first.at })
    expect(play(sending, given(1, told.not_sent)).state).toMatchObject({ dueAt: after(1_700) })
  })

  test('R2 F6 whose lease lapsed ends unseen, and stays so when another follows', () => {
    const lapse = { type: 'lease_lapsed', attemptId: uuid(2), means: keyed, at: after(6_000), random: 0.5 } as const
    const lapsed = play(replaying, lapse)
    expect(lapsed.state).toMatchObject({ attempt: { outcome: 'unknown', evidence: { endUnseen: true } } })
    expect(play(lapsed, begin(3, keyed)).open).toMatchObject([{ endSeen: true }, { id: uuid(2), endSeen: false }])
  })

  test('E11 ends in no plan where the provider became another one meanwhile', () => {
    const message = play(replaying, given(2, told.unknown, { ...both, identity: 'another' }))
    expect(message.state).toMatchObject({ status: 'unknown', plan: null })
  })

  test.each<[string, RecoveryMeans | null, string[]]>([
    ['of the same key, in its window: one message', keyed, []],
    ['of a provider that takes no keys: two messages', blind, ['accepted_twice']],
    ['of a provider that is not configured: two messages', null, ['accepted_twice']],
  ])('two acceptances %s', (_, means, alarmed) => {
    const sent = play(replaying, outcomeOf(attempt(2), 'accepted', undefined, keyed))
    const decision = decide(sent, { ...outcomeOf(attempt(1), 'accepted', after(9_000)), means })
    expect([decision.kind, alarms(decision)]).toEqual(['ignored', alarmed])
    expect(entries(decision)).toMatchObject([{ type: 'late_outcome', attemptId: uuid(1) }])
  })

  test.each<[string, Partial<EndedAttempt>, string[]]>([
    ['a window apart are two', { startedAt: after(2_000 + 23 * hourMs) }, ['accepted_twice']],
    ['just within a window are one', { startedAt: after(1_999 + 23 * hourMs) }, []],
    ['of two providers are two', { identity: 'another' }, ['accepted_twice']],
  ])('two acceptances by key %s', (_, of, alarmed) => {
    const sent = play(replaying, outcomeOf(attempt(2), 'accepted', undefined, keyed))
    const other = { ...attempt(7), ...of }
    expect(alarms(decide(sent, outcomeOf(other, 'accepted', undefined, keyed)))).toEqual(alarmed)
  })
})

function replan(means: RecoveryMeans | null, at: Date) {
  return { type: 'replan', means, at, random: 0.5 } as const
}

describe('a plan', () => {
  test('R3 R4 is made anew where its step cannot be taken, and its end is told', () => {
    const asLook = applied(unknown, replan(both, windowEnds))
    expect(asLook.message.state).toMatchObject({ plan: { step: 'look', steps: 1 } })
    expect(entries(asLook.decision)).toEqual([])
    for (const means of [null, blind, { ...both, identity: 'another' }]) {
      const { message, decision } = applied(unknown, replan(means, after(9_000)))
      expect(message.state).toMatchObject({ status: 'unknown', plan: null })
      expect(entries(decision)).toMatchObject([
        { type: 'gave_up', at: after(9_000), attemptId: uuid(1), data: { step: 'replay' } },
      ])
      expect(decide(message, replan(both, after(10_000)))).toMatchObject({ kind: 'ignored', effects: [] })
    }
  })

  test('that has come to looks does not go back to repeats', () => {
    const looking = play(replaying, given(2, told.rejected, both))
    const of = ended('rejected', 2)
    for (const event of [replan(both, after(9_000)), look('failed', { of, means: both })])
      expect(play(looking, event).state).toMatchObject({ plan: { step: 'look', steps: 2 } })
  })

  test('of repeats stays one of repeats when a look-up ends', () => {
    expect(play(unknown, look('failed', { means: both })).state).toMatchObject({ plan: { step: 'replay', steps: 1 } })
  })
})

describe('a late outcome of an attempt that is open', () => {
  const late = (number: number, outcome: Outcome) => ({ ...given(number, outcome), at: after(9_000) })
  const lapsed = { type: 'lease_lapsed', attemptId: uuid(2), means: keyed, at: after(6_000), random: 0.5 } as const
  const resolvedBy = (number: number, outcome: 'sent' | 'not_sent') => ({
    by: 'late_answer',
    at: after(9_000),
    attemptId: uuid(number),
    outcome,
  })
  const twoLost = play(replaying, given(2, told.unknown))
  const refused = play(replaying, given(2, told.rejected))
  const notBegun = play(replaying, given(2, told.not_sent))

  test.each<[string, Message, number]>([
    ['while it is unknown', twoLost, 1],
    ['while its repeat was refused', refused, 1],
    ['while its repeat runs', replaying, 1],
    ['while its repeat never began', notBegun, 1],
    ['if it is the repeat itself', play(replaying, lapsed), 2],
  ])('M6 that says accepted makes it sent %s: no alarm', (_, message, number) => {
    const { message: sent, decision } = applied(message, late(number, told.accepted))
    expect(sent).toMatchObject({
      state: { status: 'sent', attempt: { number } },
      resolution: resolvedBy(number, 'sent'),
    })
    expect(alarms(decision)).toEqual([])
    expect(entries(decision).map(({ attemptId }) => attemptId)).toEqual([uuid(2), uuid(number)])
    const again = outcomeOf(attempt(number === 1 ? 2 : 1), 'accepted', after(9_500), keyed)
    expect(alarms(decide(sent, again))).toEqual([])
  })

  test.each(['rejected', 'not_sent'] as const)('U1 that says %s settles it alone, while another is open', (kind) => {
    const { message, decision } = applied(twoLost, late(1, told[kind]))
    expect(message).toMatchObject({ state: twoLost.state, resolution: null })
    expect(openIds(message)).toEqual([2])
    expect(entries(decision)).toMatchObject([{ type: 'late_outcome', attemptId: uuid(1), data: { outcome: kind } }])
    expect(openIds(play(twoLost, late(2, told[kind])))).toEqual([1])
  })

  test.each<[string, 'rejected' | 'not_sent', string, Message, number]>([
    ['its repeat was refused for good', 'not_sent', 'failed', refused, 2],
    ['its repeat was refused for good', 'rejected', 'failed', refused, 2],
    ['its repeat never began', 'rejected', 'failed', notBegun, 1],
    ['its repeat never began', 'not_sent', 'queued', notBegun, 2],
  ])('O1 where %s, and it says %s, makes the message what both say: %s', (_, kind, status, message, last) => {
    const { message: settled, decision } = applied(message, late(1, told[kind]))
    expect(settled).toMatchObject({
      state: { status, last: { number: last } },
      resolution: resolvedBy(1, 'not_sent'),
      open: [],
    })
    const due = { type: 'dispatch_at', at: after(9_000) }
    const effects = decision.kind === 'transition' ? decision.effects : []
    expect(effects.filter(({ type }) => type === 'dispatch_at')).toEqual(status === 'queued' ? [due] : [])
    expect(typesOf(message, late(1, told[kind]))).toEqual([...(last === 1 ? ['attempt_ended'] : []), 'late_outcome'])
  })

  test('is due at notAfter at the latest, where nothing was sent', () => {
    const notAfter = after(8_000)
    expect(play({ ...notBegun, notAfter }, late(1, told.not_sent)).state).toMatchObject({ dueAt: notAfter })
  })

  test.each(['rejected', 'not_sent'] as const)('that says %s while its repeat runs leaves the repeat alone', (kind) => {
    const message = play(replaying, late(1, told[kind]))
    expect(message).toMatchObject({ state: replaying.state, open: [], resolution: null, attempts: 2 })
    expect(whatFollows(decide(message, given(2, told.rejected)))).toBe('failed')
    expect(whatFollows(decide(message, given(2, told.not_sent)))).toBe('queued')
    expect(play(message, given(2, told.unknown)).state).toMatchObject({
      plan: { givesUpAt: after(2_000 + 23 * hourMs) },
    })
  })

  test('M6 that says what the lapsed repeat ended with leaves what it repeats open', () => {
    for (const outcome of [told.rejected, told.not_sent]) {
      const { message, decision } = applied(play(replaying, lapsed), late(2, outcome))
      expect(message).toMatchObject({ state: { status: 'unknown', attempt: { number: 2 } }, resolution: null })
      expect(openIds(message)).toEqual([1])
      const types = entries(decision).map(({ type }) => type)
      expect(types.filter((type) => type !== 'gave_up')).toEqual(['attempt_ended', 'late_outcome'])
    }
  })

  test.each([
    ['that was overtaken', replaying, 1],
    ['whose lease lapsed', play(replaying, lapsed), 2],
  ] as const)('of a key conflict is an alarm, told by one %s', (_, message, number) => {
    const decision = decide(message, late(number, conflict))
    expect([decision.kind, alarms(decision)]).toEqual(['ignored', ['provider_key_conflict']])
    expect(alarms(decide(message, late(number, heldUp)))).toEqual([])
  })
})

/** What look-ups and persons make of a message that is unknown (engine.md, "Warrants"; E9). */
import { describe, expect, test } from 'vitest'
import { openAttemptIds, type EndedAttempt, type Message } from '../../src/core/message.ts'
import type { Event } from '../../src/core/events.ts'
import { decide } from '../../src/core/state-machine.ts'
import {
  after,
  alarms,
  applied,
  asked,
  attempt,
  begin,
  both,
  cancel,
  ended,
  entries,
  expire,
  look,
  messageIn,
  outcomeOf,
  play,
  settle,
  states,
  uuid,
} from './fixtures.ts'

const hourMs = 3_600_000
const sending = messageIn(states.sending, { notAfter: after(1_000 * hourMs), rendered: 'as it was sent' })
const outcome = (number: number, kind: Parameters<typeof outcomeOf>[1], means = both) =>
  outcomeOf(attempt(number), kind, undefined, means)
const unknown = play(sending, outcome(1, 'unknown', asked))
const replaying = play(sending, outcome(1, 'unknown'), begin(2, both))
const twoLost = play(replaying, outcome(2, 'unknown'))
const refused = play(replaying, outcome(2, 'rejected'))
const openIds = (message: Message) => openAttemptIds(message).map((id) => Number.parseInt(id.slice(-4), 16))
const proven = (more: Parameters<typeof look>[1] = {}) => look('absent', { absence: 'proven', ...more })

describe('a look-up that found it', () => {
  test.each<[string, Message, EndedAttempt, string[]]>([
    ['while it is unknown', unknown, ended('unknown'), []],
    ['while a repeat of it runs', replaying, ended('unknown'), []],
    ['while a repeat of its refused repeat runs', play(refused, begin(3, both)), ended('rejected', 2), []],
    ['while its repeat is unknown', twoLost, ended('unknown', 2), []],
    ['and began before its repeat was lost', twoLost, ended('unknown'), []],
    ['after its owner said that it was not sent', messageIn(states.queued), ended('unknown'), ['verdict_corrected']],
    ['after it was canceled', play(messageIn(states.queued), cancel), ended('unknown'), ['verdict_corrected']],
    ['after it expired', play(messageIn(states.queued), expire), ended('unknown'), ['verdict_corrected']],
    ['after a person failed it', play(unknown, settle('not_sent')), ended('unknown'), ['verdict_corrected']],
    [
      'after a person had it sent again, while it waits',
      play(unknown, settle('not_sent', 1, true)),
      ended('unknown'),
      ['verdict_corrected'],
    ],
    [
      'while another attempt runs, for a person had it sent again',
      play(unknown, settle('not_sent', 1, true), begin(2)),
      ended('unknown'),
      ['verdict_corrected'],
    ],
    [
      'while that other attempt is unknown',
      play(unknown, settle('not_sent', 1, true), begin(2), outcome(2, 'unknown', asked)),
      ended('unknown'),
      ['verdict_corrected'],
    ],
  ])('makes it sent %s', (_, message, of, alarmed) => {
    const { message: sent, decision } = applied(message, look('found', { of }))
    expect(sent).toMatchObject({
      state: { status: 'sent', attempt: { id: of.id }, providerMessageId: 'SM1', sentAt: after(9_000) },
      resolution: { by: 'lookup', at: after(9_000), attemptId: of.id, outcome: 'sent' },
      answer: { status: 201 },
      open: [],
    })
    expect(alarms(decision)).toEqual(alarmed)
    expect(entries(decision).at(-1)).toMatchObject({ type: 'looked', attemptId: of.id, data: { result: 'found' } })
    const twice = alarms(decide(message, look('found', { of, count: 2 })))
    expect(twice).toEqual([...alarmed, 'accepted_twice'])
  })

  test('of an attempt that a person gave up tells its successor from it: that one is a second message', () => {
    const second = play(unknown, settle('not_sent', 1, true), begin(2), outcome(2, 'unknown', asked))
    const sent = play(second, look('found'))
    expect(alarms(decide(sent, outcomeOf(attempt(2), 'accepted', after(10_000), asked)))).toEqual(['accepted_twice'])
  })

  test('twice is told as doubled, and never ends in another attempt', () => {
    const { message, decision } = applied(unknown, look('found', { count: 2 }))
    expect(message.state.status).toBe('sent')
    expect(entries(decision)).toMatchObject([{ type: 'looked', data: { result: 'doubled', httpStatus: 200 } }])
    const again = decide(message, look('found', { count: 2 }))
    expect([again.kind, alarms(again)]).toEqual(['ignored', ['accepted_twice']])
    expect(entries(again)).toMatchObject([{ type: 'looked', data: { result: 'doubled' } }])
    expect(decide(message, look('found'))).toMatchObject({ kind: 'ignored', effects: [{ type: 'record' }] })
  })

  test.each<[string, Message, EndedAttempt, string[]]>([
    ['the repeat that runs', replaying, ended('unknown'), ['attempt_started 2']],
    ['the repeat that is unknown', twoLost, ended('unknown'), ['attempt_ended 2']],
    ['nothing, where it stands there itself', unknown, ended('unknown'), []],
  ])('moves to the time line %s', (_, message, of, moved) => {
    const told = entries(decide(message, look('found', { of }))).slice(0, -1)
    expect(told.map(({ type, attemptId }) => `${type} ${Number.parseInt(attemptId?.slice(-4) ?? '', 16)}`)).toEqual(
      moved,
    )
  })
})

describe('a look-up that did not find it', () => {
  test.each<[string, Event, object, number]>([
    ['that failed', look('failed'), { result: 'failed' }, 1_500],
    ['that was early', look('absent'), { result: 'absent', absence: 'early' }, 1_500],
    ['the first time', look('absent', { absence: 'once' }), { result: 'absent', absence: 'once' }, 500],
  ])('%s leaves it unknown, and another comes', (_, event, data, pauseMs) => {
    const { message, decision } = applied(unknown, event)
    const plan = { step: 'look', at: after(9_000 + pauseMs), steps: 1 }
    expect(message).toMatchObject({ state: { status: 'unknown', plan }, resolution: null })
    expect(entries(decision)).toMatchObject([{ type: 'looked', attemptId: uuid(1), data }])
    expect(decision).toMatchObject({ effects: [{ type: 'record' }] })
  })

  test('keeps the pause that the provider asks for', () => {
    const { result, ...event } = look('failed')
    const told = { ...event, result: { ...result, kind: 'failed', retryAfterMs: 60_000 } } as Event
    expect(play(unknown, told).state).toMatchObject({ plan: { at: after(69_000) } })
  })

  test('to the end of the retention is given up, and told', () => {
    const at = after(1_000 + 167 * hourMs)
    const { message, decision } = applied(unknown, look('absent', { at }))
    expect(message.state).toMatchObject({ status: 'unknown', plan: null })
    expect(entries(decision)).toMatchObject([{ type: 'looked' }, { type: 'gave_up', at, data: { step: 'look' } }])
  })

  test('U2 U3 proves that nothing arrived: one more attempt', () => {
    const { message, decision } = applied(unknown, proven())
    expect(message).toMatchObject({
      state: {
        status: 'queued',
        dueAt: after(9_000),
        last: { id: uuid(1), outcome: 'not_sent', endedAt: after(9_000) },
      },
      resolution: { by: 'lookup', at: after(9_000), attemptId: uuid(1), outcome: 'not_sent' },
      open: [],
    })
    expect(decision).toMatchObject({ effects: [{ type: 'dispatch_at', at: after(9_000) }, {}, {}, {}] })
    expect(entries(decision)).toMatchObject([
      { type: 'attempt_ended', data: { outcome: 'unknown' } },
      { type: 'looked', data: { result: 'absent', absence: 'proven' } },
      { type: 'resolved', attemptId: uuid(1), data: { by: 'lookup', outcome: 'not_sent', warrant: 'absent' } },
    ])
  })

  test('U2 settles every open attempt at once, for it looked for all of them', () => {
    const message = play(twoLost, proven({ of: ended('unknown', 2), means: both }))
    expect(message).toMatchObject({ state: { status: 'queued', last: { number: 2, outcome: 'not_sent' } }, open: [] })
  })

  test('U3 E10 proves it after notAfter: nothing is sent any more', () => {
    for (const [notAfter, status] of [
      [after(9_000), 'failed'],
      [after(9_001), 'queued'],
    ] as const)
      expect(play({ ...unknown, notAfter }, proven()).state.status).toBe(status)
    const { message, decision } = applied({ ...unknown, notAfter: after(9_000) }, proven())
    expect(message).toMatchObject({ state: { reason: 'expired' }, answer: { status: 422 } })
    expect(entries(decision).map(({ type }) => type)).toEqual(['attempt_ended', 'looked', 'resolved', 'expired'])
    expect(decision.kind === 'transition' && decision.effects.some(({ type }) => type === 'dispatch_at')).toBe(false)
  })

  test('O1 proves it after the repeat was refused for good: that is the verdict', () => {
    const { message, decision } = applied(refused, proven({ of: ended('rejected', 2), means: both }))
    const state = { status: 'failed', reason: 'provider_refused', last: { number: 2, outcome: 'rejected' } }
    expect(message).toMatchObject({ state, resolution: { by: 'lookup', outcome: 'not_sent' } })
    expect(entries(decision)).toMatchObject([{ type: 'looked' }, { type: 'resolved', data: { by: 'lookup' } }])
    expect(entries(decision)[1]?.data).not.toHaveProperty('warrant')
  })

  test.each<[string, Message, Event]>([
    ['of an attempt that a repeat follows', twoLost, proven()],
    ['of an attempt whose repeat runs', replaying, proven()],
    ['of a message that is sent', messageIn(states.sent), proven()],
    ['of a message that waits', messageIn(states.queued), proven()],
    ['of an attempt that a person settled', play(unknown, settle('not_sent')), proven()],
  ])('proves nothing %s', (_, message, event) => {
    const decision = decide(message, event)
    expect(decision.kind).toBe('ignored')
    expect(entries(decision)).toMatchObject([{ type: 'looked', attemptId: uuid(1) }])
  })

  test('R3 E11 proves nothing of another provider, or of one that was not recorded', () => {
    const another = applied(unknown, proven({ means: { ...asked, identity: 'another' } }))
    expect(another.message.state).toMatchObject({ status: 'unknown', plan: null, attempt: { outcome: 'unknown' } })
    expect(entries(another.decision).map(({ type }) => type)).toEqual(['looked', 'gave_up'])
    const nobody = play(messageIn({ ...states.unknown, attempt: { ...ended('unknown'), identity: '' } }), proven())
    expect(nobody.state).toMatchObject({ status: 'unknown', plan: null })
  })
})

describe('a person, of several open attempts', () => {
  const stated = (number: number, resend = false) => settle('not_sent', number, resend)

  test.each([
    [1, 2, 'unknown'],
    [2, 1, 'not_sent'],
  ] as const)('U1 settles attempt %d: %d stays open, and nothing is settled by it', (number, left, current) => {
    const { message, decision } = applied(twoLost, stated(number, true))
    expect(openIds(message)).toEqual([left])
    expect(message).toMatchObject({ state: { status: 'unknown', attempt: { number: 2, outcome: current } } })
    expect(message.state).toMatchObject({ plan: (twoLost.state as { plan: unknown }).plan })
    expect(message).toMatchObject({ resolution: null, answer: null })
    const moved = number === 2 ? [{ type: 'attempt_ended', attemptId: uuid(2), data: { outcome: 'unknown' } }] : []
    expect(entries(decision)).toMatchObject([...moved, { type: 'resolved', attemptId: uuid(number) }])
    expect(decide(message, stated(number, true))).toMatchObject({ kind: 'ignored', effects: [] })
    expect(decision).toMatchObject({ effects: entries(decision).map(() => ({ type: 'record' })) })
  })

  test.each([
    [1, 2],
    [2, 1],
  ])('U3 settles %d, then %d with resend: one more attempt', (one, other) => {
    const { message, decision } = applied(play(twoLost, stated(one)), stated(other, true))
    expect(message).toMatchObject({
      state: { status: 'queued', dueAt: after(9_000), last: { number: 2, outcome: 'not_sent' } },
      resolution: { by: 'operator', attemptId: uuid(other), outcome: 'not_sent', apiKey: 'key1' },
      open: [],
      rendered: 'as it was sent',
    })
    expect(decision).toMatchObject({ effects: [{ type: 'dispatch_at', at: after(9_000) }, {}, {}] })
    expect(entries(decision).map(({ type }) => type)).toEqual(['attempt_ended', 'resolved'])
    expect(decide(message, stated(other, true))).toMatchObject({ kind: 'ignored', effects: [] })
  })

  test('U3 E10 has nothing sent again from notAfter on', () => {
    expect(decide({ ...unknown, notAfter: after(9_000) }, stated(1, true)).kind).toBe('ignored')
    expect(play({ ...unknown, notAfter: after(9_001) }, stated(1, true)).state.status).toBe('queued')
    expect(play({ ...unknown, notAfter: after(9_000) }, stated(1)).state.status).toBe('failed')
  })

  test.each([1, 2])('who saw attempt %d sent settles the message', (number) => {
    const message = play(twoLost, settle('sent', number))
    expect(message).toMatchObject({ state: { status: 'sent', providerMessageId: 'SM9' }, open: [] })
    expect(message.resolution).toMatchObject({ by: 'operator', attemptId: uuid(number), outcome: 'sent' })
  })

  test('U1 cannot settle a repeat that was refused: that was said by the provider', () => {
    expect(openIds(refused)).toEqual([1])
    expect(decide(refused, stated(2)).kind).toBe('ignored')
    expect(play(refused, stated(1)).state).toMatchObject({ status: 'failed', reason: 'resolved_not_sent' })
  })
})

import { describe, expect, test } from 'vitest'
import type { Message } from '../../src/core/message.ts'
import type { Event } from '../../src/core/events.ts'
import {
  after,
  attempt,
  blind,
  begin,
  cancel,
  expire,
  lapse,
  linesAfter,
  messageIn,
  nameOf,
  outcomeOf,
  recipient,
  saying,
  settle,
  states,
  t0,
  uuid,
} from './fixtures.ts'

const linesOf = (start: Message, ...events: Event[]) => linesAfter(start, ...events).lines

const queued = messageIn({ status: 'queued', last: null, dueAt: t0 })
/** Attempt n, from its begin at n seconds to its end 200 ms later. */
const call = (number: number, kind: 'accepted' | 'rejected' | 'not_sent' | 'unknown'): Event[] => [
  begin(number),
  outcomeOf(attempt(number), kind),
]

describe('the time line', () => {
  test('of an ordinary send needs no recorded event', () => {
    const { lines: data, recorded } = linesAfter(messageIn(states.sending), outcomeOf(attempt(), 'accepted'))
    expect(recorded).toEqual([])
    expect(data.map(nameOf)).toEqual(['claimed', 'attempt_started 1', 'attempt_ended 1'])
    expect(data.map(({ at }) => at)).toEqual([
      '2026-12-01T09:00:00.000Z',
      '2026-12-01T09:00:01.000Z',
      '2026-12-01T09:00:01.200Z',
    ])
    expect(data[2]?.data).toEqual({
      number: 1,
      provider: 'fake',
      outcome: 'accepted',
      phase: 'answered',
      httpStatus: 201,
      detail: 'The provider accepted the message.',
    })
  })

  test.each<[string, Message, Event[], string[]]>([
    ['one that waits', queued, [], ['claimed']],
    ['one that is being sent', queued, [begin(1)], ['claimed', 'attempt_started 1']],
    [
      'one that took three calls',
      queued,
      [...call(1, 'not_sent'), ...call(2, 'not_sent'), ...call(3, 'accepted')],
      ['claimed', ...[1, 2, 3].flatMap((n) => [`attempt_started ${n}`, `attempt_ended ${n}`])],
    ],
    [
      'one that a person settled',
      queued,
      [...call(1, 'unknown'), settle('sent')],
      ['claimed', 'attempt_started 1', 'attempt_ended 1', 'resolved 1'],
    ],
    [
      'one that expired',
      queued,
      [...call(1, 'not_sent'), expire],
      ['claimed', 'attempt_started 1', 'attempt_ended 1', 'expired'],
    ],
    ['one that was canceled', queued, [cancel], ['claimed', 'canceled']],
  ])('of %s tells what happened, oldest first', (_, start, events, expected) => {
    expect(linesOf(start, ...events).map(nameOf)).toEqual(expected)
  })

  test('tells both of a lease that lapsed and of the answer that came late', () => {
    const late = outcomeOf(attempt(), 'accepted', after(9_000))
    const lines = linesOf(messageIn(states.sending), lapse, late).filter(({ type }) => type !== 'attempt_ended')
    expect(lines.map(nameOf)).toEqual(['claimed', 'attempt_started 1', 'lease_lapsed 1', 'late_outcome 1'])
  })

  test('tells the same of an attempt before and after another follows it', () => {
    const tell = (lines: ReturnType<typeof linesOf>) =>
      lines.filter(({ attempt: of }) => of?.endsWith('1') === true).map(({ type, at, data }) => ({ type, at, data }))
    const before = tell(linesOf(queued, ...call(1, 'not_sent')))
    expect(before).toHaveLength(2)
    expect(tell(linesOf(queued, ...call(1, 'not_sent'), begin(2)))).toEqual(before)
  })

  test('T1 gives the lines of an attempt the same ids before and after another follows it', () => {
    const idsOf = (lines: ReturnType<typeof linesOf>): string[] =>
      lines.filter(({ attempt: of }) => of?.endsWith('1') === true).map(({ id }) => id)
    const before = idsOf(linesOf(queued, ...call(1, 'not_sent')))
    expect(before).toHaveLength(2)
    expect(idsOf(linesOf(queued, ...call(1, 'not_sent'), begin(2)))).toEqual(before)
  })

  test.each<[string, Event[]]>([
    ['refused for good', call(2, 'rejected')],
    ['lost', call(2, 'unknown')],
    ['still running', [begin(2)]],
  ])('T1 keeps an attempt that is %s when an earlier one turns out to be accepted', (_, second) => {
    const events = [...call(1, 'not_sent'), ...second]
    const ofSecond = linesOf(queued, ...events).filter((line) => nameOf(line).endsWith(' 2'))
    expect(ofSecond.map(nameOf)).toContain('attempt_started 2')
    const late = outcomeOf(attempt(1), 'accepted', after(9_000))
    expect(linesOf(queued, ...events, late)).toEqual(expect.arrayContaining(ofSecond))
  })

  test('T2 tells what happened within one millisecond in the order in which it happened', () => {
    const [first, second] = [1, 2].map((number) => ({ ...attempt(number), startedAt: t0 }))
    if (first === undefined || second === undefined) throw new Error('two attempts')
    const ended = outcomeOf(first, 'not_sent', t0)
    const lines = linesOf(queued, { type: 'begin', attempt: first, means: blind, rendered: null }, ended, {
      type: 'begin',
      attempt: second,
      means: blind,
      rendered: null,
    })
    expect(lines.map(nameOf)).toEqual(['claimed', 'attempt_started 1', 'attempt_ended 1', 'attempt_started 2'])
    expect(new Set(lines.map(({ id }) => id)).size).toBe(4)
  })

  test('has ids with a UUIDv7 inside, of the time of the line', () => {
    for (const { id, at } of linesOf(queued, ...call(1, 'not_sent'), begin(2))) {
      expect(id).toMatch(/^evt_[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/)
      expect(Number.parseInt(id.slice(4, 16), 16)).toBe(Date.parse(at))
    }
  })

  test('names who settled or canceled it, when and why', () => {
    expect(linesOf(queued, ...call(1, 'unknown'), settle('not_sent')).at(-1)).toMatchObject({
      type: 'resolved',
      at: '2026-12-01T09:00:09.000Z',
      attempt: `att_${attempt().id.replaceAll('-', '')}`,
      data: { outcome: 'not_sent', apiKey: 'key1', evidence: 'Seen in the console.' },
    })
    expect(linesOf(queued, cancel).at(-1)).toMatchObject({ attempt: null, data: { apiKey: 'key1' } })
  })

  test('has ids that are told apart, and are the same at each look', () => {
    const events = [...call(1, 'not_sent'), ...call(2, 'unknown'), settle('sent')]
    const ids = linesOf(queued, ...events).map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    for (const id of ids) expect(id).toMatch(/^evt_[0-9a-f]{32}$/)
    expect(linesOf(queued, ...events).map(({ id }) => id)).toEqual(ids)
  })

  test('has other ids for another message', () => {
    const other = linesOf({ ...queued, id: uuid(99) }, begin(1)).map(({ id }) => id)
    const ids = linesOf(queued, begin(1)).map(({ id }) => id)
    expect(new Set([...ids, ...other]).size).toBe(4)
  })

  test('holds no recipient, no text and no key', () => {
    const told = JSON.stringify(linesOf(queued, ...call(1, 'not_sent'), ...call(2, 'unknown'), settle('sent')))
    for (const secret of [recipient, saying, 'order-42', 'ticket-991']) expect(told).not.toContain(secret)
  })
})

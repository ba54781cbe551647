/** Messages that wait for a person: what becomes of them, and what their time line tells (state-machine.ts, M7). */
import { describe, expect, test } from 'vitest'
import { decide } from '../../src/core/state-machine.ts'
import type { Event } from '../../src/core/events.ts'
import {
  after,
  approve,
  attempt,
  begin,
  cancel,
  decided,
  decline,
  entries,
  expire,
  linesAfter,
  messageIn,
  moved,
  nameOf,
  outcomeOf,
  recipient,
  saying,
  states,
  uuid,
  whatFollows,
} from './fixtures.ts'

describe('a held message', () => {
  test('M7 that is approved is due at once, or at its time, with who approved it', () => {
    const at = after(6_000)
    const line = { type: 'approved', at, attemptId: null, data: { apiKey: 'key2', from: '203.0.113.7' } }
    for (const sendAt of [null, after(5_000), at]) {
      const decision = decide(messageIn(states.held, { sendAt }), approve(at))
      expect(decision).toMatchObject({
        next: { status: 'queued', last: null, dueAt: at },
        changes: { decision: decided('approved', at) },
      })
      expect(entries(decision)).toEqual([line])
      expect(decision).toMatchObject({ effects: [{ type: 'record' }, { type: 'dispatch_at', at }] })
    }
    const sendAt = after(6_001)
    const later = decide(messageIn(states.held, { sendAt }), approve(at))
    expect(later).toMatchObject({
      next: { status: 'scheduled', sendAt },
      effects: [
        { type: 'record', entry: line },
        { type: 'dispatch_at', at: sendAt },
      ],
    })
  })

  test('M7 at notAfter has lapsed, whatever is said about it then: that is no decision', () => {
    const notAfter = after(6_000)
    for (const event of [approve(notAfter), decline(notAfter), { type: 'expire', at: notAfter } as const]) {
      const decision = decide(messageIn(states.held, { notAfter }), event)
      expect(decision).toMatchObject({ next: { status: 'canceled', reason: 'lapsed', last: null }, changes: {} })
      expect(decision).not.toHaveProperty('changes.decision')
      expect(entries(decision)).toMatchObject([{ type: 'lapsed', at: notAfter }])
    }
    expect(whatFollows(decide(messageIn(states.held, { notAfter }), approve(after(5_999))))).toBe('queued')
  })

  test('whose conversation moved is canceled, and keeps what a person approved in vain', () => {
    const alone = decide(messageIn(states.scheduled), moved())
    expect(alone).toMatchObject({ next: { status: 'canceled', reason: 'conversation_changed' }, changes: {} })
    expect(entries(alone).map(({ type }) => type)).toEqual(['conversation_changed'])
    const inVain = decide(messageIn(states.held), moved(decided('approved')))
    expect(inVain).toMatchObject({ changes: { decision: decided('approved') } })
    expect(entries(inVain).map(({ type }) => type)).toEqual(['approved', 'conversation_changed'])
  })
})

describe('the time line of a message that was held', () => {
  const sent = [begin(7), outcomeOf(attempt(7), 'accepted')]
  test.each<[string, Event[], string[]]>([
    ['waits', [], []],
    ['was approved and sent', [approve(), ...sent], ['approved', 'attempt_started 7', 'attempt_ended 7']],
    ['was declined', [decline(), approve(after(7_000))], ['declined']],
    ['lapsed', [expire, approve(after(86_400_001))], ['lapsed']],
    ['was canceled', [cancel], ['canceled']],
    ['was canceled for its conversation moved', [moved()], ['conversation_changed']],
    ['was approved in vain', [moved(decided('approved'))], ['approved', 'conversation_changed']],
  ])('and %s tells each step once', (_, events, steps) => {
    const first = begin(7)
    const numbered = events.map((event) =>
      event.type === 'begin' ? { ...event, attempt: { ...first.attempt, number: 1 } } : event,
    )
    const { lines } = linesAfter(messageIn(states.held), ...numbered)
    expect(lines.map(nameOf)).toEqual(['claimed', ...steps])
  })

  test('begins with whose claim it was, why it waits, and which one it looks like', () => {
    const claimData = (more: object) => linesAfter(messageIn(states.held, more)).lines[0]?.data
    expect(claimData({})).toEqual({ apiKey: 'key1', heldFor: 'approval' })
    expect(claimData({ heldFor: 'duplicate', possibleDuplicateOf: uuid(3) })).toEqual({
      apiKey: 'key1',
      heldFor: 'duplicate',
      possibleDuplicateOf: `msg_${uuid(3).replaceAll('-', '')}`,
    })
    expect(linesAfter(messageIn(states.queued, { sentBy: null })).lines[0]?.data).toEqual({})
  })

  test('says who decided, from where, and holds no recipient, no text and no key', () => {
    const { lines } = linesAfter(messageIn(states.held), approve())
    expect(lines[1]).toMatchObject({ type: 'approved', at: '2026-12-01T09:00:06.000Z', attempt: null })
    expect(lines[1]?.data).toEqual({ apiKey: 'key2', from: '203.0.113.7' })
    for (const secret of [recipient, saying, 'order-42']) expect(JSON.stringify(lines)).not.toContain(secret)
  })
})

/** Versions of conversations, and what makes one message look like another (conversation.ts, V2, V3; api.md, If-Match). */
import { describe, expect, test } from 'vitest'
import fc from 'fast-check'
import { contentHash, etagOf, inboundEventId, leaves, versionFromIfMatch } from '../../src/core/conversation.ts'
import type { MessageRequest } from '../../src/core/message-content.ts'
import { statuses, type State } from '../../src/core/message.ts'
import { messageIn, smsRequest, states } from './fixtures.ts'

describe('If-Match', () => {
  test.each([
    ['"0"', 0],
    ['"3"', 3],
    ['"10"', 10],
    ['"999999999"', 999_999_999],
    [' "3"\t', 3],
  ])('that is %j asks for version %i', (value, version) => {
    expect(versionFromIfMatch(value)).toBe(version)
  })

  test.each([
    ['a weak validator', 'W/"3"'],
    ['a list', '"3", "4"'],
    ['a list of one and the same', '"3","3"'],
    ['whatever is there', '*'],
    ['whatever is there, quoted', '"*"'],
    ['bare', '3'],
    ['half quoted', '"3'],
    ['half quoted at its end', '3"'],
    ['quoted with other quotes', "'3'"],
    ['empty', ''],
    ['an empty string', '""'],
    ['blank', '" "'],
    ['padded inside', '" 3"'],
    ['written with leading zeros', '"03"'],
    ['nought twice', '"00"'],
    ['signed', '"+3"'],
    ['negative', '"-1"'],
    ['a fraction', '"3.0"'],
    ['a power', '"3e1"'],
    ['hexadecimal', '"0x3"'],
    ['of other digits', '"\u0663"'],
    ['larger than any version', '"1000000000"'],
    ['larger than an integer of the data base', '"2147483648"'],
    ['larger than an integer of JavaScript', '"9007199254740993"'],
    ['two lines', '"3"\n"3"'],
  ])('that is %s is no version', (_, value) => {
    expect(versionFromIfMatch(value)).toBeUndefined()
  })

  test('reads each ETag that is given out, as the version that it is of', () => {
    fc.assert(
      fc.property(fc.nat(999_999_999), (version) => {
        expect(versionFromIfMatch(etagOf(version))).toBe(version)
      }),
    )
  })
})

describe('V2 a change lets a message leave', () => {
  const queued: State = { status: 'queued', last: null, dueAt: new Date(0) }

  test.each(statuses)('that is %s exactly if it waited until then', (status) => {
    const waits = status === 'held' || status === 'scheduled'
    expect(leaves(messageIn(states[status]), queued)).toBe(waits)
    expect(leaves(messageIn(states[status]), states.sending)).toBe(waits)
    for (const next of [states.held, states.scheduled, states.canceled, states.failed, states.unknown, states.sent])
      expect(leaves(messageIn(states[status]), next)).toBe(false)
  })

  test('only out of a conversation', () => {
    const { conversation: _, ...request } = smsRequest
    for (const status of ['held', 'scheduled'] as const)
      expect(leaves(messageIn(states[status], { request }), queued)).toBe(false)
  })
})

describe('the hash of what is said', () => {
  const hash = contentHash(smsRequest)
  const but = (more: object): string => contentHash({ ...smsRequest, ...more })

  test('has the 16 bytes that the data base keeps, and is the same at each look', () => {
    expect(hash).toMatch(/^[0-9a-f]{32}$/)
    expect(contentHash(structuredClone(smsRequest))).toBe(hash)
  })

  test.each([
    ['reference', { reference: 'order-43' }],
    ['intent', { intent: 'again' }],
    ['metadata', { metadata: { team: 'shipping' } }],
    ['time', { sendAt: '2027-01-01T00:00:00Z' }],
    ['delay', { delaySeconds: 5 }],
    ['end', { notAfter: '2027-01-01T00:00:00Z' }],
    ['provider', { provider: 'other' }],
    ['sender', { from: 'ACME' }],
  ])('is the same under another %s', (_, more) => {
    expect(but(more)).toBe(hash)
  })

  test.each([
    ['recipient', { to: '+447700900124' }],
    ['channel', { channel: 'chat' }],
    ['conversation', { conversation: 'ticket-992' }],
    ['conversation, none', { conversation: undefined }],
    ['text', { content: { text: 'Your parcel is on its way.' } }],
    ['text, in another case', { content: { text: 'your parcel is on its way' } }],
  ])('is another with another %s', (_, more) => {
    expect(but(more)).not.toBe(hash)
  })

  test('does not depend on the order of members', () => {
    const email = { channel: 'email', to: 'a@example.com' } as const
    const one: MessageRequest = { ...email, content: { subject: 's', text: 't' } }
    const other: MessageRequest = { content: { text: 't', subject: 's' }, ...email }
    expect(contentHash(other)).toBe(contentHash(one))
  })

  test('tells apart what is the same when it is written in a row', () => {
    const chat = (to: string, conversation: string | undefined, text: string): string =>
      contentHash({ channel: 'chat', to, content: { text }, ...(conversation === undefined ? {} : { conversation }) })
    const alike = [
      chat('ab', 'c', 'd'),
      chat('a', 'bc', 'd'),
      chat('a', 'b', 'cd'),
      chat('a","b', 'c', 'd'),
      chat('a', 'b","c', 'd'),
      chat('a', undefined, 'd'),
      chat('a', 'null', 'd'),
      chat('a', '', 'd'),
    ]
    expect(new Set(alike).size).toBe(alike.length)
  })
})

describe('V3 the id of an inbound message whose sender gives none', () => {
  test('is made of what makes it that event, and of nothing else', () => {
    const id = inboundEventId('a', 'ok', '2026-12-01T09:00:00Z')
    expect(id).toMatch(/^derived:v1:[0-9a-f]{64}$/)
    expect(inboundEventId('a', 'ok', '2026-12-01T09:00:00Z')).toBe(id)
  })

  test('is another for another sender, text or time, also where they collide when written in a row', () => {
    const ids = [
      inboundEventId('a', 'ok', '2026-12-01T09:00:00Z'),
      inboundEventId('b', 'ok', '2026-12-01T09:00:00Z'),
      inboundEventId('a', 'ok.', '2026-12-01T09:00:00Z'),
      inboundEventId('a', 'ok', '2026-12-01T09:00:01Z'),
      inboundEventId('ao', 'k', '2026-12-01T09:00:00Z'),
      inboundEventId('a', 'ok2', '026-12-01T09:00:00Z'),
      inboundEventId('a","ok', '', '2026-12-01T09:00:00Z'),
    ]
    expect(new Set(ids).size).toBe(ids.length)
  })
})

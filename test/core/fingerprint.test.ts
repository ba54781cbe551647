import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  canonicalText,
  differingPaths,
  fingerprintMatches,
  fingerprintOf,
  fingerprintText,
} from '../../src/core/fingerprint.ts'
import type { MessageRequest } from '../../src/core/message-content.ts'
import { recipient, smsRequest } from './fixtures.ts'

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
const textOf = (request: MessageRequest): string => fingerprintText(fingerprintOf(canonicalText(request)))
const webhook = (data: unknown): MessageRequest => ({
  channel: 'webhook',
  to: 'https://example.com/hooks',
  content: { type: 'order.shipped', data },
})
/** The request as it is after it came over the wire in these very words. */
const parsed = (json: string): MessageRequest => JSON.parse(json) as MessageRequest

/** Each canonical text is written by hand, each hash by sha256sum; neither by the code under test. */
const vectors: readonly [string, string, string, string][] = [
  [
    'a text message',
    `{"to":"+447700900123","content":{"text":"Your parcel is on its way"},"channel":"sms"}`,
    `{"channel":"sms","content":{"text":"Your parcel is on its way"},"to":"+447700900123"}`,
    'f6ea56cd27b85c5e6b59314016d8f60f334b86c74ffca83a516b6199d1e4c5be',
  ],
  [
    'every optional field, and metadata that is left out',
    `{ "metadata": {"team":"shipping"}, "ttlSeconds": 3600, "provider": "twilio-eu", "channel": "sms", "to": "+447700900123",
       "from": "ACME", "content": { "text": "hi" }, "conversation": "ticket-991", "reference": "order-42",
       "intent": "ship-notice:order-42", "delaySeconds": 0 }`,
    `{"channel":"sms","content":{"text":"hi"},"conversation":"ticket-991","delaySeconds":0,"from":"ACME","intent":"ship-notice:order-42","provider":"twilio-eu","reference":"order-42","to":"+447700900123","ttlSeconds":3600}`,
    '18d54b20fedfc90349091d2877399db201c307a731ea2f828df820a41fe71ef1',
  ],
  [
    'the sample of RFC 8785, section 3.2.2',
    String.raw`{"channel":"webhook","to":"https://example.com/hooks","content":{"type":"t","data":{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}}}`,
    String.raw`{"channel":"webhook","content":{"data":{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"},"type":"t"},"to":"https://example.com/hooks"}`,
    'bb2115dba50b91a6ed3dca9839bed5e993d16afdb09094295bea58d6c3b188b5',
  ],
  [
    'the sorting sample of RFC 8785, section 3.2.3',
    String.raw`{"channel":"webhook","to":"https://example.com/hooks","content":{"type":"t","data":{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}}}`,
    `{"channel":"webhook","content":{"data":{"\\r":"Carriage Return","1":"One","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis","\u20ac":"Euro Sign","\ud83d\ude00":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"},"type":"t"},"to":"https://example.com/hooks"}`,
    '0b9b8d9dcae18347f48f5cf6f45c0dbf203490f8294e409b816cde5f7fffe90c',
  ],
]

describe('the canonical text', () => {
  test.each(vectors)('of %s is the one written by hand, and so is its hash', (_, wire, canonical, hash) => {
    expect(canonicalText(parsed(wire))).toBe(canonical)
    expect(sha256(canonical)).toBe(hash)
    expect(textOf(parsed(wire))).toBe(`v1:${hash}`)
  })

  test.each([
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['c340000000000000', '-9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['44b52d02c7e14af7', '1.0000000000000001e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555555', '333333333.3333333'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ])('writes the double %s of RFC 8785, appendix B, as %s', (bits, written) => {
    const view = new DataView(new ArrayBuffer(8))
    view.setBigUint64(0, BigInt(`0x${bits}`))
    expect(canonicalText(webhook(view.getFloat64(0)))).toContain(`"data":${written},`)
  })

  test.each([
    [
      'escapes of letters',
      String.raw`{"channel":"sms","to":"+447700900123","content":{"text":"\u0041\u00e9\/\ud83d\ude00"}}`,
    ],
    ['white space and order', `{\n\t"content" : {"text":"Aé/😀"} ,\r\n "to":"+447700900123", "channel":"sms" }`],
    ['an escaped member name', String.raw`{"channel":"sms","\u0074o":"+447700900123","content":{"text":"Aé/😀"}}`],
  ])('does not depend on %s', (_, wire) => {
    expect(canonicalText(parsed(wire))).toBe(`{"channel":"sms","content":{"text":"Aé/😀"},"to":"+447700900123"}`)
  })

  test('does not depend on how a number is written', () => {
    for (const written of ['60', '60.0', '6e1', '6.0E+1', '600e-1'])
      expect(canonicalText(parsed(`{"channel":"sms","to":"+1","content":{"text":"a"},"ttlSeconds":${written}}`))).toBe(
        '{"channel":"sms","content":{"text":"a"},"to":"+1","ttlSeconds":60}',
      )
  })

  test('is the same for any order of members, at any depth', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.func(fc.nat()), (data, rank) => {
        const shuffled = (value: unknown): unknown => {
          if (Array.isArray(value)) return value.map(shuffled)
          if (typeof value !== 'object' || value === null) return value
          return Object.fromEntries(
            Object.entries(value)
              .toSorted(([a], [b]) => rank(a) - rank(b))
              .map(([name, member]) => [name, shuffled(member)]),
          )
        }
        expect(canonicalText(webhook(shuffled(data)))).toBe(canonicalText(webhook(data)))
      }),
    )
  })

  test('is JSON of the same value, without metadata', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.dictionary(fc.string(), fc.string()), (data, metadata) => {
        const request = webhook(data)
        expect(JSON.parse(canonicalText({ ...request, metadata }))).toEqual(JSON.parse(JSON.stringify(request)))
      }),
    )
  })
})

describe('the fingerprint', () => {
  const base: MessageRequest = { ...smsRequest, from: 'ACME', notAfter: '2026-12-01T10:00:00Z' }
  test.each<[string, MessageRequest]>([
    ['the text', { ...base, content: { text: 'Your parcel is on its Way' } } as MessageRequest],
    ['the recipient', { ...base, to: '+447700900124' }],
    ['the sender', { ...base, from: 'ACME2' }],
    ['the channel', { ...base, channel: 'chat' } as MessageRequest],
    ['notAfter', { ...base, notAfter: '2026-12-01T10:00:01Z' }],
    ['how notAfter is written', { ...base, notAfter: '2026-12-01T10:00:00.000Z' }],
    ['sendAt', { ...base, sendAt: '2026-12-01T09:30:00Z' }],
    ['delaySeconds', { ...base, delaySeconds: 0 }],
    ['ttlSeconds', { ...base, ttlSeconds: 60 }],
    ['the conversation', { ...base, conversation: 'ticket-992' }],
    ['the reference', { ...base, reference: 'order-43' }],
    ['the intent', { ...base, intent: 'x' }],
    ['the provider', { ...base, provider: 'twilio-eu' }],
    ['white space in the text', { ...base, content: { text: 'Your parcel is on its way ' } } as MessageRequest],
  ])('differs where %s differs', (_, other) => {
    expect(textOf(other)).not.toBe(textOf(base))
    expect(fingerprintMatches(fingerprintOf(canonicalText(base)), canonicalText(other))).toBe(false)
  })

  test.each([
    ['the order of an array', [1, 2], [2, 1]],
    ['null and an absent member', { a: null }, {}],
    ['NFC and NFD', '\u00e9', 'e\u0301'],
    ['NFC and NFD in a member name', { '\u00e9': 1 }, { 'e\u0301': 1 }],
    ['a number and its text', 3, '3'],
    ['true and "true"', true, 'true'],
    ['null and false', null, false],
    ['an empty object and an empty array', {}, []],
    ['a dotted and a dotless i', 'I', '\u0130'],
    ['metadata that is part of the content', { metadata: { a: '1' } }, { metadata: { a: '2' } }],
  ])('tells %s apart', (_, left, right) => {
    expect(textOf(webhook(left))).not.toBe(textOf(webhook(right)))
  })

  test('does not depend on metadata', () => {
    for (const metadata of [{}, { team: 'shipping' }, { team: 'billing', a: '' }])
      expect(textOf({ ...base, metadata })).toBe(textOf(base))
  })

  test('is not constant: two texts that differ have two hashes', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (left, right) => {
        const equal = fingerprintOf(left).hash.equals(fingerprintOf(right).hash)
        expect(equal).toBe(left === right)
        expect(fingerprintMatches(fingerprintOf(left), right)).toBe(left === right)
      }),
    )
    expect(
      new Set(Array.from({ length: 1_000 }, (_, i) => fingerprintOf(`{"n":${i}}`).hash.toString('hex'))),
    ).toHaveProperty('size', 1_000)
  })

  test('F1 names the scheme that made it, and is compared by that scheme alone', () => {
    const made = fingerprintOf('{}', 1)
    expect(made.version).toBe(1)
    expect(made.hash.toString('hex')).toBe(sha256('{}'))
    expect(fingerprintText(made)).toBe(`v1:${sha256('{}')}`)
    expect(fingerprintMatches(made, '{}')).toBe(true)
    expect(() => fingerprintOf('{}', 2)).toThrow(/scheme/)
    expect(() => fingerprintMatches({ ...made, version: 2 }, '{}')).toThrow(/scheme/)
  })

  test.each(['tr_TR.UTF-8', 'sv_SE.UTF-8', 'C'])('is the same in a process whose locale is %s', (locale) => {
    const module = fileURLToPath(new URL('../../src/core/fingerprint.ts', import.meta.url))
    const data = {
      I: 1,
      i: 2,
      '\u0130': 3,
      '\u0131': 4,
      z: 5,
      ö: 6,
      ä: 7,
      å: 8,
      text: 'TITLE \u0130stanbul',
      n: 1234.5,
    }
    const script = `
      const { canonicalText, fingerprintOf, fingerprintText } = await import(${JSON.stringify(module)})
      process.stdout.write(fingerprintText(fingerprintOf(canonicalText(${JSON.stringify(webhook(data))}))))`
    const env = { PATH: process.env['PATH'] ?? '', LANG: locale, LC_ALL: locale, LANGUAGE: locale }
    const told = execFileSync(process.execPath, ['--no-warnings', '--input-type=module', '-e', script], { env })
    expect(told.toString()).toBe(textOf(webhook(data)))
  })
})

describe('the paths that differ', () => {
  test.each<[string, unknown, unknown, string[]]>([
    ['nothing', { a: 1 }, { a: 1 }, []],
    ['a value', { a: 1, b: 2 }, { a: 1, b: 3 }, ['/b']],
    ['a member that is gone', { a: 1, b: null }, { a: 1 }, ['/b']],
    ['a member that is new', {}, { b: null }, ['/b']],
    ['a value at depth', { a: { b: [1, { c: 2 }] } }, { a: { b: [1, { c: 3 }] } }, ['/a/b/1/c']],
    ['the order of an array', { a: [1, 2] }, { a: [2, 1] }, ['/a/0', '/a/1']],
    ['a longer array', { a: [1] }, { a: [1, 2] }, ['/a/1']],
    ['an object that was an array', { a: [] }, { a: {} }, ['/a']],
    ['an object that was a text', { a: 'x' }, { a: { b: 1 } }, ['/a']],
    ['an empty object that was null', { a: null }, { a: {} }, ['/a']],
    ['names with a slash and a tilde', { 'a/b': 1, 'c~d': 1 }, { 'a/b': 2, 'c~d': 2 }, ['/a~1b', '/c~0d']],
    ['an empty name', { '': 1 }, { '': 2 }, ['/']],
    ['a name that every object inherits', {}, { constructor: 1, toString: 2 }, ['/constructor', '/toString']],
    ['NFC and NFD', { a: '\u00e9' }, { a: 'e\u0301' }, ['/a']],
  ])('for %s', (_, left, right, paths) => {
    const texts = [JSON.stringify(left), JSON.stringify(right)] as const
    expect(differingPaths(texts[0], texts[1]).toSorted()).toEqual(paths)
    expect(differingPaths(texts[1], texts[0]).toSorted()).toEqual(paths)
  })

  test('are at most twenty, and hold no value', () => {
    const many = (text: string): string => canonicalText(webhook(Array.from({ length: 50 }, () => text)))
    const paths = differingPaths(many('secret one'), many('secret two'))
    expect(paths).toHaveLength(20)
    expect(paths.join()).not.toContain('secret')
    expect(differingPaths(canonicalText(smsRequest), canonicalText({ ...smsRequest, to: '+15005550001' }))).toEqual([
      '/to',
    ])
    expect(recipient).toBe(smsRequest.to)
  })
})

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseStrictJson, type StrictJson } from '../../src/http/strict-json.ts'

const parse = (text: string): StrictJson => parseStrictJson(new TextEncoder().encode(text))
/** Every UTF-16 unit as an escape: the same text in other words. */
const escaped = (text: string): string =>
  text
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')

/** Texts and numbers that every parser reads alike. */
const texts = fc.string({ unit: 'binary' }).filter((text) => !text.includes('\u0000'))
const names = texts.filter((name) => name !== '__proto__')
const numbers = fc.oneof(
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).filter((n) => !Number.isInteger(n)),
)
const { value: values } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 6 },
    fc.constantFrom(null, true, false),
    numbers,
    texts,
    fc.array(tie('value'), { maxLength: 5 }),
    fc.dictionary(names, tie('value'), { maxKeys: 5, noNullPrototype: true }),
  ),
}))

describe('what is accepted', () => {
  test('is every JSON value within the limits, as it is, however it is spaced', () => {
    fc.assert(
      fc.property(values, fc.constantFrom(undefined, 1, '\t', '\n '), (value, space) => {
        const same: unknown = JSON.parse(JSON.stringify(value))
        expect(parse(JSON.stringify(value, null, space))).toStrictEqual({ ok: true, value: same })
      }),
      { numRuns: 500 },
    )
  })

  test.each([
    ['null', null],
    ['"a"', 'a'],
    ['[]', []],
    [' { } ', {}],
    ['{"":1}', { '': 1 }],
    ['{"a":1,"A":2}', { a: 1, A: 2 }],
    ['{"a":{"a":{"a":1}}}', { a: { a: { a: 1 } } }],
    ['[{"a":1},{"a":1}]', [{ a: 1 }, { a: 1 }]],
    ['{"a:b":"c:d","e":[":",{"f":"::"}]}', { 'a:b': 'c:d', e: [':', { f: '::' }] }],
    [String.raw`{"a\"":"\":","b\\":":\\","c":"\\\":"}`, { 'a"': '":', 'b\\': ':\\', c: '\\":' }],
    [String.raw`{"\u0061":1,"b":2}`, { a: 1, b: 2 }],
    [String.raw`["\ud83d\ude00"]`, ['\u{1f600}']],
    ['{"\u00e9":1,"e\u0301":2}', { '\u00e9': 1, 'e\u0301': 2 }],
    ['{"constructor":1,"toString":2,"hasOwnProperty":3}', { constructor: 1, toString: 2, hasOwnProperty: 3 }],
    ['{"proto":1,"__proto":2,"_proto__":3}', { proto: 1, __proto: 2, _proto__: 3 }],
    ['9007199254740991', 9007199254740991],
    ['-9007199254740991', -9007199254740991],
    ['1.5', 1.5],
    ['1e3', 1000],
    ['-0', -0],
    ['0.1', 0.1],
    ['5e-324', 5e-324],
  ])('is %s', (text, value) => {
    const parsed = parse(text)
    expect(parsed).toEqual({ ok: true, value })
  })
})

describe('what two parsers could read differently', () => {
  test.each([
    ['a member that comes twice', '{"a":1,"a":2}', ''],
    ['a member that comes twice with the same value', '{"a":1,"a":1}', ''],
    ['a member that comes three times', '{"a":1,"a":2,"a":3}', ''],
    ['an escaped and a plain name', String.raw`{"a":1,"\u0061":2}`, ''],
    ['two escapes of one name', String.raw`{"\u0041\/":1,"A\u002f":2}`, ''],
    ['a duplicate at depth', '{"x":[{"y":{"a":1,"b":2,"a":3}}]}', ''],
    ['a duplicate in what a duplicate hides', '{"a":{"b":1,"b":2},"a":1}', ''],
    ['a duplicate of an empty name', '{"":1,"":2}', ''],
    ['a duplicate with colons in its text', '{"a":":","a":":"}', ''],
    ['a duplicate with a colon in its name', '{"a:":1,"a:":2}', ''],
    ['a duplicate between texts that end in a backslash', String.raw`{"a":"\\","b":":","a":"\\"}`, ''],
    ['a duplicate of two objects', '{"a":{"x":1},"a":{"y":1}}', ''],
    ['two __proto__', '{"__proto__":1,"__proto__":2}', ''],
    ['__proto__', '{"__proto__":{"a":1}}', ''],
    ['an escaped __proto__', String.raw`{"\u005f_proto__":1}`, ''],
    ['__proto__ at depth', '{"a":[{"__proto__":null}]}', '/a/0'],
    ['an integer beyond 2^53', '{"a":9007199254740993}', '/a'],
    ['2^53, which 2^53 + 1 reads as too', '9007199254740992', ''],
    ['a negative integer beyond 2^53', '{"a":[1,-9007199254740993]}', '/a/1'],
    ['a large integer with an exponent', '{"a":1.5e300}', '/a'],
    ['a number that overflows', '{"a":1e400}', '/a'],
    ['a number that overflows downwards', '{"a":-1e400}', '/a'],
    ['an integer of 400 digits', `{"a":${'9'.repeat(400)}}`, '/a'],
    ['U+0000 in a text', String.raw`{"a":"x\u0000y"}`, '/a'],
    ['U+0000 in a name', String.raw`{"a":{"x\u0000":1}}`, '/a'],
    ['half of a surrogate pair', String.raw`{"a":["\ud83d"]}`, '/a/0'],
    ['the other half', String.raw`{"a":"x\ude00y"}`, '/a'],
    ['two halves in the wrong order', String.raw`{"a":"\ude00\ud83d"}`, '/a'],
    ['half of a pair in a name', String.raw`{"a":{"\ud83d":1}}`, '/a'],
    ['a fault below names with a slash and a tilde', '{"a/b":{"c~d":1e999}}', '/a~1b/c~0d'],
  ])('J1 is refused: %s', (_, text, pointer) => {
    const parsed = parse(text)
    expect(parsed).toMatchObject({ ok: false, pointer })
    expect(parsed.ok ? '' : parsed.detail).toMatch(/^[A-Z].*\.$/)
  })

  test.each([
    ['nothing', ''],
    ['white space', ' \n'],
    ['a word', 'hello'],
    ['single quotes', "{'a':1}"],
    ['a comment', '{"a":1} // x'],
    ['a trailing comma', '{"a":1,}'],
    ['two values', '{} {}'],
    ['NaN', '{"a":NaN}'],
    ['Infinity', '[Infinity]'],
    ['a leading zero', '{"a":01}'],
    ['a plus sign', '{"a":+1}'],
    ['hexadecimal', '{"a":0x10}'],
    ['a raw line feed in a text', '{"a":"x\ny"}'],
    ['a cut body', '{"a":"x'],
    ['a bad escape', String.raw`{"a":"\x41"}`],
  ])('J1 is refused: %s is no JSON', (_, text) => {
    expect(parse(text)).toMatchObject({ ok: false, pointer: '' })
  })

  test.each([
    ['a lone continuation byte', [0x22, 0x80, 0x22]],
    ['a cut sequence', [0x22, 0xc3, 0x22]],
    ['an overlong form', [0x22, 0xc0, 0xaf, 0x22]],
    ['an encoded surrogate', [0x22, 0xed, 0xa0, 0xbd, 0x22]],
    ['UTF-16', [0x7b, 0x00, 0x7d, 0x00]],
    ['Latin-1', [0x22, 0xe9, 0x22]],
  ])('J1 is refused: %s', (_, bytes) => {
    expect(parseStrictJson(Uint8Array.from(bytes)).ok).toBe(false)
  })

  test('J1 is refused: any member repeated, anywhere, however its name is written', () => {
    const objects = fc.dictionary(names, values, { minKeys: 1, maxKeys: 6 })
    const wraps = fc.array(
      fc.constantFrom<(inner: string) => string>(
        (x) => `[${x}]`,
        (x) => `{"w":${x}}`,
        (x) => `[0,{"v":":","w":[${x}]}]`,
      ),
      { maxLength: 8 },
    )
    fc.assert(
      fc.property(
        objects,
        fc.nat(),
        fc.nat(),
        fc.boolean(),
        values,
        wraps,
        (object, which, where, escape, other, around) => {
          const members = Object.entries(object).map(
            ([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`,
          )
          const name = Object.keys(object)[which % members.length] ?? ''
          const again = `${escape ? `"${escaped(name)}"` : JSON.stringify(name)}:${JSON.stringify(other)}`
          const wrap = (list: string[]): string => around.reduce((inner, outer) => outer(inner), `{${list.join(',')}}`)
          expect(parse(wrap(members)).ok).toBe(true)
          expect(parse(wrap(members.toSpliced(where % (members.length + 1), 0, again)))).toMatchObject({
            ok: false,
            pointer: '',
          })
        },
      ),
    )
  })

  test('J1 is refused: every integer beyond 2^53', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 2n ** 53n, max: 2n ** 1100n }), fc.boolean(), (n, negative) => {
        expect(parse(`{"a":${negative ? '-' : ''}${n}}`)).toMatchObject({ ok: false, pointer: '/a' })
      }),
    )
  })

  test('holds no value in what is said of it', () => {
    for (const text of [
      '{"a":"secret-1\\u0000"}',
      '{"a":"secret-1\\ud800"}',
      '{"secret-1',
      '{"a":"secret-1","a":"secret-1"}',
    ])
      expect(JSON.stringify(parse(text))).not.toContain('secret-1')
  })
})

describe('nesting', () => {
  const arrays = (depth: number): string => '['.repeat(depth) + '0' + ']'.repeat(depth)
  const objects = (depth: number): string => '{"a":'.repeat(depth) + '0' + '}'.repeat(depth)

  test.each([
    [64, true],
    [65, false],
    [10_000, false],
    [100_000, false],
  ])('J1 of %i levels: accepted %s, and nothing crashes', (depth, ok) => {
    expect(parse(arrays(depth)).ok).toBe(ok)
    expect(parse(objects(depth)).ok).toBe(ok)
  })

  test('J1 counts a level that is empty too', () => {
    expect(parse('['.repeat(64) + ']'.repeat(64)).ok).toBe(true)
    expect(parse('['.repeat(65) + ']'.repeat(65)).ok).toBe(false)
    expect(parse(`${'{"a":'.repeat(63)}{}${'}'.repeat(63)}`).ok).toBe(true)
    expect(parse(`${'{"a":'.repeat(64)}{}${'}'.repeat(64)}`).ok).toBe(false)
  })

  test('J1 of half a million levels, cut or empty, is refused without a crash', () => {
    expect(parse('['.repeat(500_000)).ok).toBe(false)
    expect(parse('['.repeat(500_000) + ']'.repeat(500_000)).ok).toBe(false)
    expect(parse('{"a":'.repeat(100_000)).ok).toBe(false)
  })
})

test('any bytes at all are read or refused, never an exception', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.uint8Array(),
        fc.string({ unit: 'binary' }).map((text) => new TextEncoder().encode(text)),
      ),
      (bytes) => {
        expect(typeof parseStrictJson(bytes).ok).toBe('boolean')
      },
    ),
  )
})

import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  derivedKey,
  isDerived,
  keyFromHeader,
  keyFromPath,
  keySource,
  maxKeyLength,
  quotedKey,
  type Scope,
} from '../../src/core/idempotency.ts'

const hash = 'a1'.repeat(32)
const visible = String.fromCharCode(...Array.from({ length: 0x7e - 0x21 + 1 }, (_, i) => 0x21 + i))
const bareAll = visible.replaceAll(/[",;\\]/g, '')

/** What a client may use as a key: printable ASCII, not blank, not the name of a derived key. */
const clientKeys = fc
  .string({
    unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
    minLength: 1,
    maxLength: 255,
  })
  .filter((key) => key.trim() !== '' && !key.startsWith('derived:'))

describe('the Idempotency-Key header', () => {
  test.each([
    ['a bare key', 'order-42-shipped', 'order-42-shipped'],
    ['a quoted key', '"order-42-shipped"', 'order-42-shipped'],
    [
      'a bare UUID that begins with a digit',
      '8e03978e-40d5-43dd-bc93-6894a57f9324',
      '8e03978e-40d5-43dd-bc93-6894a57f9324',
    ],
    [
      'a bare UUID that begins with a letter',
      'f47ac10b-58cc-4372-a567-0e02b2c3d479',
      'f47ac10b-58cc-4372-a567-0e02b2c3d479',
    ],
    ['every character that needs no quotes', bareAll, bareAll],
    ['spaces inside quotes', '"order 42"', 'order 42'],
    ['spaces at the ends inside quotes', '" x "', ' x '],
    ['an escaped quote', String.raw`"a\"b"`, 'a"b'],
    ['an escaped backslash', String.raw`"a\\b"`, String.raw`a\b`],
    ['an escaped backslash before the end', String.raw`"a\\"`, 'a\\'],
    ['a list inside quotes', '"a,b;c=d"', 'a,b;c=d'],
    ['one character', 'x', 'x'],
    ['255 bytes, bare', 'k'.repeat(255), 'k'.repeat(255)],
    ['255 bytes, quoted', `"${'k'.repeat(255)}"`, 'k'.repeat(255)],
    ['255 bytes that take 510 to write', `"${'\\"'.repeat(255)}"`, '"'.repeat(255)],
    ['the name of a derived key', `derived:v1:${hash}`, `derived:v1:${hash}`],
    ['a word that only looks like that name', 'Derived:x', 'Derived:x'],
    [
      'metacharacters of SQL, logs and patterns',
      "';DROP-TABLE-x--${jndi:x}.*+?^()[]|%00".replaceAll(';', ''),
      "'DROP-TABLE-x--${jndi:x}.*+?^()[]|%00",
    ],
  ])('K1 reads %s', (_, line, key) => {
    expect(keyFromHeader([line])).toEqual({ kind: 'key', key })
  })

  test('K1 the quoted and the bare form are one key, and case matters', () => {
    expect(keyFromHeader(['"Order-1"'])).toEqual(keyFromHeader(['Order-1']))
    expect(keyFromHeader(['order-1'])).not.toEqual(keyFromHeader(['Order-1']))
  })

  test('K1 no line is a missing key', () => {
    expect(keyFromHeader(undefined)).toEqual({ kind: 'missing' })
    expect(keyFromHeader([])).toEqual({ kind: 'missing' })
  })

  test.each<[string, string[]]>([
    ['two different lines', ['a', 'b']],
    ['two equal lines', ['a', 'a']],
    ['two equal lines in two forms', ['a', '"a"']],
    ['a second line that is empty', ['a', '']],
    ['an empty value', ['']],
    ['an empty quoted value', ['""']],
    ['blanks', ['   ']],
    ['quoted blanks', ['"   "']],
    ['a tab', ['\t']],
    ['a list of quoted keys', ['"a", "b"']],
    ['a list without spaces', ['"a","b"']],
    ['a list of bare keys', ['a,b']],
    ['a bare list as Node joins it', ['a, b']],
    ['a parameter after a quoted key', ['"a";p=1']],
    ['a parameter after a bare key', ['a;p=1']],
    ['a lone quote', ['"']],
    ['an unterminated quote', ['"a']],
    ['a quote at the end only', ['a"']],
    ['a quote in the middle', ['a"b']],
    ['text after the closing quote', ['"a"b']],
    ['a space after the closing quote', ['"a" ']],
    ['an escape of a letter', [String.raw`"a\nb"`]],
    ['an escape of nothing', [String.raw`"a\"`]],
    ['an unescaped quote inside', ['"a"b"']],
    ['a bare backslash', [String.raw`a\b`]],
    ['a bare space', ['a b']],
    ['a single-quoted key with a space', ["'a b'"]],
    ['U+0000', ['a\u0000b']],
    ['a tab inside', ['a\tb']],
    ['a line feed', ['a\nb']],
    ['a line feed at the end', ['a\n']],
    ['a line feed after the closing quote', ['"a"\n']],
    ['DEL', ['a\u007f']],
    ['a quoted control character', ['"a\u0001b"']],
    ['a quoted DEL', ['"a\u007fb"']],
    ['a letter beyond ASCII', ['caf\u00e9']],
    ['a quoted letter beyond ASCII', ['"caf\u00e9"']],
    ['typographic quotes', ['\u201ca\u201d']],
    ['a no-break space', ['a\u00a0b']],
    ['256 bytes, bare', ['k'.repeat(256)]],
    ['256 bytes, quoted', [`"${'k'.repeat(256)}"`]],
    ['the prefix of derived keys alone', ['derived:']],
    ['a client key under that prefix', ['derived:secret-text']],
    ['a derived key in capitals', [`derived:v1:${hash.toUpperCase()}`]],
    ['a derived key that is short', [`derived:v1:${hash.slice(1)}`]],
    ['a derived key with more behind it', [`derived:v1:${hash}0`]],
    ['a derived key of a version that is none', [`derived:v2:${hash}`]],
    ['a quoted client key under that prefix', ['"derived:x"']],
  ])('K1 %s is an error, never "no key"', (_, lines) => {
    const read = keyFromHeader(lines)
    expect(read.kind).toBe('invalid')
    const detail = read.kind === 'invalid' ? read.detail : ''
    expect(detail).toMatch(/^[A-Z].*\.$/)
    expect(detail).not.toContain('secret-text')
  })

  test('K1 whatever one line holds, it is a key or an error, never "no key" and never an exception', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string({ unit: 'binary' }),
          fc.string().map((text) => `"${text}"`),
        ),
        (line) => {
          const read = keyFromHeader([line])
          expect(['key', 'invalid']).toContain(read.kind)
          expect(read.kind === 'key' ? read.key : 'none').toMatch(/^[\x20-\x7e]{1,255}$/)
        },
      ),
    )
  })

  test('K1 every printable key survives being quoted and read again', () => {
    fc.assert(
      fc.property(clientKeys, (key) => {
        expect(keyFromHeader([quotedKey(key)])).toEqual({ kind: 'key', key })
      }),
    )
  })

  test('K1 a key that needs no quotes is the same key in both forms', () => {
    fc.assert(
      fc.property(clientKeys, (key) => {
        const bare = key.replaceAll(/[ ",;\\]/g, '')
        fc.pre(bare !== '' && !bare.startsWith('derived:'))
        expect(keyFromHeader([bare])).toEqual(keyFromHeader([`"${bare}"`]))
      }),
    )
  })
})

describe('a key in a path', () => {
  test('is any key that a quoted header may hold', () => {
    fc.assert(
      fc.property(clientKeys, (key) => {
        expect(keyFromPath(key)).toEqual({ kind: 'key', key })
      }),
    )
    expect(keyFromPath(`derived:v1:${hash}`)).toEqual({ kind: 'key', key: `derived:v1:${hash}` })
  })

  test.each(['', '  ', 'caf\u00e9', 'a\u0000', 'a\nb', 'a\n', 'k'.repeat(maxKeyLength + 1), 'derived:x'])(
    'is refused as %j',
    (key) => {
      expect(keyFromPath(key)).toMatchObject({ kind: 'invalid' })
    },
  )
})

describe('derived keys', () => {
  const scope: Scope = { account: 'acme', environment: 'live' }
  const texts = fc.string({ unit: 'binary', minLength: 1, maxLength: 40 })

  test('K2 are SHA-256 over the JSON array of account, environment, conversation and reference', () => {
    // printf '["acme","live","ticket-991","order-42"]' | sha256sum
    const fixed = 'd4ba11835450f71b35dc579524b5613d670449b430d95a65ec4916caeb7d1d1d'
    expect(derivedKey(scope, 'ticket-991', 'order-42')).toBe(`derived:v1:${fixed}`)
    const literal = createHash('sha256').update('["acme","live","ticket-991","order-42"]').digest('hex')
    expect(literal).toBe(fixed)
  })

  test.each<[string, [Scope, string, string], [Scope, string, string]]>([
    ['a:b, c and a, b:c', [scope, 'a:b', 'c'], [scope, 'a', 'b:c']],
    ['ab, c and a, bc', [scope, 'ab', 'c'], [scope, 'a', 'bc']],
    ['quotes and commas that close an element', [scope, 'a","b', 'c'], [scope, 'a', 'b","c']],
    ['conversation and reference exchanged', [scope, 'a', 'b'], [scope, 'b', 'a']],
    ['live and test', [scope, 'a', 'b'], [{ ...scope, environment: 'test' }, 'a', 'b']],
    ['two accounts', [scope, 'a', 'b'], [{ ...scope, account: 'acme2' }, 'a', 'b']],
    [
      'an account that holds the environment',
      [scope, 'a', 'b'],
      [{ account: 'acme","live', environment: 'live' }, 'a', 'b'],
    ],
    ['upper and lower case', [scope, 'a', 'b'], [scope, 'A', 'b']],
    ['NFC and NFD', [scope, '\u00e9', 'b'], [scope, 'e\u0301', 'b']],
    ['a space more', [scope, 'a', 'b'], [scope, 'a ', 'b']],
  ])('K2 keep %s apart', (_, left, right) => {
    expect(derivedKey(...left)).not.toBe(derivedKey(...right))
  })

  test('K2 are equal exactly when all parts are', () => {
    fc.assert(
      fc.property(texts, texts, texts, texts, (a, b, c, d) => {
        expect(derivedKey(scope, a, b) === derivedKey(scope, c, d)).toBe(a === c && b === d)
        expect(derivedKey(scope, a, b)).toBe(derivedKey({ ...scope }, a, b))
      }),
    )
  })

  test('K2 hold nothing but a hash: no address, no text', () => {
    fc.assert(
      fc.property(texts, texts, (conversation, reference) => {
        expect(derivedKey(scope, conversation, reference)).toMatch(/^derived:v1:[0-9a-f]{64}$/)
      }),
    )
    const key = derivedKey({ account: '+447700900123', environment: 'live' }, 'someone@example.com', 'order-42')
    for (const part of ['447700900123', 'someone', 'example', 'order', '42-']) expect(key).not.toContain(part)
  })

  test('K2 say that they were derived, and no client key does', () => {
    const key = derivedKey(scope, 'a', 'b')
    expect([isDerived(key), keySource(key)]).toEqual([true, 'derived'])
    expect(keyFromHeader([quotedKey(key)])).toEqual({ kind: 'key', key })
    fc.assert(
      fc.property(clientKeys, (client) => {
        expect(keySource(client)).toBe('client')
      }),
    )
  })
})

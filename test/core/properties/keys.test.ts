/** Keys of any bytes, against the grammar read a second time (api.md: quoted or bare, K1; only a time, K3). */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isDerived, isTimestamp, keyFromHeader, keyFromPath, quotedKey } from '../../../src/core/idempotency.ts'

/** A header as it arrives: Node gives one character a byte. */
const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 40 }).map((list) => Buffer.from(list).toString('latin1')),
  fc.string({
    unit: fc.constantFrom('a', '1', '"', '\\', ',', ';', ' ', '=', '\t', '\u0000', '\u007f', 'é'),
    maxLength: 8,
  }),
  fc.string({ unit: fc.constantFrom('a', '"', '\\'), maxLength: 6 }).map((text) => `"${text}"`),
  fc
    .tuple(
      fc.constantFrom('"a"', 'a', '"a', '"\\""', '""'),
      fc.constantFrom(';p=1', ';', ',', ', "b"', ' ', '\t', '"', 'x', '\\'),
    )
    .map((parts) => parts.join('')),
  fc.integer({ min: 250, max: 260 }).map((length) => 'k'.repeat(length)),
  fc.integer({ min: 250, max: 260 }).map((length) => `"${'\\"'.repeat(length)}"`),
  fc.constantFrom('derived:', '"derived:x"', `derived:v1:${'0'.repeat(64)}`, 'derived:v1:0'),
)

/** The key that a line holds, by hand: character after character, without a pattern. Null: it holds none. */
function readByHand(line: string): string | null {
  const key = line.startsWith('"') ? unquoted(line) : bare(line)
  if (key === null || key.length > 255 || key.split('').every((letter) => letter === ' ')) return null
  return key.startsWith('derived:') && !isDerived(key) ? null : key
}

const isBetween = (letter: string, low: number, high: number): boolean =>
  letter.charCodeAt(0) >= low && letter.charCodeAt(0) <= high

const bare = (line: string): string | null =>
  line.split('').every((letter) => isBetween(letter, 0x21, 0x7e) && !'",;\\'.includes(letter)) ? line : null

/** RFC 9651, 4.2.5: Parsing a String; nothing may follow it. */
function unquoted(line: string): string | null {
  let key = ''
  for (let i = 1; i < line.length; i++) {
    const letter = line.charAt(i)
    if (letter === '"') return i === line.length - 1 ? key : null
    if (!isBetween(letter, 0x20, 0x7e)) return null
    if (letter === '\\') {
      i++
      if (!['"', '\\'].includes(line.charAt(i))) return null
    }
    key += line.charAt(i)
  }
  return null
}

describe('K1 any bytes in one line', () => {
  test('are the key that the grammar finds in them, or an error: one of the two', () => {
    fc.assert(
      fc.property(bytes, (line) => {
        const key = readByHand(line)
        const read = keyFromHeader([line])
        expect(read.kind === 'key' ? read.key : read.kind).toBe(key ?? 'invalid')
      }),
      { numRuns: 3_000 },
    )
  })

  test('that hold a key come back from its echo, from its path, and from its bare form if it has one', () => {
    fc.assert(
      fc.property(bytes, (line) => {
        const read = keyFromHeader([line])
        fc.pre(read.kind === 'key')
        expect(keyFromHeader([quotedKey(read.key)])).toEqual(read)
        expect(keyFromPath(read.key)).toEqual(read)
        fc.pre(!read.key.startsWith('"')) // which would be the quoted form of another key
        const asBare = keyFromHeader([read.key])
        expect(bare(read.key) === null ? asBare.kind : asBare).toEqual(bare(read.key) === null ? 'invalid' : read)
      }),
      { numRuns: 1_000 },
    )
  })

  test('on two lines are an error, whatever each holds', () => {
    fc.assert(
      fc.property(fc.array(bytes, { minLength: 2, maxLength: 4 }), (lines) => {
        expect(keyFromHeader(lines).kind).toBe('invalid')
      }),
    )
  })

  test('are not repeated in what is said of them', () => {
    fc.assert(
      fc.property(bytes, (more) => {
        const read = keyFromHeader([`canary-7f3a ${more}`])
        expect(read.kind).toBe('invalid')
        expect(JSON.stringify(read)).not.toContain('canary')
      }),
    )
  })
})

describe('K3 a key that is only a time', () => {
  const dayMs = 86_400_000
  const nows = fc.date({ noInvalidDate: true, min: new Date('2001-09-09T02:00:00Z'), max: new Date('2200-01-01') })
  const inYear = fc.integer({ min: -365 * dayMs, max: 365 * dayMs })
  const two = (n: number): string => String(n).padStart(2, '0')

  /** Ways in which programs print an instant. */
  const printed: readonly ((at: Date) => string)[] = [
    (at) => String(Math.floor(at.getTime() / 1_000)),
    (at) => (at.getTime() / 1_000).toFixed(6),
    (at) => String(at.getTime()),
    (at) => `${at.getTime()}123`,
    (at) => `${at.getTime()}123456`,
    (at) => at.toISOString(),
    (at) => at.toISOString().replace(/\.\d+Z$/, 'Z'),
    (at) => at.toISOString().replace('Z', '+00:00'),
    (at) =>
      at
        .toISOString()
        .replace('T', ' ')
        .replace(/\.\d+Z$/, ''),
    (at) => at.toISOString().replaceAll(/[-:]|\.\d+/g, ''),
    (at) => at.toUTCString(),
    (at) => {
      const [, month = ''] = at.toDateString().split(' ')
      const time = at.toISOString().slice(11, 19)
      const day = at.toUTCString().slice(0, 3)
      return `${day} ${month} ${two(at.getUTCDate()).replace(/^0/, ' ')} ${time} ${at.getUTCFullYear()}`
    },
  ]

  test('is found in every way that programs print one, at any time of any year', () => {
    fc.assert(
      fc.property(nows, inYear, fc.constantFrom(...printed), (now, offset, print) => {
        expect([
          print(new Date(now.getTime() + offset)),
          isTimestamp(print(new Date(now.getTime() + offset)), now.getTime()),
        ]).toEqual([print(new Date(now.getTime() + offset)), true])
      }),
      { numRuns: 2_000 },
    )
  })

  test('is none once a name stands beside it', () => {
    const name = fc.stringMatching(/^[a-z]{2,6}$/).filter((word) => word !== 'gmt')
    fc.assert(
      fc.property(nows, inYear, fc.constantFrom(...printed), name, fc.boolean(), (now, offset, print, word, before) => {
        const time = print(new Date(now.getTime() + offset))
        expect(isTimestamp(before ? `${word}-${time}` : `${time}-${word}`, now.getTime())).toBe(false)
      }),
      { numRuns: 1_000 },
    )
  })

  test('is looked for in any text without an exception, and soon', () => {
    const texts = fc.oneof(
      bytes,
      fc.string({ unit: fc.constantFrom('0', '1', '9', '-', ':', 'T', 'Z', '+', '.', ',', ' '), maxLength: 255 }),
      fc.string({ unit: fc.constantFrom('0', '.'), minLength: 200, maxLength: 255 }),
    )
    fc.assert(
      fc.property(
        texts,
        fc.oneof(
          nows.map((now) => now.getTime()),
          fc.constantFrom(0, -1, Number.MAX_VALUE),
        ),
        (text, now) => {
          expect(typeof isTimestamp(text, now)).toBe('boolean')
        },
      ),
      { numRuns: 1_000 },
    )
  })

  test('a number of any other length, or further away than a year and a day, is a key', () => {
    const far = fc.integer({ min: 367, max: 20_000 }).chain((days) => fc.constantFrom(days, -days))
    fc.assert(
      fc.property(
        fc.integer({ min: 1_700_000_000, max: 1_900_000_000 }),
        far,
        fc.constantFrom('', '000', '000000', '000000000'),
        (nowS, days, zeros) => {
          const then = nowS + days * 86_400
          fc.pre(String(then).length === 10)
          expect(isTimestamp(`${then}${zeros}`, nowS * 1_000)).toBe(false)
        },
      ),
    )
    fc.assert(
      fc.property(fc.stringMatching(/^[1-9]\d{0,7}$|^[1-9]\d{20,40}$/), nows, (digits, now) => {
        expect(isTimestamp(digits, now.getTime())).toBe(false)
      }),
    )
  })
})

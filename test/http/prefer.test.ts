/** `Prefer` (RFC 7240), as far as api.md uses it. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { preferencesOf } from '../../src/http/prefer.ts'

const inDefault = { waitMs: 15_000, async: false }

describe('wait', () => {
  test.each<[string, string[], number]>([
    ['a number of seconds', ['wait=10'], 10],
    ['nothing to wait for', ['wait=0'], 0],
    ['leading zeros', ['wait=007'], 7],
    ['a quoted number', ['wait="10"'], 10],
    ['white space around the sign', ['wait = 10'], 10],
    ['capitals', ['Wait=10'], 10],
    ['a minute', ['wait=60'], 60],
    ['more than a minute', ['wait=61'], 60],
    ['much more', ['wait=999999999'], 60],
    ['more than fits an integer', ['wait=99999999999999999999'], 60],
    ['a number after a quoted text with commas', ['foo="a, b", wait=10'], 10],
    ['a number after a quoted parameter', ['foo; bar="x, \\"y"; baz, wait=10'], 10],
    ['an escape inside quotes', [String.raw`wait="1\0"`], 10],
    ['a parameter of its own', ['wait=10; foo=bar'], 10],
    ['other preferences beside it', ['return=minimal, wait=10, handling=lenient'], 10],
    ['no space after the comma', ['return=minimal,wait=10'], 10],
    ['empty elements of the list', [', ,wait=10,'], 10],
    ['several lines', ['return=minimal', 'wait=10'], 10],
    ['the first of two', ['wait=5, wait=20'], 5],
    ['the first of two lines', ['wait=5', 'wait=20'], 5],
  ])('reads %s', (_, lines, seconds) => {
    expect(preferencesOf(lines)).toEqual({ waitMs: seconds * 1_000, async: false })
  })

  test.each([
    ['nothing', ''],
    ['no value', 'wait'],
    ['an empty value', 'wait='],
    ['an empty quoted value', 'wait=""'],
    ['a negative number', 'wait=-1'],
    ['a sign', 'wait=+1'],
    ['a fraction', 'wait=1.5'],
    ['an exponent', 'wait=1e1'],
    ['hexadecimal', 'wait=0x1'],
    ['a word', 'wait=forever'],
    ['a unit', 'wait=10s'],
    ['another preference that ends alike', 'await=10'],
    ['a parameter of another preference', 'foo; wait=10'],
    ['digits of another script', 'wait=\u0661\u0660'],
    ['control characters', 'wait=1\u00000'],
    ['an open quote', 'wait="10'],
    ['a closing quote alone', 'wait=10"'],
    ['two words', 'wait=1 0'],
    ['the quoted text of another preference', 'foo="a, wait=1"'],
    ['the quoted text of a parameter', 'foo; bar="a, wait=1"'],
    ['a quoted text with an escaped quote', String.raw`foo="a\", wait=1, \"b"`],
  ])('is ignored with %s: the default is 15 s', (_, line) => {
    expect(preferencesOf([line])).toEqual(inDefault)
  })

  test('is 15 s without the header', () => {
    expect(preferencesOf(undefined)).toEqual(inDefault)
    expect(preferencesOf([])).toEqual(inDefault)
  })

  test('is never shorter than nothing, nor longer than a minute, whatever the header holds', () => {
    const lines = fc.array(
      fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.nat().map((n) => `wait=${n}`),
        fc.string().map((text) => `wait=${text}`),
      ),
    )
    fc.assert(
      fc.property(lines, (given) => {
        const { waitMs } = preferencesOf(given)
        expect(Number.isInteger(waitMs)).toBe(true)
        expect(waitMs).toBeGreaterThanOrEqual(0)
        expect(waitMs).toBeLessThanOrEqual(60_000)
      }),
    )
  })
})

describe('respond-async', () => {
  test.each<[string, string[], boolean]>([
    ['alone', ['respond-async'], true],
    ['in capitals', ['Respond-Async'], true],
    ['with white space', ['  respond-async  '], true],
    ['with a parameter', ['respond-async; foo=bar'], true],
    ['among others', ['return=minimal, respond-async, wait=10'], true],
    ['on a line of its own', ['wait=10', 'respond-async'], true],
    ['twice', ['respond-async, respond-async'], true],
    ['with an empty value, which is none', ['respond-async=""'], true],
    ['after a quoted text', ['foo="a, b", respond-async'], true],
    ['with a value', ['respond-async=false'], false],
    ['in the quoted text of another preference', ['foo="a, respond-async, b"'], false],
    ['as part of another word', ['respond-asynchronously'], false],
    ['with something before it', ['x-respond-async'], false],
    ['as a value', ['foo=respond-async'], false],
    ['as a parameter of another preference', ['foo; respond-async'], false],
    ['not at all', ['wait=10'], false],
  ])('%s', (_, lines, async) => {
    expect(preferencesOf(lines).async).toBe(async)
  })

  test('goes together with wait', () => {
    expect(preferencesOf(['respond-async, wait=10'])).toEqual({ waitMs: 10_000, async: true })
  })
})

describe('H4: a header of 16 KB does not hold the process', () => {
  const n = 16_000
  test.each([
    ['a value that never comes', `a=${' '.repeat(n)}"`],
    ['white space before a quote', `a${' '.repeat(n)}"`],
    ['white space around the sign', `a${' '.repeat(n / 2)}=${' '.repeat(n / 2)}"`],
  ])('%s is read within 50 ms (a linear pattern needs less than one)', (_, line) => {
    const begun = performance.now()
    preferencesOf([line])
    expect(performance.now() - begun).toBeLessThan(50)
  })
})

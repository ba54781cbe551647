/** K3: what is only a time is no key (behaviour.md A4). */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isTimestamp } from '../../src/core/idempotency.ts'

const now = Date.parse('2026-12-01T09:00:00.000Z')
const dayMs = 86_400_000
const units = { s: 1_000n, ms: 1n, µs: 1_000n, ns: 1_000_000n }
/** `ms` as an epoch in the unit, in digits. */
function epoch(unit: keyof typeof units, ms: number): string {
  const exact = BigInt(Math.round(ms))
  return String(unit === 's' ? exact / units.s : exact * units[unit])
}
const unitNames = Object.keys(units) as (keyof typeof units)[]

describe('an epoch within a year of now', () => {
  test.each(unitNames.flatMap((unit) => [-365, -200, -1, 0, 1, 200, 365].map((days) => [unit, days] as const)))(
    'K3 in %s, %i days away, is no key',
    (unit, days) => {
      const key = epoch(unit, now + days * dayMs)
      expect(key).toHaveLength({ s: 10, ms: 13, µs: 16, ns: 19 }[unit])
      expect(isTimestamp(key, now)).toBe(true)
    },
  )

  test.each(unitNames.flatMap((unit) => [-4_000, -367, 367, 4_000].map((days) => [unit, days] as const)))(
    'K3 in %s, %i days away, is a number like others: accepted',
    (unit, days) => {
      expect(isTimestamp(epoch(unit, now + days * dayMs), now)).toBe(false)
    },
  )

  test('K3 is recognised in every unit, with a fraction too', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: -365 * dayMs, max: 365 * dayMs }),
        fc.constantFrom(...unitNames),
        fc.constantFrom('', '.0', '.5', '.123456', '.123456789'),
        (ms, unit, fraction) => {
          expect(isTimestamp(`${epoch(unit, now + ms)}${fraction}`, now)).toBe(true)
        },
      ),
    )
  })

  test('K3 is judged against the time of the claim: the same digits are a key ten years on', () => {
    const key = epoch('ms', now)
    expect(isTimestamp(key, now)).toBe(true)
    expect(isTimestamp(key, now + 3_650 * dayMs)).toBe(false)
  })
})

describe('a written time', () => {
  test.each([
    '2026-12-01T09:00:00.000Z',
    '2026-12-01T09:00:00Z',
    '2026-12-01T09:00Z',
    '2026-12-01T09:00:00',
    '2026-12-01T09:00:00+01:00',
    '2026-12-01T09:00:00-0500',
    '2026-12-01T09:00:00+01',
    '2026-12-01T09:00:00,123Z',
    '2026-12-01T09:00:00.123456789Z',
    '2026-12-01t09:00:00z',
    '2026-12-01 09:00:00',
    '2026-12-01 09:00',
    '2026-12-01 09:00:00.123456+00:00',
    '2026-12-01 09:00:00.123456+00',
    '1999-12-31T23:59:59Z',
    '20261201T090000Z',
    '20261201T0900Z',
    '20261201T090000.123Z',
    '20261201T090000+0100',
    '20261201T090000',
    'Tue, 01 Dec 2026 09:00:00 GMT',
    'Sunday, 06-Nov-94 08:49:37 GMT',
    'Wednesday, 01-Dec-27 09:00:00 GMT',
    'Sun Nov  6 08:49:37 1994',
    'Tue Dec 01 09:00:00 2026',
  ])('K3 %j is no key, whenever it is', (key) => {
    expect(isTimestamp(key, now)).toBe(true)
  })

  test('K3 is recognised as every JavaScript program prints it', () => {
    fc.assert(
      fc.property(fc.date({ noInvalidDate: true, min: new Date(0), max: new Date('2099-12-31') }), (date) => {
        expect(isTimestamp(date.toISOString(), now)).toBe(true)
        expect(isTimestamp(date.toUTCString(), now)).toBe(true)
        expect(isTimestamp(date.toISOString().replaceAll(/[-:]/g, ''), now)).toBe(true)
        expect(isTimestamp(date.toISOString().replace('T', ' '), now)).toBe(true)
      }),
    )
  })
})

describe('what only looks like a time', () => {
  test.each([
    ['a UUIDv7', '0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b'],
    ['a ULID', '01JE1M2N3P4Q5R6S7T8V9W0X1Y'],
    ['an order of a day', 'order-20250101-0001'],
    ['a day and a number', '20261201-0001'],
    ['a telephone number', '447700900123'],
    ['a telephone number with its sign', '+447700900123'],
    ['a long-distance number', '15005550006'],
    ['a small number', '42'],
    ['an account number of eight digits', '12345678'],
    ['a card number', '4242424242424242'],
    ['a number of 21 digits', '176457960000000000000'],
    ['an epoch with a name', `order-${now}`],
    ['an epoch and a number', `${now}-1`],
    ['an epoch that is part of a path', `jobs/${now}`],
    ['a written time with a name', 'report:2026-12-01T09:00:00Z'],
    ['a written time and a number', '2026-12-01T09:00:00Z-1'],
    ['a written date with a name', 'Tue, 01 Dec 2026 09:00:00 GMT report'],
    ['a hexadecimal hash', 'deadbeefdeadbeefdeadbeefdeadbeef'],
    ['the letter T between digits', '2026T0001'],
    ['the name of a derived key', `derived:v1:${'1'.repeat(64)}`],
    ['two epochs', `${now},${now}`],
    ['an epoch on a line of its own', `${now}\n`],
  ])('K3 %s is accepted', (_, key) => {
    expect(isTimestamp(key, now)).toBe(false)
  })

  test('K3 Date.parse is no detector: it misses bare epochs, and sees dates in names', () => {
    for (const unit of unitNames) {
      const key = epoch(unit, now)
      expect(Date.parse(key)).toBeNaN()
      expect(isTimestamp(key, now)).toBe(true)
    }
    for (const key of ['order 1', 'ship-notice-12', 'item 2026']) {
      expect(Date.parse(key)).not.toBeNaN()
      expect(isTimestamp(key, now)).toBe(false)
    }
  })
})

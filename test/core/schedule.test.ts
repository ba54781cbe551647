import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { credentialsPauseMs, retryDelayMs, timesOf, timesRefusal } from '../../src/core/schedule.ts'
import type { MessageRequest } from '../../src/core/message-content.ts'
import { after, smsRequest, t0 } from './fixtures.ts'

const dayMs = 86_400_000
type Asked = Pick<MessageRequest, 'sendAt' | 'delaySeconds' | 'notAfter' | 'ttlSeconds'>
const timesAsked = (asked: Asked) => timesOf({ ...smsRequest, ...asked }, t0)

describe('the times of a new message', () => {
  test.each<[string, Asked, number | null, number]>([
    ['nothing asked: at once, for a day', {}, null, dayMs],
    ['sendAt', { sendAt: '2026-12-01T10:00:00Z' }, 3_600_000, 3_600_000 + dayMs],
    ['sendAt in another zone', { sendAt: '2026-12-01T11:00:00+01:00' }, 3_600_000, 3_600_000 + dayMs],
    ['sendAt that has passed: at once, for a day from now', { sendAt: '2026-12-01T08:00:00Z' }, null, dayMs],
    ['sendAt that is now', { sendAt: '2026-12-01T09:00:00Z' }, null, dayMs],
    ['delaySeconds', { delaySeconds: 60 }, 60_000, 60_000 + dayMs],
    ['no delay', { delaySeconds: 0 }, null, dayMs],
    ['notAfter', { notAfter: '2026-12-01T09:00:30.500Z' }, null, 30_500],
    ['ttlSeconds', { ttlSeconds: 90 }, null, 90_000],
    ['ttlSeconds counted from the arrival, not from sendAt', { delaySeconds: 60, ttlSeconds: 90 }, 60_000, 90_000],
    ['sendAt and notAfter', { sendAt: '2026-12-01T10:00:00Z', notAfter: '2026-12-01T10:00:01Z' }, 3_600_000, 3_601_000],
  ])('follow from %s', (_, asked, sendAt, notAfter) => {
    expect(timesAsked(asked)).toEqual({ sendAt: sendAt === null ? null : after(sendAt), notAfter: after(notAfter) })
  })

  test('I2 leave a day for sending, counted from the time it is scheduled for', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 31_536_000 }), (delaySeconds) => {
        const { sendAt, notAfter } = timesAsked({ delaySeconds })
        expect(notAfter.getTime() - (sendAt ?? t0).getTime()).toBe(dayMs)
      }),
    )
  })
})

describe('times that speak against a new message', () => {
  test.each<[string, Asked, RegExp]>([
    ['a notAfter that has passed', { notAfter: '2026-12-01T08:59:59Z' }, /has passed/],
    ['a notAfter that is now', { notAfter: '2026-12-01T09:00:00Z' }, /has passed/],
    ['a notAfter before sendAt', { sendAt: '2026-12-01T10:00:00Z', notAfter: '2026-12-01T09:30:00Z' }, /before/],
    ['a notAfter at sendAt', { sendAt: '2026-12-01T10:00:00Z', notAfter: '2026-12-01T10:00:00Z' }, /before/],
    ['a life that is shorter than the delay', { delaySeconds: 61, ttlSeconds: 60 }, /before/],
  ])('are %s', (_, asked, why) => {
    const refusal = timesRefusal(timesAsked(asked), t0)
    expect(refusal).toMatch(why)
    expect(refusal).toMatch(/^[a-zA-Z].*\.$/)
  })

  test.each<[string, Asked]>([
    ['none', {}],
    ['a notAfter in a second', { notAfter: '2026-12-01T09:00:01Z' }],
    ['a life of a second', { ttlSeconds: 1 }],
    ['a notAfter just after sendAt', { sendAt: '2026-12-01T10:00:00Z', notAfter: '2026-12-01T10:00:00.001Z' }],
    ['a sendAt that has passed', { sendAt: '2026-11-01T10:00:00Z', ttlSeconds: 1 }],
  ])('are not %s', (_, asked) => {
    expect(timesRefusal(timesAsked(asked), t0)).toBeNull()
  })
})

describe('the pause before the next call', () => {
  test.each([
    [1, 1_000],
    [2, 2_000],
    [3, 4_000],
    [4, 8_000],
    [9, 256_000],
    [10, 300_000],
    [11, 300_000],
    [1_000, 300_000],
  ])('after call %i is anything up to %i ms: full jitter', (attempts, ceilingMs) => {
    expect(retryDelayMs(attempts, 'not_begun', null, 0)).toBe(0)
    expect(retryDelayMs(attempts, 'not_begun', null, 0.5)).toBe(ceilingMs / 2)
    expect(retryDelayMs(attempts, 'refused_for_now', null, 1 - 2 ** -53)).toBe(ceilingMs)
  })

  const randoms = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
  const reasons = fc.constantFrom('not_begun' as const, 'refused_for_now' as const, 'credentials' as const)
  const asks = fc.option(fc.integer({ min: 0, max: 86_400_000 }))

  test('is a whole number of milliseconds, never negative, and at most five minutes unless the provider asks for more', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 32_767 }), reasons, asks, randoms, (attempts, reason, asked, random) => {
        const ms = retryDelayMs(attempts, reason, asked, random)
        expect(Number.isInteger(ms)).toBe(true)
        expect(ms).toBeGreaterThanOrEqual(0)
        expect(ms).toBeLessThanOrEqual(Math.max(300_000, asked ?? 0))
      }),
    )
  })

  test('is never shorter than the Retry-After of the provider', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 50 }),
        reasons,
        fc.nat(86_400_000),
        randoms,
        (attempts, reason, asked, random) => {
          expect(retryDelayMs(attempts, reason, asked, random)).toBeGreaterThanOrEqual(asked)
        },
      ),
    )
  })

  test('is at least a minute where our credentials are refused', () => {
    expect(credentialsPauseMs).toBe(60_000)
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), randoms, (attempts, random) => {
        expect(retryDelayMs(attempts, 'credentials', null, random)).toBeGreaterThanOrEqual(60_000)
      }),
    )
  })
})

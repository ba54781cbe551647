/** Where the code does not yet do what the contract says. Each test fails until it does; then it moves to its own file. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { preferencesOf } from '../../src/http/prefer.ts'
import { parseStrictJson } from '../../src/http/strict-json.ts'
import { useDatabase } from '../support/database.ts'
import { sms, testGateway, type TestGateway } from '../support/gateway.ts'
import { check, full, minimal, refusedAt, withAt } from './bodies.ts'

const parse = (text: string) => parseStrictJson(new TextEncoder().encode(text))

describe('J1: nesting deeper than 64 is refused', () => {
  test.each([
    ['arrays', '['.repeat(65) + ']'.repeat(65)],
    ['objects', `${'{"a":'.repeat(64)}{}${'}'.repeat(64)}`],
  ])('of 65 empty %s too', (_, text) => {
    expect(parse(text).ok).toBe(false)
  })
})

describe('Prefer (api.md; RFC 7240, section 2)', () => {
  test.each([
    ['respond-async', 'foo="a, respond-async, b"'],
    ['wait', 'foo="a, wait=1"'],
    ['wait, after an escaped quote', String.raw`foo="a\", wait=1, \"b"`],
  ])('a quoted text of another preference is not read as %s', (_, line) => {
    expect(preferencesOf([line])).toEqual({ waitMs: 15_000, async: false })
  })

  test.each(['wait="10', 'wait=10"'])('what cannot be read is ignored: %s', (line) => {
    expect(preferencesOf([line]).waitMs).toBe(15_000)
  })

  test.each(['wait=1000000000', 'wait=99999999999999999999'])('more than 60 counts as 60: %s', (line) => {
    expect(preferencesOf([line]).waitMs).toBe(60_000)
  })

  test('an empty value is the same as none: respond-async=""', () => {
    expect(preferencesOf(['respond-async=""']).async).toBe(true)
  })
})

describe('an e-mail with a large attachment (api.md: the body limit is a setting, "e-mail with attachments wants more")', () => {
  test.each([1, 8, 64])('of %i MiB of base64 is validated', (mebibytes) => {
    const content = 'QUFB'.repeat((mebibytes * 1_048_576) / 4)
    const body = withAt(full.email, '/content/attachments/0/content', content)
    const verdict = ((): boolean | string => {
      try {
        return check(body).ok
      } catch (error) {
        return String(error)
      }
    })()
    expect(verdict).toBe(true)
  })
})

describe('metadata is string to string (api.md), whatever a name is made of', () => {
  test.each(['a\nb', '\n', 'a\r', '\u2028', 'a\u2029b'])(
    'a value of another type is refused under the name %j',
    (name) => {
      for (const value of [5, null, true, { x: 1 }, ['x']])
        expect([value, refusedAt({ ...minimal.sms, metadata: { [name]: value } })]).toEqual([
          value,
          `/metadata/${name}`,
        ])
    },
  )
})

describe('the recipient of a webhook is an https URL (api.md)', () => {
  test.each([
    'https://',
    'https://:443/',
    'https://example.com:99999/',
    'https://1.2.3.4.5/',
    'https://256.1.1.1/',
    'https://a%20b/',
  ])('%s is none', (to) => {
    expect(URL.canParse(to)).toBe(false)
    expect(check({ ...minimal.webhook, to })).toMatchObject({ ok: false, pointer: '/to' })
  })
})

describe('a time at the end of the calendar (C3: 4xx before the claim, never a 500 after it)', () => {
  const database = useDatabase()
  let gateway: TestGateway
  beforeAll(async () => {
    gateway = await testGateway(database.url)
  })
  afterAll(async () => gateway.close())

  test.each(['9999-12-31T12:00:00Z', '9999-12-31T23:59:59-23:59'])(
    'sendAt %s is answered by 202 or 400',
    async (sendAt) => {
      const answer = await gateway.send(sms('later', { sendAt }), { key: `far-${sendAt}`, prefer: 'respond-async' })
      expect([202, 400]).toContain(answer.statusCode)
    },
  )

  test('notAfter 9999-12-31T23:59:59-23:59 is answered by 202 or 400', async () => {
    const notAfter = '9999-12-31T23:59:59-23:59'
    const answer = await gateway.send(sms('later', { notAfter }), { key: 'far', prefer: 'respond-async' })
    expect([202, 400]).toContain(answer.statusCode)
  })
})

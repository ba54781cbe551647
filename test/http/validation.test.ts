/** POST /v1/messages, body by body (api.md: unknown fields are refused, nothing is coerced). */
import { describe, expect, test } from 'vitest'
import { channels, type Channel } from '../../src/core/message-content.ts'
import { check, full, minimal, refusedAt, withAt } from './bodies.ts'

const long = (length: number): string => 'x'.repeat(length)
const members = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`m${i}`, '']))

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) for (const member of Object.values(value)) deepFreeze(member)
  return Object.freeze(value)
}

describe('a valid body', () => {
  test.each(channels)('of %s with nothing but what is needed is accepted as it is', (channel) => {
    const body = deepFreeze(structuredClone(minimal[channel]))
    expect(check(body)).toStrictEqual({ ok: true, value: minimal[channel] })
  })

  test.each(channels)('of %s with everything is accepted as it is: nothing added, removed or changed', (channel) => {
    const body = deepFreeze(structuredClone(full[channel]))
    const verdict = check(body)
    expect(verdict).toStrictEqual({ ok: true, value: full[channel] })
    expect(verdict.ok && verdict.value).toBe(body)
  })

  test.each<[string, Channel, string, unknown]>([
    ['the shortest number', 'sms', '/to', '+12'],
    ['the longest number', 'sms', '/to', '+123456789012345'],
    ['a name as sender', 'sms', '/from', long(64)],
    ['a text of many lines', 'sms', '/content/text', 'a\r\nb\tc\u2028d'],
    ['a text beyond the BMP', 'sms', '/content/text', '\u{1f600}'],
    ['255 characters of a conversation', 'sms', '/conversation', long(255)],
    ['255 characters that take more bytes', 'sms', '/reference', '\u{1f600}'.repeat(255)],
    ['63 characters of a provider', 'sms', '/provider', long(63)],
    ['50 entries of metadata', 'sms', '/metadata', members(50)],
    ['no entry of metadata', 'sms', '/metadata', {}],
    ['metadata of many lines', 'sms', '/metadata', { 'a\nb': 'c\nd' }],
    ['no html', 'email', '/content/html', undefined],
    ['no text', 'email', '/content/text', undefined],
    ['no recipients of copies', 'email', '/cc', []],
    ['50 recipients of copies', 'email', '/bcc', Array.from({ length: 50 }, (_, i) => `a${i}@example.com`)],
    ['a plus address', 'email', '/to', 'some.one+tag@sub.example.com'],
    ['998 characters of a subject', 'email', '/content/subject', long(998)],
    ['an empty header', 'email', '/content/headers', {}],
    [
      '50 headers',
      'email',
      '/content/headers',
      Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`X-${i}`, 'v'])),
    ],
    ['an empty attachment', 'email', '/content/attachments/0/content', ''],
    ['base64 with one pad', 'email', '/content/attachments/0/content', 'QUE='],
    ['base64 with two', 'email', '/content/attachments/0/content', 'QQ=='],
    ['a media type with a suffix', 'email', '/content/attachments/0/contentType', 'image/svg+xml'],
    ['a long device token', 'push', '/to', long(4096)],
    ['no data for the app', 'push', '/content/data', {}],
    ['any JSON for the app', 'push', '/content/data', { a: null, b: [1, { c: 'd\n' }] }],
    ['data that is a text', 'webhook', '/content/data', 'x\ny'],
    ['data that is an array', 'webhook', '/content/data', [1, [2]]],
    ['data that is false', 'webhook', '/content/data', false],
    ['a URL with port, path and query', 'webhook', '/to', 'https://example.com:8443/a/b?c=d&e=%20'],
    ['a URL with an address', 'webhook', '/to', 'https://192.0.2.1/hooks'],
  ])('may have %s (%s)', (_, channel, pointer, value) => {
    expect(check(withAt(full[channel], pointer, value))).toMatchObject({ ok: true })
  })

  test.each([
    '2026-12-01T10:00:00Z',
    '2026-12-01T10:00:00.1Z',
    '2026-12-01T10:00:00.123456789Z',
    '2026-12-01T10:00:00+05:30',
    '2026-12-01T10:00:00-00:00',
    '2028-02-29T23:59:59.999-12:00',
  ])('may have the time %s', (time) => {
    expect(check({ ...minimal.sms, sendAt: time, notAfter: time })).toMatchObject({ ok: true })
    expect(new Date(time).getTime()).not.toBeNaN()
  })

  test.each([
    ['delaySeconds', 0],
    ['delaySeconds', 31_536_000],
    ['ttlSeconds', 1],
    ['ttlSeconds', 31_536_000],
  ])('may have %s of %i', (name, seconds) => {
    expect(check({ ...minimal.sms, [name]: seconds })).toMatchObject({ ok: true })
  })

  test('may give a delay with an end, and a time with a life', () => {
    expect(check({ ...minimal.sms, delaySeconds: 1, notAfter: '2026-12-01T10:00:00Z' })).toMatchObject({ ok: true })
    expect(check({ ...minimal.sms, sendAt: '2026-12-01T10:00:00Z', ttlSeconds: 1 })).toMatchObject({ ok: true })
  })
})

describe('a large body', () => {
  test.each([1, 8, 64])('may have an attachment of %i MiB of base64 (the body limit is a setting)', (mebibytes) => {
    const content = 'QUFB'.repeat((mebibytes * 1_048_576) / 4)
    const body = withAt(full.email, '/content/attachments/0/content', content)
    expect(check(body)).toMatchObject({ ok: true })
    expect(refusedAt(withAt(body, '/content/attachments/0/content', `${content}QU=E`))).toBe(
      '/content/attachments/0/content',
    )
  })
})

describe('a body is refused, with a pointer to what is wrong', () => {
  test.each<[string, unknown, string]>([
    ['no body', undefined, ''],
    ['null', null, ''],
    ['a text', 'sms', ''],
    ['a number', 1, ''],
    ['an array', [minimal.sms], ''],
    ['an empty object', {}, '/channel'],
    ['an unknown channel', { ...minimal.sms, channel: 'fax' }, '/channel'],
    ['a channel in capitals', { ...minimal.sms, channel: 'SMS' }, '/channel'],
    ['a channel that is null', { ...minimal.sms, channel: null }, '/channel'],
    ['a channel in an array', { ...minimal.sms, channel: ['sms'] }, '/channel'],
    ['a channel that every object inherits', { ...minimal.sms, channel: 'constructor' }, '/channel'],
    ['sendAt and delaySeconds', { ...minimal.sms, sendAt: '2026-12-01T10:00:00Z', delaySeconds: 1 }, '/delaySeconds'],
    ['notAfter and ttlSeconds', { ...minimal.sms, notAfter: '2026-12-01T10:00:00Z', ttlSeconds: 1 }, '/ttlSeconds'],
    ['an e-mail without text and html', withAt(minimal.email, '/content/text', undefined), '/content'],
    ['the content of another channel', { ...minimal.sms, content: minimal.push.content }, '/content/text'],
  ])('%s', (_, body, pointer) => {
    expect(refusedAt(body)).toBe(pointer)
  })

  const required: Record<Channel, string[]> = {
    sms: ['/to', '/content', '/content/text'],
    email: ['/to', '/content', '/content/subject'],
    chat: ['/to', '/content', '/content/text'],
    push: ['/to', '/content', '/content/title', '/content/body'],
    webhook: ['/to', '/content', '/content/type', '/content/data'],
  }
  test.each(
    channels.flatMap((channel) => ['/channel', ...required[channel]].map((pointer) => [channel, pointer] as const)),
  )('%s without %s', (channel, pointer) => {
    expect(refusedAt(withAt(minimal[channel], pointer, undefined))).toBe(pointer)
    expect(refusedAt(withAt(full[channel], pointer, undefined))).toBe(pointer)
  })

  test.each<[Channel, string, unknown[]]>([
    [
      'sms',
      '/to',
      [
        '',
        '447700900123',
        '+',
        '+0447700900123',
        '+1',
        '+1234567890123456',
        '+44 7700 900123',
        '+44-7700',
        '00447700900123',
        '+\u0661\u0662\u0663',
        'a@b.cc',
      ],
    ],
    ['sms', '/from', ['', long(65)]],
    ['sms', '/content/text', ['']],
    ['sms', '/conversation', ['', long(256), '\u{1f600}'.repeat(256)]],
    ['sms', '/reference', ['', long(256)]],
    ['sms', '/intent', ['', long(256)]],
    ['sms', '/provider', ['', long(64)]],
    ['sms', '/metadata', [members(51), [], 'a']],
    [
      'sms',
      '/sendAt',
      [
        '',
        '2026-12-01',
        '2026-12-01T10:00Z',
        '2026-12-01T10:00:00',
        '2026-12-01 10:00:00Z',
        '2026-12-01t10:00:00Z',
        '2026-12-01T10:00:00z',
        '2026-02-29T10:00:00Z',
        '2026-13-01T10:00:00Z',
        '2026-12-01T24:00:00Z',
        '2026-12-01T10:00:60Z',
        '2026-12-01T10:60:00Z',
        '2026-12-01T10:00:00+24:00',
        '2026-12-01T10:00:00+0100',
        '+02026-12-01T10:00:00Z',
        '2026-12-01T10:00:00.Z',
        '2026-12-01T10:00:00.1234567891Z',
        'Tue, 01 Dec 2026 10:00:00 GMT',
        '9999-12-31T12:00:00Z',
        '9999-12-31T23:59:59-23:59',
        '1764579600',
        'tomorrow',
        '2026-12-01T10:00:00Z\n',
      ],
    ],
    ['sms', '/notAfter', ['', '2026-12-01', '2026-12-01T10:00:00', 'never', '9999-12-31T23:59:59-23:59']],
    [
      'email',
      '/to',
      [
        '',
        'someone',
        '@example.com',
        'a@',
        'a@b',
        'a b@example.com',
        'Some One <someone@example.com>',
        'a@example.com,b@example.com',
        'a@example..com',
        `${long(310)}@example.com`,
        'a@[127.0.0.1]',
        'a@exa mple.com',
      ],
    ],
    ['email', '/from', ['', long(321)]],
    ['email', '/cc/0', ['', 'someone', 'a@b']],
    ['email', '/bcc/1', ['', 'someone', 'a@b']],
    ['email', '/cc', [Array.from({ length: 51 }, (_, i) => `a${i}@example.com`), 'a@example.com']],
    ['email', '/bcc', [Array.from({ length: 51 }, (_, i) => `a${i}@example.com`), {}]],
    ['email', '/replyTo', ['', 'someone']],
    ['email', '/content/subject', ['', long(999)]],
    ['email', '/content/text', ['']],
    ['email', '/content/html', ['']],
    ['email', '/content/headers', [Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`X-${i}`, 'v'])), []]],
    ['email', '/content/headers/X-Entity-Ref-ID', ['', long(999)]],
    ['email', '/content/attachments', [Array.from({ length: 51 }, () => full.email.content.attachments[0]), {}]],
    ['email', '/content/attachments/0/filename', ['', long(256), undefined]],
    [
      'email',
      '/content/attachments/0/contentType',
      ['', 'pdf', 'application/', '/pdf', 'a/b; charset=x', 'a b/c', `a/${long(254)}`, undefined],
    ],
    [
      'email',
      '/content/attachments/0/content',
      ['Q', 'QQ', 'QQ=', 'QQ===', '=QQQ', 'QUE', 'Q-_=', 'QU E=', 'QUE=\n', 'QUFB=', undefined],
    ],
    ['chat', '/to', ['', long(256)]],
    ['chat', '/from', ['', long(256)]],
    ['chat', '/content/text', ['']],
    ['chat', '/content/threadId', ['', long(256)]],
    ['push', '/to', ['', long(4097)]],
    ['push', '/content/title', ['']],
    ['push', '/content/body', ['']],
    ['push', '/content/data', [[], 'x', 1]],
    [
      'webhook',
      '/to',
      [
        '',
        'example.com',
        'http://example.com/',
        'https://',
        'https://:443/',
        'https://example.com:99999/',
        'https://1.2.3.4.5/',
        'https://256.1.1.1/',
        'https://a%20b/',
        'https://user:secret@example.com/',
        'HTTP://example.com',
        'ftp://example.com',
        'https:/example.com',
        '//example.com',
        '/hooks',
        'https://exa mple.com/',
        'https://example.com/a b',
        `https://example.com/${long(2040)}`,
        'javascript:alert(1)',
        'https://example.com/\u00e9',
      ],
    ],
    ['webhook', '/content/type', ['', long(256)]],
  ])('%s: the rule of %s', (channel, pointer, values) => {
    for (const value of values)
      expect([value, refusedAt(withAt(full[channel], pointer, value))]).toEqual([value, pointer])
  })

  test.each([
    ['delaySeconds', [-1, 31_536_001, 1.5, '3', '', true, [], {}]],
    ['ttlSeconds', [0, -1, 31_536_001, 0.5, '60', true]],
  ])('the rule of %s', (name, values) => {
    for (const value of values)
      expect([value, refusedAt({ ...minimal.sms, [name]: value })]).toEqual([value, `/${name}`])
  })

  test.each(['X Y', 'X:Y', 'X_Y', '', 'X\r\nBcc', '\u00e9', long(77)])('an e-mail header that is named %j', (name) => {
    const body = withAt(minimal.email, '/content/headers', { [name]: 'v' })
    expect(refusedAt(body)).toBe(`/content/headers/${name}`)
  })
})

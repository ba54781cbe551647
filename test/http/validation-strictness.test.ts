/** What validation does at every place of every body: no coercion, no unknown member, no line break where a header may come of it. */
import fc from 'fast-check'
import { Type } from 'typebox'
import { describe, expect, test } from 'vitest'
import { channels, type Channel } from '../../src/core/message-content.ts'
import { invalid, validatorCompiler } from '../../src/http/validation.ts'
import { requestSchemas } from '../../src/http/request-schemas.ts'
import { listQuery, resolveBody } from '../../src/http/schemas.ts'
import { check, full, minimal, refusedAt, valueAt, verdictOf, withAt, type Body } from './bodies.ts'

/** Single-line fields: they may reach a header of a provider or of an e-mail, or a URL. */
const lines: Record<Channel, string[]> = {
  sms: ['/to', '/from'],
  email: [
    '/to',
    '/from',
    '/cc/0',
    '/bcc/0',
    '/bcc/1',
    '/replyTo',
    '/content/subject',
    '/content/headers/X-Entity-Ref-ID',
    '/content/attachments/0/filename',
    '/content/attachments/0/contentType',
    '/content/attachments/0/content',
  ],
  chat: ['/to', '/from', '/content/threadId'],
  push: ['/to', '/from'],
  webhook: ['/to', '/from', '/content/type'],
}
const everywhere = ['/conversation', '/reference', '/intent', '/provider', '/sendAt', '/notAfter']
const fields = channels.flatMap((channel) =>
  [...lines[channel], ...everywhere].map((pointer) => [channel, pointer] as const),
)

const escapeName = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')

describe('H3 a line break or control character', () => {
  const breaks = ['\r\n', '\r', '\n', '\u0000', '\t', '\u000b', '\u001f', '\u007f', '\u0085', '\u2028', '\u2029']
  test.each(fields)('in the %s field %s is refused, wherever it stands', (channel, pointer) => {
    const value = valueAt(full[channel], pointer) as string
    expect(typeof value).toBe('string')
    const middle = value.length >> 1
    for (const inserted of breaks)
      for (const broken of [
        value + inserted,
        inserted + value,
        value.slice(0, middle) + inserted + value.slice(middle),
      ])
        expect([broken, refusedAt(withAt(full[channel], pointer, broken))]).toEqual([broken, pointer])
  })
})

describe('nothing is coerced', () => {
  const others: readonly unknown[] = [null, 1, 0, true, false, ['x'], [], {}]
  const pointersOf = (value: unknown, at = ''): string[] => {
    if (Array.isArray(value)) return [at, ...value.flatMap((item, i) => pointersOf(item, `${at}/${i}`))]
    if (typeof value !== 'object' || value === null) return [at]
    const inside = Object.entries(value).flatMap(([name, member]) => pointersOf(member, `${at}/${name}`))
    return at === '' ? inside : [at, ...inside]
  }
  const free = /^\/content\/data|^\/metadata\/$/
  const places = channels.flatMap((channel) =>
    pointersOf(full[channel])
      .filter((pointer) => !free.test(pointer))
      .map((pointer) => [channel, pointer] as const),
  )
  const kindOf = (value: unknown): string => (Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value)

  test.each(places)('%s: a value of another type at %s is refused there', (channel, pointer) => {
    const kind = kindOf(valueAt(full[channel], pointer))
    for (const other of others.filter((value) => kindOf(value) !== kind))
      expect([other, refusedAt(withAt(full[channel], pointer, other))]).toEqual([other, pointer])
  })

  test('null is not the same as absent', () => {
    for (const channel of channels)
      for (const name of Object.keys(full[channel]))
        expect([name, refusedAt({ ...full[channel], [name]: null })]).toEqual([name, `/${name}`])
  })

  test('metadata is text to text, whatever a name is made of', () => {
    const names = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('a\nb', '\n', 'a\r', '\u2028', '', '__proto__'),
    )
    fc.assert(
      fc.property(names, fc.constantFrom(...others), (name, value) => {
        const metadata = Object.fromEntries([[name, value]])
        expect(refusedAt({ ...minimal.sms, metadata })).toBe(`/metadata/${escapeName(name)}`)
      }),
    )
  })

  test('of the bodies of other routes neither', () => {
    const compiled = validatorCompiler({ schema: resolveBody, method: 'POST', url: '/x', httpPart: 'body' })
    const body = { attempt: `att_${'0'.repeat(32)}`, outcome: 'sent', evidence: 'seen' }
    expect(verdictOf(compiled(body))).toStrictEqual({ ok: true, value: body })
    expect(verdictOf(compiled({ ...body, evidence: 5 }))).toMatchObject({ ok: false, pointer: '/evidence' })
    expect(verdictOf(compiled({ ...body, resend: 'true' }))).toMatchObject({ ok: false, pointer: '/resend' })
    expect(verdictOf(compiled({ ...body, resent: true }))).toMatchObject({ ok: false, pointer: '/resent' })
    const count = validatorCompiler({
      schema: Type.Object({ n: Type.Integer() }),
      method: 'POST',
      url: '/x',
      httpPart: 'body',
    })
    expect(verdictOf(count({ n: '3' }))).toMatchObject({ ok: false, pointer: '/n' })
  })
})

describe('an unknown member', () => {
  /** Objects that are closed, with the names that they know. */
  const closed: readonly (readonly [Channel, string, readonly string[]])[] = channels.flatMap((channel) => {
    const { properties } = requestSchemas[channel]
    const top = [channel, '', Object.keys(properties)] as const
    const content = [channel, '/content', Object.keys(properties.content.properties)] as const
    return channel === 'email'
      ? [top, content, [channel, '/content/attachments/0', ['filename', 'contentType', 'content']] as const]
      : [top, content]
  })
  const wellKnown = [
    'constructor',
    'toString',
    'hasOwnProperty',
    'valueOf',
    '__proto__',
    'To',
    'TO',
    ' to',
    'toto',
    '$ref',
    '',
  ]
  const names = fc.oneof(fc.constantFrom(...wellKnown), fc.string(), fc.string({ unit: 'binary' }))
  const withMember = (body: unknown, pointer: string, name: string, value: unknown): unknown =>
    withAt(body, pointer, Object.fromEntries([...Object.entries(valueAt(body, pointer) as Body), [name, value]]))

  test.each(closed)('of %s at %j is refused, whatever it is called and holds', (channel, pointer, known) => {
    fc.assert(
      fc.property(names, fc.jsonValue(), (name, value) => {
        fc.pre(!known.includes(name))
        expect(refusedAt(withMember(full[channel], pointer, name, value))).toBe(`${pointer}/${escapeName(name)}`)
      }),
    )
  })

  test.each(closed)('of %s at %j is named, and its value is not', (channel, pointer) => {
    const body = pointer.includes('attachments') ? full[channel] : minimal[channel]
    const verdict = check(withMember(body, pointer, 'colour', 'canary-7f3a'))
    expect(verdict).toMatchObject({ ok: false, pointer: `${pointer}/colour` })
    expect(JSON.stringify(verdict)).not.toContain('canary')
  })

  test.each([
    ['sms', 'cc', ['a@example.com']],
    ['chat', 'replyTo', 'a@example.com'],
    ['push', 'bcc', []],
  ] as const)('of %s is what only an e-mail has: %s', (channel, name, value) => {
    expect(refusedAt({ ...minimal[channel], [name]: value })).toBe(`/${name}`)
  })

  test('is fine where the contract leaves the object open', () => {
    fc.assert(
      fc.property(fc.string(), fc.jsonValue(), fc.string(), (name, value, text) => {
        const data = Object.fromEntries([[name, value]])
        expect(refusedAt(withAt(minimal.push, '/content/data', data))).toBeNull()
        expect(refusedAt(withAt(minimal.webhook, '/content/data', data))).toBeNull()
        expect(refusedAt({ ...minimal.sms, metadata: Object.fromEntries([[name, text]]) })).toBeNull()
      }),
    )
  })
})

describe('what is said of a refused body', () => {
  const canary = 'canary-7f3a'
  const objects = channels.flatMap((channel) => ['/content', '/channel'].map((pointer) => [channel, pointer] as const))
  const places = [...fields, ...objects]

  test.each(places)('%s: does not repeat the value at %s', (channel, pointer) => {
    for (const value of [`${canary}\r\n`, [canary], { [canary]: canary }, `${canary} ${'x'.repeat(5_000)}\n`]) {
      const verdict = check(withAt(full[channel], pointer, value))
      expect(verdict.ok).toBe(false)
      const { detail = '', sentence = '' } = verdict.ok ? {} : verdict
      expect([detail, sentence].join(' ').replaceAll(`/${canary}`, '')).not.toContain(canary)
    }
  })

  test.each(fields)('%s: is a sentence that names %s', (channel, pointer) => {
    const verdict = check(withAt(full[channel], pointer, 5))
    expect(verdict).toMatchObject({ ok: false, pointer, sentence: `\`${pointer}\` must be string.` })
  })

  test('is a sentence of its own where the whole request is meant', () => {
    expect(invalid('', 'must be a JSON object').detail).toBe('The request must be a JSON object.')
    expect(invalid('/a', 'The body is not JSON.').detail).toBe('The body is not JSON.')
    expect(invalid('/a', 'is missing')).toMatchObject({
      type: 'invalid-request',
      extras: { errors: [{ pointer: '/a', detail: 'is missing' }] },
    })
  })
})

describe('a query string', () => {
  const compiled = validatorCompiler({ schema: listQuery, method: 'GET', url: '/v1/messages', httpPart: 'querystring' })
  const query = (asked: Body) => verdictOf(compiled({ ...asked }))

  test('is text: its numbers are read', () => {
    expect(query({ limit: '5', status: 'sent' })).toEqual({ ok: true, value: { limit: 5, status: 'sent' } })
    expect(query({ conversation: '42', to: '+15005550001' })).toMatchObject({ ok: true, value: { conversation: '42' } })
  })

  test.each<[Body, string]>([
    [{ limit: 'abc' }, '/limit'],
    [{ limit: '' }, '/limit'],
    [{ limit: '0' }, '/limit'],
    [{ limit: '201' }, '/limit'],
    [{ limit: '1.5' }, '/limit'],
    [{ limit: '1e400' }, '/limit'],
    [{ limit: '-1e400' }, '/limit'],
    [{ limit: 'Infinity' }, '/limit'],
    [{ limit: '0x10' }, '/limit'],
    [{ limit: ' 5 ' }, '/limit'],
    [{ limit: '1e1' }, '/limit'],
    [{ limit: ['1', '2'] }, '/limit'],
    [{ status: 'delivered' }, '/status'],
    [{ status: ['sent', 'failed'] }, '/status'],
    [{ channel: 'fax' }, '/channel'],
    [{ createdAfter: 'yesterday' }, '/createdAfter'],
    [{ createdBefore: '2026-12-01' }, '/createdBefore'],
    [{ colour: 'red' }, '/colour'],
  ])('is refused as %j', (asked, pointer) => {
    expect(query(asked)).toMatchObject({ ok: false, pointer })
  })
})

/** One thing wrong with a request, or odd about it: in its header lines, its path, its query string or its body. */
import fc from 'fast-check'
import { oddQueries, withQuery } from './odd-queries.ts'
import type { Asked } from './requests.ts'

type Mutation = (asked: Asked) => Asked

const nested = (open: string, close: string, depth: number): string => open.repeat(depth) + close.repeat(depth)

/** JSON that stands where other JSON was: as it is written, for much of it no value would print. */
const junk = fc.oneof(
  fc.constantFrom(
    'null',
    'true',
    '0',
    '-0',
    '1.5',
    '-1',
    '""',
    '"x"',
    '[]',
    '{}',
    '[null]',
    '[[]]',
    '{"a":{"b":[{}]}}',
    '1e400',
    '-1e400',
    '9007199254740993',
    '1e21',
    '123456789012345678901234567890',
    '5e-324',
    '0.1',
    '{"a":1,"a":2}',
    '{"__proto__":{"x":1}}',
    '{"constructor":{"prototype":1}}',
    '{"toString":1}',
    '{"":""}',
    String.raw`"\ud800"`,
    String.raw`"\udc00\ud800"`,
    String.raw`"\u0000"`,
    String.raw`"a\u0000b"`,
    String.raw`"\r\n"`,
    String.raw`"a\r\nBcc: x"`,
    String.raw`"\u2028"`,
    String.raw`"\u007f"`,
    String.raw`"\u202e\ufeff"`,
    `"${'x'.repeat(5_000)}"`,
    `"${'\u{1f600}'.repeat(1_100)}"`,
    nested('[', ']', 63),
    nested('[', ']', 5_000),
    `${'{"a":'.repeat(70)}1${'}'.repeat(70)}`,
    `[${'0,'.repeat(3_000)}0]`,
    '"2020-01-01T00:00:00Z"',
    '"9999-12-31T23:59:60Z"',
    '"2030-02-30T00:00:00Z"',
    '"+15005550006"',
    '"sms"',
    '"SMS"',
    '"http://example.com/"',
    '"https://user:pw@example.com/"',
    '"https://127.0.0.1/"',
    '"javascript:1"',
    '"YQ="',
  ),
  fc.jsonValue().map((value) => JSON.stringify(value)),
)
const oddNames = ['x', '', '__proto__', 'constructor', 'Channel', 'to ', 'metadata', '$ref', '\u0000', '\ud800', 'é']

type Json = null | boolean | number | string | Json[] | { [name: string]: Json }
const hole = '\u0001hole\u0001'

/** How many places there are: the whole, and each member and element in it. */
function places(value: Json): number {
  return typeof value === 'object' && value !== null
    ? Object.values(value).reduce<number>((sum, inner) => sum + places(inner), 1)
    : 1
}

/** The value with the nth place changed; `change` gives undefined to take it away. */
function changed(value: Json, nth: number, change: (old: Json) => Json | undefined): Json | undefined {
  if (nth === 0) return change(value)
  if (typeof value !== 'object' || value === null) return value
  let left = nth - 1
  const entries = Object.entries(value).flatMap(([name, inner]) => {
    const here = left
    const size = places(inner)
    left -= size
    if (here < 0 || here >= size) return [[name, inner] as const]
    const next = changed(inner, here, change)
    return next === undefined ? [] : [[name, next] as const]
  })
  return Array.isArray(value) ? entries.map(([, inner]) => inner) : Object.fromEntries(entries)
}

const inBody =
  (nth: number, change: (old: Json) => Json | undefined, written: string): Mutation =>
  (asked) => {
    if (asked.body === null)
      return { ...asked, body: written, headers: [...asked.headers, 'Content-Type: application/json'] }
    const value = JSON.parse(asked.body) as Json
    const next = changed(value, nth % places(value), change)
    const body = (next === undefined ? '' : JSON.stringify(next)).replaceAll(JSON.stringify(hole), () => written)
    return { ...asked, body }
  }

const withMember = (old: Json, name: string): Json =>
  typeof old === 'object' && old !== null && !Array.isArray(old)
    ? Object.fromEntries([...Object.entries(old), [name, hole]])
    : hole

/** A value at some place is another one, is gone, is longer, or has a member more. */
const bodyValues = fc.oneof(
  fc.tuple(fc.nat(60), junk).map(([nth, written]) => inBody(nth, () => hole, written)),
  fc.nat(60).map((nth) => inBody(nth, () => undefined, '{}')),
  fc
    .tuple(fc.nat(60), fc.constantFrom(...oddNames), junk)
    .map(([nth, name, written]) => inBody(nth, (old) => withMember(old, name), written)),
  fc
    .tuple(
      fc.nat(60),
      fc.constantFrom('\u0000', '\ud800', '\r\n', '\u2028', '\u{1f600}'.repeat(400), 'x'.repeat(5_000)),
    )
    .map(([nth, more]) => inBody(nth, (old) => (typeof old === 'string' ? old + more : hole), '"x"')),
)

/** The text of the body is another: no JSON, or JSON that two parsers read differently. */
const bodyTexts = fc.oneof(
  fc
    .constantFrom<(text: string) => string>(
      (text) => text.slice(0, -1),
      (text) => text.slice(0, text.length >> 1),
      (text) => `${text}${text}`,
      (text) => `${text} // x`,
      (text) => `\ufeff${text}`,
      (text) => text.replaceAll('"', "'"),
      (text) => text.replace('{', '{"channel":"sms","channel":"chat",'),
      (text) => text.replace('{', '{"\\u0063hannel":"push",'),
      (text) => text.replace('{', '{"__proto__":{"to":"x"},'),
      (text) => text.replace('}', ',}'),
      (text) => `${nested('[', ']', 100_000)}${text}`,
      (text) => `[${text}]`,
      () => '',
      () => ' ',
      () => '\u0000',
      () => 'channel=sms&to=%2B15005550006',
    )
    .map((change): Mutation => (asked) => ({ ...asked, body: change(asked.body ?? '{}') })),
  junk.map((written): Mutation => (asked) => ({ ...asked, body: written })),
  fc.uint8Array({ maxLength: 40 }).map((bytes): Mutation => (asked) => ({
    ...asked,
    body: Buffer.from(bytes).toString('latin1'),
    bodyEncoding: 'latin1',
  })),
)

const oddKeys = [
  '',
  '""',
  '"',
  'a b',
  'a,b',
  '"a", "b"',
  '"a";p=1',
  'a;b',
  '"a',
  '\xe9',
  '"\\n"',
  'k'.repeat(256),
  '"' + 'k'.repeat(300) + '"',
  'derived:x',
  'derived:v1:' + '0'.repeat(64),
  '1764579600',
  '2026-12-01T09:00:00Z',
  '__proto__',
  "';--",
  '%00',
  'k'.repeat(255),
]
const oddPrefers = [
  'wait',
  'wait=',
  'wait=-1',
  'wait=0.5',
  'wait="1"',
  'wait=1;x',
  ';;;',
  ',,,',
  '"',
  'wait=1, wait=0',
  'WAIT=0',
  '\xff',
  'a'.repeat(2_000),
  'respond-async=1, wait=0',
  'respond-async; x="\\""',
]
const under = (name: string, ...values: string[]): string[] => values.map((value) => `${name}: ${value}`)
/** By what they are about: each about is as likely as another. */
const lines: readonly (readonly string[])[] = [
  under('Idempotency-Key', ...oddKeys),
  under('Prefer', ...oddPrefers),
  under('If-Match', '"1"', '*', '"', 'W/"x"', ''),
  under(
    'Content-Type',
    'text/plain',
    'application/json; charset=utf-16',
    'application/json;charset="UTF-8"',
    'application/JSON',
    'application/json; charset=',
    'application/jsonx',
    ';',
    '',
    'multipart/form-data',
    'application/problem+json',
    '*/*',
    'application/json, text/plain',
    '\xff',
  ),
  under('Content-Encoding', 'gzip', 'identity', 'br, gzip', '', 'Identity'),
  under('Accept-Encoding', 'gzip', '*;q=0', 'identity;q=0', '\xff', ''),
  under('Accept', 'text/html', 'application/xml;q=1', '\xff'),
  under(
    'Authorization',
    '',
    'Bearer',
    'Bearer x',
    'Basic Zm9vOmJhcg==',
    'Bearer {{apiKey 0}}x',
    'bearer  {{apiKey 0}}',
  ),
  under('Authorization', 'Bearer {{apiKey 1}}'),
  under('Authorization', `Bearer so_live_\xff_${'k'.repeat(40)}`, `Bearer so_live_test_${'x'.repeat(40)}`),
  under('traceparent', `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, '\xff', ''),
  [
    'Idempotent-Replayed: true',
    'X-Request-Id: mine',
    'X-HTTP-Method-Override: DELETE',
    'Expect: 100-continue',
    'Range: bytes=0-1',
    'If-None-Match: *',
    'If-Modified-Since: x',
    'Cookie: a=b',
    'Origin: null',
    'TE: trailers',
    'Access-Control-Request-Method: POST',
    'Forwarded: for=x',
    'Upgrade: h2c',
    'Expect: x',
  ],
]
const nameOf = (line: string): string => line.slice(0, line.indexOf(':')).toLowerCase()

/** A header line more, or in the place of the one of its name. */
const headers = fc
  .tuple(fc.oneof(...lines.map((group) => fc.constantFrom(...group))), fc.boolean())
  .map(([line, inPlace]): Mutation => (asked) => ({
    ...asked,
    headers: [...asked.headers.filter((kept) => !inPlace || nameOf(kept) !== nameOf(line)), line],
  }))
/** A line less; not Host, without which there is no request. */
const fewer = fc.integer({ min: 1, max: 5 }).map((nth): Mutation => (asked) => ({
  ...asked,
  headers: asked.headers.toSpliced(nth, 1),
}))

const oddParts = [
  '',
  'x',
  '%00',
  '%ff',
  '%',
  '%2F',
  '..',
  '%2e%2e',
  'msg_',
  'msg_' + 'g'.repeat(32),
  'MSG_' + '0'.repeat(32),
  'msg_' + '0'.repeat(32),
  'att_' + '0'.repeat(32),
  'a'.repeat(300),
  'a'.repeat(1_500),
  '%F0%9F%98%80',
  "'%20OR%201=1--",
  '__proto__',
  '%0d%0aX:%20y',
  '~',
  '{{key 1}}%00',
]
const paths = fc.tuple(fc.nat(9), fc.constantFrom(...oddParts)).map(([nth, part]): Mutation => (asked) => {
  const [path = '', query] = asked.target.split('?')
  const parts = path.split('/')
  // Not the version and not the kind of thing: that would be another operation.
  const at = 3 + (nth % Math.max(parts.length - 3, 1))
  const target = at < parts.length ? parts.with(at, part).join('/') : path
  return { ...asked, target: query === undefined ? target : `${target}?${query}` }
})
const queries = fc.constantFrom(...oddQueries).map(
  (query): Mutation =>
    (asked) =>
      withQuery(asked, query),
)

/** A body that a GET has and nobody reads ends the connection, maybe in the middle of a long answer: a short one does not. */
const unread = (asked: Asked): Asked =>
  asked.method === 'GET' && asked.body !== null ? { ...asked, body: asked.body.slice(0, 10_000) } : asked

export function mutated(requests: fc.Arbitrary<Asked>): fc.Arbitrary<Asked> {
  const ways = fc.oneof(
    { weight: 6, arbitrary: bodyValues },
    { weight: 3, arbitrary: bodyTexts },
    { weight: 5, arbitrary: headers },
    { weight: 1, arbitrary: fewer },
    { weight: 3, arbitrary: paths },
    { weight: 3, arbitrary: queries },
  )
  return fc.tuple(requests, ways).map(([asked, mutate]) => ({ ...unread(mutate(asked)), fits: false }))
}

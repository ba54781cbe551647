/** Values that fit a schema of the document: all that JSON Schema says in it, and no more. */
import fc from 'fast-check'
import type { Document, Schema } from './document.ts'

export const anyText = fc.oneof(
  fc.string(),
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: 'binary' }).map((text) => text.replaceAll('\u0000', '\u0001')),
  fc.constantFrom('\u202e\ufeffright to left', 'e\u0301', "'; DROP TABLE messages; --", '${jndi:ldap://x}', '%00%s%n'),
)
const hourMs = 3_600_000
const soon = fc.integer({ min: 1, max: 24 * 200 }).map((hours) => new Date(Date.now() + hours * hourMs))

const formats: Readonly<Record<string, fc.Arbitrary<string>>> = {
  'date-time': fc.oneof(
    soon.map((date) => date.toISOString()),
    soon.map((date) => date.toISOString().replace('.000Z', 'Z').replace(/Z$/, '+00:00')),
  ),
  email: fc.oneof(
    fc.constantFrom('someone@example.com', "o'neil+tag@sub.example.org"),
    fc.nat().map((n) => `user${n}@example.com`),
  ),
  'https-url': fc.webPath().map((path) => `https://example.com${path === '' ? '/' : path}`),
  byte: fc.base64String({ maxLength: 40 }),
}

/** Any JSON that every parser reads alike. */
const anyJson = fc
  .jsonValue({ maxDepth: 3 })
  .map((value) => JSON.parse(JSON.stringify(value).replaceAll(/\\u0000|__proto__/g, '_')) as unknown)
  .filter((value) => !/(^|[[:,])-?\d{17,}|e\+/.test(JSON.stringify(value)))

export function fitting(document: Document, asked: Schema): fc.Arbitrary<unknown> {
  const schema = document.resolve(asked)
  const of = (inner: unknown): fc.Arbitrary<unknown> => fitting(document, inner as Schema)
  const either = (schema['oneOf'] ?? schema['anyOf']) as Schema[] | undefined
  if (either !== undefined) return fc.oneof(...either.map(of))
  if (Array.isArray(schema['enum'])) return fc.constantFrom(...(schema['enum'] as unknown[]))
  switch (schema['type']) {
    case 'string':
      return textFitting(schema)
    case 'integer':
      return fc.integer({ min: (schema['minimum'] as number) ?? 0, max: (schema['maximum'] as number) ?? 1_000 })
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'array':
      return arrayFitting(schema, of(schema['items']))
    case 'object':
      return objectFitting(schema, of)
    case undefined:
      return anyJson
    default:
      throw new Error(`a type that is not known here: ${String(schema['type'])}`)
  }
}

function arrayFitting(schema: Schema, items: fc.Arbitrary<unknown>): fc.Arbitrary<unknown[]> {
  const minLength = (schema['minItems'] as number | undefined) ?? 0
  return schema['uniqueItems'] === true
    ? fc.uniqueArray(items, { minLength, maxLength: 4, selector: (item) => JSON.stringify(item) })
    : fc.array(items, { minLength, maxLength: 4 })
}

function objectFitting(schema: Schema, of: (inner: unknown) => fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  const properties = Object.entries((schema['properties'] ?? {}) as Record<string, Schema>)
  const required = (schema['required'] ?? []) as string[]
  const known = fc.record(Object.fromEntries(properties.map(([name, inner]) => [name, of(inner)])), {
    requiredKeys: required,
    noNullPrototype: true,
  })
  const rest = schema['additionalProperties']
  if (typeof rest !== 'object') return known
  const { pattern } = (schema['propertyNames'] ?? {}) as { pattern?: string }
  const names = pattern === undefined ? anyText.filter((name) => name !== '__proto__') : matching(pattern, 76)
  const more = fc.dictionary(names, of(rest), { maxKeys: 4, noNullPrototype: true })
  return fc.tuple(known, more).map(([first, second]) => ({ ...first, ...second }))
}

const matching = (pattern: string, maxLength: number): fc.Arbitrary<string> =>
  fc.stringMatching(new RegExp(pattern, 'u'), { maxLength })

/** JSON Schema counts characters, not UTF-16 units. */
const lengthOf = (text: string): number => Array.from(text).length

function textFitting(schema: Schema): fc.Arbitrary<string> {
  const { format, pattern, minLength = 0, maxLength = 300 } = schema as Record<string, never>
  const fits = (text: string): boolean =>
    lengthOf(text) >= minLength &&
    lengthOf(text) <= maxLength &&
    (pattern === undefined || new RegExp(pattern, 'u').test(text))
  if (format !== undefined && formats[format] !== undefined) return formats[format].filter(fits)
  if (pattern !== undefined && !String(pattern).startsWith('^[^'))
    return matching(pattern, Math.min(maxLength, 100)).filter(fits)
  const examples = (schema['examples'] ?? []) as string[]
  const plain = fc.string({
    unit: fc.constantFrom('a', 'b', 'X', 'Y', '0', '1', '9', '-'),
    minLength: 1,
    maxLength: 12,
  })
  const longest = fc.constantFrom('x', '\u00e9', '\u{1f600}').map((letter) => letter.repeat(maxLength))
  const some = examples.length === 0 ? plain : fc.oneof(fc.constantFrom(...examples), plain)
  return fc.oneof({ weight: 6, arbitrary: some }, { weight: 3, arbitrary: anyText }, longest).filter(fits)
}

/** What any two requests have in common or not (api.md, Fingerprint; behaviour.md, C2): against a second RFC 8785. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  canonicalJson,
  canonicalText,
  differingPaths,
  fingerprintOf,
  fingerprintText,
} from '../../../src/core/fingerprint.ts'
import type { MessageRequest } from '../../../src/core/message-content.ts'
import { canonical, type Json } from './canonical-json.ts'

const names = fc.oneof(
  fc.constantFrom(
    'a',
    'b',
    'A',
    '1',
    '10',
    '2',
    '',
    'a/b',
    'c~d',
    '~1',
    '/',
    'é',
    'e\u0301',
    '\u{1f600}',
    '\ufb33',
    '\r',
  ),
  fc.string({ unit: 'binary', maxLength: 4 }).filter((name) => name !== '__proto__'),
)
const scalars = fc.oneof(
  fc.constantFrom<Json>(null, true, false, '', 'a', '1', 1, 0, -1, 'null', 'é', 'e\u0301', '\u2028', '"\\'),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.maxSafeInteger(),
  fc.string({ unit: 'binary', maxLength: 8 }),
)
const { json } = fc.letrec<{ json: Json }>((tie) => ({
  json: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalars,
    fc.array(tie('json'), { maxLength: 5 }),
    fc.dictionary(names, tie('json'), { maxKeys: 5, noNullPrototype: true }),
  ),
}))

/** The value written in one of the ways that mean the same: any order, any space, any escapes. */
function written(value: Json, chance: () => number): string {
  const space = (): string => ['', ' ', '\n\t', '\r\n  '][chance() % 4] ?? ''
  if (typeof value === 'string') return escaped(value, chance)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value))
    return `[${(value as Json[]).map((item) => space() + written(item, chance) + space()).join(',')}]`
  const members = Object.entries(value).map(
    ([name, member]) => `${space()}${escaped(name, chance)}${space()}:${space()}${written(member, chance)}`,
  )
  const ranked = members.map((member) => [chance(), member] as const).toSorted(([a], [b]) => a - b)
  return `{${ranked.map(([, member]) => member).join(',')}${space()}}`
}

function escaped(text: string, chance: () => number): string {
  const units = text.split('').map((unit) => {
    const code = `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
    if (unit === '"' || unit === '\\' || unit < ' ') return code
    return chance() % 3 === 0 ? code : unit === '/' && chance() % 2 === 0 ? '\\/' : unit
  })
  return `"${units.join('')}"`
}

/** A deterministic run of numbers. */
function chances(seed: number): () => number {
  let state = seed
  return () => (state = (state * 1_103_515_245 + 12_345) % 0x7fffffff)
}

type Path = readonly (string | number)[]
const pointer = (path: Path): string =>
  path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')

/** Every place in a value, the whole one first. */
function placesIn(value: Json, at: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [at]
  const parts = Array.isArray(value) ? [...value.keys()] : Object.keys(value)
  return [at, ...parts.flatMap((part) => placesIn((value as Record<string, Json>)[part] as Json, [...at, part]))]
}

function replaced(value: Json, [part, ...rest]: Path, next: Json): Json {
  if (part === undefined) return next
  if (Array.isArray(value)) return (value as Json[]).map((item, i) => (i === part ? replaced(item, rest, next) : item))
  const members = Object.entries(value as Record<string, Json>)
  return Object.fromEntries(
    members.map(([name, member]) => [name, name === part ? replaced(member, rest, next) : member]),
  )
}

const pick = <T>(list: readonly T[], n: number): T => list[n % list.length] as T
const isContainer = (value: Json): boolean => typeof value === 'object' && value !== null
const hashOf = (value: Json): string => fingerprintText(fingerprintOf(canonicalJson(value)))

describe('the canonical form', () => {
  test('is what a second reading of RFC 8785 makes of it', () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(canonicalJson(value)).toBe(canonical(value))
      }),
      { numRuns: 1_000 },
    )
  })

  test('is the same however the value came written', () => {
    fc.assert(
      fc.property(json, fc.nat(), (value, seed) => {
        const wire = written(value, chances(seed))
        expect(canonicalJson(JSON.parse(wire))).toBe(canonicalJson(value))
      }),
      { numRuns: 500 },
    )
  })

  test('of the canonical form is itself', () => {
    fc.assert(
      fc.property(json, (value) => {
        const once = canonicalJson(value)
        expect(canonicalJson(JSON.parse(once))).toBe(once)
      }),
      { numRuns: 500 },
    )
  })
})

describe('the fingerprint', () => {
  test('is another one exactly if the value is', () => {
    fc.assert(
      fc.property(json, json, (left, right) => {
        expect(hashOf(left) === hashOf(right)).toBe(canonical(left) === canonical(right))
      }),
      { numRuns: 500 },
    )
  })

  test('is another one wherever one place of the value is', () => {
    fc.assert(
      fc.property(json, fc.nat(), json, (value, nth, next) => {
        const other = replaced(value, pick(placesIn(value), nth), next)
        fc.pre(canonical(other) !== canonical(value))
        expect(hashOf(other)).not.toBe(hashOf(value))
      }),
      { numRuns: 500 },
    )
  })

  test('is another one if two different elements of an array change places', () => {
    fc.assert(
      fc.property(fc.array(json, { minLength: 2 }), fc.nat(), fc.nat(), (list, a, b) => {
        const [i, j] = [a % list.length, b % list.length]
        fc.pre(canonical(list[i] as Json) !== canonical(list[j] as Json))
        const swapped = list.with(i, list[j] as Json).with(j, list[i] as Json)
        expect(hashOf(swapped)).not.toBe(hashOf(list))
      }),
    )
  })

  test('of a request depends on every member but metadata', () => {
    const members = fc.dictionary(names, json, { maxKeys: 4, noNullPrototype: true })
    fc.assert(
      fc.property(members, members, names, json, (request, metadata, name, value) => {
        const { metadata: _, ...asked } = request
        const textOf = (body: object): string => canonicalText(body as MessageRequest)
        expect(textOf({ ...asked, metadata })).toBe(textOf(asked))
        fc.pre(!(name in asked) && name !== 'metadata')
        expect(textOf({ ...asked, [name]: value })).not.toBe(textOf(asked))
      }),
    )
  })
})

describe('the paths that differ', () => {
  const between = (left: Json, right: Json): string[] => differingPaths(canonicalJson(left), canonicalJson(right))

  test('of what is equal are none', () => {
    fc.assert(
      fc.property(json, fc.nat(), (value, seed) => {
        expect(differingPaths(canonicalJson(value), written(value, chances(seed)))).toEqual([])
      }),
    )
  })

  test('name the one place that was changed, and nothing else', () => {
    fc.assert(
      fc.property(json, fc.nat(), scalars, (value, nth, next) => {
        const place = pick(placesIn(value), nth)
        const other = replaced(value, place, next)
        fc.pre(canonical(other) !== canonical(value))
        expect(between(value, other)).toEqual([pointer(place)])
        expect(between(other, value)).toEqual([pointer(place)])
      }),
      { numRuns: 500 },
    )
  })

  test('are, of any two values, places where they differ: all that were changed, and none besides', () => {
    const at = (value: Json | undefined, path: Path): Json | undefined =>
      path.reduce<Json | undefined>(
        (inside, part) =>
          inside !== undefined && isContainer(inside) && Object.hasOwn(inside as object, part)
            ? (inside as Record<string, Json>)[part]
            : undefined,
        value,
      )
    fc.assert(
      fc.property(json, json, (left, right) => {
        const found = between(left, right)
        expect(new Set(found).size).toBe(found.length)
        fc.pre(found.length < 20)
        const places = new Map([...placesIn(left), ...placesIn(right)].map((path) => [pointer(path), path]))
        const here = (path: Path): [Json | undefined, Json | undefined] => [at(left, path), at(right, path)]
        const isSame = (a: Json | undefined, b: Json | undefined): boolean =>
          a === undefined || b === undefined ? a === b : canonical(a) === canonical(b)
        for (const one of found) expect(isSame(...here(places.get(one) as Path))).toBe(false)
        // Two leaves that differ lie at, below or above a path that was named.
        const differing = [...places].filter(([, path]) => !isSame(...here(path))).map(([one]) => one)
        const isNamed = (one: string): boolean => found.some((named) => covers(named, one) || covers(one, named))
        expect(differing.filter((one) => !isNamed(one))).toEqual([])
      }),
      { numRuns: 500 },
    )
  })
  const covers = (outer: string, inner: string): boolean => inner === outer || inner.startsWith(`${outer}/`)
})

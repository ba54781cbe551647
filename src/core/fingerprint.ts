/**
 * Fingerprints: what makes two requests the same. SHA-256 over the RFC 8785 canonical form of the validated body,
 * before defaults and without `metadata`. Member order, white space and escapes do not matter; array order, absent
 * against null, NFC against NFD do. No header, locale or clock takes part.
 *
 * F1. A fingerprint is compared by the scheme that made it: its version is stored beside it and never changes.
 */
import { hash } from 'node:crypto'
import canonicalize from 'canonicalize'
import type { MessageRequest } from './message-content.ts'

export interface Fingerprint {
  readonly version: number
  readonly hash: Buffer
}

/** The canonical text that is hashed, kept with the message, and shown to whoever approves it. */
export function canonicalText(request: MessageRequest): string {
  const { metadata: _, ...asked } = request
  return canonicalJson(asked)
}

/** RFC 8785: the same bytes for the same JSON, whatever order its members came in. */
export function canonicalJson(value: unknown): string {
  const text = canonicalize(value)
  if (text === undefined) throw new Error('a validated body always has a canonical form')
  return text
}

const schemes: Readonly<Record<number, (canonical: string) => Buffer>> = {
  1: (canonical) => hash('sha256', canonical, 'buffer'),
}
const currentVersion = 1

export function fingerprintOf(canonical: string, version: number = currentVersion): Fingerprint {
  const scheme = schemes[version]
  if (scheme === undefined) throw new Error(`no fingerprint scheme has version ${version}`)
  return { version, hash: scheme(canonical) }
}

/** Was `stored` made from this request, by whatever scheme was current then? */
export function fingerprintMatches(stored: Fingerprint, canonical: string): boolean {
  return fingerprintOf(canonical, stored.version).hash.equals(stored.hash)
}

export const fingerprintText = (fingerprint: Fingerprint): string =>
  `v${fingerprint.version}:${fingerprint.hash.toString('hex')}`

const maxPaths = 20

/** JSON pointers (RFC 6901) of what differs between two canonical texts: paths only, never values. */
export function differingPaths(left: string, right: string): string[] {
  const paths: string[] = []
  collect(JSON.parse(left), JSON.parse(right), '', paths)
  return paths.slice(0, maxPaths)
}

function collect(left: unknown, right: unknown, path: string, paths: string[]): void {
  if (paths.length >= maxPaths || Object.is(left, right)) return
  if (!isContainer(left) || !isContainer(right) || Array.isArray(left) !== Array.isArray(right)) {
    paths.push(path)
    return
  }
  for (const name of new Set([...Object.keys(left), ...Object.keys(right)]))
    collect(left[name], right[name], `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`, paths)
}

const isContainer = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

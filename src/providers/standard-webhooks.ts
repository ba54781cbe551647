/**
 * The signatures of Standard Webhooks 1.0.0, made and verified; Svix's are the same under other header names.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
import { hmacOf, isRecent, isSame, timeOf } from './incoming.ts'

/** `whsec_` and the base64 of 24 to 64 bytes. */
export const secretPattern =
  'whsec_((?:[A-Za-z0-9+/]{4}){8,20}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?|(?:[A-Za-z0-9+/]{4}){21}(?:[A-Za-z0-9+/]{2}==)?)'

/** While a secret is being changed there are two: as a list, or with a blank between them. */
export type Secrets = string | readonly string[]

const keysOf = (secrets: Secrets): Buffer[] =>
  [secrets]
    .flat()
    .flatMap((several) => several.split(' '))
    .map((each) => Buffer.from(each.replace('whsec_', ''), 'base64'))

/** One signature a secret, so that receivers with the new and with the old one find theirs. */
export const signatures = (secrets: Secrets, content: string): string =>
  keysOf(secrets)
    .map((key) => `v1,${hmacOf('sha256', key, content, 'base64')}`)
    .join(' ')

interface Signed {
  readonly id: string
  readonly timestamp: string
  /** One or more, with blanks between them. */
  readonly signature: string
  readonly rawBody: Buffer
}

export function verify(
  { id, timestamp, signature, rawBody }: Signed,
  secrets: Secrets,
  now: Date,
): 'genuine' | 'forged' | 'stale' {
  const at = timeOf(timestamp)
  if (id === '' || at === null) return 'forged'
  const content = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), rawBody])
  const given = signature.split(' ').slice(0, mostSignatures)
  // Every pair is compared, whichever matches.
  const matches = keysOf(secrets).flatMap((key) => {
    const right = `v1,${hmacOf('sha256', key, content, 'base64')}`
    return given.filter((one) => isSame(one, right))
  })
  if (matches.length === 0) return 'forged'
  return isRecent(at, now) ? 'genuine' : 'stale'
}

/** More than a change of secrets makes; each costs a comparison. */
const mostSignatures = 16

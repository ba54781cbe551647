/**
 * Public ids: a prefix that names the kind, then the 32 hex digits of a UUIDv7, so that ids sort by age and one
 * can be found in the data base (which stores the UUID) by eye. Making UUIDs is not done here: core has no clock.
 *
 * I1. `uuidFromId(kind, idFromUuid(kind, u)) === u` for every lower-case UUID.
 * I2. A text that is not an id of the asked kind gives `undefined`, never an exception.
 */
import { hash } from 'node:crypto'

export const idKinds = { message: 'msg', attempt: 'att', event: 'evt' } as const
export type IdKind = keyof typeof idKinds

export function idFromUuid(kind: IdKind, uuid: string): string {
  return `${idKinds[kind]}_${uuid.replaceAll('-', '')}`
}

export function uuidFromId(kind: IdKind, id: string): string | undefined {
  const hex = new RegExp(`^${idKinds[kind]}_([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$`).exec(
    id,
  )
  return hex === null ? undefined : hex.slice(1).join('-')
}

/** A UUIDv7 (RFC 9562, 5.7) of a time, whose other bits are a hash of what it names: made again, it is the same. */
export function uuidOf(at: Date, named: readonly (string | null)[]): string {
  const bytes = hash('sha256', JSON.stringify(named), 'buffer')
  bytes[6] = 0x70 | ((bytes[6] ?? 0) & 0x0f)
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f)
  bytes.writeUIntBE(Math.max(at.getTime(), 0), 0, 6)
  return uuidOfHex(bytes.toString('hex', 0, 16))
}

const uuidOfHex = (hex: string): string =>
  [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')

/** When a UUIDv7 was made (RFC 9562, 5.7): its first 48 bits, in milliseconds since 1970. */
export const timeOfUuid = (uuid: string): Date => new Date(Number.parseInt(uuid.replace('-', '').slice(0, 12), 16))

/** Where a page of a list ended: the id of its last entry, opaque to callers. */
import { idFromUuid, uuidFromId } from '../core/ids.ts'
import { invalid } from './validation.ts'

export const cursorOf = (uuid: string): string => Buffer.from(idFromUuid('message', uuid)).toString('base64url')

/** @throws Refusal */
export function idOfCursor(cursor: string): string {
  const id = uuidFromId('message', Buffer.from(cursor, 'base64url').toString('latin1'))
  if (id === undefined) throw invalid('/cursor', 'is not the nextCursor of a page')
  return id
}

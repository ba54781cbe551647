/**
 * What is kept of the ids and codes that providers give: visible ASCII, and short. What is not may be a text, and texts of
 * providers are not kept.
 */
import { uuidOf } from '../core/ids.ts'

export const plain = (text: string | null, most: number): string | null =>
  text !== null && text.length <= most && /^[\x21-\x7e]+$/.test(text) ? text : null

const mostEventId = 200

/** An event's id as it is kept: itself, or its digest. */
export const keptEventId = (eventId: string): string => plain(eventId, mostEventId) ?? uuidOf(new Date(0), [eventId])

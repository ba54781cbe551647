/**
 * Conversations: what an account groups messages by. A conversation has a version, and a message may be bound to the one
 * that its sender had read. Who writes the version is the store, in the commit of what moves it.
 *
 * V1. A claim that goes out makes a new version in its own commit, before anything is known of its call: whoever read the
 *     version before has not seen it, and may not say the same again.
 * V2. A message that is held or scheduled makes its version when it leaves, and only if the conversation is still at the
 *     version that its claim found; other held ones do not count.
 * V3. What the other side says makes a new version, once per event id.
 */
import { hash } from 'node:crypto'
import { canonicalJson } from './fingerprint.ts'
import type { MessageRequest } from './message-content.ts'
import type { Message, State } from './message.ts'

/** `"3"`: a strong validator (RFC 9110, 8.8.3). */
export const etagOf = (version: number): string => `"${version}"`

/** What `If-Match` asks for; undefined: this names no version of a conversation. */
export function versionFromIfMatch(value: string): number | undefined {
  const digits = /^"(0|[1-9]\d{0,8})"$/.exec(value.trim())?.[1]
  return digits === undefined ? undefined : Number(digits)
}

/** V2. Does this change let a message go that waited until now? */
export function leaves({ state, request }: Message, next: State): boolean {
  const waited = state.status === 'held' || state.status === 'scheduled'
  return waited && request.conversation !== undefined && (next.status === 'queued' || next.status === 'sending')
}

/** What makes a second message look like the first: conversation, recipient and what is said, whatever its key and reference. */
export function contentHash({ channel, to, conversation, content }: MessageRequest): string {
  return hash('sha256', canonicalJson([channel, to, conversation ?? null, content])).slice(0, 32)
}

/** The id of an inbound message whose sender gives none: of the fields that make it that event. */
export const inboundEventId = (from: string, text: string, occurredAt: string): string =>
  `derived:v1:${hash('sha256', canonicalJson([from, text, occurredAt]))}`

/**
 * A message's time line: what its row tells (claimed, the attempt that runs or ended last) together with the recorded
 * events. An ordinary send has no event row at all.
 *
 * T1. A line has the same id at each look, wherever it is kept: an attempt's lines move from the row to an event when
 *     another attempt follows.
 * T2. Oldest first; what happened within one millisecond stands in the order in which it happened.
 */
import { idFromUuid, uuidOf } from './ids.ts'
import { attemptOf, endedAttemptOf, type ShownMessage } from './message.ts'
import type { TimelineEntry } from './events.ts'

export type RecordedEntry = TimelineEntry & { readonly id: string }

export function timelineView(message: ShownMessage, recorded: readonly RecordedEntry[]) {
  const lines = recorded.flatMap((entry) => linesOf(message.id, entry))
  const isOfAttempt = ({ type }: RecordedEntry): boolean => type === 'attempt_started' || type === 'attempt_ended'
  const all = [
    ...withIds(message.id, { type: 'claimed', at: message.createdAt, attemptId: null, data: claimData(message) }),
    ...lines.filter(isOfAttempt),
    ...currentAttempt(message).flatMap((entry) => withIds(message.id, entry)),
    ...lines.filter((line) => !isOfAttempt(line)),
  ]
  const once = [...new Map(all.map((line) => [line.id, line])).values()] // a start may be told by row and event
  const ordered = once.toSorted((a, b) => a.at.getTime() - b.at.getTime()) // stable
  return {
    data: ordered.map(({ id, type, at, attemptId, data }) => ({
      id: idFromUuid('event', id),
      type,
      at: at.toISOString(),
      attempt: attemptId === null ? null : idFromUuid('attempt', attemptId),
      data,
    })),
  }
}

const claimData = ({ sentBy, heldFor, possibleDuplicateOf }: ShownMessage): TimelineEntry['data'] => ({
  ...(sentBy === null ? {} : { apiKey: sentBy }),
  ...(heldFor === null ? {} : { heldFor }),
  ...(possibleDuplicateOf === null ? {} : { possibleDuplicateOf: idFromUuid('message', possibleDuplicateOf) }),
})

function currentAttempt({ state }: ShownMessage): TimelineEntry[] {
  const attempt = attemptOf(state)
  const ended = endedAttemptOf(state)
  if (attempt === null) return []
  const { id, provider, number, startedAt } = attempt
  const started: TimelineEntry = { type: 'attempt_started', at: startedAt, attemptId: id, data: { provider, number } }
  if (ended === null) return [started]
  const data = { provider, number, outcome: ended.outcome, ...ended.evidence }
  return [started, { type: 'attempt_ended', at: ended.endedAt, attemptId: id, data }]
}

/** An attempt that was followed by another is one recorded event, and two lines. */
function linesOf(messageId: string, entry: RecordedEntry): RecordedEntry[] {
  const { startedAt, ...data } = entry.data
  if (entry.type === 'attempt_started') return withIds(messageId, entry)
  if (entry.type !== 'attempt_ended' || typeof startedAt !== 'string') return [entry]
  const { provider, number } = data
  const at = new Date(startedAt)
  return [
    ...withIds(messageId, { type: 'attempt_started', at, attemptId: entry.attemptId, data: { provider, number } }),
    ...withIds(messageId, { ...entry, data }),
  ]
}

const withIds = (messageId: string, entry: TimelineEntry): RecordedEntry[] => [
  { ...entry, id: uuidOf(entry.at, [messageId, entry.type, entry.attemptId]) },
]

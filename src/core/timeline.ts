/**
 * A message's time line: what its row tells (claimed, the attempt that runs or ended last) together with the recorded
 * events. An ordinary send has no event row at all.
 */
import { createHash } from 'node:crypto'
import { idFromUuid } from './ids.ts'
import { attemptOf, endedAttemptOf, type Message } from './message.ts'
import type { TimelineEntry } from './state-machine.ts'

export type RecordedEntry = TimelineEntry & { readonly id: string }

export function timelineView(message: Message, recorded: readonly RecordedEntry[]) {
  const attempt = attemptOf(message.state)
  const ended = endedAttemptOf(message.state)
  const fromRow: TimelineEntry[] = [{ type: 'claimed', at: message.createdAt, attemptId: null, data: {} }]
  if (attempt !== null) {
    const { id, provider, number, startedAt } = attempt
    fromRow.push({ type: 'attempt_started', at: startedAt, attemptId: id, data: { provider, number } })
    if (ended !== null)
      fromRow.push({
        type: 'attempt_ended',
        at: ended.endedAt,
        attemptId: id,
        data: { provider, number, outcome: ended.outcome, ...ended.evidence },
      })
  }
  const entries = [
    ...fromRow.map((entry) => ({ ...entry, id: derivedId(message.id, entry) })),
    ...recorded.flatMap(withStart),
  ]
  // Stable: what happened in the same millisecond stays in the order of the life of a message.
  const ordered = entries.toSorted((a, b) => a.at.getTime() - b.at.getTime() || order(a) - order(b))
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

/** An attempt that was followed by another is one recorded event, and two lines. */
function withStart(entry: RecordedEntry): RecordedEntry[] {
  const { startedAt, ...data } = entry.data
  if (entry.type !== 'attempt_ended' || typeof startedAt !== 'string') return [entry]
  const { provider, number } = data
  const start = {
    type: 'attempt_started' as const,
    at: new Date(startedAt),
    attemptId: entry.attemptId,
    data: { provider, number },
  }
  return [
    { ...start, id: derivedId(entry.id, start) },
    { ...entry, data },
  ]
}

const firstTypes: readonly TimelineEntry['type'][] = ['claimed', 'attempt_started', 'attempt_ended']
function order({ type }: TimelineEntry): number {
  const index = firstTypes.indexOf(type)
  return index === -1 ? firstTypes.length : index
}

/** What has no row of its own has an id all the same, the same at each look. */
function derivedId(of: string, { type, attemptId }: TimelineEntry): string {
  return createHash('sha256')
    .update(JSON.stringify([of, type, attemptId]))
    .digest('hex')
    .slice(0, 32)
}

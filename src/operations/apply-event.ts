/**
 * The one way in which a message changes after its claim: decide, write if nobody was faster, tell who waits.
 *
 * Y1. What was decided on a stale reading is never written: it is decided again on the present one.
 * Y2. Alarms and metrics follow the commit, never lead it.
 * Y3. What was to leave, and whose conversation moved since its claim, is canceled instead.
 */
import type { Message } from '../core/message.ts'
import type { Decision, Event } from '../core/events.ts'
import { leaves } from '../core/conversation.ts'
import { advance, decide } from '../core/state-machine.ts'
import type { Deps } from '../deps.ts'
import { ConversationMoved } from '../store/database-errors.ts'

/** More changes than this between two of our tries are a livelock, not weather. */
const maxTries = 20

export interface Applied {
  /** The message after the event, or as it was found. */
  readonly message: Message
  readonly decision: Decision
}

export interface ApplyOptions {
  /** Of an event that begins an attempt. */
  readonly leaseMs?: number
  /** False for a synchronous send that never waited for a worker or a person: then there is no due work to clear. */
  readonly mayHaveDueWork?: boolean
}

/** @throws StoreUnavailable: it may or may not have been written */
export async function applyEvent(
  deps: Deps,
  found: Message,
  event: Event,
  options: ApplyOptions = {},
): Promise<Applied> {
  let message = found
  for (let tries = 0; tries < maxTries; tries++) {
    const decision = decide(message, event)
    if (decision.kind === 'illegal') {
      deps.log.error({ message: message.id, event: event.type, because: decision.because }, 'illegal event')
      return { message, decision }
    }
    if (decision.kind === 'ignored') {
      const entries = decision.effects.flatMap((effect) => (effect.type === 'record' ? [effect.entry] : []))
      if (entries.length > 0) await deps.store.recordEvents(message.id, entries)
      follow(deps, message, decision)
      return { message, decision }
    }
    const at = event.type === 'begin' ? event.attempt.startedAt : event.at
    const next = advance(message, decision.next, decision.changes, at)
    const { leaseMs = null } = options
    // What the caller knows holds for what it found; a message that was read again may have waited meanwhile.
    const mayHaveDueWork = (options.mayHaveDueWork ?? true) || message !== found || message.state.status === 'unknown'
    const keepsAnswer = next.answer === message.answer
    const change = {
      next,
      effects: decision.effects,
      leaseMs,
      mayHaveDueWork,
      keepsAnswer,
      leaves: leaves(message, decision.next),
    }
    const saved = await deps.store.saveMessage(change).catch((error: unknown) => {
      if (error instanceof ConversationMoved) return 'conversation moved' as const
      throw error
    })
    if (saved === 'conversation moved')
      return applyEvent(deps, message, { type: 'conversation_moved', decision: decision.changes.decision ?? null, at })
    if (saved) {
      deps.metrics.changed(message.state.status, next.state.status).inc()
      if (next.resolution !== null && next.resolution !== message.resolution)
        deps.metrics.settled.inc({ by: next.resolution.by, to: next.state.status })
      if (next.state.status === 'unknown' && next.state.plan !== null) deps.nudgeReconciler(next.state.plan.at)
      deps.waiters.publish(next)
      follow(deps, next, decision)
      return { message: next, decision }
    }
    const [present] = await deps.store.findMessages([message.id])
    if (present === undefined) return { message, decision: { kind: 'ignored', because: 'it was erased', effects: [] } }
    message = present
  }
  throw new Error(`message ${found.id} changes faster than ${event.type} can be applied`)
}

function follow(deps: Deps, message: Message, decision: Exclude<Decision, { kind: 'illegal' }>): void {
  for (const effect of decision.effects) {
    if (effect.type !== 'alarm') continue
    deps.metrics.alarms.inc({ alarm: effect.name })
    deps.log.error({ message: message.id, provider: message.provider, alarm: effect.name }, 'alarm')
  }
}

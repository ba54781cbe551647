/**
 * When things happen: the times of a new message and the pause before a call is made again. Pure: the caller gives the
 * data base's time and a random number.
 */
import type { MessageRequest } from './message-content.ts'
import type { NotSentReason } from './outcome.ts'

const dayMs = 86_400_000

export interface Times {
  /** Null: at once. */
  readonly sendAt: Date | null
  /** No first byte leaves after it. */
  readonly notAfter: Date
}

export function timesOf(request: MessageRequest, now: Date): Times {
  const after = (seconds: number): Date => new Date(now.getTime() + seconds * 1000)
  const asked =
    request.sendAt !== undefined
      ? new Date(request.sendAt)
      : request.delaySeconds !== undefined
        ? after(request.delaySeconds)
        : null
  const sendAt = asked !== null && asked > now ? asked : null
  const notAfter =
    request.notAfter !== undefined
      ? new Date(request.notAfter)
      : request.ttlSeconds !== undefined
        ? after(request.ttlSeconds)
        : new Date((sendAt ?? now).getTime() + dayMs)
  return { sendAt, notAfter }
}

/** What is wrong with these times for a message that is new now; null if nothing is. */
export function timesRefusal(times: Times, now: Date): string | null {
  if (times.notAfter <= now) return 'notAfter has passed: nothing would ever be sent under this request.'
  if (times.sendAt !== null && times.notAfter <= times.sendAt) return 'notAfter lies before the message would be sent.'
  return null
}

const baseMs = 1_000
const capMs = 300_000
/** A provider that refuses our credentials is asked again this seldom; until then its messages wait. */
export const credentialsPauseMs = 60_000

/**
 * How long to wait after the nth call that was not accepted: exponential with full jitter (base 1 s, cap 5 min), and
 * never less than the provider asked for.
 * @param random in [0, 1)
 */
export function retryDelayMs(
  attempts: number,
  reason: NotSentReason,
  retryAfterMs: number | null,
  random: number,
): number {
  const ceiling = Math.min(capMs, baseMs * 2 ** Math.min(attempts - 1, 20))
  const floor = Math.max(retryAfterMs ?? 0, reason === 'credentials' ? credentialsPauseMs : 0)
  return Math.max(floor, Math.round(ceiling * random))
}

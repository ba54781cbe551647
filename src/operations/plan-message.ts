/**
 * What a request asks for, before anything is claimed: the names of its message, and what would speak against a new one.
 *
 * N5. A header that is there names the event, whatever else is given; a malformed one is never taken for none.
 */
import { derivedKey, isDerived, isTimestamp, type KeyHeader, type Scope } from '../core/idempotency.ts'
import type { MessageRequest } from '../core/message-content.ts'
import { timesOf, timesRefusal, type Times } from '../core/schedule.ts'
import type { Deps } from '../deps.ts'
import type { Provider } from '../providers/provider.ts'
import { firstProvider } from './choose-provider.ts'
import { Refusal } from './refusal.ts'

export interface SendRequest {
  readonly scope: Scope
  readonly keyHeader: KeyHeader
  readonly request: MessageRequest
  /** How long the caller waits for the outcome. */
  readonly waitMs: number
  /** `Prefer: respond-async`. */
  readonly async: boolean
  readonly traceparent: string | null
  /** `If-Match`: there are no versions of conversations to match yet. */
  readonly hasPrecondition: boolean
}

/** The names under which the message may be known: its key first, then its reference. */
export type Names = readonly [string, ...string[]]

/** @throws Refusal: no key, or a malformed one */
export function namesOf({ keyHeader, scope, request }: Pick<SendRequest, 'keyHeader' | 'scope' | 'request'>): Names {
  const { conversation, reference } = request
  const derived =
    conversation !== undefined && reference !== undefined ? derivedKey(scope, conversation, reference) : undefined
  switch (keyHeader.kind) {
    case 'invalid':
      throw new Refusal('idempotency-key-invalid', keyHeader.detail)
    case 'key':
      // A derived key that is given is all that is asked for: it finds its message, or nothing.
      return derived === undefined || isDerived(keyHeader.key) ? [keyHeader.key] : [keyHeader.key, derived]
    case 'missing':
      if (derived === undefined) throw new Refusal('idempotency-key-required')
      return [derived]
  }
}

/** Requests that may wait in this process at one time; more are refused, and claim nothing. */
const maxWaiting = 4_000
/** What a new message would be: all that can be said against it has been said. */
export interface Plan {
  readonly provider: Provider
  readonly times: Times
}

export function planNew(deps: Deps, asked: SendRequest, names: Names): Plan | Refusal {
  const { request, scope, keyHeader } = asked
  const invalid = (pointer: string, detail: string): Refusal =>
    new Refusal('invalid-request', detail, { sent: 'no', errors: [{ pointer, detail }] })
  const now = deps.clock.now()
  if (keyHeader.kind === 'key' && isDerived(keyHeader.key))
    return new Refusal(
      'idempotency-key-invalid',
      'No message has this derived key, and a new one is never claimed by it.',
      {
        sent: 'no',
      },
    )
  if (isTimestamp(names[0], now.getTime())) return new Refusal('idempotency-key-timestamp', null, { sent: 'no' })
  const times = timesOf(request, now)
  const wrong = timesRefusal(times, now)
  if (wrong !== null) return invalid(request.ttlSeconds === undefined ? '/notAfter' : '/ttlSeconds', wrong)
  const provider = firstProvider(deps, request, scope)
  if (provider === undefined) return new Refusal('no-provider', whyNoProvider(request, scope), { sent: 'no' })
  const limit = provider.limitBroken(request)
  if (limit !== null) return invalid(limit.pointer, limit.detail)
  if (asked.hasPrecondition) return new Refusal('unsupported-precondition', null, { sent: 'no' })
  if (!deps.acceptsClaims()) return new Refusal('shutting-down', null, { sent: 'maybe' }, 1)
  if (deps.waiters.count() >= maxWaiting) return new Refusal('overloaded', null, { sent: 'maybe' }, 1)
  return { provider, times }
}

function whyNoProvider({ provider, channel }: MessageRequest, { environment }: Scope): string {
  return provider === undefined
    ? `No route leads from ${channel} to a provider in the ${environment} environment.`
    : `There is no provider of that name that takes ${channel} in the ${environment} environment.`
}

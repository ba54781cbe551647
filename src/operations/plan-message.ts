/**
 * What a request asks for, before anything is claimed: the names of its message, and what would speak against a new one.
 *
 * N5. A header that is there names the event, whatever else is given; a malformed one is never taken for none.
 */
import { derivedKey, isDerived, isTimestamp, type KeyHeader, type Scope } from '../core/idempotency.ts'
import { versionFromIfMatch } from '../core/conversation.ts'
import type { KeyPolicy } from '../core/key-policy.ts'
import type { MessageRequest } from '../core/message-content.ts'
import type { HeldReason, ShownMessage } from '../core/message.ts'
import { messageReference } from '../core/message-view.ts'
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
  /** `If-Match`, as it came; null: it did not. */
  readonly ifMatch: string | null
  readonly sender: Sender
}

/** Who sends, and what they are bound to. */
export interface Sender {
  readonly apiKey: string
  readonly policy: KeyPolicy
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
/** What a new message would be: all that can be said against it before its claim has been said. */
export interface Plan {
  readonly provider: Provider
  readonly times: Times
  /** The version that its conversation must have; null: whichever. */
  readonly ifVersion: number | null
}

export function planNew(deps: Deps, asked: SendRequest, names: Names): Plan | Refusal {
  const { request, scope, keyHeader, sender } = asked
  const now = deps.clock.now()
  if (keyHeader.kind === 'key' && isDerived(keyHeader.key))
    return new Refusal(
      'idempotency-key-invalid',
      'No message has this derived key, and a new one is never claimed by it.',
      { sent: 'no' },
    )
  if (isTimestamp(names[0], now.getTime())) return new Refusal('idempotency-key-timestamp', null, { sent: 'no' })
  const times = timesOf(request, now)
  const wrong = timesRefusal(times, now)
  if (wrong !== null) return invalid(request.ttlSeconds === undefined ? '/notAfter' : '/ttlSeconds', wrong)
  const { allowedProviders } = sender.policy
  const provider = firstProvider(deps, request, scope, allowedProviders)
  const forbidden = policyRefusal(deps, asked, provider)
  if (forbidden !== null) return forbidden
  if (provider === undefined) return new Refusal('no-provider', whyNoProvider(request, scope), { sent: 'no' })
  const limit = provider.limitBroken(request)
  if (limit !== null) return invalid(limit.pointer, limit.detail)
  const ifVersion = preconditionOf(asked)
  if (ifVersion instanceof Refusal) return ifVersion
  if (!deps.acceptsClaims()) return new Refusal('shutting-down', null, { sent: 'maybe' }, 1)
  if (deps.waiters.count() >= maxWaiting) return new Refusal('overloaded', null, { sent: 'maybe' }, 1)
  return { provider, times, ifVersion }
}

const invalid = (pointer: string, detail: string): Refusal =>
  new Refusal('invalid-request', detail, { sent: 'no', errors: [{ pointer, detail }] })

function policyRefusal(deps: Deps, { sender, request, scope }: SendRequest, provider?: Provider): Refusal | null {
  const { allowedChannels, allowedProviders } = sender.policy
  const refused = (detail: string): Refusal => new Refusal('policy-refused', detail, { sent: 'no' })
  if (allowedChannels !== null && !allowedChannels.includes(request.channel))
    return refused(`This API key may send by ${allowedChannels.join(', ') || 'no channel'}, not by ${request.channel}.`)
  // There is one, and it is none of those that this key may use.
  if (provider === undefined && allowedProviders !== null && firstProvider(deps, request, scope, null) !== undefined)
    return refused('No provider that this API key may use takes this message.')
  return null
}

/** The version that is asked for; null: none. */
function preconditionOf({ ifMatch, request, sender }: SendRequest): number | null | Refusal {
  if (ifMatch === null)
    return sender.policy.requireConversationVersion
      ? new Refusal('conversation-version-required', null, { sent: 'no' })
      : null
  const version = versionFromIfMatch(ifMatch)
  if (version === undefined) return invalid('', 'If-Match names one version of a conversation, as its ETag does: "3".')
  return request.conversation === undefined
    ? invalid('/conversation', 'If-Match is about a conversation, and this message names none.')
    : version
}

/** Does it wait for a person, as its API key wants it? */
export async function heldFor(deps: Deps, { request, scope, sender }: SendRequest): Promise<HeldReason | null> {
  const rule = sender.policy.requireApproval
  if (typeof rule === 'object') return rule.channels.includes(request.channel) ? 'approval' : null
  switch (rule) {
    case 'never':
      return null
    case 'always':
      return 'approval'
    case 'first_contact':
      return (await deps.store.wasReached(scope, request.channel, request.to)) ? null : 'approval'
  }
}

type Sent = 'no' | 'maybe'

export async function movedOn(deps: Deps, { scope, request }: SendRequest, sent: Sent): Promise<Refusal> {
  const conversation = request.conversation ?? ''
  const { version } = await deps.store.findConversation(scope, conversation)
  return new Refusal('conversation-changed', `It is at version ${version}.`, {
    sent,
    conversation: { conversation, version },
  })
}

/** @param first undefined: retention has erased it */
export function possibleDuplicate(first: ShownMessage | undefined, by: 'intent' | 'content', sent: Sent): Refusal {
  const why =
    by === 'intent'
      ? 'Another message has the same intent.'
      : 'The same was said to the same recipient a short while ago.'
  return new Refusal('possible-duplicate', why, {
    sent,
    ...(first === undefined ? {} : { message: messageReference(first) }),
  })
}

function whyNoProvider({ provider, channel }: MessageRequest, { environment }: Scope): string {
  return provider === undefined
    ? `No route leads from ${channel} to a provider in the ${environment} environment.`
    : `There is no provider of that name that takes ${channel} in the ${environment} environment.`
}

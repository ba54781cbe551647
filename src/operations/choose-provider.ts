/**
 * Which provider an attempt goes to: the one that the caller pinned, else the next of the channel's route.
 *
 * G1. Another provider is chosen only for an attempt that follows a `not_sent`; what is open is repeated at its own.
 * G2. What a person or a proven absence had sent again goes to the same provider: were they wrong, its key may yet tell.
 * G3. A provider that is stopped, or whose limits the message breaks, is passed over while the route has another.
 * G4. One that asked for a pause is not asked before it is over, whoever of the route was asked meanwhile.
 */
import type { Scope } from '../core/idempotency.ts'
import type { MessageRequest } from '../core/message-content.ts'
import { attemptOf, endedAttemptOf, type Attempt, type Message } from '../core/message.ts'
import type { Deps } from '../deps.ts'
import type { Provider } from '../providers/provider.ts'

type Chooser = Pick<Deps, 'providers' | 'slots'>

/** What a message may go to: the names that its API key allows; null: any. */
type Allowed = readonly string[] | null

/** The providers that may take it, in the order of the route; a pinned one alone. */
function candidates(
  { providers }: Chooser,
  request: MessageRequest,
  environment: Scope['environment'],
  allowed: Allowed,
): readonly Provider[] {
  const pinned = request.provider === undefined ? undefined : providers.find(request.provider, environment)
  const route =
    request.provider === undefined
      ? providers.route(request.channel, environment)
      : pinned?.capabilities.channels.includes(request.channel) === true
        ? [pinned]
        : []
  return allowed === null ? route : route.filter(({ name }) => allowed.includes(name))
}

const candidatesOf = (deps: Chooser, { request, environment, allowedProviders }: Message): readonly Provider[] =>
  candidates(deps, request, environment, allowedProviders)

/** Where a new message goes. With none that takes it as it is, the first, whose limit it breaks. */
export function firstProvider(
  deps: Chooser,
  request: MessageRequest,
  { environment }: Scope,
  allowed: Allowed,
): Provider | undefined {
  const route = candidates(deps, request, environment, allowed)
  return usable(deps, request, route)[0] ?? route[0]
}

/** Those whose limits it keeps; of them those that are not stopped, if there are any. */
function usable({ slots }: Chooser, request: MessageRequest, route: readonly Provider[]): readonly Provider[] {
  const able = route.filter((provider) => provider.limitBroken(request) === null)
  const running = able.filter(({ name }) => !slots.isStopped(name))
  return running.length > 0 ? running : able
}

export interface NextProvider {
  readonly provider: Provider
  /** Every one of the route has asked for a pause, and this one's is over first. */
  readonly pausedUntil: Date | null
}

/** Where a message that waits goes next; undefined: its provider is not configured any more. @throws StoreTrouble */
export async function nextProvider(deps: Deps, message: Message): Promise<NextProvider | undefined> {
  const { provider: name, environment, state } = message
  const chosen = deps.providers.find(name, environment)
  const last = attemptOf(state)
  const stays =
    last === null ? !deps.slots.isStopped(name) : message.resolution?.attemptId === last.id || !isOnRoute(deps, message)
  if (chosen !== undefined && stays) return { provider: chosen, pausedUntil: null }
  return after(deps, message)
}

/** May an attempt that was not sent be followed at once, at a provider that was not asked in this round? @throws StoreTrouble */
export async function canFailOver(deps: Deps, message: Message, { provider, number }: Attempt): Promise<boolean> {
  const route = candidatesOf(deps, message)
  if (route.length < 2 || !isOnRoute(deps, message)) return false
  if (number % usable(deps, message.request, route).length === 0) return false
  const next = await after(deps, message)
  return next !== undefined && next.provider.name !== provider && next.pausedUntil === null
}

const isOnRoute = (deps: Chooser, message: Message): boolean =>
  candidatesOf(deps, message).some(({ name }) => name === message.provider)

/** After the one that did not take it, round the route. */
async function after(deps: Deps, message: Message): Promise<NextProvider | undefined> {
  const { provider, request } = message
  const route = candidatesOf(deps, message)
  const place = route.findIndex(({ name }) => name === provider)
  const able = usable(deps, request, [...route.slice(place + 1), ...route.slice(0, place + 1)])
  const paused = route.length > 1 ? await pausesOf(deps, message) : new Map<string, Date>()
  const free = able.find(({ name }) => !paused.has(name))
  if (free !== undefined) return { provider: free, pausedUntil: null }
  const until = ({ name }: Provider): Date => paused.get(name) ?? new Date(0)
  const [soonest] = able.toSorted((a, b) => until(a).getTime() - until(b).getTime())
  return soonest === undefined ? undefined : { provider: soonest, pausedUntil: until(soonest) }
}

/** G4. Who asked to be left alone with this message, and until when: as its ended attempts tell. */
async function pausesOf(deps: Deps, message: Message): Promise<Map<string, Date>> {
  const now = deps.clock.now()
  const paused = new Map<string, Date>()
  const note = (provider: unknown, endedAt: Date, retryAfterMs: unknown): void => {
    if (typeof provider !== 'string' || typeof retryAfterMs !== 'number') return
    const until = new Date(endedAt.getTime() + retryAfterMs)
    if (until > now) paused.set(provider, until)
  }
  for (const { type, at, data } of await deps.store.findEvents(message.id))
    if (type === 'attempt_ended') note(data['provider'], at, data['retryAfterMs'])
  const last = endedAttemptOf(message.state)
  if (last !== null) note(last.provider, last.endedAt, last.evidence.retryAfterMs)
  return paused
}

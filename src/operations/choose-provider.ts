/**
 * Which provider an attempt goes to: the one that the caller pinned, else the next of the channel's route.
 *
 * G1. Another provider is chosen only for an attempt that follows a `not_sent`; what is open is repeated at its own.
 * G2. What a person or a proven absence had sent again goes to the same provider: were they wrong, its key may yet tell.
 * G3. A provider that is stopped, or whose limits the message breaks, is passed over while the route has another.
 */
import type { Scope } from '../core/idempotency.ts'
import type { MessageRequest } from '../core/message-content.ts'
import { attemptOf, type Message } from '../core/message.ts'
import type { Deps } from '../deps.ts'
import type { Provider } from '../providers/provider.ts'

type Chooser = Pick<Deps, 'providers' | 'slots'>

/** The providers that may take it, in the order of the route; a pinned one alone. */
function candidates({ providers }: Chooser, request: MessageRequest, environment: Scope['environment']) {
  if (request.provider === undefined) return providers.route(request.channel, environment)
  const pinned = providers.find(request.provider, environment)
  return pinned?.capabilities.channels.includes(request.channel) === true ? [pinned] : []
}

/** Where a new message goes. With none that takes it as it is, the first, whose limit it breaks. */
export function firstProvider(deps: Chooser, request: MessageRequest, { environment }: Scope): Provider | undefined {
  const route = candidates(deps, request, environment)
  return usable(deps, request, route) ?? route[0]
}

const usable = (deps: Chooser, request: MessageRequest, route: readonly Provider[]): Provider | undefined => {
  const able = route.filter((provider) => provider.limitBroken(request) === null)
  return able.find(({ name }) => !deps.slots.isStopped(name)) ?? able[0]
}

/** Where a message that waits goes next; undefined: its provider is not configured any more. */
export function nextProvider(deps: Chooser, message: Message): Provider | undefined {
  const { provider, environment, request, state } = message
  const chosen = deps.providers.find(provider, environment)
  const last = attemptOf(state)
  if (chosen !== undefined && last === null && !deps.slots.isStopped(provider)) return chosen
  if (chosen !== undefined && last !== null && message.resolution?.attemptId === last.id) return chosen
  const route = candidates(deps, request, environment)
  const place = route.findIndex(({ name }) => name === provider)
  // After the one that did not take it, round the route; what left the route stays where it was.
  if (place === -1 && chosen !== undefined) return chosen
  return usable(deps, request, [...route.slice(place + 1), ...route.slice(0, place + 1)]) ?? chosen
}

/** May an attempt that was not sent be followed at once, at a provider that was not asked in this round? */
export function canFailOver(deps: Chooser, { request, environment }: Message, attemptNumber: number): boolean {
  const able = candidates(deps, request, environment).filter((provider) => provider.limitBroken(request) === null)
  return attemptNumber % Math.max(able.length, 1) !== 0
}

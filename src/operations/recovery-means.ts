/** What the provider of an attempt can do about a lost answer, as it is configured in this process now. */
import type { Message } from '../core/message.ts'
import { attemptOf } from '../core/message.ts'
import type { RecoveryMeans } from '../core/recovery.ts'
import type { Deps } from '../deps.ts'
import type { Provider } from '../providers/provider.ts'

export const meansOf = ({ identity, capabilities }: Provider): RecoveryMeans => ({
  identity,
  deduplication: capabilities.deduplication,
  lookup: capabilities.lookup,
})

/** The provider that the message's current or last attempt went to; undefined if it is not configured any more. */
export function attemptedProvider({ providers }: Pick<Deps, 'providers'>, message: Message): Provider | undefined {
  const attempt = attemptOf(message.state)
  return attempt === null ? undefined : providers.find(attempt.provider, message.environment)
}

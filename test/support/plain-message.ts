/** What a message has of which most tests speak not at all: nobody was asked, and nothing looks like it. */
import type { Message } from '../../src/core/message.ts'
import { policyOf } from '../../src/core/key-policy.ts'

export const plain = {
  allowedProviders: null,
  sentBy: 'key1',
  heldFor: null,
  decision: null,
  conversationVersion: null,
  possibleDuplicateOf: null,
} as const satisfies Partial<Message>

/** Who sends as most services do. */
export const plainSender = { apiKey: 'key1', policy: policyOf('service', null) }

/** Of a claim that nothing binds. */
export const unbound = { ifVersion: null, rechecks: false, guard: null } as const

/** The API keys that send in a history, and what they are bound to. */
import { policyOf, type ApprovalRule, type DuplicateGuard, type GivenPolicy } from '../../src/core/key-policy.ts'
import type { ApiKind } from '../../src/core/api-key.ts'
import type { Sender } from '../../src/operations/plan-message.ts'
import type { Chance } from './chance.ts'

export const ordinary: Sender = { apiKey: 'key1', policy: policyOf('service', null) }

/** Who decides. The first one also sends. */
export const persons = ['person-1', 'person-2', 'person-3'] as const

export const senderKinds = ['agent', 'agent', 'agent', 'service', 'service', 'person'] as const

const approvals: Readonly<Record<ApiKind, readonly ApprovalRule[]>> = {
  agent: ['never', 'never', 'always', 'first_contact', { channels: ['sms'] }, { channels: ['email'] }],
  service: ['never', 'never', 'first_contact'],
  person: ['always'],
}

/** Windows that pass within a history. */
const guardOf = (chance: Chance): DuplicateGuard => ({
  mode: chance.pick(['off', 'flag', 'hold', 'hold', 'refuse', 'refuse']),
  windowSeconds: chance.pick([1, 3, 8, 40]),
})

export interface Writer {
  readonly kind: ApiKind
  readonly sender: Sender
}

export function newWriter(chance: Chance, name: string): Writer {
  const kind = chance.pick(senderKinds)
  const given: GivenPolicy = {
    requireConversationVersion: kind === 'agent' && chance.happens(0.8),
    requireApproval: chance.pick(approvals[kind]),
    duplicateGuard: guardOf(chance),
  }
  return { kind, sender: { apiKey: kind === 'person' ? persons[0] : name, policy: policyOf(kind, given) } }
}

import { expect, test } from 'vitest'
import { apiKinds } from '../../src/core/api-key.ts'
import { guardWindow, policyDefaults, policyOf } from '../../src/core/key-policy.ts'

test.each(apiKinds)('Y1 of a %s’s key to which nothing was given the policy is the default of its kind', (kind) => {
  expect(policyOf(kind, null)).toEqual(policyDefaults[kind])
  expect(policyOf(kind, {})).toEqual(policyDefaults[kind])
})

test('an agent must have read the conversation and is approved, a service and a person are trusted', () => {
  expect(policyDefaults).toEqual({
    service: expect.objectContaining({ requireConversationVersion: false, requireApproval: 'never' }) as unknown,
    agent: expect.objectContaining({ requireConversationVersion: true, requireApproval: 'always' }) as unknown,
    person: policyDefaults.service,
  })
  expect(policyDefaults.service.duplicateGuard).toEqual({ mode: 'flag', windowSeconds: 900 })
  expect(policyDefaults.agent.duplicateGuard).toEqual({ mode: 'hold', windowSeconds: guardWindow.maxS })
})

test('Y1 what is given holds, member by member, and the rest is the default', () => {
  expect(policyOf('agent', { requireApproval: { channels: ['sms'] }, duplicateGuard: { mode: 'refuse' } })).toEqual({
    ...policyDefaults.agent,
    requireApproval: { channels: ['sms'] },
    duplicateGuard: { mode: 'refuse', windowSeconds: 86_400 },
  })
  expect(policyOf('service', { allowedChannels: ['email'], allowedProviders: null })).toEqual({
    ...policyDefaults.service,
    allowedChannels: ['email'],
  })
})

test('the defaults are not changed by what is made of them', () => {
  const before = structuredClone(policyDefaults)
  policyOf('agent', { requireConversationVersion: false, duplicateGuard: { windowSeconds: 1 } })
  expect(policyDefaults).toEqual(before)
})

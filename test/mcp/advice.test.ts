/** What agents are told after a problem (src/mcp/problems.ts). */
import { expect, test } from 'vitest'
import { problemBody, problemTypes } from '../../src/core/problems.ts'
import { nextAfter, problemOf, type AgentProblem } from '../../src/mcp/problems.ts'

/** Of the contract, whether or not the catalogue has them. */
const contract = [
  'conversation-changed',
  'conversation-version-required',
  'policy-refused',
  'rate-limited',
  'no-answer',
]
const types = [...new Set([...problemTypes, ...contract, 'of-a-newer-gateway'])]

const given = (type: string, more: Partial<AgentProblem> = {}): AgentProblem => ({
  type,
  title: 'A title',
  happened: 'It happened.',
  sent: 'no',
  retryable: false,
  retryAfterSeconds: null,
  message: { id: 'msg_1', status: 'sent' },
  errors: [],
  ...more,
})

test.each(types)('after %s one sentence says what to do, and tempts to no other intent, key or way (P1)', (type) => {
  for (const more of [{}, { message: null }, { retryable: true, retryAfterSeconds: 2 }]) {
    const next = nextAfter(given(type, more))
    expect(next.match(/[.!?](\s|$)/g)).toHaveLength(1)
    expect(next).toMatch(/^[A-Z].*\.$/)
    expect(next).not.toMatch(/(another|new|other|different) (intent|key|conversation)|idempotency/i)
  }
})

/** Whose detail tells an agent more than the title does, and nothing of keys or versions (P2). */
const telling = [
  'invalid-request',
  'forbidden',
  'policy-refused',
  'message-rejected',
  'no-provider',
  'payload-too-large',
]

test.each(problemTypes)('nothing that the catalogue advises callers about their keys reaches an agent: %s', (type) => {
  const json = problemBody(type, 'urn:test', 'It happened here.')
  const { happened, title } = problemOf({ status: json.status, headers: {}, json })
  expect(happened).toBe(telling.includes(type) ? 'It happened here.' : `${title}.`)
})

test('a type that is not known is judged by `retryable` (P3)', () => {
  expect(nextAfter(given('of-a-newer-gateway', { retryable: true }))).toMatch(/safe to make the same call/)
  expect(nextAfter(given('of-a-newer-gateway'))).toMatch(/^Tell a person/)
  expect(nextAfter(given('toString'))).toMatch(/^Tell a person/)
})

test('the detail of a newer gateway is not handed on: it may advise what is not for agents', () => {
  const json = { type: '/problems/forbidden', title: 'A title', detail: 'Use another intent.', retryable: false }
  expect(problemOf({ status: 403, headers: {}, json }).happened).toBe('A title.')
})

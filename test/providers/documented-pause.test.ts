/** A pause that a provider documents for a code, but does not tell in its answer. */
import { expect, test } from 'vitest'
import { judgeCall } from '../../src/providers/judge-answer.ts'
import type { AnswerRules } from '../../src/providers/provider.ts'
import { blindCapabilities } from '../support/attempt-context.ts'

const rules: AnswerRules = {
  isAccepted: () => false,
  messageIdOf: () => null,
  errorCodeOf: (body) => (body as { code: string }).code,
  codes: {
    tomorrow: {
      means: 'refused_for_now',
      statuses: [429],
      wording: 'Tomorrow',
      pauseMs: (at) => 86_400_000 - (at.getTime() % 86_400_000),
    },
    soon: { means: 'refused_for_now', statuses: [429], wording: 'Soon' },
  },
}
const judged = (code: string, retryAfterMs: number | null, at = new Date('2026-07-01T21:00:00Z'), status = 429) => {
  const answer = { status, headers: {}, body: JSON.stringify({ code }), complete: true, retryAfterMs }
  return judgeCall({ phase: 'answered', answer, code: null }, rules, blindCapabilities('body'), at)
}

test('the documented pause of a code counts from the call, where the answer names none', () => {
  expect(judged('tomorrow', null)).toMatchObject({ kind: 'not_sent', retryAfterMs: 3 * 3_600_000 })
  expect(judged('tomorrow', 5000)).toMatchObject({ kind: 'not_sent', retryAfterMs: 5000 })
  expect(judged('soon', null)).toMatchObject({ kind: 'not_sent', retryAfterMs: null })
})

test('under another status than its own a code has no documented pause', () => {
  expect(judged('tomorrow', null, undefined, 503)).not.toHaveProperty('retryAfterMs', 3 * 3_600_000)
})

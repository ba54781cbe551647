import { expect, test } from 'vitest'
import type { Outcome } from '../../src/core/outcome.ts'
import { refusedUrls } from '../../src/providers/refused-urls.ts'

const codes = {
  gone: { means: 'rejected', statuses: [410], wording: 'Gone', refusesUrlForMs: 1000 },
  bad: { means: 'rejected', statuses: [400], wording: 'Bad' },
} as const
const urlOf = (n: number, account = 'a') => ({ account, origin: 'https://receiver.example', path: `/${n}` })
const at = (ms: number): Date => new Date(ms)
const answered = (code?: string, more: object = {}): Outcome => ({
  kind: 'rejected',
  evidence: { phase: 'answered', detail: 'd', ...(code === undefined ? {} : { code }), ...more },
})

test('a URL is refused for as long as the code says, counted from the answer that was last', () => {
  const refused = refusedUrls(codes)
  refused.note(urlOf(1), answered('gone'), at(0))
  refused.note(urlOf(1), answered('gone'), at(500))
  expect(refused.refusalOf(urlOf(1), at(1499))).toEqual({
    kind: 'rejected',
    evidence: { phase: 'not_begun', code: 'gone', detail: 'Not called, for it answered an earlier message so: Gone' },
  })
  expect(refused.refusalOf(urlOf(1), at(1500))).toBeNull()
  expect(refused.refusalOf(urlOf(2), at(0))).toBeNull()
  expect(refused.refusalOf(urlOf(1, 'another account'), at(0))).toBeNull()
})

test.each([
  ['another code', answered('bad')],
  ['a code in no table', answered('constructor')],
  ['no code', answered()],
  ['its code under another status', answered('gone', { unrecognised: true })],
  ['a refusal of our own', answered('gone', { phase: 'not_begun' })],
])('%s refuses no URL', (_, outcome) => {
  const refused = refusedUrls(codes)
  refused.note(urlOf(1), outcome, at(0))
  expect(refused.refusalOf(urlOf(1), at(1))).toBeNull()
})

test('what is remembered is bounded: the one noted longest ago is forgotten first (R1)', () => {
  const refused = refusedUrls(codes)
  for (let n = 0; n < 10_000; n++) refused.note(urlOf(n), answered('gone'), at(0))
  refused.note(urlOf(0), answered('gone'), at(1))
  refused.note(urlOf(10_000), answered('gone'), at(1))
  const remembered = [0, 1, 2, 10_000].map((n) => refused.refusalOf(urlOf(n), at(2)) !== null)
  expect(remembered).toEqual([true, false, true, true])
})

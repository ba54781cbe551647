/** The torture is run by itself (npm run torture, .ci/run); that its checker would find what it is for is held here. */
import { expect, test } from 'vitest'
import type { Evidence, KeyEvidence } from '../../torture/evidence.ts'
import type { Heard } from '../../torture/history.ts'
import { askedUnder } from '../../torture/keys.ts'
import { chanceFrom } from '../../torture/chance.ts'
import { planFrom } from '../../torture/plan.ts'
import type { SentOut } from '../../torture/provider-proxy.ts'
import { rules, violationsIn, type RuleName } from '../../torture/rules.ts'
import type { MessageRow } from '../../torture/tables.ts'

const leaseMs = 6_500
const begun = 1_000_000
const asked = (provider: KeyEvidence['asked']['provider']): KeyEvidence['asked'] => ({
  ...askedUnder(1, 1, chanceFrom(1)),
  provider,
})
const heard = (more: Partial<Heard> = {}): Heard => ({
  key: 'k',
  operation: 'send',
  gateway: 0,
  beganMs: begun,
  endedMs: begun + 100,
  dueMs: begun + 1_500,
  end: 'answer',
  status: 201,
  said: 'message',
  sent: null,
  retryable: null,
  messageId: 'msg_1',
  replayed: false,
  bytes: 'the answer',
  ...more,
})
const row = (more: Partial<MessageRow> = {}): MessageRow => ({
  uuid: '1',
  id: 'msg_1',
  key: 'k',
  status: 'sent',
  provider: 'sandbox-blind',
  attempts: 1,
  hasPlan: false,
  reason: null,
  resolvedBy: null,
  leaseUntil: new Date(begun + leaseMs),
  notAfter: new Date(begun + 86_400_000),
  answer: 'the answer',
  begun: [begun],
  events: [],
  ...more,
})
const left = (more: Partial<SentOut> = {}): SentOut => ({
  messageId: 'msg_1',
  at: begun + 10,
  fate: 'passed',
  digest: 'd',
  answered: { status: 201, code: null },
  ...more,
})
const well: KeyEvidence = {
  asked: asked('sandbox-blind'),
  heard: [heard()],
  claimedAs: '1',
  rows: [row()],
  row: row(),
  sentOut: [left()],
  accepted: 1,
  requests: 1,
}
function found(key: KeyEvidence, more: Partial<Evidence> = {}, stops: { from: number; to: number }[] = []): RuleName[] {
  const now = new Date(begun + 60_000)
  const evidence = {
    keys: [key],
    tables: { now, messages: key.rows, keys: new Map(), due: [] },
    unclaimed: [],
    ...more,
  }
  return violationsIn(
    evidence,
    rules(leaseMs, () => stops),
  ).map(({ rule }) => rule)
}
const withRow = (more: Partial<MessageRow>): Pick<KeyEvidence, 'row' | 'rows'> => ({
  row: row(more),
  rows: [row(more)],
})

test('what went well breaks no rule', () => {
  expect(found(well)).toEqual([])
})

const rejected = { status: 422, said: 'message-rejected', sent: 'no' }
const refusedForNow = left({ answered: { status: 429, code: 'rate_limited' } })

test.each<[string, Partial<KeyEvidence>, RuleName[]]>([
  ['accepted twice', { accepted: 2 }, ['duplicate']],
  ['sent again blindly', { sentOut: [left({ answered: null }), left()] }, ['duplicate']],
  ['sent again after a refusal', { sentOut: [refusedForNow, left()] }, []],
  ['an acknowledged message is gone', { row: undefined, rows: [] }, ['lost']],
  ['told sent, and unknown now', withRow({ status: 'unknown', answer: null }), ['lost']],
  ['sent, and never accepted', { accepted: 0 }, ['false verdict', 'false verdict']],
  [
    'told not sent, and accepted',
    { heard: [heard(rejected)], ...withRow({ status: 'failed' }) },
    ['false verdict', 'false verdict'],
  ],
  ['in flight for ever', { heard: [], ...withRow({ status: 'sending', answer: null }) }, ['stuck']],
  ['queued and never due', { heard: [], ...withRow({ status: 'queued', answer: null }), accepted: 0 }, ['stuck']],
  [
    'given up although it can be asked for',
    { asked: asked('sandbox-lookup'), heard: [], ...withRow({ status: 'unknown', answer: null }) },
    ['left to a person'],
  ],
  ['two answers', { heard: [heard(), heard({ replayed: true, bytes: 'another' })] }, ['changed answer']],
  ['two first answers', { heard: [heard(), heard()] }, ['changed answer']],
  [
    'in progress after its end',
    { heard: [heard(), heard({ beganMs: begun + 200, status: 409, said: 'in-progress', bytes: null })] },
    ['changed answer'],
  ],
  ['two messages', { heard: [heard(), heard({ messageId: 'msg_2', replayed: true })] }, ['claimed twice']],
  ['a zombie writes', { sentOut: [left({ at: begun + leaseMs })] }, ['began too late']],
  ['too late for it', withRow({ notAfter: new Date(begun - 5_000) }), ['began too late']],
  [
    'other bytes',
    { asked: asked('sandbox-keyed'), sentOut: [left(), left({ digest: 'e' })] },
    ['other bytes under one key'],
  ],
  [
    'another body is sent',
    { heard: [heard(), heard({ operation: 'send otherwise', replayed: true })] },
    ['other message under one key'],
  ],
  ['a fault of ours', { heard: [heard({ status: 500, said: 'internal-error' })] }, ['undocumented answer']],
  ['an answer that took for ever', { heard: [heard({ endedMs: begun + 20_000 })] }, ['late answer']],
])('the checker finds: %s', (_, key, broken) => {
  expect(found({ ...well, ...key })).toEqual(broken)
})

test('an answer is not late while its process is stopped', () => {
  const stopped = [{ from: begun + 10, to: begun + 19_000 }]
  expect(found({ ...well, heard: [heard({ endedMs: begun + 20_000 })] }, {}, stopped)).toEqual([])
})

test('what left without a claim is found', () => {
  expect(found(well, { unclaimed: ['msg_2'] })).toEqual(['sent without a claim'])
})

test('the same seed asks for the same', () => {
  const told = (seed: number): string => askedUnder(seed, 7, chanceFrom(seed)).body
  expect(told(3)).toBe(told(3))
  expect(told(3)).not.toBe(told(4))
})

test.each([['--seconds', '1'], ['--gateways', 'many'], ['--seed', '-1'], ['--hard']])(
  'a mistake in the flags is told before anything is started: %s %s',
  (...flags) => {
    expect(() => planFrom(flags, () => 1)).toThrow(flags[0])
  },
)

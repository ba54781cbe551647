/** How a message that is unknown is shown: answer, view and time line (api.md, "The answer follows from the status"). */
import { describe, expect, test } from 'vitest'
import { answerFor } from '../../src/core/answer.ts'
import type { Message } from '../../src/core/message.ts'
import { messageView } from '../../src/core/message-view.ts'
import {
  after,
  asked,
  attempt,
  begin,
  blind,
  both,
  ended,
  keyed,
  linesAfter,
  look,
  messageIn,
  nameOf,
  outcomeOf,
  play,
  states,
  uuid,
} from './fixtures.ts'

const hourMs = 3_600_000
const sending = messageIn(states.sending, { notAfter: after(1_000 * hourMs), rendered: 'as it was sent' })
const outcome = (number: number, kind: Parameters<typeof outcomeOf>[1], means = both) =>
  outcomeOf(attempt(number), kind, undefined, means)
const unknown = play(sending, outcome(1, 'unknown', asked))
const replaying = play(sending, outcome(1, 'unknown'), begin(2, both))
const twoLost = play(replaying, outcome(2, 'unknown'))
const refused = play(replaying, outcome(2, 'rejected'))

describe('what is shown of it', () => {
  const id = (number: number) => `att_${uuid(number).replaceAll('-', '')}`
  const asker = { claimed: true, async: false }
  const answerOf = (message: Message) => {
    const { status, retryAfterS, body } = answerFor(message, asker, after(9_000))
    const { retryable, sent, detail } = JSON.parse(body) as Record<string, unknown>
    return { status, retryAfterS, retryable, sent, detail }
  }

  test.each<[string, Message, { says: string; retryable: boolean; retryAfterS: number | null }]>([
    [
      'a look that is due',
      play(unknown, look('failed')),
      { retryable: true, retryAfterS: 2, says: 'asks the provider whether' },
    ],
    [
      'a repeat that is due',
      play(sending, outcomeOf(attempt(), 'unknown', after(8_000), keyed)),
      { retryable: true, retryAfterS: 1, says: 'same key' },
    ],
    [
      'no step',
      play(sending, outcome(1, 'unknown', blind)),
      { retryable: false, retryAfterS: null, says: 'Nothing is sent again by itself' },
    ],
  ])('A1 with %s is a 504 that says so', (_, message, { says, ...expected }) => {
    const { detail, ...answer } = answerOf(message)
    expect(answer).toEqual({ status: 504, sent: 'maybe', ...expected })
    expect(detail).toContain(says)
  })

  test('is its plan with what is known, and which attempts are open', () => {
    const detail = 'No answer was read.'
    const [at, givesUpAt] = ['2026-12-01T09:00:03.700Z', '2026-12-02T08:00:01.000Z']
    expect(messageView(twoLost)).toMatchObject({
      status: 'unknown',
      plan: { step: 'replay', at, givesUpAt, steps: 1, lastEvidence: detail },
      openAttempts: [id(1), id(2)],
      resolution: null,
    })
    expect(messageView(replaying)).toMatchObject({ status: 'sending', plan: null, openAttempts: [id(1)] })
    expect(messageView(refused)).toMatchObject({ plan: { step: 'look' }, openAttempts: [id(1)] })
    expect(messageView(play(unknown, look('absent', { absence: 'proven' })))).toMatchObject({
      status: 'queued',
      plan: null,
      openAttempts: [],
      resolution: { by: 'lookup', attempt: id(1), outcome: 'not_sent', apiKey: null, evidence: null },
    })
  })

  test('is told in the time line, with each warrant and each look', () => {
    const start = messageIn(states.sending, { rendered: 'as it was sent' })
    const events = [outcome(1, 'unknown'), begin(2, both), outcome(2, 'rejected')]
    const of = ended('rejected', 2)
    const looks = [look('absent', { of, means: both }), look('found', { of, means: both, at: after(10_000) })]
    const { lines } = linesAfter(start, ...events, ...looks)
    expect(lines.map(nameOf)).toEqual(
      'claimed,attempt_started 1,attempt_ended 1,attempt_started 2,warranted 2,attempt_ended 2,looked 2,looked 2'.split(
        ',',
      ),
    )
    expect(lines.map(({ data }) => data)).toMatchObject([
      {},
      {},
      { outcome: 'unknown' },
      { number: 2 },
      { warrant: 'key', for: 1 },
      { outcome: 'rejected' },
      { result: 'absent', absence: 'early', httpStatus: 200 },
      { result: 'found' },
    ])
    expect(lines.at(-1)?.data).not.toHaveProperty('absence')
  })
})

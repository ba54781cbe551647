/**
 * Status -> HTTP answer: the table of api.md as a function, for the first request and for every repeat alike. Final
 * answers are made once, stored in the commit that made the message final, and given out unchanged afterwards.
 *
 * A1. The first answer and each replay of a final message have the same status, Content-Type, Location and bytes.
 * A2. `in-progress` is the only answer of this table to a repeat that is not marked as replayed.
 */
import { idFromUuid } from './ids.ts'
import { isFinal, sentOf, type Message, type ShownMessage, type State, type StoredAnswer } from './message.ts'
import { messageReference, messageView } from './message-view.ts'
import { problemBody, type ProblemType } from './problems.ts'

export const jsonType = 'application/json; charset=utf-8'
export const problemType = 'application/problem+json; charset=utf-8'

export interface Answer extends StoredAnswer {
  readonly retryAfterS: number | null
  readonly replayed: boolean
}

export interface Asker {
  /** This request made the claim; every other one is a repeat. */
  readonly claimed: boolean
  /** `Prefer: respond-async`. */
  readonly async: boolean
}

export const messagePath = (message: ShownMessage): string => `/v1/messages/${idFromUuid('message', message.id)}`

export function answerFor(message: Message, asker: Asker, now: Date): Answer {
  const replayed = !asker.claimed
  const { state } = message
  switch (state.status) {
    case 'sent':
    case 'failed':
    case 'canceled':
      if (message.answer === null) throw new Error(`message ${message.id} is ${state.status} without its answer`)
      return { ...message.answer, retryAfterS: null, replayed }
    case 'unknown': {
      const retryAfterS = state.plan === null ? null : secondsUntil(state.plan.at, now)
      return { ...problemAnswer(message, 'outcome-unknown', whatFollows(state)), retryAfterS, replayed }
    }
    case 'sending':
      return asker.claimed || asker.async
        ? { ...accepted(message), retryAfterS: 1, replayed }
        : { ...problemAnswer(message, 'in-progress', null), retryAfterS: 1, replayed: false }
    case 'held':
      return { ...accepted(message), retryAfterS: askAgainS, replayed }
    case 'scheduled':
      return { ...accepted(message), retryAfterS: secondsUntil(state.sendAt, now), replayed }
    case 'queued':
      return { ...accepted(message), retryAfterS: secondsUntil(state.dueAt, now), replayed }
  }
}

/** The answer that is stored. @throws if the message is not final */
export function finalAnswer(message: Message): StoredAnswer {
  const { state } = message
  if (!isFinal(state.status)) throw new Error(`a message that is ${state.status} has no final answer`)
  if (state.status === 'sent') return { ...accepted(message), status: 201 }
  if (state.status === 'canceled') return problemAnswer(message, 'message-canceled', whyCanceled(state))
  if (state.status === 'failed' && state.reason === 'expired')
    return problemAnswer(
      message,
      'message-expired',
      `No provider accepted it before ${message.notAfter.toISOString()}.`,
    )
  return problemAnswer(message, 'message-rejected', whyRejected(message))
}

function whyCanceled({ reason }: Extract<State, { status: 'canceled' }>): string | null {
  switch (reason) {
    case 'declined':
      return 'A person declined it.'
    case 'lapsed':
      return 'Nobody approved it before notAfter.'
    case 'conversation_changed':
      return 'The conversation moved on before it left: read it again, and send only what is still needed.'
    case null:
      return null
  }
}

function whatFollows({ plan }: Extract<State, { status: 'unknown' }>): string {
  if (plan === null) return 'Nothing is sent again by itself.'
  return plan.step === 'replay'
    ? 'The gateway repeats the call under the same key of the provider, which does not send twice for it.'
    : 'The gateway asks the provider whether it has the message.'
}

function whyRejected({ state }: Message): string {
  if (state.status !== 'failed') return ''
  if (state.reason === 'resolved_not_sent') return 'A person settled that it was not sent.'
  const evidence = state.last?.evidence
  const code = evidence?.code === undefined ? '' : ` (${evidence.code})`
  const why = evidence?.detail ?? 'no reason given'
  return `The provider refused it${code}: ${why}${why.endsWith('.') ? '' : '.'}`
}

function accepted(message: Message): StoredAnswer {
  return {
    status: 202,
    contentType: jsonType,
    location: messagePath(message),
    body: JSON.stringify(messageView(message)),
  }
}

function problemAnswer(message: Message, type: ProblemType, detail: string | null): StoredAnswer {
  const { state } = message
  const body = problemBody(type, messagePath(message), detail, {
    sent: sentOf(state.status),
    message: messageReference(message),
    ...(state.status === 'unknown' && state.plan !== null ? { retryable: true } : {}),
  })
  return { status: body.status, contentType: problemType, location: null, body: JSON.stringify(body) }
}

/** Of a message that waits for a person. */
const askAgainS = 60
const maxRetryAfterS = 3600
const secondsUntil = (at: Date, now: Date): number =>
  Math.min(Math.max(Math.ceil((at.getTime() - now.getTime()) / 1000), 1), maxRetryAfterS)

/**
 * A problem of the gateway as an agent needs it: what happened, and the one thing to do next. The catalogue's own advice
 * is for callers who choose their keys; an agent's tool makes the key, so what is said of keys is left out here.
 *
 * P1. One sentence says what to do next, and none ever proposes another intent, other words or another way round:
 *     a model that was refused would take it, and the same thing would be said twice. `replaces` is named only for what
 *     will never be sent.
 * P2. No problem tells the present version of a conversation: reading it is the only way to learn it.
 * P3. A type that is not known here (a newer gateway's) is judged by `retryable` alone.
 */
import { problems } from '../core/problems.ts'
import type { ApiReference } from './api-shapes.ts'
import type { CallAnswer } from './call.ts'

export interface AgentProblem {
  /** The last part of the problem's URI; `no-answer`: nothing came back. */
  readonly type: string
  readonly title: string
  readonly happened: string
  readonly sent: 'yes' | 'no' | 'maybe' | null
  /** Is it of use to make the same call with the same arguments again? */
  readonly retryable: boolean
  readonly retryAfterSeconds: number | null
  readonly message: ApiReference | null
  readonly errors: readonly { readonly pointer: string; readonly detail: string }[]
}

export const readAgain = 'read the conversation again with read_conversation, and propose only if it is still needed'
/** Of what came to nothing: nobody is asked twice for it unless they want to be. */
export const ifAskedAgain = (id: string): string =>
  `tell a person, and only if they ask for it again, propose it after a new reading with \`replaces\` set to ${id}`
const first = ({ message }: AgentProblem): string =>
  message === null ? 'the first message' : `${message.id} (${message.status})`
const ask = ({ message }: AgentProblem): string =>
  message === null ? 'the first message' : `${message.id} with get_message`
const repeat = ({ retryAfterSeconds }: AgentProblem): string =>
  `make the same call with the same arguments again${retryAfterSeconds === null ? '' : ` after ${retryAfterSeconds} s`}`

type Advice = (problem: AgentProblem) => string

const safeToRepeat: Advice = (problem) => `It is safe to ${repeat(problem)}: it cannot be sent twice by that.`
const tellAPerson: Advice = () => 'Tell a person what happened, and do not try to get it through another way.'

/** What to do next, by type. */
const advice: Readonly<Record<string, Advice>> = {
  'invalid-request': () =>
    'Correct what `errors` names, and call again with the same conversation, version and intent.',
  unauthorized: () => 'Tell a person that the API key of this connection is not accepted; nothing was done.',
  forbidden: () => 'Tell a person that the API key of this connection may not do this.',
  'policy-refused': () => 'Tell a person: the policy of this API key does not allow it, and you cannot change that.',
  'not-found': () => 'Check the id: there is nothing of that name that this API key may see.',
  'in-progress': (problem) =>
    `The first call is still being worked on: ${repeat(problem)}, and propose nothing else for it meanwhile.`,
  'too-late': (problem) => `It cannot be replaced any more: ask ${ask(problem)} what became of it.`,
  'key-void': () => 'It was ruled out for good and nothing is sent: do not propose it again.',
  'result-expired': (problem) => `It ended long ago as ${first(problem)}: do not send it again.`,
  'message-canceled': (problem) =>
    `It was canceled and nothing was sent: ask ${ask(problem)} why, and if a person declined it, do not propose it again.`,
  'possible-duplicate': (problem) =>
    `Do not send this again, in these or in other words: ${first(problem)} is for the same, and get_message tells how it stands.`,
  'conversation-changed': () => `The conversation has moved on since you read it: ${readAgain}.`,
  'conversation-version-required': () => `Nothing was sent: ${readAgain}.`,
  'request-timeout': safeToRepeat,
  'payload-too-large': () => 'Say it in less, and call again with the same conversation, version and intent.',
  'idempotency-key-reused': (problem) =>
    `A message for this intent was proposed at this version already: look at ${ask(problem)}, and do not propose it again in other words.`,
  'no-provider': () => 'Tell a person that no provider is set up for this; if you named a provider, leave it out.',
  'message-rejected': () =>
    'Nothing was sent, because the provider refuses it: tell a person, and if they correct it, read the conversation again before you propose it.',
  'message-expired': ({ message }) => `Nothing was sent in time: ${ifAskedAgain(message?.id ?? 'its id')}.`,
  'rate-limited': safeToRepeat,
  'internal-error': safeToRepeat,
  'store-unavailable': safeToRepeat,
  overloaded: safeToRepeat,
  'shutting-down': safeToRepeat,
  'no-answer': safeToRepeat,
  'outcome-unknown': (problem) =>
    `The provider may have it, so do not send it again, in these or in other words: ask ${ask(problem)} later what became of it.`,
}

export function nextAfter(problem: AgentProblem): string {
  const known = Object.hasOwn(advice, problem.type) ? advice[problem.type] : undefined
  return (known ?? (problem.retryable ? safeToRepeat : tellAPerson))(problem)
}

/** @param json the body of an answer that is no success */
export function problemOf({ status, headers, json }: CallAnswer): AgentProblem {
  const { type, title, detail, sent, retryable, message, errors } = (json ?? {}) as Readonly<Record<string, unknown>>
  if (typeof type !== 'string' || typeof title !== 'string')
    return noAnswer(`Something that is no gateway answered with HTTP ${status}.`, 'maybe')
  const name = type.replace(/^.*\//, '')
  const { id, status: messageStatus } = (message ?? {}) as Readonly<Record<string, unknown>>
  const listed = Array.isArray(errors) ? (errors as AgentProblem['errors']) : []
  return {
    type: name,
    title,
    happened: happened(name, title, detail, listed),
    sent: sent === 'yes' || sent === 'no' || sent === 'maybe' ? sent : null,
    retryable: retryable === true,
    retryAfterSeconds: secondsOf(headers['retry-after']),
    message: typeof id === 'string' && typeof messageStatus === 'string' ? { id, status: messageStatus } : null,
    errors: name === 'invalid-request' ? listed.map(({ pointer, detail: what }) => ({ pointer, detail: what })) : [],
  }
}

export const noAnswer = (what: string, sent: AgentProblem['sent']): AgentProblem => ({
  type: 'no-answer',
  title: 'The gateway did not answer',
  happened: what,
  sent,
  retryable: true,
  retryAfterSeconds: null,
  message: null,
  errors: [],
})

/** Types whose detail tells more than their title, and nothing of keys or versions (P2). */
const telling = new Set([
  'invalid-request',
  'forbidden',
  'policy-refused',
  'message-rejected',
  'no-provider',
  'payload-too-large',
])

/** The detail less the catalogue's advice; a detail that ends otherwise is a newer gateway's, and its title is enough. */
function happened(name: string, title: string, detail: unknown, errors: AgentProblem['errors']): string {
  if (name === 'idempotency-key-reused' && errors.length > 0)
    return `What you propose now differs from what was proposed first: ${errors.map(({ pointer }) => pointer).join(', ')}.`
  if (name === 'invalid-request' && errors.length > 0) return `${title}.` // `errors` tell the rest
  const own = Object.hasOwn(problems, name) ? problems[name as keyof typeof problems].advice : null
  if (own === null || !telling.has(name) || typeof detail !== 'string' || !detail.endsWith(own)) return `${title}.`
  const told = detail.slice(0, -own.length).trim()
  return told === '' ? `${title}.` : told
}

const secondsOf = (header: unknown): number | null =>
  typeof header === 'string' && /^\d{1,6}$/.test(header) ? Number(header) : null

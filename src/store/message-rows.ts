/**
 * Rows and messages: the one place where a row of `messages` becomes a Message, and a Message its columns. A row that
 * no sequence of events could have made throws: better a loud error than a send on a wrong premise.
 */
import type { Environment, MessageRequest } from '../core/message-content.ts'
import { fingerprintOf, fingerprintText } from '../core/fingerprint.ts'
import {
  attemptOf,
  endedAttemptOf,
  type ApprovalDecision,
  type Attempt,
  type CanceledReason,
  type Delivery,
  type EndedAttempt,
  type HeldReason,
  type Message,
  type ShownMessage,
  type OpenAttempt,
  type Plan,
  type Proof,
  type Resolution,
  type State,
} from '../core/message.ts'
import type { Evidence, OutcomeKind } from '../core/outcome.ts'
import type { Message as FullRow } from './generated/client.ts'

/** A row as it is read: what the guard alone asks for stays in the data base. */
export type MessageRow = Omit<FullRow, 'contentHash'>

/** Prisma's field names, in the order of `selectMessage`. The data base name is the same in snake case. */
const fields = [
  'id',
  'accountId',
  'environment',
  'idempotencyKey',
  'request',
  'fingerprintVersion',
  'metadata',
  'channel',
  'recipient',
  'conversation',
  'reference',
  'intent',
  'intentGuard',
  'provider',
  'traceparent',
  'createdAt',
  'updatedAt',
  'sendAt',
  'notAfter',
  'version',
  'status',
  'failedReason',
  'attempts',
  'attemptId',
  'attemptProvider',
  'attemptStartedAt',
  'leaseUntil',
  'attemptEndedAt',
  'outcome',
  'evidence',
  'dueAt',
  'providerMessageId',
  'sentAt',
  'resolution',
  'answerStatus',
  'attemptNumber',
  'attemptIdentity',
  'openAttempts',
  'plan',
  'rendered',
  'delivery',
  'proof',
  'apiKeyId',
  'heldFor',
  'decision',
  'canceledReason',
  'conversationVersion',
  'possibleDuplicateOf',
  'allowedProviders',
] as const satisfies readonly (keyof FullRow)[]

const snake = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** `m.account_id AS "accountId", …` for a table alias `m`: raw rows look like Prisma's. */
export const selectMessage = fields.map((name) => `m.${snake(name)} AS "${name}"`).join(', ')

/** The stored answer, as `selectAnswer` reads it beside the row. */
interface AnswerRow {
  answerContentType: string | null
  answerLocation: string | null
  answerBody: string | null
}
export type MessageRowWithAnswer = MessageRow & AnswerRow

/** For a table alias `w` of answers, joined to `m`. */
export const selectAnswer =
  'w.content_type AS "answerContentType", w.location AS "answerLocation", w.body AS "answerBody"'
export const joinAnswer = 'LEFT JOIN answers w ON w.message_id = m.id'

/** A message whole, with its stored answer if it is final. */
export function messageFromRow(row: MessageRowWithAnswer): Message {
  const { answerStatus: status, answerContentType: contentType, answerLocation: location, answerBody: body } = row
  const { rendered } = row
  const proof = row.proof === null ? null : (JSON.parse(row.proof, dates) as Proof)
  if (status === null) return { ...shownFromRow(row), answer: null, rendered, proof }
  if (contentType === null || body === null) throw impossible(row, 'its answer is missing')
  return { ...shownFromRow(row), answer: { status, contentType, location, body }, rendered, proof }
}

/** What is shown of a message needs no stored answer. */
export function shownFromRow(row: MessageRow): ShownMessage {
  return {
    id: row.id,
    account: row.accountId,
    environment: row.environment as Environment,
    idempotencyKey: row.idempotencyKey,
    fingerprint: fingerprintText(fingerprintOf(row.request, row.fingerprintVersion)),
    request: JSON.parse(row.request) as MessageRequest,
    canonical: row.request,
    metadata: JSON.parse(row.metadata) as Message['metadata'],
    provider: row.provider,
    allowedProviders: row.allowedProviders === null ? null : (JSON.parse(row.allowedProviders) as string[]),
    sentBy: row.apiKeyId,
    heldFor: row.heldFor as HeldReason | null,
    decision: row.decision === null ? null : (JSON.parse(row.decision, dates) as ApprovalDecision),
    conversationVersion: row.conversationVersion,
    possibleDuplicateOf: row.possibleDuplicateOf,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
    sendAt: row.sendAt,
    notAfter: row.notAfter,
    traceparent: row.traceparent,
    version: row.version,
    attempts: row.attempts,
    open: row.openAttempts === null ? [] : (JSON.parse(row.openAttempts, dates) as OpenAttempt[]),
    resolution: row.resolution === null ? null : (JSON.parse(row.resolution, dates) as Resolution),
    delivery: row.delivery === null ? null : (JSON.parse(row.delivery, dates) as Delivery),
    state: stateFromRow(row),
  }
}

function present<Name extends keyof MessageRow>(row: MessageRow, name: Name): NonNullable<MessageRow[Name]> {
  const value = row[name]
  if (value === null || value === undefined) throw impossible(row, `${name} is missing`)
  return value
}

const impossible = (row: MessageRow, why: string): Error => new Error(`message ${row.id}, ${row.status}: ${why}`)

function stateFromRow(row: MessageRow): State {
  const { status } = row as { status: State['status'] }
  switch (status) {
    case 'held':
      return { status }
    case 'scheduled':
      return { status, sendAt: present(row, 'sendAt') }
    case 'queued':
      return { status, last: lastAttempt(row), dueAt: present(row, 'dueAt') }
    case 'sending':
      return { status, attempt: runningAttempt(row) }
    case 'unknown':
      return {
        status,
        attempt: endedAttempt(row),
        plan: row.plan === null ? null : (JSON.parse(row.plan, dates) as Plan),
      }
    case 'sent':
      return {
        status,
        attempt: endedAttempt(row),
        providerMessageId: row.providerMessageId,
        sentAt: present(row, 'sentAt'),
      }
    case 'failed': {
      const reason = present(row, 'failedReason') as Extract<State, { status: 'failed' }>['reason']
      return { status, reason, last: lastAttempt(row) }
    }
    case 'canceled':
      return { status, reason: row.canceledReason as CanceledReason | null, last: lastAttempt(row) }
  }
}

function runningAttempt(row: MessageRow): Attempt {
  return {
    id: present(row, 'attemptId'),
    number: present(row, 'attemptNumber'),
    provider: present(row, 'attemptProvider'),
    identity: row.attemptIdentity ?? '',
    startedAt: present(row, 'attemptStartedAt'),
    leaseUntil: present(row, 'leaseUntil'),
  }
}

function endedAttempt(row: MessageRow): EndedAttempt {
  return {
    ...runningAttempt(row),
    endedAt: present(row, 'attemptEndedAt'),
    outcome: present(row, 'outcome') as OutcomeKind,
    evidence: JSON.parse(present(row, 'evidence')) as Evidence,
  }
}

const lastAttempt = (row: MessageRow): EndedAttempt | null => (row.attemptId === null ? null : endedAttempt(row))

/** The members of our own JSON columns that are times. */
const times: readonly string[] = ['at', 'givesUpAt', 'startedAt', 'leaseUntil'] satisfies (
  | keyof Plan
  | keyof OpenAttempt
  | keyof Resolution
  | keyof Delivery
  | keyof Proof
  | keyof ApprovalDecision
)[]
const dates = (name: string, value: unknown): unknown =>
  typeof value === 'string' && times.includes(name) ? new Date(value) : value

/** The columns that a change of state may change. `leaseUntil` is not among them: the data base's clock sets it. */
export function stateColumns(message: Message) {
  const { state, answer, open, resolution } = message
  const attempt = attemptOf(state)
  const ended = endedAttemptOf(state)
  const plan = state.status === 'unknown' ? state.plan : null
  return {
    status: state.status,
    failedReason: state.status === 'failed' ? state.reason : null,
    attempts: message.attempts,
    attemptId: attempt?.id ?? null,
    attemptProvider: attempt?.provider ?? null,
    attemptStartedAt: attempt?.startedAt ?? null,
    attemptEndedAt: ended?.endedAt ?? null,
    outcome: ended?.outcome ?? null,
    evidence: ended === null ? null : JSON.stringify(ended.evidence),
    dueAt: state.status === 'queued' ? state.dueAt : null,
    providerMessageId: state.status === 'sent' ? state.providerMessageId : null,
    sentAt: state.status === 'sent' ? state.sentAt : null,
    resolution: resolution === null ? null : JSON.stringify(resolution),
    answerStatus: answer?.status ?? null,
    attemptNumber: attempt?.number ?? null,
    attemptIdentity: attempt?.identity ?? null,
    openAttempts: open.length === 0 ? null : JSON.stringify(open),
    plan: plan === null ? null : JSON.stringify(plan),
    rendered: message.rendered,
    delivery: message.delivery === null ? null : JSON.stringify(message.delivery),
    proof: message.proof === null ? null : JSON.stringify(message.proof),
    decision: message.decision === null ? null : JSON.stringify(message.decision),
    canceledReason: state.status === 'canceled' ? state.reason : null,
  }
}

/** A failed or canceled message gives its intent free, and never takes it back: another may have it by then. */
export const guardsIntent = (message: Message): boolean =>
  message.state.status !== 'failed' && message.state.status !== 'canceled'

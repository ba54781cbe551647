/**
 * What a tool answers: plain sentences for a model, and the same as data. Owns the shapes of it.
 *
 * R1. Each result says what there is, and in one sentence what to do next; the data has both parts too.
 * R2. A problem is an error of the tool (`isError`), never of the protocol: the model is to read it.
 */
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { Type, type Static, type TSchema } from 'typebox'
import { nullable, strict } from '../http/schema-parts.ts'
import type { ApiMessage } from './api-shapes.ts'
import { nextAfter, type AgentProblem } from './problems.ts'

const reference = Type.Object({ id: Type.String(), status: Type.String() }, strict)

export const problemShape = Type.Object(
  {
    type: Type.String({ description: 'Which problem; `no-answer`: the gateway did not answer.' }),
    title: Type.String(),
    happened: Type.String(),
    sent: nullable(Type.Enum(['yes', 'no', 'maybe']), {
      description: 'Was or will anything be sent by this call? Null: it does not tell.',
    }),
    retryable: Type.Boolean({ description: 'Is it of use to make the same call with the same arguments again?' }),
    retryAfterSeconds: nullable(Type.Integer()),
    message: nullable(reference, { description: 'The first message, where there is one.' }),
    errors: Type.Array(Type.Object({ pointer: Type.String(), detail: Type.String() }, strict), {
      description: 'What is wrong with the arguments.',
    }),
  },
  strict,
)

/** A message as agents are shown it. The version that its claim found is left out: reading is the way to one. */
export const messageShape = Type.Object(
  {
    id: Type.String(),
    status: Type.String({
      description:
        'held (a person decides), scheduled, queued, sending, sent (the provider accepted it), unknown (it may have been sent), failed, canceled.',
    }),
    statusReason: nullable(Type.String(), { description: 'Why, in a word, where the status does not say it all.' }),
    conversation: nullable(Type.String()),
    intent: nullable(Type.String()),
    channel: Type.String(),
    to: Type.String(),
    said: Type.String(),
    createdAt: Type.String(),
    sendAt: nullable(Type.String(), { description: 'Not before.' }),
    notAfter: Type.String({ description: 'Never sent after.' }),
    sentAt: nullable(Type.String()),
    delivery: nullable(Type.Object({ status: Type.String(), at: Type.String() }, strict)),
    possibleDuplicateOf: nullable(Type.String(), { description: 'The message that it seems to repeat.' }),
    overtaken: Type.Boolean({
      description: 'It waits, and will not be sent: the conversation has moved on since it was proposed.',
    }),
  },
  strict,
)
export type ShownMessage = Static<typeof messageShape>

/** @param version at which its conversation is now; null: it is not known */
export function shown(message: ApiMessage, version: number | null): ShownMessage {
  const { id, status, statusReason, conversation, intent, channel, to, createdAt, sendAt, notAfter, sentAt } = message
  const { content, delivery, possibleDuplicateOf = null, conversationVersion = null } = message
  const waits = status === 'held' || status === 'scheduled'
  return {
    id,
    status,
    statusReason,
    conversation,
    intent,
    channel,
    to,
    said: saidIn(content),
    createdAt,
    sendAt,
    notAfter,
    sentAt,
    delivery: delivery === null ? null : { status: delivery.status, at: delivery.at },
    possibleDuplicateOf,
    overtaken: waits && version !== null && conversationVersion !== null && conversationVersion < version,
  }
}

/** What a content says, as text; attachments by name. */
function saidIn(content: unknown): string {
  const { subject, title, text, body, html, attachments, ...more } = (content ?? {}) as Record<string, unknown>
  const names = Array.isArray(attachments)
    ? (attachments as { filename: string }[]).map(({ filename }) => `[attached: ${filename}]`)
    : []
  const parts = [subject ?? title, text ?? body ?? html].filter((part) => typeof part === 'string')
  return [...parts, ...names].join('\n\n') || JSON.stringify(more)
}

/** The shape of a tool's result: its own part, or a problem. */
export const resultShape = (name: string, shape: TSchema) =>
  Type.Object(
    {
      [name]: nullable(shape, { description: 'Null: there was a problem.' }),
      problem: nullable(problemShape),
      next: Type.String({ description: 'What to do next.' }),
    },
    strict,
  )

export const good = (name: string, value: unknown, text: string, next: string): CallToolResult => ({
  content: [{ type: 'text', text: `${text}\n${next}` }],
  structuredContent: { [name]: value, problem: null, next },
})

/** @param name of the part that there is not */
export function bad(name: string, problem: AgentProblem): CallToolResult {
  const next = nextAfter(problem)
  const { type, sent, retryable, errors } = problem
  const told = [
    problem.happened,
    ...errors.map(({ pointer, detail }) => `${pointer === '' ? '' : `${pointer}: `}${detail.replace(/\.$/, '')}.`),
    `(${type}; sent: ${sent ?? 'not told'}; retryable: ${retryable ? 'yes' : 'no'})`,
  ]
  return {
    isError: true,
    content: [{ type: 'text', text: `${told.join(' ')}\n${next}` }],
    structuredContent: { [name]: null, problem, next },
  }
}

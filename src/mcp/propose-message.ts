/**
 * The tools propose_message and check_message: one request, sent or only judged. And get_message, which tells what came
 * of it in the same words.
 *
 * M1. The key is the tool's: a hash of conversation, intent and version. Asked twice after one reading, a model finds its
 *     first message again, reworded or not; after a new reading, the intent does.
 * M2. The version goes into If-Match, never into the body: a repeat is the same request, byte for byte.
 */
import { createHash } from 'node:crypto'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { Type } from 'typebox'
import { nullable, strict } from '../http/schema-parts.ts'
import type { ApiCheck, ApiMessage, ApiReference } from './api-shapes.ts'
import type { Call } from './call.ts'
import type { GetInput, Proposal } from './inputs.ts'
import { nextAfter, problemOf, readAgain } from './problems.ts'
import { bad, good, problemShape, shown, type ShownMessage } from './results.ts'

export const keyOf = ({ conversation, intent, version }: Proposal): string =>
  `mcp:v1:${createHash('sha256')
    .update(JSON.stringify([conversation, intent, version]))
    .digest('hex')}`

function requestOf(proposal: Proposal): [headers: Record<string, string>, body: object] {
  const { version, ...body } = proposal
  return [{ 'idempotency-key': `"${keyOf(proposal)}"`, 'if-match': `"${version}"` }, body]
}

export async function proposeMessage(call: Call, proposal: Proposal): Promise<CallToolResult> {
  const answer = await call('POST', '/v1/messages', ...requestOf(proposal))
  if (answer.status !== 201 && answer.status !== 202) return bad('message', problemOf(answer))
  const message = shown(answer.json as ApiMessage)
  const before = answer.headers['idempotent-replayed'] === 'true' ? 'You had proposed this before. ' : ''
  return good('message', message, `${before}${stateOf(message)}`, nextOf(message))
}

export async function getMessage(call: Call, { id }: GetInput): Promise<CallToolResult> {
  const answer = await call('GET', `/v1/messages/${id}`)
  if (answer.status !== 200) return bad('message', problemOf(answer))
  const message = shown(answer.json as ApiMessage)
  return good('message', message, stateOf(message), nextOf(message))
}

function stateOf({
  id,
  status,
  statusReason,
  to,
  sendAt,
  sentAt,
  delivery,
  possibleDuplicateOf,
}: ShownMessage): string {
  const why = statusReason === null ? '' : ` (${statusReason})`
  const when = status === 'scheduled' && sendAt !== null ? ` for ${sendAt}` : sentAt === null ? '' : ` at ${sentAt}`
  const receipt = delivery === null ? '' : ` Its receipt says: ${delivery.status}.`
  const twin = possibleDuplicateOf === null ? '' : ` It seems to repeat ${possibleDuplicateOf}.`
  return `Message ${id} to ${to} is ${status}${why}${when}.${receipt}${twin}`
}

/** What to do about a message, by its status; one sentence each (problems.ts, P1). */
function nextOf({ id, status, statusReason }: ShownMessage): string {
  switch (status) {
    case 'held':
      return `A person decides about it: do not propose it again, in these or in other words, and ask get_message for ${id} what they decided.`
    case 'scheduled':
    case 'queued':
    case 'sending':
      return `It goes out by itself: do not propose it again, and ask get_message for ${id} what became of it.`
    case 'sent':
      return 'It is done: do not send it again, in these or in other words.'
    case 'unknown':
      return `It may have been sent, so do not send it again, in these or in other words: ask get_message for ${id} later what became of it.`
    case 'failed':
      return `Nothing was sent: tell a person, and if it is to be tried once more, ${readAgain}.`
    case 'canceled':
      return statusReason === 'conversation_changed'
        ? `Nothing was sent, because the conversation moved on before it left: ${readAgain}.`
        : statusReason === 'declined'
          ? 'A person declined it: do not propose it again, in these or in other words.'
          : 'Nothing was sent: tell a person, and do not propose it again unless they ask for it.'
    default:
      return `Do not propose it again: ask get_message for ${id} later what became of it.`
  }
}

export const checkShape = Type.Object(
  {
    verdict: Type.String({
      description:
        'What propose_message would do now: send, schedule, hold (a person decides), repeat (you have proposed it already), refuse.',
    }),
    reason: nullable(Type.String()),
    problem: nullable(problemShape, { description: 'By which it would be refused.' }),
    message: nullable(Type.Object({ id: Type.String(), status: Type.String() }, strict), {
      description: 'The message that it repeats, or seems to repeat.',
    }),
    provider: nullable(Type.String()),
    text: nullable(
      Type.Object({ encoding: Type.String(), characters: Type.Integer(), segments: Type.Integer() }, strict),
      {
        description: 'Of an sms: how long it is.',
      },
    ),
  },
  strict,
)

export async function checkMessage(call: Call, proposal: Proposal): Promise<CallToolResult> {
  const answer = await call('POST', '/v1/messages/check', ...requestOf(proposal))
  if (answer.status !== 200) return bad('check', problemOf(answer))
  const { verdict, reason, problem: refused, key, intent, duplicate, provider, text } = answer.json as ApiCheck
  const problem = refused === null ? null : problemOf({ status: 0, headers: {}, json: refused })
  const twin = referenceOf(key?.message ?? intent?.message ?? duplicate?.message ?? problem?.message ?? null)
  const check = {
    verdict,
    // Why it would be refused is told by the problem, whose words are chosen for agents (problems.ts).
    reason: problem === null ? reason : problem.happened,
    problem,
    message: twin,
    provider,
    text: text === null ? null : { encoding: text.encoding, characters: text.characters, segments: text.segments },
  }
  const next = problem === null ? nextOfVerdict(verdict, twin) : nextAfter(problem)
  const about = twin === null ? '' : ` See ${twin.id} (${twin.status}).`
  return good('check', check, `Nothing was sent by this check. Verdict: ${verdict}. ${check.reason}${about}`, next)
}

const referenceOf = (message: ApiReference | null): ApiReference | null =>
  message === null ? null : { id: message.id, status: message.status }

function nextOfVerdict(verdict: string, twin: ApiReference | null): string {
  switch (verdict) {
    case 'send':
    case 'schedule':
      return 'If it is to go out, call propose_message with the same arguments.'
    case 'hold':
      return twin === null
        ? 'If it is to go out, call propose_message with the same arguments, and a person will decide.'
        : `Look at ${twin.id} with get_message first: propose it only if it says something else.`
    case 'repeat':
      return `You have proposed this already: ask get_message for ${twin?.id ?? 'it'}, and do not propose it again.`
    default:
      return 'Do not propose it, and tell a person what was found.'
  }
}

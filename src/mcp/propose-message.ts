/**
 * The tool propose_message, and get_message, which tells what came of it in the same words.
 *
 * M1. The key is the tool's: a hash of conversation, intent and version. Asked twice after one reading, a model finds its
 *     first message again, reworded or not; after a new reading, the intent does.
 * M2. The version goes into If-Match, never into the body: a repeat is the same request, byte for byte.
 * M3. What will never be sent does not stand in the way for good: `replaces` names it, and is part of the key. One that
 *     still waits is canceled for it only if its conversation has moved on, and the intent lets one of both be sent.
 */
import { createHash } from 'node:crypto'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import type { ApiMessage } from './api-shapes.ts'
import type { Call, CallAnswer } from './call.ts'
import type { GetInput, Proposal } from './inputs.ts'
import { ifAskedAgain, problemOf, readAgain, type AgentProblem } from './problems.ts'
import { bad, good, shown, type ShownMessage } from './results.ts'

export const keyOf = ({ conversation, intent, version, replaces }: Proposal): string =>
  `mcp:v1:${createHash('sha256')
    .update(JSON.stringify([conversation, intent, version, ...(replaces === undefined ? [] : [replaces])]))
    .digest('hex')}`

export function requestOf(proposal: Proposal): [headers: Record<string, string>, body: object] {
  const { version, replaces: _, ...body } = proposal
  return [{ 'idempotency-key': `"${keyOf(proposal)}"`, 'if-match': `"${version}"` }, body]
}

export async function proposeMessage(call: Call, proposal: Proposal): Promise<CallToolResult> {
  const post = async (): Promise<CallAnswer> => call('POST', '/v1/messages', ...requestOf(proposal))
  const first = await post()
  const inTheWay = first.status === 409 ? await replacedBy(call, proposal, problemOf(first)) : null
  const canceled = inTheWay === null ? null : await call('POST', `/v1/messages/${inTheWay}/cancel`)
  const answer = canceled === null ? first : canceled.status === 200 ? await post() : canceled
  if (answer.status !== 201 && answer.status !== 202) return bad('message', problemOf(answer))
  const wasThere = answer.headers['idempotent-replayed'] === 'true'
  const message = wasThere ? await asItStands(call, answer) : shown(answer.json as ApiMessage, null)
  const before = wasThere ? 'This was proposed before. ' : ''
  return good('message', message, `${before}${stateOf(message)}`, nextOf(message))
}

/** The one that a proposal is refused for, where that is the one to be replaced, and will not be sent (M3); else null. */
export async function replacedBy(
  call: Call,
  { replaces }: Proposal,
  { type, message }: AgentProblem,
): Promise<string | null> {
  if (type !== 'possible-duplicate' || replaces === undefined || message?.id !== replaces) return null
  const answer = await call('GET', `/v1/messages/${replaces}`)
  return answer.status === 200 && (await asItStands(call, answer)).overtaken ? replaces : null
}

/** With what its conversation has come to, if it waits. */
async function asItStands(call: Call, { json }: CallAnswer): Promise<ShownMessage> {
  const message = json as ApiMessage
  const { status, conversation, conversationVersion = null } = message
  const waits = status === 'held' || status === 'scheduled'
  if (!waits || conversation === null || conversationVersion === null) return shown(message, null)
  const answer = await call('GET', `/v1/conversations/${encodeURIComponent(conversation)}`)
  return shown(message, answer.status === 200 ? (answer.json as { version: number }).version : null)
}

export async function getMessage(call: Call, { id }: GetInput): Promise<CallToolResult> {
  const answer = await call('GET', `/v1/messages/${id}`)
  if (answer.status !== 200) return bad('message', problemOf(answer))
  const message = await asItStands(call, answer)
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
  overtaken,
}: ShownMessage): string {
  const why = statusReason === null ? '' : ` (${statusReason})`
  const when = status === 'scheduled' && sendAt !== null ? ` for ${sendAt}` : sentAt === null ? '' : ` at ${sentAt}`
  const receipt = delivery === null ? '' : ` Its receipt says: ${delivery.status}.`
  const twin = possibleDuplicateOf === null ? '' : ` It seems to repeat ${possibleDuplicateOf}.`
  const late = overtaken ? ' It will not be sent: the conversation has moved on since it was proposed.' : ''
  return `Message ${id} to ${to} is ${status}${why}${when}.${receipt}${twin}${late}`
}

/** What to do about a message, by its status; one sentence each (problems.ts, P1). */
function nextOf({ id, status, statusReason, overtaken }: ShownMessage): string {
  if (overtaken) return `Whatever a person decides, it will not be sent: ${readAgain}, with \`replaces\` set to ${id}.`
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
      return `Nothing was sent: ${ifAskedAgain(id)}.`
    case 'canceled':
      return statusReason === 'conversation_changed'
        ? `Nothing was sent, because the conversation moved on before it left: ${readAgain}.`
        : statusReason === 'declined'
          ? 'A person declined it: do not propose it again, in these or in other words.'
          : statusReason === 'lapsed'
            ? `Nobody decided in time and nothing was sent: ${ifAskedAgain(id)}.`
            : `Nothing was sent: ${ifAskedAgain(id)}.`
    default:
      return `Do not propose it again: ask get_message for ${id} later what became of it.`
  }
}

/** The tool check_message: what would become of a proposal, by the request that propose_message would make of it. */
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { Type } from 'typebox'
import { nullable, strict } from '../http/schema-parts.ts'
import type { ApiCheck, ApiReference } from './api-shapes.ts'
import type { Call } from './call.ts'
import type { Proposal } from './inputs.ts'
import { nextAfter, problemOf, type AgentProblem } from './problems.ts'
import { replacedBy, requestOf } from './propose-message.ts'
import { bad, good, problemShape } from './results.ts'

export const checkShape = Type.Object(
  {
    verdict: Type.String({
      description:
        'What propose_message would do now: send, schedule, hold (a person decides), repeat (it is proposed already), refuse.',
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
  const { verdict, reason, problem: refused, approval, provider, text } = answer.json as ApiCheck
  const refusal = refused === null ? null : problemOf({ status: 0, headers: {}, json: refused })
  const replaced = refusal === null ? null : await replacedBy(call, proposal, refusal)
  const problem = replaced === null ? refusal : null
  const twin = replaced === null ? twinOf(answer.json as ApiCheck, problem) : null
  const check = {
    verdict: replaced === null ? verdict : approval.required ? 'hold' : 'send',
    reason:
      replaced !== null
        ? `It would take the place of ${replaced}.`
        : problem !== null
          ? problem.happened // its words are chosen for agents (problems.ts)
          : verdict === 'repeat'
            ? 'It was proposed before.'
            : reason,
    problem,
    message: twin,
    provider,
    text: text === null ? null : { encoding: text.encoding, characters: text.characters, segments: text.segments },
  }
  const next = problem === null ? nextOfVerdict(check.verdict, twin) : nextAfter(problem)
  const about = twin === null ? '' : ` See ${twin.id} (${twin.status}).`
  return good(
    'check',
    check,
    `Nothing was sent by this check. Verdict: ${check.verdict}. ${check.reason}${about}`,
    next,
  )
}

function twinOf({ key, intent, duplicate }: ApiCheck, problem: AgentProblem | null): ApiReference | null {
  const message = key?.message ?? intent?.message ?? duplicate?.message ?? problem?.message ?? null
  return message === null ? null : { id: message.id, status: message.status }
}

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
      return `It is proposed already: ask get_message for ${twin?.id ?? 'it'}, and do not propose it again.`
    default:
      return 'Do not propose it, and tell a person what was found.'
  }
}

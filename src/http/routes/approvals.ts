/** /v1/messages/{id}/approve and /decline: for persons. */
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { messageView } from '../../core/message-view.ts'
import type { Deps } from '../../deps.ts'
import { decideApproval } from '../../operations/decide-approval.ts'
import { callerOf } from '../auth.ts'
import { messageExample } from '../examples.ts'
import { headerLines } from '../header-lines.ts'
import { answers, everywhere, messageAnswer, ofBodies, problemAnswers, ref, secured } from '../openapi.ts'
import { preferencesOf } from '../prefer.ts'
import type { DecisionBody } from '../conversation-schemas.ts'
import { messageId } from '../schema-parts.ts'

const idParams = Type.Object({ id: messageId }, { additionalProperties: false })
interface Decision {
  readonly Params: { readonly id: string }
  readonly Body: DecisionBody
}

const problems = problemAnswers([
  ...ofBodies,
  'not-held',
  'fingerprint-mismatch',
  'already-decided',
  'too-late',
  'in-progress',
  ...everywhere,
])

export function approvalRoutes(app: FastifyInstance, deps: Deps): void {
  app.post<Decision>('/v1/messages/:id/approve', {
    config: { scope: 'approve' },
    schema: {
      operationId: 'approveMessage',
      tags: ['messages'],
      summary: 'Let a held message go',
      description:
        'For the API key of a person, and not of the one who sent it. Bound to the fingerprint that was shown. Waits for the outcome as a send does (`Prefer: wait=N`). Approving again is the same, and sends nothing more. If the conversation moved since the message was claimed, it is canceled instead.',
      security: secured,
      params: idParams,
      headers: { type: 'object', properties: { Prefer: { type: 'string', examples: ['wait=10'] } } },
      body: ref('Decision'),
      response: { 200: messageAnswer('It is approved: the message as it is now.', 'sent'), ...problems },
    },
    handler: async (request) => {
      const caller = callerOf(request)
      const { waitMs, async } = preferencesOf(headerLines(request.raw, 'prefer'))
      const { fingerprint } = request.body
      const by = { apiKey: caller.apiKey, from: request.ip }
      const decided = decideApproval(deps, caller, request.params.id, 'approved', fingerprint, by, async ? 0 : waitMs)
      return messageView(await decided)
    },
  })

  app.post<Decision>('/v1/messages/:id/decline', {
    config: { scope: 'approve' },
    schema: {
      operationId: 'declineMessage',
      tags: ['messages'],
      summary: 'Cancel a held message',
      description: 'Nothing is sent under its key then. Declining again is the same.',
      security: secured,
      params: idParams,
      body: ref('Decision'),
      response: { 200: answers('It is declined.', 'Message', messageExample('canceled')), ...problems },
    },
    handler: async (request) => {
      const caller = callerOf(request)
      const by = { apiKey: caller.apiKey, from: request.ip }
      return messageView(
        await decideApproval(deps, caller, request.params.id, 'declined', request.body.fingerprint, by, 0),
      )
    },
  })
}

/** /v1/idempotency-keys: "did my send go out?", and "it never will". */
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { keyFromPath, keySource } from '../../core/idempotency.ts'
import { idFromUuid } from '../../core/ids.ts'
import { sentOf } from '../../core/message.ts'
import { messageView } from '../../core/message-view.ts'
import type { Deps } from '../../deps.ts'
import { Refusal } from '../../operations/refusal.ts'
import { voidKey } from '../../operations/void-key.ts'
import type { FoundKey } from '../../store/read-messages.ts'
import { callerOf } from '../auth.ts'
import { keyExample } from '../examples.ts'
import { answers, everywhere, ofBodies, problemAnswers, secured } from '../openapi.ts'

const keyParams = Type.Object(
  { key: Type.String({ description: 'The key, without quotes, percent-encoded.' }) },
  { additionalProperties: false },
)
interface KeyParams {
  readonly key: string
}

export function keyRoutes(app: FastifyInstance, deps: Deps): void {
  app.get<{ Params: KeyParams }>('/v1/idempotency-keys/:key', {
    config: { scope: 'read' },
    schema: {
      operationId: 'getIdempotencyKey',
      tags: ['idempotency keys'],
      summary: 'Did my send go out?',
      description:
        'What stands behind a key. No side effect. 404: never seen, but a request on its way may yet arrive.',
      security: secured,
      params: keyParams,
      response: {
        200: answers('The key was seen.', 'KeyState', keyExample),
        ...problemAnswers(['idempotency-key-invalid', 'key-never-seen', ...everywhere]),
      },
    },
    handler: async (request) => {
      const key = keyOf(request.params)
      const found = await deps.store.findKey(callerOf(request), [key])
      if (found === undefined) throw new Refusal('key-never-seen')
      return { key, source: keySource(key), firstSeenAt: found.firstSeenAt.toISOString(), ...stateOf(found) }
    },
  })

  app.post<{ Params: KeyParams }>('/v1/idempotency-keys/:key/void', {
    config: { scope: 'send' },
    schema: {
      operationId: 'voidKey',
      tags: ['idempotency keys'],
      summary: 'Make sure that a key never sends',
      description:
        'Inserts a tombstone under the constraint that claims use: a request under this key, on its way or later, sends nothing.',
      security: secured,
      params: keyParams,
      response: {
        200: answers('Nothing was and nothing will be sent under this key.', 'VoidedKey', {
          key: 'order-42-shipped',
          sent: 'no',
        }),
        ...problemAnswers([...ofBodies, 'idempotency-key-invalid', 'key-taken', 'in-progress', ...everywhere]),
      },
    },
    handler: async (request) => {
      const caller = callerOf(request)
      const key = keyOf(request.params)
      await voidKey(deps, caller, key, caller.apiKey)
      return { key, sent: 'no' }
    },
  })
}

function keyOf(params: KeyParams): string {
  const parsed = keyFromPath(params.key)
  if (parsed.kind === 'key') return parsed.key
  throw new Refusal('idempotency-key-invalid', parsed.kind === 'invalid' ? parsed.detail : null)
}

function stateOf(found: FoundKey) {
  switch (found.kind) {
    case 'void':
      return { sent: 'no', message: null }
    case 'erased':
      return {
        sent: sentOf(found.lastStatus),
        message: { id: idFromUuid('message', found.messageId), status: found.lastStatus },
      }
    case 'message':
      return { sent: sentOf(found.message.state.status), message: messageView(found.message) }
  }
}

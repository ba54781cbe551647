/** /v1/api-keys: who may ask. Only keys of the caller's account and environment; each POST calls the operation of its name. */
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { grace } from '../../core/api-key.ts'
import { apiKeyView, apiKeyWithSecretView, type ApiKey } from '../../core/api-key-view.ts'
import type { Deps } from '../../deps.ts'
import { createApiKey, type AskedApiKey, type Maker } from '../../operations/create-api-key.ts'
import { getApiKey } from '../../operations/get-api-key.ts'
import { revokeApiKey } from '../../operations/revoke-api-key.ts'
import { rotateApiKey } from '../../operations/rotate-api-key.ts'
import type { ApiKeyPlace } from '../../store/api-keys.ts'
import { apiKeyId, apiKeysQuery, type ApiKeysQuery, type RotationBody } from '../api-key-schemas.ts'
import { callerOf, type Caller } from '../auth.ts'
import { answers, everywhere, ofBodies, problemAnswers, ref, secured } from '../openapi.ts'
import { invalid } from '../validation.ts'

const idParams = Type.Object({ id: apiKeyId }, { additionalProperties: false })
interface IdParams {
  readonly id: string
}

const at = new Date('2026-12-01T09:00:00.000Z')
const exampleKey: ApiKey = {
  id: '0197a1b2c3d47e5f8a9b0c1d2e3f4a5b',
  account: 'acme',
  environment: 'live',
  kind: 'agent',
  name: 'support assistant',
  scopes: ['send', 'read'],
  policy: { requireApproval: 'first_contact', allowedChannels: ['email'] },
  createdAt: at,
  createdBy: '0197a1b2c3d47e5f8a9b0c1d2e3f4a5a',
  previousUntil: null,
  revokedAt: null,
}
const exampleText = `so_live_${exampleKey.id}_<secret>`
const rotated = { ...exampleKey, previousUntil: new Date(at.getTime() + grace.defaultS * 1000) }
const revoked = { ...exampleKey, revokedAt: at }

export function apiKeyRoutes(app: FastifyInstance, deps: Deps): void {
  const { store, clock } = deps
  const config = { scope: 'admin' } as const

  app.get<{ Querystring: ApiKeysQuery }>('/v1/api-keys', {
    config,
    schema: {
      operationId: 'listApiKeys',
      tags: ['API keys'],
      summary: 'List API keys, newest first',
      description: 'Of this account and environment, revoked ones too. No secret is shown.',
      security: secured,
      querystring: apiKeysQuery,
      response: {
        200: answers('A page.', 'ApiKeyList', { data: [apiKeyView(exampleKey, at)], nextCursor: null }),
        ...problemAnswers(['invalid-request', ...everywhere]),
      },
    },
    handler: async (request) => {
      const { limit = 50, cursor } = request.query
      const before = cursor === undefined ? null : placeOf(cursor)
      const keys = await store.listApiKeys(callerOf(request), limit + 1, before) // one more: is there a next page?
      const data = keys.slice(0, limit)
      const last = data.at(-1)
      return {
        data: data.map((key) => apiKeyView(key, clock.now())),
        nextCursor: keys.length > limit && last !== undefined ? cursorOf(last) : null,
      }
    },
  })

  app.post<{ Body: AskedApiKey }>('/v1/api-keys', {
    config,
    schema: {
      operationId: 'createApiKey',
      tags: ['API keys'],
      summary: 'Make an API key',
      description:
        'For this account and environment. The answer shows the key with its secret, once: if it is lost on the way, revoke what the list shows and make another.',
      security: secured,
      body: ref('NewApiKey'),
      response: {
        201: answers('It is made.', 'ApiKeyWithSecret', apiKeyWithSecretView(exampleKey, exampleText, at), 'Location'),
        ...problemAnswers([...ofBodies, ...everywhere]),
      },
    },
    handler: async (request, reply) => {
      const caller = callerOf(request)
      const { apiKey, text } = await createApiKey(deps, caller, request.body, makerOf(caller))
      reply.code(201).header('location', `/v1/api-keys/${apiKey.id}`)
      return apiKeyWithSecretView(apiKey, text, clock.now())
    },
  })

  app.get<{ Params: IdParams }>('/v1/api-keys/:id', {
    config,
    schema: {
      operationId: 'getApiKey',
      tags: ['API keys'],
      summary: 'An API key, without its secret',
      security: secured,
      params: idParams,
      response: {
        200: answers('The API key.', 'ApiKey', apiKeyView(exampleKey, at)),
        ...problemAnswers(['invalid-request', ...everywhere]),
      },
    },
    handler: async (request) => apiKeyView(await getApiKey(deps, callerOf(request), request.params.id), clock.now()),
  })

  app.post<{ Params: IdParams; Body: RotationBody }>('/v1/api-keys/:id/rotate', {
    config,
    schema: {
      operationId: 'rotateApiKey',
      tags: ['API keys'],
      summary: 'Give an API key another secret',
      description:
        'The answer shows the key with its new secret, once. The present secret holds for `graceSeconds` more, so that callers can be changed over. At most two hold: a second rotation within the grace ends the older one at once. So where the answer was lost and callers still use the older secret, do not repeat this: make another API key, change them over, and revoke this one.',
      security: secured,
      params: idParams,
      body: ref('Rotation'),
      response: {
        200: answers('It has another secret.', 'ApiKeyWithSecret', apiKeyWithSecretView(rotated, exampleText, at)),
        ...problemAnswers([...ofBodies, 'api-key-revoked', ...everywhere]),
      },
    },
    handler: async (request) => {
      const caller = callerOf(request)
      const { graceSeconds = grace.defaultS } = request.body
      const { apiKey, text } = await rotateApiKey(deps, caller, request.params.id, graceSeconds, makerOf(caller))
      return apiKeyWithSecretView(apiKey, text, clock.now())
    },
  })

  app.post<{ Params: IdParams }>('/v1/api-keys/:id/revoke', {
    config,
    schema: {
      operationId: 'revokeApiKey',
      tags: ['API keys'],
      summary: 'Revoke an API key',
      description: 'For good, both its secrets, within a second; a key may revoke itself. Again is the same.',
      security: secured,
      params: idParams,
      response: {
        200: answers('It is revoked.', 'ApiKey', apiKeyView(revoked, at)),
        ...problemAnswers([...ofBodies, ...everywhere]),
      },
    },
    handler: async (request) => {
      const caller = callerOf(request)
      return apiKeyView(await revokeApiKey(deps, caller, request.params.id, caller.apiKey), clock.now())
    },
  })
}

const makerOf = ({ apiKey: id, kind }: Caller): Maker => ({ id, kind })

const cursorOf = ({ createdAt, id }: ApiKeyPlace): string =>
  Buffer.from(`${createdAt.toISOString()} ${id}`).toString('base64url')

function placeOf(cursor: string): ApiKeyPlace {
  const text = Buffer.from(cursor, 'base64url').toString('latin1')
  const [, time = '', id = ''] = /^([1-9]\d{3}-\S{15,20}Z) ([A-Za-z0-9-]{1,64})$/.exec(text) ?? []
  const createdAt = new Date(time)
  if (Number.isNaN(createdAt.getTime())) throw invalid('/cursor', 'is not the nextCursor of a page')
  return { createdAt, id }
}

/** Callers with API keys of their own: services, agents, persons. */
import { randomBytes } from 'node:crypto'
import type { InjectOptions, LightMyRequestResponse } from 'fastify'
import { apiKeyText, scopesOfKind, secretHash, type ApiKind, type ApiScope } from '../../src/core/api-key.ts'
import type { GivenPolicy } from '../../src/core/key-policy.ts'
import type { Environment } from '../../src/core/message-content.ts'
import type { TestGateway } from './gateway.ts'

export interface TestCaller {
  readonly id: string
  readonly key: string
  send(body: unknown, headers?: Record<string, string>): Promise<LightMyRequestResponse>
  get(path: string): Promise<LightMyRequestResponse>
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<LightMyRequestResponse>
}

export interface CallerOptions {
  readonly account?: string
  readonly environment?: Environment
  readonly policy?: GivenPolicy
  readonly scopes?: readonly ApiScope[]
}

/** With all the scopes that its kind may hold. */
export async function callerOf(
  { app, deps }: Pick<TestGateway, 'app' | 'deps'>,
  kind: ApiKind,
  { account = 'default', environment = 'live', policy, scopes = scopesOfKind[kind] }: CallerOptions = {},
): Promise<TestCaller> {
  const id = randomBytes(9).toString('hex')
  const secret = randomBytes(32).toString('hex')
  await deps.store.insertApiKey({
    id,
    account,
    environment,
    kind,
    name: null,
    scopes,
    policy: policy ?? null,
    secretHash: secretHash(secret),
    createdBy: 'test',
  })
  const key = apiKeyText({ environment, id, secret })
  const request = async (asked: InjectOptions): Promise<LightMyRequestResponse> =>
    app.inject({ ...asked, headers: { authorization: `Bearer ${key}`, ...asked.headers } })
  const post: TestCaller['post'] = async (url, body, headers = {}) =>
    request({
      method: 'POST',
      url,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
    })
  return {
    id,
    key,
    send: async (body, headers = {}) => post('/v1/messages', body, headers),
    get: async (url) => request({ method: 'GET', url }),
    post,
  }
}

/** What an answer says, in the words that the rules use; and calls that a test holds back. */
import type { LightMyRequestResponse } from 'fastify'
import { onTestFinished } from 'vitest'
import { kindFor, secretHash, type ApiKind, type ApiScope } from '../../src/core/api-key.ts'
import type { GivenPolicy } from '../../src/core/key-policy.ts'
import type { Environment } from '../../src/core/message-content.ts'
import type { Outcome } from '../../src/core/outcome.ts'
import { lost, type TestGateway } from '../support/gateway.ts'

export interface MessageTold {
  readonly id: string
  readonly status: string
  readonly statusReason: string | null
  readonly idempotencyKey: string
  readonly attempts: number
  readonly providerMessageId: string | null
  readonly sentAt: string | null
  readonly notAfter: string
  readonly resolution: ResolutionTold | null
}

export interface ResolutionTold {
  readonly by: string
  readonly at: string
  readonly attempt: string
  readonly outcome: string
  readonly apiKey: string | null
  readonly evidence: string | null
}

export interface ProblemTold {
  readonly type: string
  readonly status: number
  readonly detail: string
  readonly instance: string
  readonly retryable: boolean
  readonly sent?: string
  readonly message?: { readonly id: string; readonly status: string; readonly createdAt?: string }
  readonly errors?: readonly { readonly pointer: string; readonly detail: string }[]
  readonly decision?: ResolutionTold
}

export const messageIn = (answer: LightMyRequestResponse): MessageTold => answer.json<MessageTold>()
export const problemIn = (answer: LightMyRequestResponse): ProblemTold => answer.json<ProblemTold>()

/** Status and problem type: `409 in-progress`; of a message its status: `202 queued`. */
export function told(answer: LightMyRequestResponse): string {
  const { type, status } = answer.json<{ type?: string; status: string }>()
  return `${answer.statusCode} ${type === undefined ? status : type.replace('/problems/', '')}`
}

export const isReplay = (answer: LightMyRequestResponse): boolean => answer.headers['idempotent-replayed'] === 'true'

/** The outcome of a call that the provider holds back until the test says so, or is over. */
export interface HeldOutcome {
  readonly promise: Promise<Outcome>
  readonly resolve: (outcome: Outcome) => void
}

export function heldOutcome(): HeldOutcome {
  const { promise, resolve } = Promise.withResolvers<Outcome>()
  onTestFinished(() => resolve(lost()))
  return { promise, resolve }
}

/** The present state of a message, by its public id. */
export async function present(gateway: TestGateway, id: string): Promise<MessageTold> {
  return messageIn(await gateway.get(`/v1/messages/${id}`))
}

export interface EventTold {
  readonly type: string
  readonly at: string
  readonly attempt: string | null
  readonly data: Readonly<Record<string, unknown>>
}

export async function timelineOf(gateway: TestGateway, id: string): Promise<readonly EventTold[]> {
  return (await gateway.get(`/v1/messages/${id}/events`)).json<{ data: EventTold[] }>().data
}

/** The public id of the attempt that began last. */
export async function attemptIn(gateway: TestGateway, id: string): Promise<string> {
  const started = (await timelineOf(gateway, id)).findLast(({ type }) => type === 'attempt_started')
  if (started?.attempt === undefined || started.attempt === null) throw new Error(`${id} has no attempt`)
  return started.attempt
}

/** `msg_…` as the data base stores it. */
export const uuidOf = (id: string): string => id.replace(/^[a-z]+_(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')

export interface Asker {
  readonly id: string
  readonly headers: { readonly authorization: string }
}

let askers = 0

/** An API key of its own, ready to be used. */
export async function newApiKey(
  { deps }: TestGateway,
  account: string,
  {
    scopes = ['send', 'read', 'resolve'],
    environment = 'live',
    kind = kindFor(scopes),
    policy = null,
  }: { scopes?: ApiScope[]; environment?: Environment; kind?: ApiKind; policy?: GivenPolicy | null } = {},
): Promise<Asker> {
  askers += 1
  const id = `${account}-${askers}`
  const secret = `${askers}`.padStart(40, 's')
  const key = { id, account, environment, kind, scopes, policy, name: null, createdBy: null }
  await deps.store.insertApiKey({ ...key, secretHash: secretHash(secret) })
  return { id, headers: { authorization: `Bearer so_${environment}_${id}_${secret}` } }
}

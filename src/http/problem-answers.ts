/** Every error as application/problem+json: refusals of ours, Fastify's own, the store's, and bugs. */
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { problemType } from '../core/answer.ts'
import { etagOf } from '../core/conversation.ts'
import { problemBody, type ProblemType } from '../core/problems.ts'
import { Refusal } from '../operations/refusal.ts'
import { StoreLocked, StoreOverloaded, StoreUnavailable } from '../store/database-errors.ts'

/** URI of this occurrence, for what has no message. */
export const occurrence = (requestId: string): string => `urn:uuid:${requestId}`

export function answerProblem(reply: FastifyReply, refusal: Refusal): FastifyReply {
  const body = problemBody(refusal.type, occurrence(reply.request.id), refusal.detail, refusal.extras)
  if (refusal.retryAfterS !== null) reply.header('retry-after', refusal.retryAfterS)
  const { conversation } = refusal.extras
  if (conversation !== undefined) reply.header('etag', etagOf(conversation.version))
  if (refusal.type === 'unauthorized') reply.header('www-authenticate', 'Bearer')
  if (refusal.type === 'webhook-forged') reply.header('www-authenticate', 'Webhook-Signature')
  return reply.code(body.status).type(problemType).send(JSON.stringify(body))
}

/** Fastify's codes; what is not listed and below 500 is an invalid request. */
const fastifyCodes: Readonly<Record<string, ProblemType>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'payload-too-large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported-media-type',
  FST_ERR_BAD_URL: 'not-found',
  FST_ERR_NOT_FOUND: 'not-found',
}

function refusalOf(error: unknown, request: FastifyRequest): Refusal {
  if (error instanceof Refusal) return error
  if (error instanceof StoreOverloaded) return new Refusal('overloaded', null, {}, 1)
  if (error instanceof StoreLocked) return new Refusal('in-progress', null, {}, 1)
  if (error instanceof StoreUnavailable) return new Refusal('store-unavailable', null, {}, 1)
  const { code, statusCode } = error as Partial<FastifyError>
  const type = fastifyCodes[code ?? '']
  if (type === 'payload-too-large')
    return new Refusal(type, `A body may have ${request.routeOptions.bodyLimit ?? 0} bytes.`)
  if (type !== undefined) return new Refusal(type)
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500)
    return new Refusal('invalid-request', 'The request cannot be read.')
  return new Refusal('internal-error')
}

export function handleProblems(app: FastifyInstance): void {
  app.setErrorHandler((error, request, reply) => {
    const refusal = refusalOf(error, request)
    if (refusal.type === 'internal-error') {
      // The stack names places in the code; the message may repeat data, so it stays out.
      const { name, stack } = error instanceof Error ? error : { name: 'error', stack: undefined }
      const at = stack
        ?.split('\n')
        .filter((line) => line.startsWith('    at '))
        .slice(0, 8)
      request.log.error({ error: name, at }, 'a bug')
    }
    return answerProblem(reply, refusal)
  })
  app.setNotFoundHandler((_, reply) =>
    answerProblem(reply, new Refusal('not-found', 'There is no such path, or it does not take this method.')),
  )
}

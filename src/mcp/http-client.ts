/**
 * The gateway from outside: its routes over HTTP, with one API key.
 *
 * H1. One request a call: nothing is repeated here (call.ts, G1).
 * H2. The answer is waited for longer than the gateway waits for an outcome, so that it is the gateway who says what is
 *     not known yet; and no longer than clients wait for a tool.
 */
import { Agent, type Dispatcher } from 'undici'
import { jsonOf, NoAnswer, type Call } from './call.ts'

const connectMs = 5_000
const answerMs = 45_000

export function httpCall(gatewayUrl: string, apiKey: string): Call {
  const { origin, pathname } = new URL(gatewayUrl)
  const prefix = pathname.replace(/\/+$/, '')
  const agent = new Agent({ connect: { timeout: connectMs }, headersTimeout: answerMs, bodyTimeout: answerMs })
  return async (method, path, headers = {}, body) => {
    const request: Dispatcher.RequestOptions = {
      origin,
      path: `${prefix}${path}`,
      method,
      headers: {
        ...headers,
        accept: 'application/json',
        authorization: `Bearer ${apiKey}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? null : JSON.stringify(body),
    }
    try {
      const answer = await agent.request(request)
      return { status: answer.statusCode, headers: answer.headers, json: jsonOf(await answer.body.text()) }
    } catch (error) {
      throw new NoAnswer(`The gateway at ${origin} did not answer (${codeOf(error)}).`, error)
    }
  }
}

/** A host of several addresses fails with an error for each. */
function codeOf(error: unknown): string {
  const { code, errors } = error as { code?: unknown; errors?: readonly { code?: unknown }[] }
  const first = code ?? errors?.[0]?.code
  return typeof first === 'string' ? first : 'no code'
}

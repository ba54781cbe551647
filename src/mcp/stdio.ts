/**
 * The tools over stdin and stdout, for a client that starts them as a program of its own.
 *
 * O1. Nothing but the protocol on stdout.
 * O2. A gateway that cannot be reached, or does not know the key, is told at the start, before a model relies on it.
 *     What happens later is told in the tools' results, and the program lives on.
 */
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { NoAnswer, type Call } from './call.ts'
import { httpCall } from './http-client.ts'
import { agentServer } from './server.ts'

export interface StdioSettings {
  readonly gatewayUrl: string
  readonly apiKey: string
}

/** Ends when stdin does. @throws one clear line */
export async function serveStdio({ gatewayUrl, apiKey }: StdioSettings): Promise<void> {
  const call = httpCall(gatewayUrl, apiKey)
  await requireGateway(call, gatewayUrl)
  await agentServer(call).connect(new StdioServerTransport())
}

async function requireGateway(call: Call, gatewayUrl: string): Promise<void> {
  const { status, json } = await call('GET', '/v1/messages?limit=1').catch((error: unknown) => {
    if (!(error instanceof NoAnswer)) throw error
    throw new Error(`${error.message} Start it, or set SENDONCE_URL.`, { cause: error })
  })
  const isGateway = typeof json === 'object' && json !== null && ('data' in json || 'retryable' in json)
  if (!isGateway) throw new Error(`what answers at ${gatewayUrl} is no gateway (HTTP ${status}); set SENDONCE_URL`)
  if (status === 401) throw new Error(`the gateway at ${gatewayUrl} does not know the key in SENDONCE_API_KEY`)
}

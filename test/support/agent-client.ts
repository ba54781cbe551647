/** An agent's client over either transport, the SDK's own, and its tools as plain functions. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Static } from 'typebox'
import type { AgentProblem } from '../../src/mcp/problems.ts'
import type { checkShape } from '../../src/mcp/check-message.ts'
import type { readingShape } from '../../src/mcp/read-conversation.ts'
import type { ShownMessage } from '../../src/mcp/results.ts'
import { cleanEnv, node, root } from './process.ts'

export interface ToolResult {
  readonly isError: boolean
  readonly text: string
  /** What to do next. */
  readonly next: string
  readonly data: ToolData
}

/** Of each tool its part, and the problem; the part that a test looks into is there, or the test fails. */
interface ToolData {
  readonly reading: Static<typeof readingShape>
  readonly message: ShownMessage
  readonly check: Static<typeof checkShape>
  readonly problem: AgentProblem
  readonly next: string
}

export interface AgentClient {
  readonly client: Client
  use(tool: string, args: object): Promise<ToolResult>
  close(): Promise<void>
}

export const transports = ['stdio', 'http'] as const

export async function agentClient(
  transport: (typeof transports)[number],
  gatewayUrl: string,
  apiKey: string,
): Promise<AgentClient> {
  const client = new Client({ name: 'test', version: '1' })
  const env = { ...cleanEnv(), SENDONCE_URL: gatewayUrl, SENDONCE_API_KEY: apiKey } as Record<string, string>
  await client.connect(
    transport === 'stdio'
      ? new StdioClientTransport({ command: node, args: ['src/cli.ts', 'mcp'], cwd: root, env })
      : new StreamableHTTPClientTransport(new URL('/mcp', gatewayUrl), {
          requestInit: { headers: { authorization: `Bearer ${apiKey}` } },
        }),
  )
  await client.listTools() // so that results are held against the shapes that the tools declare
  return {
    client,
    use: async (name, args) => {
      const result = await client.callTool({ name, arguments: args as Record<string, unknown> })
      const data = result.structuredContent as ToolData
      const texts = (result.content as { text: string }[]).map(({ text }) => text)
      return { isError: result.isError === true, text: texts.join('\n'), next: data.next, data }
    },
    close: async () => client.close(),
  }
}

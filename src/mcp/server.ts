/**
 * The MCP server: the list of tools and their calling, over any transport. What a tool does is in its own file.
 *
 * S1. Arguments are checked before the gateway is called; what is wrong with them is a result that the model can read.
 * S2. A server is made for each connection, or each request, and keeps nothing: what there is to know is the gateway's.
 */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import {
  CallToolRequestSchema,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
  type CallToolResult,
  type Tool,
} from '@modelcontextprotocol/sdk/types.js'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv'
import type { TSchema } from 'typebox'
import { problemBody } from '../core/problems.ts'
import { validatorCompiler } from '../http/validation.ts'
import { Refusal } from '../operations/refusal.ts'
import { checkMessage, checkShape } from './check-message.ts'
import { NoAnswer, type Call, type CallAnswer } from './call.ts'
import {
  getShape,
  proposalCheck,
  proposalShape,
  readShape,
  type GetInput,
  type Proposal,
  type ReadInput,
} from './inputs.ts'
import { noAnswer, problemOf } from './problems.ts'
import { getMessage, proposeMessage } from './propose-message.ts'
import { readConversation, readingShape } from './read-conversation.ts'
import { bad, messageShape, resultShape } from './results.ts'

const instructions =
  'Sendonce sends messages to people, each once. Read a conversation, then propose what is to be said with the version that you read. Making the same call with the same arguments again never sends twice; saying the same thing in other words, or for another intent, is a second message to a person. A message that is held waits for a person: leave it to them.'

interface AgentTool {
  readonly listed: Tool
  /** The part of the result that is null where there is a problem. */
  readonly part: string
  readonly sends: boolean
  readonly check: (args: unknown) => { value: unknown } | { error: Error }
  readonly run: (call: Call, args: never) => Promise<CallToolResult>
}

interface ToolParts<Input> {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly input: TSchema
  /** By which arguments are checked, where it is not `input`. */
  readonly check?: TSchema
  readonly part: string
  readonly output: TSchema
  readonly sends?: boolean
  readonly run: (call: Call, args: Input) => Promise<CallToolResult>
}

function tool<Input>(parts: ToolParts<Input>): AgentTool {
  const { name, title, description, input, check = input, part, output, sends = false, run } = parts
  return {
    listed: {
      name,
      title,
      description,
      inputSchema: input as unknown as Tool['inputSchema'],
      outputSchema: resultShape(part, output) as unknown as NonNullable<Tool['outputSchema']>,
      // A message takes nothing away, and the same one again is the same one.
      annotations: { readOnlyHint: !sends, destructiveHint: false, idempotentHint: true, openWorldHint: sends },
    },
    part,
    sends,
    // As the gateway checks bodies: strict, and one mistake with its pointer.
    check: validatorCompiler({ schema: check, method: '', url: '', httpPart: 'body' }) as AgentTool['check'],
    run,
  }
}

const tools: readonly AgentTool[] = [
  tool<ReadInput>({
    name: 'read_conversation',
    title: 'Read a conversation',
    description:
      'What was said in a conversation, by whom and when, what became of our own messages and which of them are still pending. Read it right before you propose a message: the version that it tells is needed for that.',
    input: readShape,
    part: 'reading',
    output: readingShape,
    run: readConversation,
  }),
  tool<Proposal>({
    name: 'propose_message',
    title: 'Propose a message',
    description:
      'Proposes a message to a person outside, once. Depending on the API key it is sent at once, or held until a person approves it. Refused if the conversation has moved on since you read it. The same arguments again never send twice, and tell what became of the first: do that after a time-out.',
    input: proposalShape,
    check: proposalCheck,
    part: 'message',
    output: messageShape,
    sends: true,
    run: proposeMessage,
  }),
  tool<GetInput>({
    name: 'get_message',
    title: 'What became of a message',
    description: 'The present state of a message: held, sent, canceled because a person declined it, and so on.',
    input: getShape,
    part: 'message',
    output: messageShape,
    run: getMessage,
  }),
  tool<Proposal>({
    name: 'check_message',
    title: 'Check a message without sending it',
    description:
      'Takes the arguments of propose_message and tells what it would do with them now. Sends nothing, and uses nothing up.',
    input: proposalShape,
    check: proposalCheck,
    part: 'check',
    output: checkShape,
    run: checkMessage,
  }),
]

// One for all servers: nothing is compiled by it here, and making one for each request would cost more than the answer.
const jsonSchemaValidator = new AjvJsonSchemaValidator()

export function agentServer(call: Call): McpServer {
  const server = new McpServer(
    { name: 'sendonce', title: 'Sendonce', version: '1' },
    { capabilities: { tools: {} }, instructions, jsonSchemaValidator },
  )
  server.server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: tools.map(({ listed }) => listed) }))
  server.server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    const asked = tools.find(({ listed }) => listed.name === params.name)
    if (asked === undefined) throw new McpError(ErrorCode.InvalidParams, `There is no tool ${params.name}.`)
    return answerOf(asked, call, params.arguments ?? {})
  })
  return server
}

async function answerOf({ check, part, sends, run }: AgentTool, call: Call, args: unknown): Promise<CallToolResult> {
  const checked = check(args)
  if ('error' in checked) return bad(part, problemOf(refusedArguments(checked.error)))
  try {
    return await run(call, args as never)
  } catch (error) {
    if (error instanceof NoAnswer) return bad(part, noAnswer(error.message, sends ? 'maybe' : null))
    throw error
  }
}

function refusedArguments(error: Error): CallAnswer {
  if (!(error instanceof Refusal)) throw error
  const json = problemBody(error.type, 'urn:mcp:arguments', error.detail, error.extras)
  return { status: json.status, headers: {}, json }
}

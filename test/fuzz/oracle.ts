/** What is wrong with an answer, held against the document: nothing else is known of the gateway here. */
import type { Document, Operation, Schema } from './document.ts'
import type { Reply } from './raw-client.ts'
import type { Asked } from './requests.ts'

/** Headers that mean something to callers: an answer has none of them that the document does not name. */
const told = ['location', 'retry-after', 'idempotency-key', 'idempotency-key-source', 'idempotent-replayed', 'etag']
const problemMembers = ['type', 'title', 'status', 'detail', 'instance', 'retryable']
const problemMedia = 'application/problem+json'
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

export interface Problem {
  readonly type?: string
  readonly status?: number
  readonly instance?: string
  readonly message?: { readonly id: string }
  readonly errors?: readonly { readonly pointer: string }[]
}

const headerOf = (reply: Reply, name: string): string | undefined => reply.headers.get(name)?.join(', ')
export const mediaOf = (reply: Reply): string => headerOf(reply, 'content-type')?.split(';')[0] ?? 'none'

export function wrongWith(document: Document, operation: Operation | undefined, asked: Asked, reply: Reply): string[] {
  return [
    ...always(asked, reply),
    ...(operation === undefined ? stray(asked, reply) : documented(document, operation, reply)),
    ...(operation === undefined ? [] : fairness(document, operation, asked, reply)),
  ]
}

function always(asked: Asked, reply: Reply): string[] {
  const wrong: string[] = []
  const unknown = reply.status === 504 && reply.body.includes('"/problems/outcome-unknown"')
  if (reply.status >= 500 && !unknown) wrong.push(`a fault of the gateway: ${reply.status}`)
  if (!uuid.test(headerOf(reply, 'x-request-id') ?? '')) wrong.push('no request id')
  if (asked.target.startsWith('/v1') && headerOf(reply, 'cache-control') !== 'no-store')
    wrong.push('an answer under /v1 that may be cached')
  if (reply.status < 400 || asked.method === 'HEAD') return wrong
  if (mediaOf(reply) !== problemMedia) return [...wrong, `an error as ${mediaOf(reply)}`]
  const problem = JSON.parse(reply.body) as Problem
  const missing = problemMembers.filter((name) => !(name in problem))
  if (missing.length > 0) wrong.push(`a problem without ${missing.join()}`)
  if (problem.status !== reply.status) wrong.push(`a problem that says ${problem.status} in a ${reply.status}`)
  return wrong
}

/** What the document does not know is not there. (QUERY without a body is no request: RFC 9110's rules of content.) */
function stray(asked: Asked, reply: Reply): string[] {
  const open = asked.target.startsWith('/docs') || asked.target.startsWith('/problems')
  const allowed = open ? [200, 302, 400, 404] : asked.method === 'QUERY' ? [400, 404] : [404]
  return allowed.includes(reply.status) ? [] : [`${reply.status} from what the document does not know`]
}

function documented(document: Document, operation: Operation, reply: Reply): string[] {
  const answer = operation.responses[reply.status]
  if (answer === undefined) return [`the status ${reply.status} is not documented`]
  const wrong: string[] = []
  const headers = Object.entries(answer.headers ?? {}).map(
    ([name, { schema }]) => [name.toLowerCase(), schema] as const,
  )
  for (const name of told)
    if (reply.headers.has(name) && !headers.some(([known]) => known === name))
      wrong.push(`the header ${name} is not documented`)
  for (const [name, schema] of headers) {
    const fault = headerFault(document, schema, headerOf(reply, name))
    if (fault !== null) wrong.push(`the header ${name}: ${fault}`)
  }
  const content = answer.content[mediaOf(reply)]
  if (content === undefined) return [...wrong, `the content type ${mediaOf(reply)} is not documented`]
  const isJson = mediaOf(reply).endsWith('json')
  const body: unknown = isJson ? JSON.parse(reply.body) : reply.body
  const fault = document.fault(content.schema, body)
  if (fault !== null) wrong.push(`the body is not as documented: ${fault}`)
  if (mediaOf(reply) !== problemMedia) return wrong
  const type = (body as Problem).type?.replace('/problems/', '') ?? ''
  if (!Object.keys(content.examples ?? {}).includes(type)) wrong.push(`the problem ${type} is not documented`)
  return wrong
}

function headerFault(document: Document, schema: Schema, value: string | undefined): string | null {
  if (value === undefined) return null
  return document.fault(schema, schema['type'] === 'integer' ? Number(value) : value)
}

/** Where the document's words, not its schemas, say what is refused; by pointer. */
const inWords = /^\/(sendAt|delaySeconds|notAfter|ttlSeconds|providerMessageId|resend|eventId|conversation|scopes\/\d)$/
/** Nobody decides about what they sent themselves: whose it is no schema says. */
const decisions = ['approveMessage', 'declineMessage']

/** What fits the document is not called invalid, and what does not is not accepted. */
function fairness(document: Document, operation: Operation, asked: Asked, reply: Reply): string[] {
  if (asked.fits) {
    const isOwn = reply.status === 403 && decisions.includes(asked.operation)
    if ([401, 403, 408, 413, 415, 431].includes(reply.status) && !isOwn)
      return [`${reply.status} to a request that fits the document`]
    const { type, errors = [] } = reply.status === 400 ? (JSON.parse(reply.body) as Problem) : {}
    const unfair = type === '/problems/invalid-request' && !errors.every(({ pointer }) => inWords.test(pointer))
    return unfair ? ['a request that fits the document is called invalid'] : []
  }
  if (reply.status >= 400 && reply.status < 500) return []
  const fault = faultOfBody(document, operation, asked) ?? faultOfQuery(document, operation, asked)
  return fault === null ? [] : [`accepted, though the document forbids it: ${fault}`]
}

function faultOfBody(document: Document, operation: Operation, asked: Asked): string | null {
  const schema = operation.requestBody?.content['application/json']?.schema
  if (schema === undefined) return null
  try {
    return document.fault(schema, JSON.parse(asked.body?.replace(/^\ufeff/, '') ?? '')) // RFC 8259, 8.1: may be passed over
  } catch (error) {
    return (error as Error).name
  }
}

function faultOfQuery(document: Document, { parameters = [] }: Operation, asked: Asked): string | null {
  const known = new Map(parameters.filter((one) => one.in === 'query').map(({ name, schema }) => [name, schema]))
  if (known.size === 0) return null // a path that takes no query string passes one over
  for (const [name, text] of new URLSearchParams(asked.target.split('?')[1] ?? '')) {
    const schema = known.get(name)
    if (schema === undefined) return `the parameter ${name}`
    const fault = headerFault(document, schema, text)
    if (fault !== null) return `${name}: ${fault}`
  }
  return null
}

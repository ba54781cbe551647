/** Requests as bytes-to-be. What only the run can know stands in double braces: `{{message 7}}` is some message of it. */
import fc from 'fast-check'
import type { Document, Operation, Schema } from './document.ts'
import { anyText, fitting } from './from-schema.ts'

export interface Asked {
  readonly operation: string
  readonly method: string
  readonly target: string
  /** Lines, one character a byte. */
  readonly headers: readonly string[]
  readonly body: string | null
  readonly bodyEncoding: 'utf8' | 'latin1'
  readonly chunked: boolean
  /** Nothing about it contradicts the document. */
  readonly fits: boolean
}

const some = (...kinds: string[]): fc.Arbitrary<string> =>
  fc.tuple(fc.constantFrom(...kinds), fc.nat(999)).map(([kind, n]) => `{{${kind} ${n}}}`)

const freshKey = fc.nat(0xffff).map((n) => `fuzz-${n}`)
const key = fc.oneof({ weight: 5, arbitrary: freshKey }, { weight: 1, arbitrary: some('key') })
const quotable = fc
  .string({ minLength: 1, maxLength: 60 })
  .filter((text) => text.trim() !== '' && !text.startsWith('derived:'))
const keyLine = fc.oneof(
  { weight: 5, arbitrary: key },
  { weight: 1, arbitrary: quotable.map((text) => `"${text.replaceAll(/["\\]/g, '\\$&')}"`) },
)
const prefer = fc.constantFrom(null, null, 'wait=0', 'wait=1', 'respond-async', 'handling=lenient, wait=2')

const keyInPath = fc.oneof(key, quotable)

/** Messages and API keys that the run knows of: mostly such as the operation can do something with. */
function idFor(operationId: string): fc.Arbitrary<string> {
  if (operationId.endsWith('ApiKey')) return some('madeKey')
  if (operationId === 'approveMessage' || operationId === 'declineMessage') return some('held', 'held', 'message')
  if (operationId === 'resolveMessage') return some('unknown', 'unknown', 'unknown', 'message')
  return operationId === 'cancelMessage' ? some('waiting', 'message') : some('message', 'message', 'unknown')
}

/** Of the keys that a run has, that of an agent: what it sends waits for a person. */
export const agentKey = 2

/** Requests that fit the document, for one operation. */
export function requestsFor(document: Document, operation: Operation): fc.Arbitrary<Asked> {
  const { parameters = [], requestBody, security, method, path, operationId } = operation
  const inPath = parameters.filter((parameter) => parameter.in === 'path')
  const inQuery = parameters.filter((parameter) => parameter.in === 'query')
  const paramFor = ({ name, schema }: (typeof inPath)[number]): fc.Arbitrary<string> =>
    name === 'key'
      ? keyInPath
      : fc.oneof(
          { weight: 8, arbitrary: idFor(operationId) },
          { weight: 1, arbitrary: fitting(document, schema) as fc.Arbitrary<string> },
        )
  const params = fc.record(Object.fromEntries(inPath.map((parameter) => [parameter.name, paramFor(parameter)])))
  const query = fc.record(
    Object.fromEntries(
      inQuery.map(({ name, schema }) => [
        name,
        name === 'cursor' ? some(operationId === 'listApiKeys' ? 'keyCursor' : 'cursor') : fitting(document, schema),
      ]),
    ),
    {
      requiredKeys: [],
      noNullPrototype: true,
    },
  )
  const bodySchema = requestBody?.content['application/json']?.schema
  const body = bodySchema === undefined ? fc.constant(null) : bodyFor(document, operationId, bodySchema)
  const takesKey = parameters.some(({ name }) => name === 'Idempotency-Key')
  const keys: fc.Arbitrary<string | null> = takesKey ? fc.option(keyLine, { freq: 8 }) : fc.constant(null)
  const by = operationId === 'sendMessage' ? fc.constantFrom(0, 0, 0, agentKey) : fc.constant(0)
  return fc.record({ params, query, body, keys, prefer, by, chunked: fc.boolean() }).map((made) => ({
    operation: operationId,
    method,
    target:
      path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encoded(made.params[name] ?? '')) + queryText(made.query),
    headers: [
      'Host: gateway',
      ...(security === undefined ? [] : [`Authorization: Bearer {{apiKey ${made.by}}}`]),
      ...(made.body === null ? [] : ['Content-Type: application/json']),
      ...(made.keys === null ? [] : [`Idempotency-Key: ${made.keys}`]),
      ...(made.prefer === null || !takesKey ? [] : [`Prefer: ${made.prefer}`]),
    ],
    body: ofThat(made.body, made.params['id']),
    bodyEncoding: 'utf8',
    chunked: made.chunked,
    fits: true,
  }))
}

const encoded = (value: string): string => (value.startsWith('{{') ? value : encodeURIComponent(value))

function queryText(query: Readonly<Record<string, unknown>>): string {
  const parts = Object.entries(query).map(([name, value]) => `${name}=${encoded(String(value))}`)
  return parts.length === 0 ? '' : `?${parts.join('&')}`
}

/** The attempt that a body speaks of is one of the message in the path. */
function ofThat(body: string | null, id: string | undefined): string | null {
  const [, kind, n] = /^\{\{(unknown|held) (\d+)/.exec(id ?? '') ?? []
  if (n === undefined || body === null) return body
  return kind === 'unknown'
    ? body.replace(/\{\{attempt \d+/, `{{attempt ${n}`)
    : body.replace(/"v\d+:[0-9a-f]{64}"/, `"{{fingerprint ${n}}}"`)
}

type Body = Record<string, unknown>

function bodyFor(document: Document, operationId: string, schema: Schema): fc.Arbitrary<string> {
  const bodies = fitting(document, schema) as fc.Arbitrary<Body>
  return fc.tuple(bodies, some('attempt'), fc.nat(7)).map(([body, attempt, luck]) => {
    const tidy =
      operationId === 'sendMessage' || operationId === 'checkMessage'
        ? tidyMessage(body, luck)
        : speaksOf(attempt, body)
    return JSON.stringify(tidy)
  })
}

const speaksOf = (attempt: string, body: Body): Body => ('attempt' in body ? { ...body, attempt } : body)

const times = ['sendAt', 'delaySeconds', 'notAfter', 'ttlSeconds']

/**
 * What the document says in words only: which members exclude each other. And most messages go out at once: with all
 * that may be given, nearly all would wait, have no provider, or be duplicates.
 */
function tidyMessage(body: Body, luck: number): Body {
  const drop = new Set([
    ...(luck > 1 ? times : []),
    ...(body['sendAt'] === undefined ? [] : ['delaySeconds']),
    ...(body['ttlSeconds'] === undefined ? [] : ['notAfter']),
    ...(luck % 4 === 0 ? [] : ['intent']),
    ...(luck === 2 ? [] : ['provider']),
  ])
  const words = body['content'] as Body
  const mayLack = body['channel'] === 'email' && words['text'] === undefined && words['html'] === undefined
  return {
    ...Object.fromEntries(Object.entries(body).filter(([name]) => !drop.has(name))),
    ...(luck === 3 ? { provider: 'fake' } : {}),
    ...(mayLack ? { content: { ...words, text: 'x' } } : {}),
  }
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY', 'LINK']
const places = [
  '/',
  '//',
  '/v1',
  '/v1/',

  '//v1/messages',
  '/V1/messages',
  '/v1/messages/',
  '/v1/idempotency-keys/',
  '/v1/idempotency-keys//void',
  '/v1/messages/batch',
  '/v1/messages/{{message 1}}/',
  '/v1/messages/{{message 1}}/events/x',
  '/v1/messages/{{message 1}}/approve',

  '/v1/providers/x/webhooks',
  '/v1/conversations/x',
  '/livez/',
  '/metrics/x',
  '/openapi.yaml',
  '/problems/__proto__',
  '/problems/constructor',
  '/docs/static/',
  '/docs/static/%00',
  '/docs/static/%2e%2e/%2e%2e/package.json',
  '/docs/static/..%5c..%5cpackage.json',
  '/docs/../v1/messages',
  '/docs/%',
  '*',
  'http://other/v1/messages',
  '/v1/messages;x=1',
  '/.env',
  '/__proto__',
] as const

/** What the document does not know: other methods, other paths. */
export function strayRequests(document: Document): fc.Arbitrary<Asked> {
  const paths = document.operations.map(({ path }) => path.replace('{id}', '{{message 1}}').replace('{key}', 'k'))
  const isKnown = (method: string, target: string): boolean =>
    document.operations.some(
      (one) =>
        one.method === (method === 'HEAD' ? 'GET' : method) &&
        new RegExp(`^(http://other)?${one.path.replaceAll(/\{\w+\}/g, '[^/]*')}$`).test(target),
    )
  const junk = anyText.map((text) => `/v1/${encodeURIComponent(text)}`)
  return fc
    .record({
      method: fc.constantFrom(...methods),
      target: fc.oneof(fc.constantFrom(...places, ...paths), junk),
      hasKey: fc.boolean(),
    })
    .filter(({ method, target }) => !isKnown(method, target))
    .map(({ method, target, hasKey }) => ({
      operation: 'none',
      method,
      target,
      headers: ['Host: gateway', ...(hasKey ? ['Authorization: Bearer {{apiKey 0}}'] : [])],
      body: null,
      bodyEncoding: 'utf8',
      chunked: false,
      fits: false,
    }))
}

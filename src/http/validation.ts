/**
 * Validation, strict: nothing is coerced, removed or defaulted; in a query string, whose values are all text, whole numbers
 * are read. One error is reported, with its JSON pointer and never with the value.
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { FastifySchemaCompiler } from 'fastify'
import type { TSchema } from 'typebox'
import { channels, type Channel, type MessageRequest } from '../core/message-content.ts'
import { Refusal } from '../operations/refusal.ts'
import { requestSchemas } from './request-schemas.ts'
import { components } from './schemas.ts'

function validator(): Ajv2020 {
  const ajv = new Ajv2020({ strict: true, strictTypes: false, allErrors: false })
  addFormats.default(ajv, ['date-time', 'email', 'uri-reference'])
  const calendar = ajv.formats['date-time'] as { validate: (text: string) => boolean }
  // RFC 3339 as we print it: upper case, seconds below 60, and a time that JavaScript reads as the same.
  const exact = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:[0-5]\d(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/
  const within = (ms: number): boolean => ms >= 0 && ms < endOfTimeMs
  ajv.addFormat('date-time', (text: string) => exact.test(text) && calendar.validate(text) && within(Date.parse(text)))
  // No grouping in the pattern: V8's stack would not hold an attachment of some MiB.
  ajv.addFormat('base64', (text: string) => text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text))
  ajv.addFormat('https-url', (text: string) => {
    if (!/^https:\/\/[\x21-\x7e]+$/.test(text) || !URL.canParse(text)) return false
    const { username, password } = new URL(text)
    return username === '' && password === ''
  })
  for (const component of components) ajv.addSchema(component)
  return ajv
}

/** What is added to a time must still be a time that RFC 3339 can write: nothing later than the year 9000. */
const endOfTimeMs = Date.UTC(9000, 0)

const ajv = validator()

type Check = (value: unknown) => unknown

/** What a value of this schema must pass, wherever it comes from. @throws Refusal */
export const checkFor = (schema: TSchema): Check => checking(ajv.compile(schema))

/** For Fastify's routes. */
export const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const check = checkFor(schema)
  return settled(httpPart === 'querystring' ? (query) => check(withNumbers(schema, query)) : check)
}

/**
 * The query with its whole numbers read. Ajv's own coercion takes whatever JavaScript reads as a number, `1e400` too, and
 * then asks no maximum of Infinity.
 */
function withNumbers(schema: TSchema, query: unknown): unknown {
  const { properties = {} } = schema as { properties?: Record<string, { type?: string }> }
  const isNumber = (name: string, value: unknown): boolean =>
    properties[name]?.type === 'integer' && typeof value === 'string' && /^-?\d{1,15}$/.test(value)
  const entries = Object.entries(query as object)
  return Object.fromEntries(entries.map(([name, value]) => [name, isNumber(name, value) ? Number(value) : value]))
}

function checking(validate: ValidateFunction): Check {
  return (value) => {
    if (!validate(value)) throw invalid(...errorOf(deepest(validate.errors ?? [])))
    return value
  }
}

/** Of a union each alternative has its error: the one that got furthest is the one that was meant. */
const deepest = (errors: readonly ErrorObject[]): ErrorObject | undefined =>
  errors.toSorted((a, b) => b.instancePath.length - a.instancePath.length)[0]

/** Fastify wants an error returned, not thrown. */
function settled(check: Check): (value: unknown) => { value: unknown } | { error: Error } {
  return (value) => {
    try {
      return { value: check(value) }
    } catch (error) {
      return { error: error as Error }
    }
  }
}

export function invalid(pointer: string, detail: string): Refusal {
  const sentence = detail.endsWith('.') ? detail : `${pointer === '' ? 'The request' : `\`${pointer}\``} ${detail}.`
  return new Refusal('invalid-request', sentence, { errors: [{ pointer, detail }] })
}

/** Ajv's error as a pointer to what is wrong, and a sentence without values. */
function errorOf(error: ErrorObject | undefined): [string, string] {
  if (error === undefined) return ['', 'is not valid']
  const { keyword, params, propertyName } = error as ErrorObject<string, Record<string, unknown>>
  const member = (name: unknown): string =>
    `${error.instancePath}/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`
  const instancePath = propertyName === undefined ? error.instancePath : member(propertyName)
  switch (keyword) {
    case 'required':
      return [member(params['missingProperty']), 'is missing']
    case 'additionalProperties':
      return [member(params['additionalProperty']), 'is not a member that is known here']
    case 'enum':
      return [instancePath, `must be one of ${(params['allowedValues'] as string[]).join(', ')}`]
    case 'const':
      return [instancePath, `must be ${JSON.stringify(params['allowedValue'])}`]
    case 'pattern':
      return [instancePath, `must match ${String(params['pattern'])}`]
    case 'format':
      return [
        instancePath,
        params['format'] === 'date-time'
          ? 'must be an RFC 3339 time with an offset'
          : `must be a valid ${String(params['format'])}`,
      ]
    default:
      return [instancePath, error.message ?? 'is not valid']
  }
}

const requestChecks = Object.fromEntries(
  channels.map((channel) => [channel, checkFor(requestSchemas[channel])]),
) as Record<Channel, Check>

/** The body of POST /v1/messages: `channel` says which schema it must fit. @throws Refusal */
function validateRequest(body: unknown): MessageRequest {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw invalid('', 'must be a JSON object')
  const { channel } = body as { channel?: unknown }
  if (channel === undefined) throw invalid('/channel', 'is missing')
  if (!isChannel(channel)) throw invalid('/channel', `must be one of ${channels.join(', ')}`)
  requestChecks[channel](body)
  const request = body as MessageRequest
  if (request.sendAt !== undefined && request.delaySeconds !== undefined)
    throw invalid('/delaySeconds', 'and sendAt exclude each other')
  if (request.notAfter !== undefined && request.ttlSeconds !== undefined)
    throw invalid('/ttlSeconds', 'and notAfter exclude each other')
  if (request.channel === 'email' && request.content.text === undefined && request.content.html === undefined)
    throw invalid('/content', 'needs a text or an html')
  return request
}

const isChannel = (value: unknown): value is Channel => (channels as readonly unknown[]).includes(value)

/** For the route of POST /v1/messages. */
export const sendCompiler: FastifySchemaCompiler<TSchema> = (part) =>
  part.httpPart === 'body' ? settled(validateRequest) : validatorCompiler(part)

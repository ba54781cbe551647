/**
 * What the adapter sends and reads, against Twilio's own OpenAPI description (twilio/twilio-oai). It is not part of this
 * repository: put it in ../shared/specs beside it, or say where it is with SPECS_DIR. Without it these tests are skipped.
 */
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { Ajv, type AnySchemaObject } from 'ajv'
import { expect, test } from 'vitest'
import type { MessageRequest } from '../../src/core/message-content.ts'
import { twilio, type TwilioSettings } from '../../src/providers/twilio.ts'
import { attemptContext, wholeRequest } from '../support/attempt-context.ts'

const file = specFile('twilio_api_v2010.json')
const absent = !existsSync(file)
const why = absent ? ' [SKIPPED: no twilio_api_v2010.json in ../shared/specs or SPECS_DIR]' : ''
if (absent) process.stderr.write(`The contract of the Twilio adapter is not checked${why}\n`)

function specFile(name: string): string {
  return resolve(import.meta.dirname, '../..', process.env['SPECS_DIR'] ?? '../shared/specs', name)
}

const pathTemplate = '/2010-04-01/Accounts/{AccountSid}/Messages.json'
const formType = 'application/x-www-form-urlencoded'
interface Api {
  readonly server: string
  readonly accountSid: AnySchemaObject
  /** Groups of fields (snake case) of which a request needs at least one each. */
  readonly oneOfEach: readonly (readonly string[])[]
  readonly requestFields: AnySchemaObject
  /** Documented successes: status and body schema, with the vendor's examples. */
  readonly successes: readonly { status: number; body: AnySchemaObject; examples: readonly Example[] }[]
}

interface Example {
  readonly sid: string
  readonly to: string
  readonly from: string | null
}

interface Description {
  readonly paths: Record<
    string,
    {
      servers: { url: string }[]
      post: {
        parameters: { name: string; schema: AnySchemaObject }[]
        requestBody: { content: Record<string, { schema: AnySchemaObject }> }
        responses: Record<
          string,
          {
            content: Record<string, { schema: { $ref: string }; examples: Record<string, { value: Example }> }>
          }
        >
        'x-twilio': { conditional: string[][] }
      }
    }
  >
  readonly components: { readonly schemas: Record<string, AnySchemaObject> }
}

function readApi(): Api {
  const { paths, components } = JSON.parse(readFileSync(file, 'utf8')) as Description
  const path = given(paths[pathTemplate])
  const withComponents = (schema: AnySchemaObject): AnySchemaObject => ({ ...schema, components })
  return {
    server: given(path.servers[0]).url,
    accountSid: given(path.post.parameters.find(({ name }) => name === 'AccountSid')).schema,
    oneOfEach: path.post['x-twilio'].conditional,
    requestFields: withComponents(given(path.post.requestBody.content[formType]).schema),
    successes: Object.entries(path.post.responses)
      .filter(([status]) => status.startsWith('2'))
      .map(([status, response]) => {
        const { schema, examples } = given(response.content['application/json'])
        return {
          status: Number(status),
          body: withComponents({ $ref: schema.$ref }),
          examples: Object.values(examples).map(({ value }) => value),
        }
      }),
  }
}

function given<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("Twilio's description has changed its shape")
  return value
}

/** Errors of a decoded form against the operation's schema; a field that it does not name is one. */
function formErrors(api: Api, body: string): string[] {
  // Values stay strings: we send no field of another type. OpenAPI keywords are no errors; formats are Twilio's own.
  const ajv = new Ajv({ strict: false, allErrors: true })
  // Its words for `To` and `From`: E.164, a short code, a name, or a channel address, e.g. whatsapp:+15552229999.
  ajv.addFormat('phone-number', /^((?:whatsapp:)?\+[1-9]\d{1,14}|\d{3,8}|[A-Za-z0-9 +&_-]{1,11})$/)
  ajv.addFormat('uri', (text) => URL.canParse(text))
  ajv.addFormat('date-time', true)
  const fields = [...new URLSearchParams(body)]
  const form = Object.fromEntries(fields)
  const names = Object.keys(form).map((name) => name.replace(/(?<!^)([A-Z])/g, '_$1').toLowerCase())
  const valid = ajv.validate({ ...api.requestFields, additionalProperties: false }, form) === true
  return [
    ...(valid ? [] : (ajv.errors ?? [])).map((error) => `${error.instancePath} ${error.message}`),
    ...(names.length === fields.length ? [] : ['a field occurs twice']),
    ...api.oneOfEach
      .filter((group) => !group.some((name) => names.includes(name)))
      .map((group) => `none of ${group.join()}`),
  ]
}

const messagingServiceSid = `MG${'a'.repeat(32)}`
const settings: TwilioSettings = {
  accountSid: `AC${'0'.repeat(32)}`,
  authToken: 'secret',
  from: '+15005550006',
  baseUrl: (twilio.settings.properties['baseUrl'] as { default: string }).default,
  connectTimeoutMs: 3000,
  answerTimeoutMs: 10_000,
  concurrency: 64,
}
const sms = (text: string, more: { from?: string } = {}): MessageRequest => ({
  channel: 'sms',
  to: '+4915112345678',
  content: { text },
  ...more,
})
const whatsapp = (text: string, more: { to?: string; from?: string } = {}): MessageRequest => ({
  channel: 'chat',
  to: 'whatsapp:+15552229999',
  from: 'whatsapp:+15554449999',
  content: { text },
  ...more,
})
const rendered = (message: MessageRequest) => wholeRequest(twilio, message, settings, attemptContext())

const messages: readonly MessageRequest[] = [
  sms('hello'),
  sms('a&Boddy=b+c\r\n👍', { from: 'Sendonce' }),
  sms('ü'.repeat(1600), { from: '12345' }),
  sms('x', { from: messagingServiceSid }),
  whatsapp('hello'),
  whatsapp('ü'.repeat(1600), { from: messagingServiceSid }),
]

test.skipIf(absent)(`every form that the adapter makes is valid against the operation${why}`, () => {
  const api = readApi()
  for (const message of messages) expect(formErrors(api, rendered(message).body)).toEqual([])
})

test.skipIf(absent)(`a wrong form fails the same check${why}`, () => {
  const api = readApi()
  const { body } = rendered(sms('hello'))
  expect(formErrors(api, body.replace('Body=', 'Boddy='))).toContain(' must NOT have additional properties')
  expect(formErrors(api, body.replace('Body=', 'Boddy='))).toContain('none of body,media_url,content_sid')
  expect(formErrors(api, body.replace('To=', 'Attempt=1&T='))).toContain(" must have required property 'To'")
  expect(formErrors(api, body.replace(/From=[^&]*/, ''))).toContain('none of from,messaging_service_sid')
  expect(formErrors(api, body.replace(/From=[^&]*/, 'MessagingServiceSid=MG1'))).not.toEqual([])
  expect(formErrors(api, body.replace(/To=[^&]*/, 'To=nobody%40example.com'))).not.toEqual([])
  expect(formErrors(api, `${body}&Body=twice`)).toContain('a field occurs twice')
})

test.skipIf(absent)(
  `method, path and account are those of the operation; the default base URL is its server${why}`,
  () => {
    const api = readApi()
    const request = rendered(sms('hello'))
    expect(request.method).toBe('POST')
    expect(request.headers['content-type']).toBe(formType)
    expect(request.path).toBe(pathTemplate.replace('{AccountSid}', settings.accountSid))
    expect(request.origin).toBe(api.server)
    expect(twilio.settings.properties['accountSid']).toMatchObject({ pattern: api.accountSid['pattern'] as string })
  },
)

test.skipIf(absent)(
  `the documented success is 201, and the adapter reads the id of every documented answer${why}`,
  () => {
    const api = readApi()
    const statuses = Array.from({ length: 500 }, (_, n) => 100 + n)
    expect(api.successes.map(({ status }) => status)).toEqual(
      statuses.filter((status) => twilio.answers.isAccepted(status, undefined)),
    )
    for (const { body, examples } of api.successes) {
      const validate = new Ajv({ strict: false, formats: twilioFormats }).compile(body)
      expect(examples).not.toEqual([])
      for (const example of examples) {
        expect(validate(example)).toBe(true)
        expect(twilio.answers.messageIdOf(example, {})).toBe(example.sid)
      }
      expect(validate({ sid: 'no sid' })).toBe(false)
    }
  },
)

test.skipIf(absent)(`a WhatsApp address is one in the words and examples of the description${why}`, () => {
  const { successes, requestFields } = readApi()
  const addresses = [
    ...successes.flatMap(({ examples }) => examples.flatMap(({ to, from }) => [to, from ?? ''])),
    ...['To', 'From'].flatMap((name) => {
      const { properties } = requestFields as { properties: Record<string, { description: string }> }
      return /whatsapp:\+\d+/.exec(given(properties[name]).description) ?? []
    }),
  ].filter((address) => address.startsWith('whatsapp:'))
  expect(addresses.length).toBeGreaterThanOrEqual(3)
  for (const to of addresses) expect(twilio.limitBroken(whatsapp('x', { to, from: to }), settings)).toBeNull()
})

/** Formats of the vendor's answers, which say nothing of what we read. */
const twilioFormats = Object.fromEntries(
  ['phone-number', 'date-time-rfc-2822', 'currency', 'uri-map'].map((name) => [name, true as const]),
)

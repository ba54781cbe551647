/**
 * The adapter against GOV.UK Notify's own OpenAPI description (alphagov/notifications-tech-docs): it stands in front of a
 * fake that remembers what it accepted, and refuses what it does not describe, of either side. It is not part of this
 * repository: put it in ../shared/specs/govuk-notify beside it, or say where it is with SPECS_DIR. Without it these tests
 * are skipped.
 */
import { createHmac } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { Ajv, type AnySchemaObject } from 'ajv'
import { afterEach, expect, test } from 'vitest'
import type { MessageRequest } from '../../src/core/message-content.ts'
import { govukNotify, type GovukNotifySettings } from '../../src/providers/govuk-notify.ts'
import { httpProvider } from '../../src/providers/http-provider.ts'
import { attemptContext } from '../support/attempt-context.ts'

const folder = resolve(import.meta.dirname, '../..', process.env['SPECS_DIR'] ?? '../shared/specs', 'govuk-notify')
const absent = !existsSync(join(folder, 'publicapi_spec.json'))
const why = absent ? ' [SKIPPED: no govuk-notify/publicapi_spec.json in ../shared/specs or SPECS_DIR]' : ''
if (absent) process.stderr.write(`The contract of the GOV.UK Notify adapter is not checked${why}\n`)

interface Operation {
  readonly requestBody?: { content: Record<string, { schema: { $ref: string } }> }
  readonly parameters?: { in: string; name: string; schema: AnySchemaObject }[]
  readonly responses: Record<string, { content: Record<string, { schema: { $ref: string } }> }>
}

const read = (name: string): unknown => JSON.parse(readFileSync(join(folder, name), 'utf8'))

/** Checks both sides of each call against the description. */
function described() {
  const { paths, servers } = read('publicapi_spec.json') as {
    paths: Record<string, { $ref: string }>
    servers: { url: string }[]
  }
  const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false })
  ajv.addSchema({ ...(read('schema.json') as AnySchemaObject), $id: 'schema.json' })
  const operationOf = (method: string, path: string): Operation | undefined => {
    const file = paths[path]?.$ref
    return file === undefined ? undefined : (read(file) as Record<string, Operation>)[method.toLowerCase()]
  }
  const errorsOf = (schema: AnySchemaObject, value: unknown): string[] =>
    ajv.validate(schema, value) ? [] : (ajv.errors ?? []).map((error) => `${error.instancePath} ${error.message}`)
  return {
    server: servers[0]?.url,
    requestErrors: (method: string, url: URL, type: string | undefined, body: string): string[] => {
      const operation = operationOf(method, url.pathname)
      if (operation === undefined) return [`no operation ${method} ${url.pathname}`]
      const known = new Map((operation.parameters ?? []).map(({ name, schema }) => [name, schema]))
      const query = [...url.searchParams].flatMap(([name, value]) => {
        const schema = known.get(name)
        return schema === undefined ? [`no parameter ${name}`] : errorsOf(schema, value)
      })
      if (operation.requestBody === undefined) return body === '' ? query : [...query, 'a body']
      const content = operation.requestBody.content[type ?? '']
      if (content === undefined) return [`no content type ${type}`]
      const name = content.schema.$ref.replace('schema.json#/components/schemas/', '')
      const { properties } = (read('schema.json') as { components: { schemas: Record<string, AnySchemaObject> } })
        .components.schemas[name] as { properties: Record<string, unknown> }
      const given = JSON.parse(body) as Record<string, unknown>
      const unnamed = Object.keys(given).filter((member) => !Object.hasOwn(properties, member))
      return [...query, ...unnamed.map((member) => `no member ${member}`), ...errorsOf(content.schema, given)]
    },
    answerErrors: (method: string, path: string, status: number, body: unknown): string[] => {
      const schema = operationOf(method, path)?.responses[String(status)]?.content['application/json']?.schema
      return schema === undefined ? [`no answer ${status}`] : errorsOf(schema, body)
    },
  }
}

const serviceId = '26785a09-ab16-4eb0-8407-a37497a57506'
const secret = '3d844edf-8d35-48ac-975b-e847b4f122b0'
const templates = ['f33517ff-2a88-4f6e-b855-c550268ce08a', '9d751e0e-f929-4891-82a1-a3e1c3c18ee3']

function isSignedIn(header: string | undefined, nowS: number): boolean {
  const [head = '', claims = '', signature] = (header ?? '').replace(/^Bearer /, '').split('.')
  const { iss, iat } = JSON.parse(Buffer.from(claims, 'base64url').toString() || '{}') as { iss?: string; iat?: number }
  const right = createHmac('sha256', secret).update(`${head}.${claims}`).digest('base64url')
  return signature === right && iss === serviceId && Math.abs((iat ?? 0) - nowS) <= 30
}

interface Row {
  readonly id: string
  readonly reference: string
}
const refused = (status: number, error: string) => ({
  status,
  body: { status_code: status, errors: [{ error, message: 'no' }] },
})

/** Accepts, remembers and shows, behind the description. `violations` must stay empty. */
async function fakeNotify(now: () => Date) {
  const description = described()
  const rows: Row[] = []
  const violations: string[] = []
  let limit: string | null = null
  const answerTo = (request: IncomingMessage, url: URL, body: string) => {
    if (!isSignedIn(request.headers.authorization, now().getTime() / 1000)) return refused(403, 'AuthError')
    if (request.method === 'GET') {
      const wanted = url.searchParams.get('reference')
      // A status of text messages alone: the description wants a row to be of one kind, and tells kinds apart by it.
      const found = rows.filter(({ reference }) => reference === wanted).map((row) => ({ ...row, status: 'sent' }))
      return { status: 200, body: { notifications: found, links: { current: url.href } } }
    }
    if (limit !== null) return refused(429, limit)
    const given = JSON.parse(body) as { template_id: string; reference: string }
    if (!templates.includes(given.template_id)) return refused(400, 'BadRequestError')
    const row = { id: `740e5834-3a29-46b4-9a6f-${String(rows.length).padStart(12, '0')}`, reference: given.reference }
    rows.push(row)
    return { status: 201, body: { ...row, scheduled_for: null, content: {}, uri: url.href, template: {} } }
  }
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => (body += text))
    request.on('end', () => {
      const url = new URL(request.url ?? '', 'http://notify')
      const wrong = description.requestErrors(request.method ?? '', url, request.headers['content-type'], body)
      const answer = wrong.length > 0 ? { status: 599, body: wrong } : answerTo(request, url, body)
      violations.push(...wrong)
      if (wrong.length === 0)
        violations.push(...description.answerErrors(request.method ?? '', url.pathname, answer.status, answer.body))
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body))
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    violations,
    rows,
    refuse: (error: string | null) => (limit = error),
    close: () => new Promise((done) => server.close(done)),
  }
}

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end()
})

const attempt = attemptContext({ messageId: 'msg_0198' })
async function staged(own: Partial<GovukNotifySettings> = {}) {
  const notify = await fakeNotify(() => attempt.startedAt)
  const settings: GovukNotifySettings = {
    apiKey: `key-${serviceId}-${secret}`,
    smsTemplateId: templates[0] ?? '',
    smsTextPlaceholder: 'text',
    emailTemplateId: templates[1] ?? '',
    emailSubjectPlaceholder: 'subject',
    emailTextPlaceholder: 'text',
    highVolume: false,
    baseUrl: notify.baseUrl,
    connectTimeoutMs: 3000,
    answerTimeoutMs: 3000,
    concurrency: 2,
    ...own,
  }
  const provider = httpProvider('notify', 'live', govukNotify, settings)
  ends.push(notify.close, async () => provider.close())
  const send = (message: MessageRequest, at = attempt) => provider.send(message, at, () => true, null)
  const look = () => provider.look(sms, { ...attempt, startedAt: attempt.startedAt })
  return { notify, send, look }
}

const sms: MessageRequest = { channel: 'sms', to: '+447900900123', content: { text: 'héllo\n"👍"' } }
const email: MessageRequest = { channel: 'email', to: 'amala@example.com', content: { subject: 's', text: 't' } }

test.skipIf(absent)(`what it sends is described and accepted, and found by its reference${why}`, async () => {
  const { notify, send, look } = await staged({ smsSenderId: templates[0] ?? '', emailReplyToId: templates[1] ?? '' })
  expect(await look()).toMatchObject({ kind: 'absent' })
  expect(await send(sms)).toMatchObject({ kind: 'accepted', providerMessageId: notify.rows[0]?.id })
  expect(await look()).toMatchObject({ kind: 'found', count: 1, providerMessageId: notify.rows[0]?.id })
  expect(await send(email)).toMatchObject({ kind: 'accepted' })
  expect(await look()).toMatchObject({ kind: 'found', count: 2 })
  expect(notify.violations).toEqual([])
})

test.skipIf(absent)(`its refusals are read as described${why}`, async () => {
  const { notify, send, look } = await staged()
  for (const [error, expected] of [
    ['RateLimitError', { kind: 'not_sent', retryAfterMs: 60_000 }],
    ['TooManyRequestsError', { kind: 'not_sent', reason: 'refused_for_now' }],
  ] as const) {
    notify.refuse(error)
    expect(await send(sms)).toMatchObject(expected)
  }
  expect(notify).toMatchObject({ rows: [], violations: [] })
  notify.refuse(null)
  const early = { ...attempt, startedAt: new Date(attempt.startedAt.getTime() - 31_000) }
  expect(await send(sms, early)).toMatchObject({ kind: 'not_sent', reason: 'credentials' })
  const other = await staged({ smsTemplateId: serviceId })
  expect(await other.send(sms)).toMatchObject({ kind: 'rejected', evidence: { code: 'BadRequestError' } })
  const stranger = await staged({ apiKey: `key-${serviceId}-${serviceId}` })
  expect(await stranger.send(sms)).toMatchObject({ kind: 'not_sent', reason: 'credentials' })
  expect(await stranger.look()).toMatchObject({ kind: 'failed' })
  expect(await look()).toMatchObject({ kind: 'absent' })
  expect([notify, other.notify, stranger.notify].flatMap(({ rows, violations }) => [...rows, ...violations])).toEqual(
    [],
  )
})

test.skipIf(absent)(`a wrong request fails the same check; the default base URL is the described server${why}`, () => {
  const { requestErrors, server } = described()
  const check = (body: object, path = '/v2/notifications/sms', method = 'POST') =>
    requestErrors(method, new URL(path, 'http://x'), 'application/json', JSON.stringify(body))
  const right = { phone_number: '+447900900123', template_id: 'x', reference: 'r', personalisation: { text: 't' } }
  expect(check(right)).toEqual([])
  expect(check({ ...right, phone_number: 7 })).not.toEqual([])
  expect(check({ ...right, phone_number: '+1234567890123456' })).not.toEqual([])
  expect(check({ template_id: 'x' })).not.toEqual([])
  expect(check({ ...right, sender: 'x' })).toEqual(['no member sender'])
  expect(check(right, '/v2/notifications/sms?reference=x')).toEqual(['no parameter reference'])
  expect(check(right, '/v2/notification/sms')).not.toEqual([])
  expect(check(right, undefined, 'PUT')).not.toEqual([])
  expect(govukNotify.settings.properties['baseUrl']).toMatchObject({ default: server })
})

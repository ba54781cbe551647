/** What the LINE adapter sends and reads, against LINE's own OpenAPI description (line/line-openapi). */
import { expect, test } from 'vitest'
import type { ChatRequest } from '../../src/core/message-content.ts'
import { line, type LineSettings } from '../../src/providers/line.ts'
import { providerOf } from '../support/adapters.ts'
import { attemptContext, wholeRequest } from '../support/attempt-context.ts'
import { checker, describedBy, vendor, type VendorAnswer, type VendorRequest } from '../support/vendor.ts'

const { absent, why, read } = describedBy('line-messaging-api.yml')
const path = '/v2/bot/message/push'
const attempt = attemptContext({ messageId: 'msg_019500000000700080000000000000aa' })
const open = (): boolean => true
const chat = (text: string): ChatRequest => ({ channel: 'chat', to: `U${'4af4980629'.repeat(3)}00`, content: { text } })

/** LINE as documented: the description, a token, and a key under which one request is accepted, whatever comes after. */
async function fakeLine() {
  const description = read()
  const post = description.paths[path]?.post
  const check = checker(description, ['PushMessageRequest'])
  const { schemas } = description.components
  const parts = (schemas['TextMessage']?.['allOf'] ?? []) as readonly { $ref?: string; properties?: object }[]
  const namesOfText = parts.flatMap(({ $ref, properties }) =>
    Object.keys(properties ?? (schemas[$ref?.split('/').at(-1) ?? ''] as { properties: object }).properties),
  )
  const accepted = new Map<string, { requestId: string; sentMessages: unknown }>()
  const sent: unknown[] = []
  let requests = 0

  function act({ method, path: asked, headers, body }: VendorRequest): VendorAnswer {
    const requestId = `request-${++requests}`
    const answered = (status: number, answer: unknown, more: Readonly<Record<string, string>> = {}): VendorAnswer => {
      const schema = post?.responses[String(status)]?.content['application/json']?.schema
      if (schema !== undefined) expect(check(schema, answer)).toEqual([])
      return { status, body: answer, headers: { 'x-line-request-id': requestId, ...more } }
    }
    if (method !== 'POST' || asked !== path) return answered(404, { message: 'Not found' })
    if (headers.authorization !== 'Bearer token') return answered(401, { message: 'Authentication failed' })
    const parameter = post?.parameters?.find(({ name }) => name === 'X-Line-Retry-Key')
    const key = headers['x-line-retry-key']
    if (typeof key !== 'string' || check(parameter?.schema ?? { not: {} }, key).length > 0)
      return answered(400, { message: 'Invalid retry key' })
    const before = accepted.get(key)
    if (before !== undefined)
      return answered(
        409,
        { message: 'The retry key is already accepted', sentMessages: before.sentMessages },
        { 'x-line-accepted-request-id': before.requestId },
      )
    const request = JSON.parse(body) as { messages?: readonly object[] }
    const messages = request.messages ?? []
    const errors = [
      ...check(post?.requestBody.content['application/json']?.schema ?? {}, request),
      ...messages.flatMap((each) => check({ $ref: '#/components/schemas/TextMessage' }, each)),
      ...messages.flatMap((each) => Object.keys(each).filter((name) => !namesOfText.includes(name))),
    ]
    if (errors.length > 0) return answered(400, { message: `The request body has ${errors.length} error(s)` })
    sent.push(request)
    const sentMessages = [{ id: `id-${sent.length}` }]
    accepted.set(key, { requestId, sentMessages })
    return answered(200, { sentMessages })
  }
  const server = await vendor(act)
  const made = (more: object = {}) =>
    providerOf({ adapter: 'line', channelAccessToken: 'token', baseUrl: server.origin, ...more })
  return { ...server, act, sent, made }
}

test.skipIf(absent)(`every request that the adapter makes is accepted${why}`, async () => {
  const { made, sent } = await fakeLine()
  for (const [nth, text] of ['hello', 'ñ 👍\r\n', 'x'.repeat(5000)].entries()) {
    const messageId = `${attempt.messageId.slice(0, -1)}${nth}`
    expect(await made().send(chat(text), { ...attempt, messageId }, open, null)).toMatchObject({
      kind: 'accepted',
      providerMessageId: `id-${nth + 1}`,
    })
  }
  expect(sent).toHaveLength(3)
})

test.skipIf(absent)(`a wrong request is refused by the same description${why}`, async () => {
  const { act } = await fakeLine()
  const own = { channelAccessToken: 'token', baseUrl: 'http://x' } as LineSettings
  const right = wholeRequest(line, chat('hello'), own, attempt)
  const { body } = right
  const wrong = [
    { ...right, body: body.replace('"to"', '"To"') },
    { ...right, body: body.replace('"text":"hello"', '"body":"hello"') },
    { ...right, body: body.replace('"type"', '"kind"') },
    { ...right, body: '{"to":"U","messages":[]}' },
    { ...right, headers: { ...right.headers, 'x-line-retry-key': attempt.messageId } },
    { ...right, headers: { ...right.headers, 'x-line-retry-key': undefined } },
    { ...right, path: '/v2/bot/message/reply' },
  ]
  expect(wrong.map((request) => act(request).status)).toEqual([400, 400, 400, 400, 400, 400, 404])
  expect(act(right).status).toBe(200)
})

test.skipIf(absent)(`a lost answer is repeated under its key: one message, and its id${why}`, async () => {
  const { made, sent, loseNextAnswer } = await fakeLine()
  const provider = made()
  const kept = provider.render(chat('hello'), attempt)
  loseNextAnswer()
  expect(await provider.send(chat('hello'), attempt, open, kept)).toMatchObject({ kind: 'unknown' })
  const again = await provider.send(chat('hello'), { ...attempt, attemptNumber: 2 }, open, kept)
  expect(again).toMatchObject({ kind: 'accepted', providerMessageId: 'id-1', evidence: { httpStatus: 409 } })
  expect(sent).toHaveLength(1)
})

test.skipIf(absent)(`a token that LINE does not know stops the provider${why}`, async () => {
  const { made } = await fakeLine()
  expect(await made({ channelAccessToken: 'other' }).send(chat('x'), attempt, open, null)).toMatchObject({
    reason: 'credentials',
  })
})

test.skipIf(absent)(`the default base URL is the server of the description${why}`, () => {
  expect(line.settings.properties['baseUrl']).toMatchObject({ default: read().servers[0]?.url })
})

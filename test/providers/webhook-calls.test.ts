/** What the webhook adapter does on the wire, through the provider that the registry makes of it. */
import { Webhook } from 'standardwebhooks'
import { expect, onTestFinished, test } from 'vitest'
import type { AttemptContext, Provider } from '../../src/providers/provider.ts'
import { checkProvider } from '../../src/providers/registry.ts'
import { attemptContext } from '../support/attempt-context.ts'
import { afterRequest, http, says, type ScriptedServer, scriptedServer } from '../support/scripted-server.ts'

const signingSecret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

function provider(more: object = {}): Provider {
  const checked = checkProvider({ adapter: 'webhook', signingSecret, ...more })
  if ('mistakes' in checked) throw new Error(checked.mistakes.join())
  const made = checked.create('hooks')
  onTestFinished(() => made.close())
  return made
}
async function receiver(...answers: readonly [string, ...string[]]): Promise<ScriptedServer> {
  const [first, ...more] = answers.map((answer) => says(answer))
  if (first === undefined) throw new Error('no answer')
  const server = await scriptedServer(afterRequest(first, ...more))
  onTestFinished(() => server.close())
  return server
}
const inside = { allowPrivateAddresses: true }
const open = (): boolean => true
const noContent = http('204 No Content')
const send = (by: Provider, url: string, attempt: Partial<AttemptContext> = {}, data: unknown = { id: 7 }) =>
  by.send(
    { channel: 'webhook', to: url, content: { type: 'order.shipped', data } },
    attemptContext(attempt),
    open,
    null,
  )

test('on the wire: one request, whose bytes the verifier accepts', async () => {
  const server = await receiver(noContent)
  const data = { text: 'ñ 漢字 👍 \u2028', nested: [{ b: 1, a: null }] }
  const sent = await send(provider(inside), `${server.origin}/hooks?x=%2F`, { startedAt: new Date() }, data)
  expect(sent).toMatchObject({ kind: 'accepted' })
  const [head = '', body = ''] = Buffer.from(server.received(), 'latin1').toString('utf8').split('\r\n\r\n')
  const [line, ...fields] = head.split('\r\n')
  const headers = Object.fromEntries(fields.map((field) => field.split(': '))) as Record<string, string>
  expect(line).toBe('POST /hooks?x=%2F HTTP/1.1')
  expect(headers).toMatchObject({ 'content-type': 'application/json', 'user-agent': 'Sendonce', 'webhook-id': 'msg_1' })
  expect(new Webhook(signingSecret).verify(body, headers)).toMatchObject({ type: 'order.shipped', data })
})

test('by default a receiver inside is refused for good: no connection, no byte', async () => {
  const server = await receiver(noContent)
  for (const url of [server.origin, server.origin.replace('127.0.0.1', 'localhost'), server.tlsOrigin])
    expect(await send(provider(), url)).toEqual({
      kind: 'rejected',
      evidence: { phase: 'not_begun', code: 'address_refused', detail: expect.any(String) as string },
    })
  expect([server.connections(), server.received()]).toEqual([0, ''])
})

test.each([301, 302, 303, 307, 308])('a %i to another server is not followed, and proves nothing', async (status) => {
  const target = await receiver(noContent)
  const server = await receiver(http(`${status} Elsewhere`, '', [`location: ${target.origin}/`]))
  expect(await send(provider(inside), server.origin)).toMatchObject({
    kind: 'unknown',
    evidence: { phase: 'answered', httpStatus: status },
  })
  expect([server.connections(), target.connections()]).toEqual([1, 0])
})

const gone = { kind: 'rejected', evidence: { phase: 'answered', code: 'gone', httpStatus: 410 } }
const goneBefore = { kind: 'rejected', evidence: { phase: 'not_begun', code: 'gone' } }
const minutesLater = (minutes: number): Partial<AttemptContext> => ({
  startedAt: new Date(Date.UTC(2026, 6, 1, 12, minutes)),
})

test('a URL that is gone is not called again for an hour; then it is', async () => {
  const server = await receiver(http('410 Gone'), noContent)
  const [hooks, url] = [provider(inside), `${server.origin}/hooks?id=1`]
  expect(await send(hooks, url, minutesLater(0))).toMatchObject(gone)
  expect(await send(hooks, url, minutesLater(1))).toMatchObject(goneBefore)
  expect(await send(hooks, url, minutesLater(59))).toMatchObject(goneBefore)
  expect(server.received().match(/POST/g)).toHaveLength(1)
  expect(await send(hooks, url, minutesLater(60))).toMatchObject({ kind: 'accepted' })
  expect(await send(hooks, url, minutesLater(61))).toMatchObject({ kind: 'accepted' })
})

test('what one URL answered says nothing of another: path, query, or provider', async () => {
  const server = await receiver(http('410 Gone'), noContent)
  const hooks = provider(inside)
  expect(await send(hooks, `${server.origin}/hooks?id=1`)).toMatchObject(gone)
  for (const url of ['/hooks?id=2', '/hooks', '/hooks/?id=1'])
    expect(await send(hooks, `${server.origin}${url}`)).toMatchObject({ kind: 'accepted' })
  expect(await send(provider(inside), `${server.origin}/hooks?id=1`)).toMatchObject({ kind: 'accepted' })
})

test('no other answer keeps a URL from being called', async () => {
  const server = await receiver(http('404 Not Found'), http('503 Busy'), noContent)
  const hooks = provider(inside)
  const kinds = [await send(hooks, server.origin), await send(hooks, server.origin), await send(hooks, server.origin)]
  expect(kinds.map(({ kind }) => kind)).toEqual(['unknown', 'unknown', 'accepted'])
})

test('blind, unless the configuration says that receivers deduplicate: then it takes our id as a key, for a day', () => {
  const blind = { channels: ['webhook'], deduplication: null, lookup: null, lateEvidence: 'none', acceptance: 'status' }
  expect(provider().capabilities).toEqual(blind)
  expect(provider({ deduplicates: true }).capabilities).toMatchObject({
    deduplication: { keyField: 'header webhook-id', lifetimeMs: 86_400_000, repeat: 'same_response' },
  })
  expect(checkProvider({ adapter: 'webhook', signingSecret, deduplicates: 'yes' })).toMatchObject({
    mistakes: ['.deduplicates: must be boolean'],
  })
})

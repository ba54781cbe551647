/**
 * Faults of the way to each vendor, through the provider that the registry makes: a proxy spoils what a real adapter sends
 * over undici, or what comes back, in one way after the other. What each proves is engine.md's, given what the adapter
 * declares (`acceptance`), and the same for all of them: no adapter adds a hope of its own. SMTP has its own rows in
 * smtp-phase.test.ts, for it breaks at other places.
 */
import type { Socket } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { MessageRequest } from '../../src/core/message-content.ts'
import type { Evidence, Outcome } from '../../src/core/outcome.ts'
import type { Provider, WriteGate } from '../../src/providers/provider.ts'
import { adapters } from '../../src/providers/registry.ts'
import { email, providerOf } from '../support/adapters.ts'
import { attemptContext } from '../support/attempt-context.ts'
import { faultProxy, type Fault, type FaultProxy } from '../support/fault-proxy.ts'
import {
  afterRequest,
  closes,
  floods,
  http,
  resets,
  says,
  scriptedServer,
  staysSilent,
} from '../support/scripted-server.ts'

type Given = Readonly<Record<string, unknown>>
interface Vendor {
  readonly name: string
  readonly settings: Given
  readonly message: (origin: string) => MessageRequest
  /** Its documented answer to a message that it accepts, and to a look-up that finds nothing. */
  readonly accepts: string
  readonly shows?: { readonly nothing: string; readonly one: string }
}

const messageId = `msg_${'01'.repeat(16)}`
const uuid = (digit: string): string =>
  `${digit.repeat(8)}-${digit.repeat(4)}-4${digit.repeat(3)}-8${digit.repeat(3)}-${digit.repeat(12)}`
const ok = (body: object, ...headers: string[]): string => http('200 OK', JSON.stringify(body), headers)
const sms: MessageRequest = { channel: 'sms', to: '+447700900123', content: { text: 'hello' } }
const chat = (to: string) => (): MessageRequest => ({ channel: 'chat', to, content: { text: 'hello' } })
const from = 'Shop <shop@example.com>'
const hook = (origin: string): MessageRequest => ({
  channel: 'webhook',
  to: `${origin}/hooks`,
  content: { type: 'order.shipped', data: {} },
})
const hooks = { adapter: 'webhook', signingSecret: `whsec_${'A'.repeat(32)}`, allowPrivateAddresses: true }
const twilio = { adapter: 'twilio', accountSid: `AC${'1'.repeat(32)}`, authToken: 'token' }
const created = http('201 Created', JSON.stringify({ sid: `SM${'2'.repeat(32)}`, status: 'queued' }))
const posted = { ts: '1.000001', metadata: { event_type: 'sendonce', event_payload: { reference: messageId } } }

const vendors: readonly Vendor[] = [
  {
    name: 'govuk-notify',
    settings: { adapter: 'govuk-notify', apiKey: `live-${uuid('1')}-${uuid('2')}`, smsTemplateId: uuid('3') },
    message: () => sms,
    accepts: http('201 Created', JSON.stringify({ id: uuid('4') })),
    shows: {
      nothing: ok({ notifications: [], links: { current: '/v2' } }),
      one: ok({ notifications: [{ id: uuid('4'), reference: messageId }], links: { current: '/v2' } }),
    },
  },
  {
    name: 'line',
    settings: { adapter: 'line', channelAccessToken: 'token' },
    message: chat(`U${'a'.repeat(32)}`),
    accepts: ok({ sentMessages: [{ id: '461230966842064897' }] }, 'x-line-request-id: r1'),
  },
  {
    name: 'postmark',
    settings: { adapter: 'postmark', serverToken: uuid('1'), from },
    message: () => email(),
    accepts: ok({ ErrorCode: 0, Message: 'OK', MessageID: uuid('4') }),
    shows: {
      nothing: ok({ TotalCount: 0, Messages: [] }),
      one: ok({ TotalCount: 1, Messages: [{ MessageID: uuid('4'), Metadata: { sendonce: messageId } }] }),
    },
  },
  {
    name: 'resend',
    settings: { adapter: 'resend', apiKey: 're_1', from },
    message: () => email(),
    accepts: ok({ id: uuid('4') }),
  },
  {
    name: 'slack',
    settings: { adapter: 'slack', token: 'xoxb-1' },
    message: chat('C0123456789'),
    accepts: ok({ ok: true, ts: '1.000001', channel: 'C0123456789' }),
    shows: {
      nothing: ok({ ok: true, messages: [], has_more: false }),
      one: ok({ ok: true, messages: [posted], has_more: false }),
    },
  },
  { name: 'twilio', settings: { ...twilio, from: '+15005550006' }, message: () => sms, accepts: created },
  {
    name: 'twilio, WhatsApp',
    settings: { ...twilio, whatsappFrom: 'whatsapp:+15005550006' },
    message: chat('whatsapp:+447700900123'),
    accepts: created,
  },
  { name: 'webhook', settings: hooks, message: hook, accepts: http('200 OK', 'thanks') },
  {
    name: 'webhook that deduplicates',
    settings: { ...hooks, deduplicates: true },
    message: hook,
    accepts: http('200 OK', 'thanks'),
  },
]

test('every adapter of the registry that speaks HTTP is here', () => {
  const overHttp = Object.entries(adapters).filter(([, adapter]) => !('create' in adapter))
  expect([...new Set(vendors.map(({ settings }) => settings['adapter']))]).toEqual(overHttp.map(([name]) => name))
})

const patient = { connectTimeoutMs: 3000, answerTimeoutMs: 3000 }
const briefMs = 150
const brief = { ...patient, answerTimeoutMs: briefMs }
const open: WriteGate = () => true
const attempt = attemptContext({ messageId })

/** A vendor that answers every request with the same bytes, the proxy before it, and the provider that calls the proxy. */
async function staged({ settings, message }: Vendor, answers: string, times: object, toProxy = proxied) {
  const vendor = await scriptedServer(afterRequest(says(answers)))
  const proxy = await faultProxy(vendor.origin)
  onTestFinished(async () => {
    await proxy.close()
    await vendor.close()
  })
  const origin = await toProxy(proxy)
  const own = settings['adapter'] === 'webhook' ? {} : { baseUrl: origin }
  const provider = providerOf({ ...settings, ...own, ...times })
  const said = message(origin)
  return {
    proxy,
    provider,
    atVendor: () => vendor.received().split(/(?:POST|GET) [^ ]+ HTTP\/1\.1\r\n/).length - 1,
    send: async (gate = open) => provider.send(said, attempt, gate, provider.render(said, attempt)),
    look: async () => provider.look(said, attempt),
  }
}
const proxied = (proxy: FaultProxy): string | Promise<string> => proxy.origin
const refuses = async (proxy: FaultProxy): Promise<string> => {
  await proxy.close()
  return proxy.origin
}

type Kind = Outcome['kind']
interface Row {
  readonly name: string
  readonly fault: Fault
  readonly to?: typeof proxied
  readonly phase: Evidence['phase']
  /** By what the adapter takes for acceptance. */
  readonly outcome: Readonly<Record<'status' | 'body', Kind>>
  /** Whole requests that reached the proxy, and the vendor behind it. */
  readonly read: 0 | 1 | 'either'
  readonly acted: 0 | 1 | 'either'
  /** For what ends by a time-out: when, give or take 250 ms. */
  readonly afterMs?: number
}

const notSent = { phase: 'not_begun', outcome: { status: 'not_sent', body: 'not_sent' }, read: 0, acted: 0 } as const
const unknown = { phase: 'begun', outcome: { status: 'unknown', body: 'unknown' }, read: 1 } as const
const unheard = { ...unknown, acted: 0 } as const
/** The worst of all: the vendor has acted, and we cannot tell. */
const lost = { ...unknown, acted: 1 } as const
const page = { ...lost, phase: 'answered' } as const
/** Where a status line proves acceptance, what comes after it is not needed. */
const headed = { phase: 'answered', outcome: { status: 'accepted', body: 'unknown' }, read: 1, acted: 1 } as const

const headOf = (answer: Buffer): number => answer.indexOf('\r\n\r\n') + 4
const cutAt =
  (end: (answer: Buffer) => number, ...then: ((client: Socket) => void)[]) =>
  (client: Socket, answer: Buffer): void =>
    says(answer.subarray(0, end(answer)), ...then)(client)
const pageOf = (status: string, ...headers: string[]) => ({
  withAnswer: says(http(status, '<html><h1>canary</h1>+447700900123</html>', ['content-type: text/html', ...headers])),
})
const statusLineOf = (answer: Buffer): string => /^HTTP\/1\.1 (.*)\r\n/.exec(answer.toString('latin1'))?.[1] ?? ''
const longer = (answer: Buffer): string =>
  answer.toString('latin1').replace(/(?<=content-length: )\d+/, (length) => String(Number(length) + 10))
const tooLarge = 'x'.repeat(70_000)

// prettier-ignore
const rows: readonly Row[] = [
  // Nothing of the request left
  { name: 'a refused connection', fault: {}, to: refuses, ...notSent },
  { name: 'a reset at accept', fault: { atAccept: resets }, ...notSent },
  // It left, and nobody answered
  { name: 'a FIN at accept', fault: { atAccept: closes }, ...unheard, read: 'either', acted: 'either' },
  { name: 'a FIN before an answer', fault: { inPlaceOfVendor: closes }, ...unheard },
  { name: 'a reset after the request was read', fault: { inPlaceOfVendor: resets }, ...unheard },
  { name: 'a FIN after the vendor acted', fault: { withAnswer: closes }, ...lost },
  { name: 'a reset after the vendor acted', fault: { withAnswer: resets }, ...lost },
  { name: 'no answer', fault: { inPlaceOfVendor: staysSilent }, ...unheard, afterMs: briefMs },
  { name: 'no answer after the vendor acted', fault: { withAnswer: staysSilent }, ...lost, afterMs: briefMs },
  { name: 'garbage that is no HTTP', fault: { withAnswer: says('SSH-2.0-canary\r\n') }, ...lost },
  { name: 'a flood of 102', fault: { withAnswer: floods('HTTP/1.1 102 Processing\r\n\r\n') }, ...lost, afterMs: briefMs },
  { name: 'a flood of 103', fault: { withAnswer: floods('HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n') }, ...lost, afterMs: briefMs },
  { name: 'a 100 Continue that nobody asked for', fault: { withAnswer: (client, answer) => says('HTTP/1.1 100 Continue\r\n\r\n', says(answer))(client) }, ...lost },
  // The vendor's answer, cut
  { name: 'a cut status line', fault: { withAnswer: cutAt(() => 10, closes) }, ...lost },
  { name: 'cut headers', fault: { withAnswer: cutAt((answer) => headOf(answer) - 6, closes) }, ...lost },
  { name: 'headers that stall', fault: { withAnswer: cutAt((answer) => headOf(answer) - 2) }, ...lost, afterMs: briefMs },
  { name: 'a cut body', fault: { withAnswer: cutAt((answer) => headOf(answer) + 3, closes) }, ...headed },
  { name: 'a body that is reset', fault: { withAnswer: cutAt((answer) => answer.length - 1, resets) }, ...headed },
  { name: 'a body that stalls', fault: { withAnswer: cutAt((answer) => answer.length - 1) }, ...headed, afterMs: briefMs },
  { name: 'no body', fault: { withAnswer: cutAt(headOf, closes) }, ...headed },
  { name: 'a body that reads as whole, and was announced longer', fault: { withAnswer: (client, answer) => says(longer(answer), closes)(client) }, ...headed },
  { name: 'a body that is too large', fault: { withAnswer: (client, answer) => says(http(statusLineOf(answer), tooLarge))(client) }, ...headed },
  { name: "a proxy's page under the status of success", fault: { withAnswer: (client, answer) => pageOf(statusLineOf(answer)).withAnswer(client) }, ...headed },
  // A proxy's own words, after it had passed the request on
  { name: "a proxy's 403", fault: pageOf('403 Forbidden'), ...page },
  { name: "a proxy's 407", fault: pageOf('407 Proxy Authentication Required', 'proxy-authenticate: basic'), ...page },
  { name: "a proxy's 408", fault: pageOf('408 Request Timeout'), ...page },
  { name: "a proxy's 413", fault: pageOf('413 Content Too Large'), ...page },
  { name: "a proxy's 429", fault: pageOf('429 Too Many Requests', 'retry-after: 5'), ...page },
  { name: "a proxy's 502", fault: pageOf('502 Bad Gateway'), ...page },
  { name: "a proxy's 503", fault: pageOf('503 Service Unavailable', 'retry-after: 5'), ...page },
  { name: "a proxy's 504", fault: pageOf('504 Gateway Timeout'), ...page },
  { name: 'a redirect', fault: pageOf('307 Temporary Redirect', 'location: /elsewhere'), ...page },
]

const late = (tookMs: number, { afterMs }: Row): number => tookMs - (afterMs ?? tookMs)
const timesOf = ({ afterMs }: Row): object => (afterMs === undefined ? patient : brief)
async function timed<T>(work: () => Promise<T>): Promise<{ told: T; tookMs: number }> {
  const startMs = performance.now()
  const told = await work()
  return { told, tookMs: performance.now() - startMs }
}

describe.each(vendors)('$name', (vendor) => {
  test('without a fault: accepted, by one request', async () => {
    const { proxy, atVendor, send } = await staged(vendor, vendor.accepts, patient)
    expect(await send()).toMatchObject({ kind: 'accepted' })
    expect([proxy.requests(), atVendor()]).toEqual([1, 1])
  })

  test.each(rows)('$name', async (row) => {
    const { proxy, provider, atVendor, send } = await staged(vendor, vendor.accepts, timesOf(row), row.to)
    proxy.spoil(row.fault)
    const { told, tookMs } = await timed(send)
    await provider.close()
    if (row.to === undefined) await proxy.drained()

    expect(told).toMatchObject({ kind: row.outcome[acceptanceOf(provider)], evidence: { phase: row.phase } })
    expect(told.kind === 'accepted' ? told.providerMessageId : null).toBeNull()
    expect(JSON.stringify(told)).not.toMatch(/canary|7700900123/)
    // At most one request, and none where we say so.
    for (const [seen, right] of [[proxy.requests(), row.read] as const, [atVendor(), row.acted] as const])
      expect(right === 'either' ? seen <= 1 : seen === right).toBe(true)
    expect(proxy.connections()).toBeLessThanOrEqual(1)
    expect(tookMs).toBeLessThan(provider.callMs + 250)
    expect(late(tookMs, row) > -5 && late(tookMs, row) < 250).toBe(true)
  })

  test('an answer that is late is taken for no other call', async () => {
    const { proxy, atVendor, send } = await staged(vendor, vendor.accepts, brief)
    const held: (() => void)[] = []
    proxy.spoil({ withAnswer: (client, answer) => held.push(() => says(answer)(client)) })
    expect(await send()).toMatchObject({ kind: 'unknown', evidence: { phase: 'begun', code: 'answer time-out' } })
    const second = send()
    for (const comes of held) comes()
    expect(await second).toMatchObject({ kind: 'unknown', evidence: { phase: 'begun', code: 'answer time-out' } })
    expect([proxy.requests(), atVendor(), proxy.connections()]).toEqual([2, 2, 2])
  })

  test.each([
    ['ended', closes],
    ['closed', (client: Socket) => void client.destroy()],
    ['reset', resets],
  ])('a kept connection %s exactly as it is used again: unknown, and not sent twice', async (_, act) => {
    const { proxy, atVendor, send } = await staged(vendor, vendor.accepts, { ...patient, concurrency: 1 })
    expect(await send()).toMatchObject({ kind: 'accepted' })
    const told = await send(() => {
      proxy.toEach(act) // in the turn of the write: we cannot know of it
      return true
    })
    expect(told).toMatchObject({ kind: 'unknown', evidence: { phase: 'begun' } })
    expect(proxy.requests()).toBeLessThanOrEqual(2)
    expect(atVendor()).toBeLessThanOrEqual(2)
    expect(proxy.connections()).toBe(1)
  })

  test('cut at any byte: unknown before the head is whole, then as acceptance is declared', async () => {
    const { proxy, provider, send } = await staged(vendor, vendor.accepts, patient)
    const head = headOf(Buffer.from(vendor.accepts))
    const kinds: Kind[] = []
    for (let end = 1; end <= vendor.accepts.length; end++) {
      proxy.spoil({ withAnswer: cutAt(() => end, closes) })
      kinds.push((await send()).kind)
    }
    const inBody = acceptanceOf(provider) === 'status' ? 'accepted' : 'unknown'
    const right = kinds.map((_, cut) => (cut + 1 < head ? 'unknown' : inBody))
    expect(kinds).toEqual([...right.slice(0, -1), 'accepted'])
    expect(proxy.requests()).toBe(kinds.length)
  })
})

const acceptanceOf = ({ capabilities }: Provider): 'status' | 'body' => capabilities.acceptance

const asked = vendors.flatMap(({ shows, ...vendor }) => (shows === undefined ? [] : [{ ...vendor, shows }]))

describe.each(asked)('$name, asked', ({ shows, ...vendor }) => {
  test('without a fault it is found, or proven not to be shown', async () => {
    const found = await staged(vendor, shows.one, patient)
    expect(await found.look()).toMatchObject({ kind: 'found', count: 1 })
    const absent = await staged(vendor, shows.nothing, patient)
    expect(await absent.look()).toMatchObject({ kind: 'absent' })
  })

  test.each(rows)('$name: told nothing', async (row) => {
    const { proxy, provider, look } = await staged(vendor, shows.nothing, timesOf(row), row.to)
    proxy.spoil(row.fault)
    const { told, tookMs } = await timed(look)
    expect(told).toMatchObject({ kind: 'failed', evidence: { phase: row.phase } })
    expect(JSON.stringify(told)).not.toMatch(/canary|7700900123/)
    expect(proxy.requests()).toBeLessThanOrEqual(1)
    expect(tookMs).toBeLessThan(provider.callMs + 250)
    expect(late(tookMs, row) > -5 && late(tookMs, row) < 250).toBe(true)
  })

  test('an absence that is cut at any byte proves nothing', async () => {
    const { proxy, look } = await staged(vendor, shows.nothing, patient)
    for (let end = 1; end < shows.nothing.length; end++) {
      proxy.spoil({ withAnswer: cutAt(() => end, closes) })
      expect([end, (await look()).kind]).toEqual([end, 'failed'])
    }
  })

  test('an answer that is late is no answer to the next question', async () => {
    const { proxy, look } = await staged(vendor, shows.one, brief)
    const held: (() => void)[] = []
    proxy.spoil({ withAnswer: (client, answer) => held.push(() => says(answer)(client)) })
    expect(await look()).toMatchObject({ kind: 'failed' })
    const second = look()
    for (const comes of held) comes()
    expect(await second).toMatchObject({ kind: 'failed' })
  })
})

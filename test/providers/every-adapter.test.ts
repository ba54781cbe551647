/**
 * What every adapter must keep, whichever provider it is for: what is declared is there, and nothing is there that is not
 * declared. A new adapter needs its line in `samples`, and no other.
 */
import { describe, expect, test } from 'vitest'
import { canProveAbsence } from '../../src/core/capabilities.ts'
import type { MessageRequest } from '../../src/core/message-content.ts'
import { capabilitiesOf } from '../../src/providers/http-provider.ts'
import type {
  AttemptContext,
  CallSettings,
  HttpAdapter,
  Provider,
  RenderedRequest,
} from '../../src/providers/provider.ts'
import { adapters, checkProvider } from '../../src/providers/registry.ts'
import { email, mistakesIn, providerOf } from '../support/adapters.ts'
import { attemptContext } from '../support/attempt-context.ts'

type Given = Readonly<Record<string, unknown>>
interface Sample {
  readonly settings: Given
  readonly message: MessageRequest
  /** Settings that make it another provider: for each, what it had open there proves nothing here. */
  readonly others: readonly Given[]
}

const sms: MessageRequest = { channel: 'sms', to: '+447700900123', from: 'ACME', content: { text: 'hello' } }
const chat = (to: string): MessageRequest => ({ channel: 'chat', to, content: { text: 'hello' } })
const hook: MessageRequest = {
  channel: 'webhook',
  to: 'https://receiver.example/hooks',
  content: { type: 'order.shipped', data: { order: 42 } },
}
const elsewhere = { baseUrl: 'https://other.example' }
const [secret, otherSecret] = ['A', 'B'].map((letter) => `whsec_${letter.repeat(32)}`)
const uuid = (digit: string): string =>
  `${digit.repeat(8)}-${digit.repeat(4)}-4${digit.repeat(3)}-8${digit.repeat(3)}-${digit.repeat(12)}`
const from = 'Shop <shop@example.com>'

const samples: Readonly<Record<string, Sample>> = {
  'govuk-notify': {
    settings: { apiKey: `live-${uuid('1')}-${uuid('2')}`, smsTemplateId: uuid('3') },
    message: { channel: 'sms', to: '+447700900123', content: { text: 'hello' } },
    others: [elsewhere, { apiKey: `live-${uuid('1')}-${uuid('4')}` }],
  },
  line: {
    settings: { channelAccessToken: 'token-one' },
    message: chat(`U${'a'.repeat(32)}`),
    others: [elsewhere, { channelAccessToken: 'token-two' }],
  },
  postmark: {
    settings: { serverToken: uuid('1'), from },
    message: email(),
    others: [elsewhere, { serverToken: uuid('2') }],
  },
  resend: { settings: { apiKey: 're_one', from }, message: email(), others: [elsewhere, { apiKey: 're_two' }] },
  slack: {
    settings: { token: 'xoxb-one' },
    message: chat('C0123456789'),
    others: [elsewhere, { token: 'xoxb-two' }],
  },
  smtp: {
    settings: { host: 'mail.example', user: 'one', password: 'p', from },
    message: email(),
    others: [{ host: 'mail.other.example' }, { user: 'two' }, { port: 2525 }],
  },
  twilio: {
    settings: { accountSid: `AC${'1'.repeat(32)}`, authToken: 'one' },
    message: sms,
    others: [elsewhere, { accountSid: `AC${'2'.repeat(32)}` }],
  },
  webhook: { settings: { signingSecret: secret }, message: hook, others: [{ signingSecret: otherSecret }] },
}

const made = (name: string, more: Given = {}): Provider =>
  providerOf({ adapter: name, ...samples[name]?.settings, ...more })

test('every adapter of the registry has its sample here', () => {
  expect(Object.keys(samples)).toEqual(Object.keys(adapters))
})

describe.each(Object.entries(samples))('%s', (name, { settings, message, others }) => {
  test('takes its sample, and no setting that it does not know', () => {
    expect(made(name).limitBroken(message)).toBeNull()
    expect(mistakesIn({ adapter: name, ...settings, unheardOf: 1 })).toEqual([
      '.unheardOf: is not a setting of this adapter',
    ])
  })

  test('E11 is another provider by address and by account or credential, and by nothing else', () => {
    const { identity } = made(name)
    for (const other of others) expect(made(name, other).identity).not.toBe(identity)
    const calls = { connectTimeoutMs: 1234, answerTimeoutMs: 4321, concurrency: 7 }
    expect(made(name, calls).identity).toBe(identity)
    expect(identity).toMatch(/^[\w-]{22}$/)
  })

  test('declares windows that are longer than the margins taken off them', () => {
    const { deduplication, lookup } = made(name).capabilities
    for (const [ms, marginMs] of [
      [deduplication?.lifetimeMs, deduplication?.marginMs],
      [lookup?.retentionMs, lookup?.marginMs],
    ])
      expect((ms ?? 2) / (marginMs ?? 1)).toBeGreaterThan(1)
  })

  test('sends nothing that it cannot: another channel is a bug, and no message', () => {
    const other: MessageRequest =
      message.channel === 'push' ? sms : { channel: 'push', to: 'token', content: { title: 't', body: 'b' } }
    expect(() => made(name).limitBroken(other)).toThrow(TypeError)
  })
})

/** Those that speak HTTP, each with the settings that change what it declares. */
const overHttp = Object.entries(samples).flatMap(([name, { settings, message }]) => {
  const adapter = adapters[name]
  if (adapter === undefined || 'create' in adapter) return []
  const checked = Object.keys(adapter.settings.properties).includes('deduplicates')
    ? [{}, { deduplicates: true }]
    : [{}]
  return checked.map((more) => ({
    name: `${name} ${JSON.stringify(more)}`,
    adapter,
    given: { adapter: name, ...settings, ...more },
    message,
  }))
})

const first: AttemptContext = attemptContext({ messageId: `msg_${'01'.repeat(16)}` })
const again: AttemptContext = {
  ...first,
  attemptNumber: 2,
  attemptId: `att_${'02'.repeat(16)}`,
  startedAt: new Date(first.startedAt.getTime() + 60_000),
}
const idsIn = (text: string): string[] =>
  [`msg_${'01'.repeat(16)}`, '01010101-0101-0101-0101-010101010101'].filter((id) => text.includes(id))
const wire = ({ path, headers, body }: RenderedRequest): string =>
  `${path}\n${JSON.stringify(headers)}\n${decodeURIComponent((body ?? '').replaceAll('+', ' ').replaceAll(/%(?![0-9A-F]{2})/g, '%25'))}`

describe.each(overHttp)('$name', ({ adapter, given, message }) => {
  const own = withDefaults(adapter, given)
  const { deduplication, lookup, lateEvidence } = capabilitiesOf(adapter, own)
  const rendered = (attempt: AttemptContext): RenderedRequest => adapter.render(message, own, attempt)

  test('has a look-up if it declares one, and none else', () => {
    expect(adapter.lookup !== undefined).toBe(lookup !== null)
  })

  test('E5 carries our id where a key, a look-up or a receipt wants it, and none where nothing does', () => {
    const wanted = deduplication !== null || lookup !== null || lateEvidence !== 'none'
    // A receiver of webhooks gets the id in any case: it is the specification's.
    expect(idsIn(wire(rendered(first))).length > 0).toBe(wanted || given.adapter === 'webhook')
  })

  test('E4 makes the same bytes for every attempt, where it takes a key or is asked by reference', () => {
    const [one, other] = [rendered(first), rendered(again)]
    expect(deduplication === null && lookup === null ? one : other).toEqual(one)
  })

  test('keeps no credential in what is stored: that is made afresh for each call', () => {
    const fresh = JSON.stringify(adapter.authorise(rendered(first), own, first.startedAt))
    const secrets = Object.values(given).filter(
      (value) => typeof value === 'string' && /one$|^whsec|^live-|^1{8}-/.test(value),
    )
    for (const value of secrets) expect(wire(rendered(first))).not.toContain(value)
    expect(fresh.length).toBeGreaterThan(20)
  })

  test('has a code that proves acceptance before if a conflict is to mean that, and none else', () => {
    const meanings = Object.values(adapter.answers.codes).map(({ means }) => means)
    expect(meanings.includes('accepted_before')).toBe(deduplication?.repeat === 'conflict_is_accepted')
  })

  test('J1, J2 takes no bare status for acceptance of a body, nor for a refusal', () => {
    for (const status of [400, 403, 409, 429, 503])
      expect(adapter.answers.errorCodeOf(undefined, status, {})).toBeNull()
    expect(adapter.answers.isAccepted(500, undefined)).toBe(false)
  })

  test('asks by our id, with GET and no body, and reads nothing but its documented answer', () => {
    if (adapter.lookup === undefined) return
    const look = adapter.lookup.render(message, own, first)
    expect([look.method, look.body]).toEqual(['GET', null])
    expect(canProveAbsence(lookup ?? { match: 'scan', strength: 'weak' }) ? idsIn(wire(look)) : [1]).toHaveLength(1)
    for (const body of [undefined, null, [], {}, 'x', { data: 'x' }])
      expect(adapter.lookup.read(body, first)).toBeNull()
  })
})

function withDefaults(adapter: HttpAdapter<never>, given: Given): never {
  const checked = checkProvider(given)
  if ('mistakes' in checked) throw new Error(checked.mistakes.join())
  const { adapter: _, ...settings } = given
  const defaults = Object.entries(adapter.settings.properties).flatMap(
    ([key, { default: value }]: [string, { default?: unknown }]) =>
      value === undefined ? [] : [[key, value] as const],
  )
  return { ...Object.fromEntries(defaults), ...settings } as unknown as CallSettings as never
}

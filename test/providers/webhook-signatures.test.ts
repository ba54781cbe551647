/**
 * Who told it? Each scheme against its published vector or the vendor's own verifier; and whatever is changed of a genuine
 * request (a byte of the body, a header, the secret, its time), it is not believed.
 */
import { validateSignature } from '@line/bot-sdk'
import { Webhook } from 'standardwebhooks'
import { Webhook as Svix } from 'svix'
import twilio from 'twilio'
import { getExpectedBodyHash, getExpectedTwilioSignature } from 'twilio/lib/webhooks/webhooks.js'
import { describe, expect, test } from 'vitest'
import { httpProvider } from '../../src/providers/http-provider.ts'
import type { Provider } from '../../src/providers/provider.ts'
import { sandboxAdapters } from '../../src/providers/sandbox.ts'
import { signatures, verify } from '../../src/providers/standard-webhooks.ts'
import {
  byLine,
  bySlack,
  byStandardWebhooks,
  bySvix,
  notifySettings,
  parsedBy,
  receiverOf,
  spoiltBodies,
  type Told,
} from '../support/webhooks.ts'

const now = new Date('2026-12-01T09:00:00Z')
const later = (ms: number): Date => new Date(now.getTime() + ms)
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const otherSecret = `whsec_${Buffer.alloc(32, 8).toString('base64')}`
const publicUrl = 'https://hooks.example.com/sendonce'

const twilioWith = (more: object = {}): Provider =>
  receiverOf({ adapter: 'twilio', accountSid: `AC${'0'.repeat(32)}`, authToken: '12345', publicUrl, ...more })
const slackWith = (signingSecret: string): Provider => receiverOf({ adapter: 'slack', token: 'xoxb-1', signingSecret })
const postmarkWith = (webhookPassword: string): Provider =>
  receiverOf({ adapter: 'postmark', serverToken: 't', webhookUser: 'postmark', webhookPassword })
const notifyWith = (webhookBearerToken: string): Provider =>
  receiverOf({
    ...notifySettings,
    webhookBearerToken,
  })
const lineWith = (channelSecret: string): Provider =>
  receiverOf({ adapter: 'line', channelAccessToken: 't', channelSecret })
const resendWith = (webhookSecret: string): Provider => receiverOf({ adapter: 'resend', apiKey: 're_1', webhookSecret })
function sandboxWith(receiptSecret: string): Provider {
  const [adapter] = sandboxAdapters
  if (adapter === undefined) throw new Error('there is a sandbox')
  const settings = { baseUrl: 'http://127.0.0.1:1', connectTimeoutMs: 1, answerTimeoutMs: 1, concurrency: 1 }
  return httpProvider('sandbox-blind', 'test', adapter, { ...settings, refusedUrl: '', receiptSecret })
}

const json = '{"events":[],"type":"email.opened","id":"x","ünïcode":"✓"}'
const form = 'MessageSid=SM1&MessageStatus=sent&To=%2B15005550006&Body=a%26b&Empty='
const callback = '/v1/providers/twilio-eu/webhooks?message=msg_1&attempt=att_1'
const params = Object.fromEntries(new URLSearchParams(form))
const twilioForm = (token: string): Told => ({
  url: callback,
  headers: { 'x-twilio-signature': getExpectedTwilioSignature(token, publicUrl + callback, params) },
  body: form,
})
function twilioJson(token: string): Told {
  const url = `${callback}&bodySHA256=${getExpectedBodyHash(json)}`
  return { url, headers: { 'x-twilio-signature': getExpectedTwilioSignature(token, publicUrl + url, {}) }, body: json }
}
const basic = (password: string): Told => ({
  headers: { authorization: `Basic ${Buffer.from(`postmark:${password}`).toString('base64')}` },
  body: json,
})
const bearer = (token: string): Told => ({ headers: { authorization: `Bearer ${token}` }, body: json })

interface Scheme {
  readonly name: string
  readonly provider: Provider
  readonly genuine: Told
  /** With another secret. */
  readonly forged: Told
  readonly signsBody: boolean
  readonly signsTime?: (at: Date) => Told
}

const password = 'p'.repeat(16)
const schemes: readonly Scheme[] = [
  {
    name: 'Resend (Svix)',
    provider: resendWith(secret),
    genuine: bySvix(secret, 'msg_1', now, json),
    forged: bySvix(otherSecret, 'msg_1', now, json),
    signsBody: true,
    signsTime: (at) => bySvix(secret, 'msg_1', at, json),
  },
  {
    name: 'sandbox (Standard Webhooks)',
    provider: sandboxWith(secret),
    genuine: byStandardWebhooks(secret, 'evt_1', now, json),
    forged: byStandardWebhooks(otherSecret, 'evt_1', now, json),
    signsBody: true,
    signsTime: (at) => byStandardWebhooks(secret, 'evt_1', at, json),
  },
  {
    name: 'Twilio, a form',
    provider: twilioWith(),
    genuine: twilioForm('12345'),
    forged: twilioForm('1234'),
    signsBody: true,
  },
  {
    name: 'Twilio, JSON',
    provider: twilioWith(),
    genuine: twilioJson('12345'),
    forged: twilioJson('1234'),
    signsBody: true,
  },
  {
    name: 'Slack',
    provider: slackWith('s1'),
    genuine: bySlack('s1', now, json),
    forged: bySlack('s2', now, json),
    signsBody: true,
    signsTime: (at) => bySlack('s1', at, json),
  },
  { name: 'LINE', provider: lineWith('c1'), genuine: byLine('c1', json), forged: byLine('c2', json), signsBody: true },
  {
    name: 'Postmark (basic authentication)',
    provider: postmarkWith(password),
    genuine: basic(password),
    forged: basic(`${password}!`),
    signsBody: false,
  },
  {
    name: 'GOV.UK Notify (bearer token)',
    provider: notifyWith('1234567890'),
    genuine: bearer('1234567890'),
    forged: bearer('1234567891'),
    signsBody: false,
  },
]

describe.each(schemes)('$name', ({ provider, genuine, forged }) => {
  test('what is genuine is read; of another secret it is forged', () => {
    expect(parsedBy(provider, genuine, now)).toHaveProperty('events')
    expect(parsedBy(provider, forged, now)).toEqual({ refused: 'forged' })
  })

  test('any header that it needs left out, emptied, or with its last letter changed: forged', () => {
    for (const [name, value] of Object.entries(genuine.headers)) {
      const { [name]: _, ...others } = genuine.headers
      expect(parsedBy(provider, { ...genuine, headers: others }, now)).toEqual({ refused: 'forged' })
      for (const wrong of ['', `${value}x`, value.slice(0, -1), `${value.slice(0, 5)}~${value.slice(6)}`])
        expect(parsedBy(provider, { ...genuine, headers: { ...others, [name]: wrong } }, now)).toEqual({
          refused: 'forged',
        })
    }
  })
})

describe.each(schemes.filter(({ signsBody }) => signsBody))('$name, which signs the body', ({ provider, genuine }) => {
  test('a bit of any byte of the body turned: forged', () => {
    let spoilt = 0
    for (const told of spoiltBodies(genuine)) {
      expect(parsedBy(provider, told, now)).toEqual({ refused: 'forged' })
      spoilt++
    }
    expect(spoilt).toBe(Buffer.byteLength(genuine.body))
    const longer = { ...genuine, body: `${String(genuine.body)} ` }
    expect(parsedBy(provider, longer, now)).toEqual({ refused: 'forged' })
    expect(parsedBy(provider, { ...genuine, body: '' }, now)).toEqual({ refused: 'forged' })
  })
})

describe.each(schemes.filter(({ signsTime }) => signsTime !== undefined))(
  '$name, which signs the time',
  ({ provider, genuine, forged, signsTime }) => {
    test('signed more than five minutes ago, or ahead: stale; forged is said first', () => {
      for (const ms of [-300_000, 0, 300_000])
        expect(parsedBy(provider, signsTime?.(later(ms)) ?? genuine, now)).toHaveProperty('events')
      for (const ms of [-301_000, 301_000])
        expect(parsedBy(provider, signsTime?.(later(ms)) ?? genuine, now)).toEqual({ refused: 'stale' })
      expect(parsedBy(provider, forged, later(3_600_000))).toEqual({ refused: 'forged' })
    })
  },
)

describe('published vectors', () => {
  test('Standard Webhooks and Svix: among other signatures, too; both packages agree', () => {
    const [id, timestamp] = ['msg_p5jXN8AQM9LWM0D4loKWxJek', '1614265330']
    const [key, body] = ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', '{"test": 2432232314}']
    const signature = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    const at = new Date(Number(timestamp) * 1000)
    const signed = { id, timestamp, signature, rawBody: Buffer.from(body) }
    expect(verify(signed, key, at)).toBe('genuine')
    expect(verify({ ...signed, signature: `v1,AAAA v1a,BBBB ${signature}` }, key, at)).toBe('genuine')
    expect(verify(signed, [secret, key], at)).toBe('genuine')
    expect(verify({ ...signed, signature: signature.replace('v1,', 'v2,') }, key, at)).toBe('forged')
    expect(verify({ ...signed, id: `${id}1` }, key, at)).toBe('forged')
    expect(verify({ ...signed, timestamp: '1614265331' }, key, at)).toBe('forged')
    expect(signatures(key, `${id}.${timestamp}.${body}`)).toBe(signature)
    expect([new Webhook(key).sign(id, at, body), new Svix(key).sign(id, at, body)]).toEqual([signature, signature])
  })

  test('Twilio: its documented request, and its own library agrees', () => {
    const url = '/myapp.php?foo=1&bar=2'
    const body = 'CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309&To=%2B18005551212'
    const signature = 'RSOYDt4T1cUTdK1PDd93/VVr8B8='
    const given = Object.fromEntries(new URLSearchParams(body))
    expect(twilio.validateRequest('12345', signature, `https://mycompany.com${url}`, given)).toBe(true)
    const provider = twilioWith({ publicUrl: 'https://mycompany.com' })
    const told = { url, headers: { 'x-twilio-signature': signature }, body }
    expect(parsedBy(provider, told, now)).toEqual({ events: [], replies: [] })
    expect(parsedBy(provider, { ...told, url: '/myapp.php?foo=1&bar=3' }, now)).toEqual({ refused: 'forged' })
    expect(parsedBy(twilioWith({ publicUrl: 'http://mycompany.com' }), told, now)).toEqual({ refused: 'forged' })
  })

  test('Slack: its documented request (a slash command, which is no event)', () => {
    const body =
      'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c'
    const headers = {
      'x-slack-request-timestamp': '1531420618',
      'x-slack-signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
    }
    const provider = slackWith('8f742231b10e8888abcd99yyyzzz85a5')
    const at = new Date(1_531_420_618_000)
    expect(parsedBy(provider, { headers, body }, at)).toEqual({ refused: 'unreadable' })
    for (const told of spoiltBodies({ headers, body }))
      expect(parsedBy(provider, told, at)).toEqual({ refused: 'forged' })
  })
})

describe("the vendor's own verifier", () => {
  test('LINE: what we take for signed, its SDK does', () => {
    const told = byLine('c1', json)
    const signature = told.headers['x-line-signature'] ?? ''
    expect(validateSignature(json, 'c1', signature)).toBe(true)
    for (const spoilt of spoiltBodies(told)) {
      const body = Buffer.from(spoilt.body)
      expect(validateSignature(body, 'c1', signature)).toBe(false)
      expect(parsedBy(lineWith('c1'), spoilt, now)).toEqual({ refused: 'forged' })
    }
  })

  test('Twilio: forms and JSON, names and values several times, with the standard port and without it', () => {
    const bodies = [form, '', 'B=2&A=1&b=3&a=0', 'A=2&A=1&A=2', 'a=%F0%9F%99%82&%C3%BC=+', 'A&B=']
    for (const publicAt of ['https://a.example', 'https://a.example:443', 'http://a.example:80/p', 'https://[::1]'])
      for (const body of bodies) {
        const called = `${publicAt}${callback}`
        const parsed = new URLSearchParams(body)
        const given = Object.fromEntries([...new Set(parsed.keys())].map((name) => [name, parsed.getAll(name)]))
        const provider = twilioWith({ publicUrl: publicAt })
        for (const url of [called, called.replace(':443', ''), called.replace(/^(https:\/\/[^/:]+)\//, '$1:443/')]) {
          const signature = getExpectedTwilioSignature('12345', url, given)
          const isGenuine = twilio.validateRequest('12345', signature, called, given)
          const found = parsedBy(provider, { url: callback, headers: { 'x-twilio-signature': signature }, body }, now)
          expect([url, 'events' in found]).toEqual([url, isGenuine])
        }
      }
    const { url = '', headers, body } = twilioJson('12345')
    const signature = headers['x-twilio-signature'] ?? ''
    expect(twilio.validateRequestWithBody('12345', signature, publicUrl + url, String(body))).toBe(true)
  })

  test('Twilio: a form may not pass by the signature of its address alone', () => {
    const url = `${callback}&bodySHA256=`
    const signature = getExpectedTwilioSignature('12345', publicUrl + url, {})
    const told = { url, headers: { 'x-twilio-signature': signature }, body: form }
    expect(parsedBy(twilioWith(), told, now)).toEqual({ refused: 'forged' })
  })
})

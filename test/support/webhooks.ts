/** Webhooks as vendors make them, by code that is not ours where there is any. */
import { createHmac } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { Webhook as Svix } from 'svix'
import type { IncomingWebhook, ParsedWebhook, Provider } from '../../src/providers/provider.ts'
import { checkProvider } from '../../src/providers/registry.ts'

/** For a whole file: it is only told things, and opens no connection. */
export function receiverOf(settings: Readonly<Record<string, unknown>>): Provider {
  const checked = checkProvider(settings)
  if ('mistakes' in checked) throw new Error(checked.mistakes.join())
  return checked.create('p')
}

const [service, key] = ['a', 'b'].map((x) => `${x.repeat(8)}-${`${x.repeat(4)}-`.repeat(3)}${x.repeat(12)}`)
export const notifySettings = {
  adapter: 'govuk-notify',
  apiKey: `key-${service}-${key}`,
  smsTemplateId: '11111111-1111-1111-1111-111111111111',
}

export interface Told {
  readonly url?: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer
}

export const incoming = ({ url = '/v1/providers/some/webhooks', headers, body }: Told): IncomingWebhook => ({
  rawBody: Buffer.from(body),
  headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
  url,
  query: new URLSearchParams(url.split('?')[1] ?? ''),
})

/** What a provider makes of a webhook. @throws if it takes none */
export function parsedBy({ parseWebhook }: Provider, told: Told, now: Date): ParsedWebhook {
  if (typeof parseWebhook !== 'function') throw new Error(`takes no webhooks: ${parseWebhook.lacks}`)
  return parseWebhook(incoming(told), now)
}

export const bySvix = (secret: string, id: string, at: Date, body: string): Told => ({
  headers: {
    'svix-id': id,
    'svix-timestamp': String(Math.floor(at.getTime() / 1000)),
    'svix-signature': new Svix(secret).sign(id, at, body),
  },
  body,
})

export const byStandardWebhooks = (secret: string, id: string, at: Date, body: string): Told => ({
  headers: {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, at, body),
  },
  body,
})

/** https://docs.slack.dev/authentication/verifying-requests-from-slack */
export function bySlack(secret: string, at: Date, body: string): Told {
  const seconds = String(Math.floor(at.getTime() / 1000))
  const signature = `v0=${createHmac('sha256', secret).update(`v0:${seconds}:${body}`).digest('hex')}`
  return { headers: { 'X-Slack-Request-Timestamp': seconds, 'X-Slack-Signature': signature }, body }
}

export const byLine = (secret: string, body: string): Told => ({
  headers: { 'x-line-signature': createHmac('sha256', secret).update(body).digest('base64') },
  body,
})

/** A request with one bit of its body turned, for each byte of it. */
export function* spoiltBodies(told: Told): Generator<Told> {
  const bytes = Buffer.from(told.body)
  for (let i = 0; i < bytes.length; i++) {
    const spoilt = Buffer.from(bytes)
    spoilt[i] = (spoilt[i] ?? 0) ^ 1
    yield { ...told, body: spoilt }
  }
}

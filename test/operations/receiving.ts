/** A provider whose webhooks a test makes: a list of events, believed by one header. And what tests look at after it. */
import type { LightMyRequestResponse } from 'fastify'
import type { InboundReply, IncomingWebhook, ParsedWebhook, WebhookEvent } from '../../src/providers/provider.ts'
import type { TestDatabase } from '../support/database.ts'
import { fakeProvider, type FakeProvider, type TestGateway } from '../support/gateway.ts'
import { uuidOf } from './told.ts'

type Told = Partial<Omit<WebhookEvent, 'at'>> & { readonly at?: string | null }

function parse({ headers, rawBody }: IncomingWebhook): ParsedWebhook {
  const signed = headers['x-signature']
  if (signed === 'stale') return { refused: 'stale' }
  if (signed !== 'genuine') return { refused: 'forged' }
  try {
    const {
      events,
      replies = [],
      challenge,
    } = JSON.parse(rawBody.toString()) as { events: WebhookEvent[]; replies?: InboundReply[]; challenge?: string }
    const read = {
      events: events.map((event) => ({ ...event, at: dateIn(event) })),
      replies: replies.map((reply) => ({ ...reply, at: dateIn(reply) })),
    }
    return challenge === undefined ? read : { ...read, answer: { contentType: 'text/plain', body: challenge } }
  } catch {
    return { refused: 'unreadable' }
  }
}

const dateIn = ({ at }: { readonly at: Date | null }): Date | null => (at === null ? null : new Date(at))

export const receivingProvider = (name = 'fake', more: Partial<FakeProvider> = {}): FakeProvider =>
  fakeProvider(name, { parseWebhook: parse, ...more })

let events = 0
export const eventOf = (messageId: string, more: Told = {}): Told => ({
  eventId: `evt-${events++}`,
  messageId,
  attemptId: null,
  providerMessageId: 'p1',
  kind: 'delivered',
  at: null,
  code: null,
  ...more,
})

export const hook = async (
  { app }: TestGateway,
  told: Told | readonly Told[] | string,
  { signed = 'genuine', provider = 'fake', more = {} }: { signed?: string; provider?: string; more?: object } = {},
): Promise<LightMyRequestResponse> =>
  app.inject({
    method: 'POST',
    url: `/v1/providers/${provider}/webhooks`,
    headers: { 'x-signature': signed, 'content-type': 'application/json' },
    payload: typeof told === 'string' ? told : JSON.stringify({ events: [told].flat(), ...more }),
  })

export interface DeliveryTold {
  readonly status: string
  readonly at: string
  readonly code: string | null
}

export const deliveryIn = (answer: LightMyRequestResponse): DeliveryTold | null =>
  answer.json<{ delivery: DeliveryTold | null }>().delivery

/** The lines of the time line that tell of receipts. */
export async function linesOf(gateway: TestGateway, id: string): Promise<Record<string, unknown>[]> {
  const { data } = (await gateway.get(`/v1/messages/${id}/events`)).json<{
    data: { type: string; attempt: string | null; data: Record<string, unknown> }[]
  }>()
  return data.filter(({ type }) => type === 'receipt').map(({ data: told, attempt }) => ({ ...told, attempt }))
}

interface Kept {
  readonly event_id: string
  readonly applied: boolean
}

/** What is kept of the events of a message. */
export const keptOf = async (database: TestDatabase, id: string): Promise<Kept[]> =>
  database.query<{ event_id: string; applied: boolean }>(
    `SELECT event_id, applied_at IS NOT NULL AS applied FROM receipts WHERE message_id = $1 ORDER BY event_id`,
    [uuidOf(id)],
  )

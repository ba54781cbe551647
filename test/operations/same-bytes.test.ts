/** What an adapter is told of an attempt: enough to make the same request again, from memory or from the data base. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { RenderedRequest } from '../../src/providers/provider.ts'
import { webhook, type WebhookSettings } from '../../src/providers/webhook.ts'
import { wholeRequest } from '../support/attempt-context.ts'
import { useDatabase } from '../support/database.ts'
import { accepted, fakeProvider, notSent, testGateway, type TestGateway } from '../support/gateway.ts'
import { dispatch, makeDue, steerableClock } from './steps.ts'
import { told } from './told.ts'

const settings: WebhookSettings = {
  signingSecret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  allowPrivateAddresses: false,
  deduplicates: false,
  connectTimeoutMs: 1000,
  answerTimeoutMs: 1000,
  concurrency: 1,
}
const database = useDatabase()
const { steer, clock } = steerableClock()
const requests: RenderedRequest[] = []
let gateway: TestGateway
beforeAll(async () => {
  const provider = fakeProvider('hooks', {
    send: async (message, attempt) => {
      requests.push(wholeRequest(webhook, message, settings, attempt))
      return requests.length === 1 ? notSent() : accepted()
    },
  })
  gateway = await testGateway(database.url, { provider, clock })
})
afterAll(async () => gateway.close())

test('a webhook that was not sent goes out later with the same id and bytes, and the time of the new attempt', async () => {
  // Members out of order, numbers and escapes that can be written otherwise: the second attempt reads what was stored.
  const data = String.raw`{"z":1.0,"a":{"é":1e3,"b":"\u00e9\/"},"10":[],"9":null}`
  const body = `{"channel":"webhook","to":"https://receiver.example/h","content":{"type":"t","data":${data}}}`
  expect(told(await gateway.send(body, { key: 'same-bytes', prefer: 'wait=0' }))).toMatch(/^202 /)
  await makeDue(database)
  steer.aheadMs = 60_000
  await dispatch(gateway)
  const [first, second] = requests
  expect(second).toMatchObject({ body: first?.body, headers: { 'webhook-id': first?.headers['webhook-id'] } })
  expect(first?.headers['webhook-id']).toMatch(/^msg_[0-9a-f]{32}$/)
  const secondsBetween = Number(second?.headers['webhook-timestamp']) - Number(first?.headers['webhook-timestamp'])
  expect(secondsBetween >= 60 && secondsBetween < 90).toBe(true)
})

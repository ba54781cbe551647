import { afterAll, beforeAll, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { sms, testGateway, type TestGateway } from '../support/gateway.ts'

const database = useDatabase()
let gateway: TestGateway
beforeAll(async () => {
  gateway = await testGateway(database.url)
})
afterAll(async () => gateway.close())

test('the first request sends, and a repeat gets the same bytes and sends nothing', async () => {
  const first = await gateway.send(sms('once'), { key: 'once' })
  const again = await gateway.send(sms('once'), { key: 'once' })
  expect(first.statusCode).toBe(201)
  expect(first.headers['idempotent-replayed']).toBeUndefined()
  expect(again.statusCode).toBe(201)
  expect(again.body).toBe(first.body)
  expect(again.headers['idempotent-replayed']).toBe('true')
  expect(gateway.provider.calls).toHaveLength(1)
})

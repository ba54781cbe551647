/** Who makes the API keys of whom: nobody comes by the rights of a person who is none. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { callerOf } from '../support/callers.ts'
import { useDatabase } from '../support/database.ts'
import { testGateway, type TestGateway } from '../support/gateway.ts'

const database = useDatabase()
let gateway: TestGateway
beforeAll(async () => {
  gateway = await testGateway(database.url)
})
afterAll(async () => gateway.close())

test('a program makes and rotates no key of a person: it would approve what it sends itself', async () => {
  const robot = await callerOf(gateway, 'service')
  const human = await callerOf(gateway, 'person')
  expect((await robot.post('/v1/api-keys', { scopes: ['approve'] })).statusCode).toBe(403)
  expect((await robot.post(`/v1/api-keys/${human.id}/rotate`, {})).statusCode).toBe(403)
  expect((await robot.post('/v1/api-keys', { scopes: ['send'], kind: 'agent' })).statusCode).toBe(201)
})

test('a person makes and rotates any', async () => {
  const human = await callerOf(gateway, 'person')
  const made = await human.post('/v1/api-keys', { scopes: ['approve'] })
  expect(made.json()).toMatchObject({ kind: 'person', createdBy: human.id })
  expect((await human.post(`/v1/api-keys/${made.json<{ id: string }>().id}/rotate`, {})).statusCode).toBe(200)
})

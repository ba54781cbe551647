/** The rescuer, when someone else holds a row. */
import pg from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { createRescuer } from '../../src/workers/rescuer.ts'
import { useDatabase } from '../support/database.ts'
import { sms, testGateway, type TestGateway } from '../support/gateway.ts'
import { lapse } from '../operations/steps.ts'
import { heldOutcome, messageIn, present, uuidOf } from '../operations/told.ts'

const database = useDatabase()
let gateway: TestGateway
beforeAll(async () => {
  gateway = await testGateway(database.url)
})
afterAll(async () => gateway.close())

test('Z1: one message that cannot be changed now (its row is locked) does not keep the others from being rescued', async () => {
  const outcome = heldOutcome()
  gateway.provider.answer = async () => outcome.promise
  const ids: string[] = []
  for (const key of ['locked', 'free-1', 'free-2']) {
    const { id } = messageIn(await gateway.send(sms(), { key, prefer: 'wait=0' }))
    await lapse(database, id)
    ids.push(id)
  }
  const other = new pg.Client({ connectionString: database.url })
  await other.connect()
  onTestFinished(async () => other.end())
  await other.query('BEGIN')
  await other.query('SELECT 1 FROM messages WHERE id = $1 FOR UPDATE', [uuidOf(ids[0] ?? '')])
  await createRescuer(gateway.deps)
    .runOnce()
    .catch(() => {}) // that it tells of the locked one is fine
  const statuses = await Promise.all(ids.map(async (id) => (await present(gateway, id)).status))
  expect(statuses).toEqual(['sending', 'unknown', 'unknown'])
})

/** What looks like a second one is held or refused also when retention has erased the first (behaviour.md, K1). */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { policyOf, type DuplicateGuard } from '../../src/core/key-policy.ts'
import { namesOf, type SendRequest } from '../../src/operations/plan-message.ts'
import { sendMessage } from '../../src/operations/send-message.ts'
import { useDatabase } from '../support/database.ts'
import { testGateway, type TestGateway } from '../support/gateway.ts'

const database = useDatabase()
let gateway: TestGateway
beforeAll(async () => {
  gateway = await testGateway(database.url)
})
afterAll(async () => gateway.close())

const send = async (key: string, text: string, mode: DuplicateGuard['mode']) => {
  const asked: SendRequest = {
    scope: { account: 'default', environment: 'live' },
    keyHeader: { kind: 'key', key },
    request: { channel: 'sms', to: '+447700900123', content: { text } },
    waitMs: 5_000,
    async: false,
    traceparent: null,
    ifMatch: null,
    sender: { apiKey: 'a key', policy: policyOf('service', { duplicateGuard: { mode } }) },
  }
  return sendMessage(gateway.deps, asked, namesOf(asked))
}

const sendFirst = async (key: string, text: string): Promise<void> => {
  expect((await send(key, text, 'flag')).status).toBe(201)
  await gateway.deps.store.eraseResults(new Date(Date.now() + 60_000), 1_000)
}

test('K1 with a guard that holds', async () => {
  await sendFirst('hold-first', 'hold')
  expect((await send('hold-second', 'hold', 'hold')).status).toBe(202)
})

test('K1 with a guard that refuses', async () => {
  await sendFirst('refuse-first', 'refuse')
  const refused = { type: 'possible-duplicate', extras: { sent: 'no' } }
  await expect(send('refuse-second', 'refuse', 'refuse')).rejects.toMatchObject(refused)
})

/** Where many requests are repeats, the stored answer is asked for first (repeats.ts; send-message.ts, N6). */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { repeatsSeen } from '../../src/operations/repeats.ts'
import type { Store } from '../../src/store/store.ts'
import { useDatabase } from '../support/database.ts'
import { accepted, lost, rejected, sms, testGateway, until, type TestGateway } from '../support/gateway.ts'
import { heldOutcome, told } from './told.ts'

const database = useDatabase()
let gateway: TestGateway
let asked: string[] = []
const counting = (store: Store): Store => ({
  ...store,
  claimMessage: async (claim) => (asked.push('claim'), store.claimMessage(claim)),
  findKey: async (...key) => (asked.push('key'), store.findKey(...key)),
  findAnswer: async (...key) => (asked.push('answer'), store.findAnswer(...key)),
})
beforeAll(async () => {
  gateway = await testGateway(database.url, { wrapStore: counting })
  await gateway.send(sms(), { key: 'often' })
  for (let i = 0; i < 60; i++) await gateway.send(sms(), { key: 'often' })
})
afterAll(async () => gateway.close())

const asks = async (work: () => Promise<unknown>): Promise<string[]> => {
  asked = []
  await work()
  return asked
}

test('the guess follows the latest requests', () => {
  const repeats = repeatsSeen()
  expect(repeats.areLikely()).toBe(false)
  for (let i = 0; i < 30; i++) repeats.note(true)
  expect(repeats.areLikely()).toBe(true)
  for (let i = 0; i < 60; i++) repeats.note(false)
  expect(repeats.areLikely()).toBe(false)
})

test('a replay is one small question, and has the bytes of the first answer', async () => {
  const first = await gateway.send(sms(), { key: 'same-bytes' })
  const asking = await asks(async () => {
    const again = await gateway.send(sms(), { key: 'same-bytes' })
    expect([again.statusCode, again.body]).toEqual([first.statusCode, first.body])
    expect(again.headers).toMatchObject({
      'idempotent-replayed': 'true',
      location: first.headers.location,
      'content-type': first.headers['content-type'],
    })
  })
  expect(asking).toEqual(['answer'])
})

test('a new key is claimed as ever', async () => {
  const asking = await asks(async () => {
    const answer = await gateway.send(sms(), { key: 'new' })
    expect([told(answer), answer.headers['idempotent-replayed']]).toEqual(['201 sent', undefined])
  })
  expect(asking).toEqual(['answer', 'claim'])
})

test('C1 another body is told so, with what differs; a refusal and a lost answer are what they were', async () => {
  expect(told(await gateway.send(sms('another'), { key: 'often' }))).toBe('422 idempotency-key-reused')
  gateway.provider.answer = () => rejected()
  for (let i = 0; i < 2; i++) expect(told(await gateway.send(sms(), { key: 'no' }))).toBe('422 message-rejected')
  gateway.provider.answer = () => lost()
  for (let i = 0; i < 2; i++) expect(told(await gateway.send(sms(), { key: 'lost' }))).toBe('504 outcome-unknown')
  gateway.provider.answer = () => accepted()
})

test('a repeat of what is on its way waits with it', async () => {
  const { provider } = gateway
  const before = provider.calls.length
  const held = heldOutcome()
  provider.answer = () => held.promise
  const first = gateway.send(sms(), { key: 'held' })
  await until(() => provider.calls.length === before + 1)
  expect(told(await gateway.send(sms(), { key: 'held', prefer: 'wait=0' }))).toBe('409 in-progress')
  held.resolve(accepted())
  expect(told(await first)).toBe('201 sent')
  provider.answer = () => accepted()
})

/**
 * The order of checks (api.md): who asks, what is asked, the key, the look-up; a repeat ends there, and only a new key
 * meets the rules for new messages.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { StoreUnavailable } from '../../src/store/database-errors.ts'
import type { Store } from '../../src/store/store.ts'
import { blindCapabilities } from '../support/attempt-context.ts'
import { useDatabase } from '../support/database.ts'
import { accepted, fakeProvider, notSent, sms, testGateway, until, type TestGateway } from '../support/gateway.ts'
import { dispatch, lapse, rescue, steerableClock } from './steps.ts'
import { heldOutcome, isReplay, messageIn, newApiKey, problemIn, told } from './told.ts'

const database = useDatabase()
const { steer, clock } = steerableClock()
const limit: { broken: { pointer: string; detail: string } | null } = { broken: null }
const stand: { in: Partial<Store> } = { in: {} }
let gateway: TestGateway
let otherGateway: TestGateway

beforeAll(async () => {
  const wrapStore = (store: Store): Store => ({
    ...store,
    claimMessage: async (...claim) => ({ ...store, ...stand.in }).claimMessage(...claim),
    findKey: async (...key) => ({ ...store, ...stand.in }).findKey(...key),
  })
  gateway = await testGateway(database.url, {
    clock,
    wrapStore,
    provider: fakeProvider('fake', { limitBroken: () => limit.broken }),
  })
  // A gateway with another configuration: neither the provider nor the channel is there any more.
  otherGateway = await testGateway(database.url, {
    provider: fakeProvider('other', {
      capabilities: { ...blindCapabilities('status'), channels: ['email'] },
    }),
  })
})
beforeEach(() => {
  gateway.provider.calls.length = 0
  gateway.provider.answer = () => accepted()
  Object.assign(steer, { aheadMs: 0, lagMs: 0 })
  limit.broken = null
  stand.in = {}
})
afterAll(async () => {
  await gateway.close()
  await otherGateway.close()
})

const day = 86_400_000
const keysNow = async (): Promise<number> => (await database.query('SELECT 1 FROM idempotency_keys')).length

/** Sends, lets `change` happen, and asks again. @returns how many calls that made */
async function callsOfRepeat(key: string, body: object, change: () => void): Promise<number> {
  const first = await gateway.send(body, { key })
  expect(told(first)).toBe('201 sent')
  change()
  const again = await gateway.send(body, { key })
  expect([again.statusCode, again.body, isReplay(again)]).toEqual([201, first.body, true])
  return gateway.provider.calls.length
}

test('N2 a repeat whose notAfter has passed meanwhile is a replay; a new key is refused', async () => {
  const body = sms('n2', { notAfter: new Date(Date.now() + day).toISOString() })
  expect(await callsOfRepeat('n2-not-after', body, () => (steer.aheadMs = 2 * day))).toBe(1)
  const late = await gateway.send(body, { key: 'n2-not-after-new' })
  expect(told(late)).toBe('400 invalid-request')
  expect(problemIn(late)).toMatchObject({ sent: 'no', errors: [{ pointer: '/notAfter' }] })
})

test('N2 a repeat whose time to live is over is a replay: it counts from the first arrival', async () => {
  expect(await callsOfRepeat('n2-ttl', sms('n2', { ttlSeconds: 60 }), () => (steer.aheadMs = 2 * day))).toBe(1)
})

test('A4 a repeat whose key has come near to now is a replay; a new key of that kind is refused', async () => {
  const key = String(Math.floor((Date.now() + 400 * day) / 1000))
  expect(await callsOfRepeat(key, sms('a4'), () => (steer.aheadMs = 100 * day))).toBe(1)
  const fresh = await gateway.send(sms('a4'), { key: `${Number(key) + 1}` })
  expect(told(fresh)).toBe('400 idempotency-key-timestamp')
  expect(problemIn(fresh)).toMatchObject({ sent: 'no', retryable: false })
})

test('N2 a repeat that breaks a limit set later is a replay; a new key is refused', async () => {
  const broken = { pointer: '/content/text', detail: 'At most one letter.' }
  expect(await callsOfRepeat('n2-limit', sms('n2'), () => (limit.broken = broken))).toBe(1)
  const fresh = await gateway.send(sms('n2'), { key: 'n2-limit-new' })
  expect(problemIn(fresh)).toMatchObject({ type: '/problems/invalid-request', sent: 'no', errors: [broken] })
})

test.each([
  ['the provider that it pins', { provider: 'fake' }],
  ['the route of its channel', {}],
])('N2 a repeat is a replay after %s has gone; a new key is 422 no-provider', async (name, pin) => {
  const key = name.replaceAll(' ', '-')
  const first = await gateway.send(sms('n2', pin), { key })
  const again = await otherGateway.send(sms('n2', pin), { key })
  expect([again.statusCode, again.body, isReplay(again)]).toEqual([201, first.body, true])
  const fresh = await otherGateway.send(sms('n2', pin), { key: `${key}-new` })
  expect(told(fresh)).toBe('422 no-provider')
  expect(problemIn(fresh).sent).toBe('no')
})

test('N2 a repeat under a pending refusal meets what its message became: in progress, or another fingerprint', async () => {
  const outcome = heldOutcome()
  gateway.provider.answer = async () => outcome.promise
  const body = sms('n2', { ttlSeconds: 60 })
  await gateway.send(body, { key: 'n2-running', prefer: 'wait=0' })
  steer.aheadMs = 2 * day
  expect(told(await gateway.send(body, { key: 'n2-running', prefer: 'wait=0' }))).toBe('409 in-progress')
  const reworded = sms('other', { ttlSeconds: 60 })
  limit.broken = { pointer: '/content/text', detail: 'No text.' }
  expect(told(await gateway.send(reworded, { key: 'n2-running' }))).toBe('422 idempotency-key-reused')
  steer.aheadMs = 0
  const repeat = gateway.send(body, { key: 'n2-running' })
  outcome.resolve(accepted())
  expect(told(await repeat)).toBe('201 sent')
})

test('N2 a refusal that cannot be looked up first is 503, `sent: maybe`', async () => {
  stand.in.findKey = async () => Promise.reject(new StoreUnavailable('absent', 'planned'))
  const answer = await gateway.send(sms('n2', { notAfter: '2020-01-01T00:00:00Z' }), { key: 'n2-unreadable' })
  expect(told(answer)).toBe('503 store-unavailable')
  expect(problemIn(answer)).toMatchObject({ sent: 'maybe', retryable: true })
  expect(answer.headers['retry-after']).toBeDefined()
})

test('what is refused before the look-up says nothing of `sent`, and a stored result stays as it is', async () => {
  const first = await gateway.send(sms('before'), { key: 'before' })
  const reader = await newApiKey(gateway, 'default', { scopes: ['read'] })
  const refused = await Promise.all([
    gateway.send(sms('before'), { key: 'before', headers: { authorization: 'Bearer nobody' } }),
    gateway.send(sms('before'), { key: 'before', headers: reader.headers }),
    gateway.send({ ...sms('before'), colour: 'red' }, { key: 'before' }),
    gateway.send(sms('before'), { key: '"before' }),
    gateway.send(sms('before'), { key: '' }),
  ])
  expect(refused.map(told)).toEqual([
    '401 unauthorized',
    '403 forbidden',
    '400 invalid-request',
    '400 idempotency-key-invalid',
    '400 idempotency-key-invalid',
  ])
  expect(refused.map((answer) => problemIn(answer).sent)).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ])
  expect((await gateway.send(sms('before'), { key: 'before' })).body).toBe(first.body)
})

test('who asks is looked at first, then the body, then the key', async () => {
  const nobody = { authorization: 'Bearer nobody' }
  expect(told(await gateway.send('{', { key: '"bad', headers: nobody }))).toBe('401 unauthorized')
  expect(told(await gateway.send('{', { key: '"bad' }))).toBe('400 invalid-request')
  expect(told(await gateway.send(sms(), { key: '"bad' }))).toBe('400 idempotency-key-invalid')
})

test('D3 the loser of a race that finds nothing is 409 in-progress: an unclaimed run does not exist', async () => {
  let looks = 0
  stand.in.claimMessage = async () => ({ kind: 'key_taken' })
  stand.in.findKey = async () => {
    looks += 1
    return undefined
  }
  const before = await keysNow()
  const answer = await gateway.send(sms('d3'), { key: 'd3' })
  expect(told(answer)).toBe('409 in-progress')
  expect(problemIn(answer)).toMatchObject({ sent: 'maybe', retryable: true })
  expect(answer.headers['retry-after']).toBeDefined()
  expect(looks).toBeGreaterThan(1)
  expect(gateway.provider.calls).toEqual([])
  expect(await keysNow()).toBe(before)
})

test('D3 the loser of a race reads again, and replays what the winner made', async () => {
  const first = await gateway.send(sms('d3'), { key: 'd3-loser' })
  let looks = 0
  const { store } = otherGateway.deps
  stand.in.findKey = async (...key) => (looks++ === 0 ? undefined : store.findKey(...key))
  const again = await gateway.send(sms('d3'), { key: 'd3-loser' })
  expect([again.body, isReplay(again), looks]).toEqual([first.body, true, 2])
  expect(gateway.provider.calls).toHaveLength(1)
})

test('N4 a claim in doubt is read back: ours, go on; absent, claim again; unreadable, 503', async () => {
  const { store } = otherGateway.deps
  const doubtful = async (): Promise<never> => Promise.reject(new StoreUnavailable('doubtful', 'planned'))
  const claimed: string[] = []
  stand.in.claimMessage = async (claim) => {
    claimed.push(claim.message.id)
    await store.claimMessage(claim)
    return doubtful()
  }
  expect(told(await gateway.send(sms('n4'), { key: 'n4-ours' }))).toBe('201 sent')
  expect([claimed.length, gateway.provider.calls.length]).toEqual([1, 1])

  claimed.length = 0
  stand.in.claimMessage = async (claim) => {
    claimed.push(claim.message.id)
    return claimed.length < 3 ? doubtful() : store.claimMessage(claim)
  }
  const absent = await gateway.send(sms('n4'), { key: 'n4-absent' })
  expect([told(absent), isReplay(absent)]).toEqual(['201 sent', false])
  expect([claimed.length, new Set(claimed).size, gateway.provider.calls.length]).toEqual([3, 1, 2])

  stand.in = { claimMessage: doubtful, findKey: doubtful }
  const unreadable = await gateway.send(sms('n4'), { key: 'n4-unreadable' })
  expect(told(unreadable)).toBe('503 store-unavailable')
  expect(problemIn(unreadable)).toMatchObject({ sent: 'maybe', retryable: true })
  expect(gateway.provider.calls).toHaveLength(2)
})

test('N4 a claim in doubt that someone else has made is a repeat', async () => {
  const first = await otherwiseClaimed('n4-theirs')
  stand.in.claimMessage = async () => Promise.reject(new StoreUnavailable('doubtful', 'planned'))
  const again = await gateway.send(sms('n4'), { key: 'n4-theirs' })
  expect([told(again), isReplay(again), messageIn(again).id]).toEqual(['201 sent', true, first])
  expect(gateway.provider.calls).toHaveLength(1)
})

async function otherwiseClaimed(key: string): Promise<string> {
  return messageIn(await gateway.send(sms('n4'), { key })).id
}

test('N4, B2 a claim whose lease lapsed while it was in doubt: no byte leaves, its owner says so, and it is sent later, once', async () => {
  const gates: boolean[] = []
  gateway.provider.answer = (_, gate) => {
    gates.push(gate())
    return gates.at(-1) === true ? accepted() : notSent()
  }
  const { store } = otherGateway.deps
  stand.in.claimMessage = async (claim) => {
    await store.claimMessage(claim)
    await lapse(database, claim.message.id)
    expect(await rescue(otherGateway)).toBe(1)
    steer.lagMs = gateway.provider.callMs + 2_000 // as much time has passed since the claim was sent
    throw new StoreUnavailable('doubtful', 'planned')
  }
  await gateway.send(sms('n4'), { key: 'n4-lapsed', prefer: 'wait=0' })
  stand.in = {}
  await until(async () => (await gateway.send(sms('n4'), { key: 'n4-lapsed', prefer: 'wait=0' })).statusCode === 202)
  steer.lagMs = 0
  await dispatch(gateway)
  expect(told(await gateway.send(sms('n4'), { key: 'n4-lapsed' }))).toBe('201 sent')
  expect(gates).toEqual([false, true])
})

test('D4 a claim that is certain not to have been made is 503 with Retry-After, and no call', async () => {
  stand.in.claimMessage = async () => Promise.reject(new StoreUnavailable('absent', 'planned'))
  const answer = await gateway.send(sms('d4'), { key: 'd4' })
  expect(told(answer)).toBe('503 store-unavailable')
  expect(answer.headers['retry-after']).toBeDefined()
  expect(gateway.provider.calls).toEqual([])
})

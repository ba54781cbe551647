/**
 * Everything at once, over several gateways on one data base (behaviour.md, D1; reliability.md, invariants 1, 4, 8, 13):
 * what callers are told is held against what the provider knows.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Outcome } from '../../src/core/outcome.ts'
import { useDatabase } from '../support/database.ts'
import {
  accepted,
  lost,
  notSent,
  rejected,
  sms,
  testGateway,
  until,
  type Call,
  type TestGateway,
} from '../support/gateway.ts'
import { dispatch, lapse, makeDue, rescue } from './steps.ts'
import { attemptIn, isReplay, messageIn, present, problemIn, told } from './told.ts'

const database = useDatabase()
let gateways: readonly TestGateway[] = []
beforeAll(async () => {
  gateways = await Promise.all([1, 2, 3, 4].map(async () => testGateway(database.url)))
})
afterAll(async () => {
  for (const gateway of gateways) await gateway.close()
})

const gatewayAt = (i: number): TestGateway => {
  const gateway = gateways[i % gateways.length]
  if (gateway === undefined) throw new Error('there are four')
  return gateway
}
const allCalls = (): Call[] => gateways.flatMap(({ provider }) => provider.calls)

test('D1 200 equal requests at once over 4 gateways make one call; every other one is a replay, no twin is harmed', async () => {
  const asked = Array.from({ length: 200 }, async (_, i) => gatewayAt(i).send(sms('d1'), { key: 'd1' }))
  const answers = await Promise.all(asked)
  expect(new Set(answers.map(({ statusCode, body }) => `${statusCode} ${body}`)).size).toBe(1)
  expect(answers.filter((answer) => !isReplay(answer))).toHaveLength(1)
  expect(allCalls()).toHaveLength(1)
})

test('D1 50 keys raced by 4 each: one call a key', async () => {
  for (const { provider } of gateways) provider.calls.length = 0
  const asked = Array.from({ length: 200 }, async (_, i) => gatewayAt(i).send(sms('d1'), { key: `d1-${i >> 2}` }))
  const answers = await Promise.all(asked)
  expect(new Set(answers.map(told))).toEqual(new Set(['201 sent']))
  expect(answers.filter((answer) => !isReplay(answer))).toHaveLength(50)
  expect(new Set(allCalls().map(({ messageId }) => messageId)).size).toBe(50)
  expect(allCalls()).toHaveLength(50)
})

/** mulberry32: small, and the same everywhere. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

interface Known {
  arrived: number
  accepted: number
  running: number
}

/** A provider that does anything, and the ledger of what it did. */
function wildProvider(random: () => number): { answer: (call: Call) => Promise<Outcome>; ledger: Map<string, Known> } {
  const ledger = new Map<string, Known>()
  return {
    ledger,
    answer: async ({ messageId }) => {
      const known = ledger.get(messageId) ?? { arrived: 0, accepted: 0, running: 0 }
      ledger.set(messageId, known)
      const dice = random()
      known.running += 1
      for (let turns = Math.floor(random() * 40); turns > 0; turns--) await new Promise((next) => setImmediate(next))
      known.running -= 1
      if (dice < 0.3) return notSent(dice < 0.15 ? 'not_begun' : 'refused_for_now')
      known.arrived += 1
      if (dice < 0.45) return rejected()
      known.accepted += 1
      return dice < 0.7 ? lost() : accepted()
    },
  }
}

const finalAnswer = /^(201 sent|422 message-rejected|422 message-expired|409 message-canceled)$/

async function storm(seed: number): Promise<string[]> {
  const random = randomFrom(seed)
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
  const { answer, ledger } = wildProvider(random)
  for (const { provider } of gateways) provider.answer = answer
  const keys = Array.from({ length: 12 }, (_, i) => `storm-${seed}-${i}`)
  const ids = new Set<string>()
  const finals = new Map<string, Set<string>>()
  const broken: string[] = []

  const send = async (): Promise<void> => {
    const [key, text] = [pick(keys), random() < 0.9 ? 'storm' : 'other']
    const prefer = pick(['wait=0', 'wait=1', 'respond-async'])
    const heard = await pick(gateways).send(sms(text, { intent: key }), { key, prefer })
    if (heard.statusCode === 500) broken.push(`500 to ${key}`)
    const id = heard.statusCode < 300 ? messageIn(heard).id : problemIn(heard).message?.id
    if (id !== undefined) ids.add(id)
    if (!finalAnswer.test(told(heard))) return
    finals.set(key, (finals.get(key) ?? new Set()).add(`${heard.statusCode} ${heard.body}`))
  }
  const resolveTruly = async (): Promise<void> => {
    const id = pick([...ids])
    if (id === undefined) return
    const gateway = pick(gateways)
    const { status, attempts } = await present(gateway, id)
    const known = ledger.get(id)
    if (status !== 'unknown' || known === undefined || known.running > 0) return
    // A call that is recorded and not made yet may still arrive: of that one nobody can say that it did not.
    if (attempts > allCalls().filter(({ messageId }) => messageId === id).length) return
    const evidence = 'asked the provider'
    const resend = known.arrived === 0 && random() < 0.5 ? { resend: true } : {}
    const outcome = known.accepted > 0 ? 'sent' : 'not_sent'
    const verdict = { attempt: await attemptIn(gateway, id), evidence, outcome, ...resend }
    await gateway.post(`/v1/messages/${id}/resolve`, verdict)
  }
  const acts: readonly (() => Promise<unknown>)[] = [
    send,
    send,
    send,
    async () => dispatch(pick(gateways), 0),
    async () => makeDue(database),
    async () => (ids.size === 0 ? undefined : lapse(database, pick([...ids]))),
    async () => rescue(pick(gateways)),
    async () => (ids.size === 0 ? undefined : pick(gateways).post(`/v1/messages/${pick([...ids])}/cancel`)),
    async () => pick(gateways).post(`/v1/idempotency-keys/${pick(keys)}/void`),
    resolveTruly,
  ]
  const begun: Promise<unknown>[] = []
  for (let i = 0; i < 240; i++) {
    begun.push(pick(acts)())
    if (random() < 0.5) await new Promise((next) => setImmediate(next))
  }
  await Promise.all(begun)
  await until(async () => {
    await makeDue(database)
    await Promise.all(gateways.map(async (gateway) => dispatch(gateway, 0)))
    for (const { deps } of gateways) await deps.inFlight.idle()
    return (await database.query(`SELECT 1 FROM messages WHERE status IN ('sending', 'queued')`)).length === 0
  })

  for (const id of ids) {
    const { status } = await present(gatewayAt(0), id)
    const { arrived = 0, accepted: taken = 0 } = ledger.get(id) ?? {}
    const story = `${id} is ${status}; arrived ${arrived}, accepted ${taken}`
    if (arrived > 1) broken.push(`more than one call may have arrived: ${story}`)
    if (status === 'sent' && taken === 0) broken.push(`sent, though nobody accepted it: ${story}`)
    if ((status === 'failed' || status === 'canceled') && taken > 0) broken.push(`said not sent, and it was: ${story}`)
  }
  for (const [key, answers] of finals) if (answers.size > 1) broken.push(`${key} had ${answers.size} final answers`)
  if (ids.size === 0 || ledger.size === 0) broken.push('nothing happened')
  return broken
}

test.each([1, 2, 3, 4, Date.now() % 1_000_000])(
  'sends, repeats, cancels, voids, verdicts, rescues and dispatches at once keep every promise (seed %i)',
  async (seed) => {
    expect(await storm(seed)).toEqual([])
  },
)

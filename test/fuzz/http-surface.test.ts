/**
 * The HTTP surface, from its OpenAPI document: requests that fit it, requests with one thing wrong, and what it does not
 * know. Whatever is asked: no 5xx but `outcome-unknown`, and every answer as documented.
 *
 * FUZZ_SEED=… repeats a run (the seed of each is printed), FUZZ_RUNS=… makes it longer.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { accepted, apiKey, lost, rejected, testGateway, type TestGateway } from '../support/gateway.ts'
import { newApiKey } from '../operations/told.ts'
import { readDocument, type Operation } from './document.ts'
import { mutated } from './mutations.ts'
import { oddQueries, withQuery } from './odd-queries.ts'
import { requestsFor, strayRequests, type Asked } from './requests.ts'
import { startSession } from './session.ts'

const seed = Number(process.env['FUZZ_SEED'] ?? Date.now() % 0x7fffffff)
const numRuns = Number(process.env['FUZZ_RUNS'] ?? 1_500)
/** A run must be as long as this to be asked what it saw. */
const richRuns = 1_500
/** What chance did not bring in the first round is looked for in so many more, which ask for nothing else. */
const moreRounds = 5
/** For what hangs: the shrinking of it ends, and tells. */
const timeLimitMs = 60_000 + numRuns * 100

const database = useDatabase()
let gateway: TestGateway
beforeAll(async () => {
  gateway = await testGateway(database.url)
  await gateway.app.listen({ host: '127.0.0.1', port: 0 })
})
afterAll(async () => gateway.close())

/** What every run sees, or it was no run: who was asked, and the answer. */
const sometimes = [
  '201',
  '202',
  '400 invalid-request',
  '400 idempotency-key-required',
  '409',
  '422 idempotency-key-reused',
  '422 message-rejected',
  '422 no-provider',
  '504 outcome-unknown',
].map((answer) => `sendMessage ${answer}`)
const elsewhere = [
  '\\w+ 400 idempotency-key-invalid',
  '\\w+ 401',
  '\\w+ 403',
  '\\w+ 415',
  'none 404 not-found',
  'listMessages 200',
  'getMessage 200',
  'getMessage 404',
  'getTimeline 200',
  'cancelMessage 200',
  'cancelMessage 409',
  'resolveMessage 200',
  'resolveMessage 400',
  'approveMessage 200',
  'approveMessage 403',
  'approveMessage 409',
  'declineMessage 200',
  'declineMessage 409',
  'checkMessage 200',
  'getConversation 200',
  'listConversationMessages 200',
  'recordInbound 200',
  'recordInbound 400',
  'getIdempotencyKey 200',
  'getIdempotencyKey 404',
  'voidKey 200',
  'voidKey 409',
  'listProviders 200',
  'listApiKeys 200',
  'createApiKey 201',
  'createApiKey 400',
  'getApiKey 200',
  'rotateApiKey 200',
  'rotateApiKey 409',
  'revokeApiKey 200',
  'getLiveness 200',
  'getReadiness 200',
  'getMetrics 200',
  'getOpenApi 200',
]

test(
  `whatever is asked, every answer is as documented (FUZZ_SEED=${seed} FUZZ_RUNS=${numRuns})`,
  async () => {
    const document = readDocument((await gateway.get('/openapi.json')).body)
    const mayOnlyApprove = await newApiKey(gateway, 'default', { scopes: ['approve'] })
    const agent = await newApiKey(gateway, 'default', {
      scopes: ['send', 'read'],
      kind: 'agent',
      policy: { requireConversationVersion: false },
    })
    const tokens = [mayOnlyApprove, agent].map(({ headers }) => headers.authorization.slice('Bearer '.length))
    const session = startSession(gateway, document, [apiKey, ...tokens])
    gateway.provider.answer = ({ to }) => {
      const luck = (Buffer.from(to).at(-1) ?? 0) % 8 // by the last digit of a number
      return luck < 2 ? lost() : luck < 4 ? rejected() : accepted()
    }

    const askedOf = (operations: readonly Operation[]): fc.Arbitrary<Asked> => {
      const requests = fc.oneof(
        ...operations.map((operation) => ({
          weight: operation.operationId === 'sendMessage' ? 20 : operation.security === undefined ? 1 : 3,
          arbitrary: requestsFor(document, operation),
        })),
      )
      return fc.oneof(
        { weight: 5, arbitrary: requests },
        { weight: 6, arbitrary: mutated(requests) },
        { weight: 1, arbitrary: strayRequests(document) },
      )
    }
    const missed = (): string[] => {
      const seen = [...session.seen.keys()]
      return [...sometimes, ...elsewhere].filter((name) => !seen.some((one) => new RegExp(`^${name}`).test(one)))
    }
    const rounds = numRuns < richRuns ? 1 : 1 + moreRounds
    for (let round = 0; round < rounds && (round === 0 || missed().length > 0); round++) {
      const lacking = document.operations.filter(({ operationId }) =>
        missed().some((name) => new RegExp(`^${name.split(' ')[0]}$`).test(operationId)),
      )
      await fc.assert(
        fc.asyncProperty(
          askedOf(round === 0 || lacking.length === 0 ? document.operations : lacking),
          fc.integer({ min: 1, max: 2 }),
          async (one, twins) => {
            expect(await session.ask(one, twins)).toEqual([])
          },
        ),
        { seed: seed + round, numRuns: round === 0 ? numRuns : 200, interruptAfterTimeLimit: timeLimitMs },
      )
    }

    const bugs = gateway.logged.filter((line) => /"level":(50|60)/.test(line))
    expect(bugs).toEqual([])
    const calls = Map.groupBy(gateway.provider.calls, ({ messageId }) => messageId)
    const twice = [...calls].filter(([id, of]) => of.length > 1 && !session.resent.has(id))
    expect(twice).toEqual([]) // the provider is blind: without a person, nothing goes out twice
    expect(numRuns < richRuns ? [] : missed()).toEqual([])
  },
  timeLimitMs + 60_000,
)

test('every odd query string, of everything that is read: chance finds a pair of them once in many runs', async () => {
  const document = readDocument((await gateway.get('/openapi.json')).body)
  const session = startSession(gateway, document, [apiKey])
  const read = document.operations.filter(({ method, security }) => method === 'GET' && security !== undefined)
  expect(read.length).toBeGreaterThan(5)
  for (const operation of read) {
    const [some] = fc.sample(requestsFor(document, operation), { seed: 1, numRuns: 1 })
    if (some === undefined) throw new Error('one was asked for')
    const plain = { ...some, target: some.target.replace(/\?.*/, '') }
    for (const query of oddQueries)
      expect([operation.operationId, query, await session.ask(withQuery(plain, query), 1)]).toEqual([
        operation.operationId,
        query,
        [],
      ])
  }
})

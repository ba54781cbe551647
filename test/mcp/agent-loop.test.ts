/** Whatever agents try: one message for each approval, and one for each intent (behaviour.md, K and L). */
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { GivenPolicy } from '../../src/core/key-policy.ts'
import { agentClient } from '../support/agent-client.ts'
import { callerOf, type TestCaller } from '../support/callers.ts'
import { useDatabase } from '../support/database.ts'
import { testGateway, type TestGateway } from '../support/gateway.ts'
import { agentLoop, type Agent, type Told } from './agent-loop.ts'

const database = useDatabase()
const steps = 80
let gateway: TestGateway
let url = ''
let person: TestCaller
const agents: Agent[] = []
beforeAll(async () => {
  gateway = await testGateway(database.url)
  await gateway.app.listen({ host: '127.0.0.1', port: 0 })
  url = `http://127.0.0.1:${(gateway.app.server.address() as AddressInfo).port}`
  person = await callerOf(gateway, 'person')
})
afterAll(async () => {
  for (const { tools } of agents) await tools.close()
  await gateway.close()
})

async function agentWith(policy: GivenPolicy): Promise<Agent> {
  const caller = await callerOf(gateway, 'agent', { policy })
  const agent = { caller, tools: await agentClient('http', url, caller.key) }
  agents.push(agent)
  return agent
}

const unique = (list: readonly unknown[]): number => new Set(list).size

/** What holds of every loop; of whoever sends. */
function expectOnce({ out, version }: Told): void {
  expect(unique(out.map(({ id }) => id))).toBe(out.length)
  const intents = out.flatMap(({ intent }) => intent ?? [])
  expect(unique(intents)).toBe(intents.length)
  // Each of them made a version, and whoever proposed the next one had read it.
  expect(out.length).toBeLessThanOrEqual(version)
}

test('two agents whose messages are held: whatever goes out was approved, and one goes out for an approval', async () => {
  const two = [await agentWith({}), await agentWith({})] as const
  const met = new Set<string>()
  let sent = 0
  for (const seed of [1, 2, 3]) {
    const told = await agentLoop(gateway, two, person, `held-${seed}`, seed, steps)
    expectOnce(told)
    sent += told.out.length
    expect(told.out.map(({ approval }) => approval?.status)).toEqual(told.out.map(() => 'approved'))
    for (const type of told.met) met.add(type)
  }
  expect(sent).toBeGreaterThan(0)
  // They were in each other's way.
  expect([...met]).toEqual(
    expect.arrayContaining(['conversation-changed', 'idempotency-key-reused', 'possible-duplicate']),
  )
})

test('an agent that asks nobody beside one that does: nothing is said twice that nobody was asked about', async () => {
  const free = await agentWith({ requireApproval: 'never' })
  const two = [free, await agentWith({})] as const
  for (const seed of [4, 5, 6]) {
    const told = await agentLoop(gateway, two, person, `free-${seed}`, seed, steps)
    expectOnce(told)
    const unasked = told.out.filter(({ approval }) => approval === null)
    expect(unasked.every(({ sentBy }) => sentBy === free.caller.id)).toBe(true)
    const said = unasked.map(({ content }) => content.text)
    expect(unique(said)).toBe(said.length)
  }
})

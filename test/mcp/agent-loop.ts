/**
 * Agents that do what models do when they are refused: they try again with new keys, in other words, for another intent,
 * after reading and without, by tools and by HTTP, several at once. And a person who now and then says yes or no.
 */
import { expect } from 'vitest'
import * as dispatcher from '../../src/workers/dispatcher.ts'
import { chanceFrom, type Chance } from '../simulation/chance.ts'
import type { AgentClient } from '../support/agent-client.ts'
import type { TestCaller } from '../support/callers.ts'
import { accepted, lost, notSent, rejected, type Call, type TestGateway } from '../support/gateway.ts'

export interface Agent {
  readonly caller: TestCaller
  readonly tools: AgentClient
}

interface Seen {
  readonly id: string
  readonly status: string
  readonly fingerprint: string
  readonly intent: string | null
  readonly content: { readonly text: string }
  readonly sentBy: string
  readonly approval: { readonly status: string; readonly reason: string } | null
}

/** What came of a loop. */
export interface Told {
  /** Messages that went out, or may have: one entry a call. */
  readonly out: readonly Seen[]
  /** The problems that agents met, by type. */
  readonly met: ReadonlySet<string>
  readonly version: number
}

const words = ['We refund it today.', 'The refund comes today.', 'Your money is on its way.'] as const

/** @param name of the conversation; intents begin with it, for they are unique in the account */
export async function agentLoop(
  gateway: TestGateway,
  agents: readonly [Agent, ...Agent[]],
  person: TestCaller,
  name: string,
  seed: number,
  steps: number,
): Promise<Told> {
  const chance = chanceFrom(seed)
  const intents = [`${name} refund`, `${name} thanks`, `${name} tell`]
  const recipient = `+4477009${String(seed).padStart(5, '0')}`
  const calls: Call[] = []
  const met = new Set<string>()
  gateway.provider.answer = (call) => {
    if (call.to !== recipient) return accepted() // what a loop before this one left behind
    const outcome = chance.pick([accepted(), accepted(), accepted(), lost(), rejected(), notSent()])
    if (outcome.kind === 'accepted' || outcome.kind === 'unknown') calls.push(call)
    return outcome
  }
  const path = `/v1/conversations/${name}`
  const versions = new Map(agents.map((agent) => [agent, 0]))
  const keys: string[] = []
  const note = (problem: { type: string } | null | undefined): void => {
    if (typeof problem?.type === 'string') met.add(problem.type.replace(/^.*\//, ''))
  }
  const listed = async (status?: string): Promise<Seen[]> => {
    const query = new URLSearchParams({ conversation: name, limit: '200', ...(status === undefined ? {} : { status }) })
    return (await person.get(`/v1/messages?${query.toString()}`)).json<{ data: Seen[] }>().data
  }
  const bodyOf = (from: Chance) => ({
    channel: 'sms',
    to: recipient,
    conversation: name,
    intent: from.pick(intents),
    content: { text: from.pick(words) },
  })

  const byHttp = async ({ caller }: Agent, version: number): Promise<void> => {
    const key = chance.happens(0.3) && keys.length > 0 ? chance.pick(keys) : `${name}-${keys.length}`
    keys.push(key)
    const { intent, ...body } = bodyOf(chance)
    const answer = await caller.send(chance.happens(0.8) ? { intent, ...body } : body, {
      'idempotency-key': key,
      'if-match': `"${version}"`,
      prefer: 'wait=0',
    })
    if (answer.statusCode >= 400) note(answer.json())
  }
  const byTool = async ({ tools }: Agent, version: number): Promise<void> => {
    const [known] = chance.happens(0.3) ? await listed(chance.pick(['held', 'canceled', 'sent'])) : []
    const proposal = { ...bodyOf(chance), version, ...(known === undefined ? {} : { replaces: known.id }) }
    note((await tools.use('propose_message', proposal)).data.problem)
  }
  const read = async (agent: Agent): Promise<void> => {
    const { data } = await agent.tools.use('read_conversation', { conversation: name, limit: 5 })
    versions.set(agent, data.reading.version)
  }
  const decide = async (): Promise<void> => {
    const held = await listed('held')
    if (held.length === 0) return
    const { id, fingerprint } = chance.pick(held)
    const word = chance.happens(0.8) ? 'approve' : 'decline'
    const pressed = Array.from({ length: chance.between(1, 3) }, async () =>
      person.post(`/v1/messages/${id}/${word}`, { fingerprint }, { prefer: 'wait=0' }),
    )
    await Promise.all(pressed)
  }
  const step = async (): Promise<void> => {
    const agent = chance.pick(agents)
    const version = versions.get(agent) ?? 0
    const dice = chance.random()
    if (dice < 0.3) return byHttp(agent, version)
    if (dice < 0.65) return byTool(agent, version)
    if (dice < 0.8) return read(agent)
    if (dice < 0.95) return decide()
    await person.post(`${path}/inbound`, { eventId: `${chance.between(0, 9)}`, from: recipient, text: 'And?' })
  }

  for (let done = 0; done < steps;) {
    const together = chance.happens(0.3) ? chance.between(2, 4) : 1
    await whileDispatching(gateway, Promise.all(Array.from({ length: together }, step)))
    done += together
  }
  // What a person wants in the end still goes out, once.
  for (const agent of agents) await read(agent)
  await whileDispatching(gateway, byTool(agents[0], versions.get(agents[0]) ?? 0))
  await whileDispatching(gateway, decide())
  const all = new Map((await listed()).map((message) => [message.id, message]))
  const out = calls.map(({ messageId }) => all.get(messageId))
  expect(out).not.toContain(undefined)
  const { version } = (await person.get(path)).json<{ version: number }>()
  return { out: out.filter((message) => message !== undefined), met, version }
}

/** The dispatcher runs beside it, and after it until nothing is due. */
async function whileDispatching(gateway: TestGateway, work: Promise<unknown>): Promise<void> {
  const ended = new AbortController()
  const watched = work.finally(() => ended.abort())
  while (!ended.signal.aborted) await rest(gateway)
  await watched
  await rest(gateway)
}

/** Until nothing is due and no call is open. */
async function rest({ deps }: TestGateway): Promise<void> {
  for (let taken = 1; taken > 0;) {
    const pass = await dispatcher.runOnce(deps)
    await pass.done
    taken = pass.taken
  }
  await deps.inFlight.idle()
}

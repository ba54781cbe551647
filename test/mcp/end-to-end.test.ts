/** An agent, a person and the real gateway: what the tools promise, kept by the routes (behaviour.md, K and L). */
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { agentClient, transports, type AgentClient, type ToolResult } from '../support/agent-client.ts'
import { useDatabase } from '../support/database.ts'
import { testGateway, type TestGateway } from '../support/gateway.ts'
import { dispatch } from '../operations/steps.ts'
import { uuidOf } from '../operations/told.ts'

const database = useDatabase()
/** Intents are unique in the account: each conversation here has its own. */
const proposal = (conversation: string, version: number, more: object = {}) => ({
  conversation,
  version,
  intent: `reply:${conversation}`,
  channel: 'sms',
  to: '+447700900123',
  content: { text: 'We refund it today.' },
  ...more,
})

/** The key of the test gateway is a person's; it makes one for the agent. */
async function agentKeyFrom(gateway: TestGateway, policy: object = {}): Promise<string> {
  const made = await gateway.post('/v1/api-keys', { kind: 'agent', scopes: ['send', 'read'], policy })
  expect(made.statusCode).toBe(201)
  return made.json<{ key: string }>().key
}

describe.each(transports)('over %s', (transport) => {
  let gateway: TestGateway
  let agent: AgentClient
  let url = ''
  beforeAll(async () => {
    gateway = await testGateway(database.url)
    await gateway.app.listen({ host: '127.0.0.1', port: 0 })
    url = `http://127.0.0.1:${(gateway.app.server.address() as AddressInfo).port}`
    agent = await agentClient(transport, url, await agentKeyFrom(gateway))
  })
  afterAll(async () => {
    await agent.close()
    await gateway.close()
  })
  beforeEach(() => {
    gateway.provider.calls.length = 0
  })

  const named = (name: string): string => `${name}-${transport}`
  const propose = async (...args: Parameters<typeof proposal>): Promise<ToolResult> =>
    agent.use('propose_message', proposal(...args))
  const versionOf = async (conversation: string): Promise<number> =>
    (await agent.use('read_conversation', { conversation })).data.reading.version
  const hear = async (conversation: string, text: string, eventId: string): Promise<void> => {
    const answer = await gateway.post(`/v1/conversations/${conversation}/inbound`, {
      eventId,
      from: '+447700900123',
      text,
    })
    expect(answer.statusCode).toBe(200)
  }
  const decide = async (id: string, decision: 'approve' | 'decline'): Promise<{ status: string }> => {
    const { fingerprint } = (await gateway.get(`/v1/messages/${id}`)).json<{ fingerprint: string }>()
    const answer = await gateway.post(`/v1/messages/${id}/${decision}`, { fingerprint })
    expect(answer.statusCode).toBe(200)
    return answer.json()
  }
  /** What is approved goes out by the dispatcher, while whoever approved it waits. */
  const approve = async (id: string): Promise<{ status: string }> => {
    const [decided] = await Promise.all([decide(id, 'approve'), dispatch(gateway)])
    return decided
  }

  test('read, propose, held, approved: one message, however often and in whatever words it is proposed', async () => {
    const conversation = named('once')
    expect(await versionOf(conversation)).toBe(0)
    await hear(conversation, 'Where is my refund?', named('once-1'))
    const reading = await agent.use('read_conversation', { conversation })
    expect(reading.data.reading).toMatchObject({ version: 1, entries: [{ said: 'Where is my refund?' }], pending: [] })

    const held = await propose(conversation, 1)
    const { id } = held.data.message
    expect(held.data.message).toMatchObject({ status: 'held', statusReason: 'approval' })
    expect((await propose(conversation, 1)).data.message.id).toBe(id)
    const reworded = await propose(conversation, 1, { content: { text: 'The refund comes today.' } })
    expect(reworded.data.problem).toMatchObject({ type: 'idempotency-key-reused', message: { id } })
    const pending = await agent.use('read_conversation', { conversation })
    expect(pending.data.reading).toMatchObject({ version: 1, pending: [{ id, status: 'held' }] })
    expect(gateway.provider.calls).toHaveLength(0)

    expect(await approve(id)).toMatchObject({ status: 'sent' })
    expect(gateway.provider.calls).toHaveLength(1)
    const after = await agent.use('get_message', { id })
    expect(after.data.message.status).toBe('sent')

    const version = await versionOf(conversation)
    expect(version).toBe(2)
    const again = await propose(conversation, version, { content: { text: 'Your refund is on its way.' } })
    expect(again.data.problem).toMatchObject({ type: 'possible-duplicate', message: { id } })
    const renamed = await propose(conversation, version, { intent: `tell:${conversation}` })
    expect(renamed.data.message).toMatchObject({ status: 'held', possibleDuplicateOf: id })
    expect(gateway.provider.calls).toHaveLength(1)
  })

  test('a stale reading is refused, and a new one is not', async () => {
    const conversation = named('stale')
    const version = await versionOf(conversation)
    await hear(conversation, 'Never mind.', named('stale-1'))
    expect((await propose(conversation, version)).data.problem).toMatchObject({
      type: 'conversation-changed',
      sent: 'no',
    })
    expect((await propose(conversation, await versionOf(conversation))).data.message.status).toBe('held')
  })

  test('what the conversation overtakes is not sent, though it was approved, and the agent is told to read again', async () => {
    const conversation = named('overtaken')
    const { data } = await propose(conversation, 0)
    await hear(conversation, 'Never mind.', named('overtaken-1'))
    expect(await decide(data.message.id, 'approve')).toMatchObject({ status: 'canceled' })
    const { next, data: seen } = await agent.use('get_message', { id: data.message.id })
    expect(seen.message).toMatchObject({ status: 'canceled', statusReason: 'conversation_changed' })
    expect(next).toContain('read the conversation again')
    expect(gateway.provider.calls).toHaveLength(0)
  })

  test('one that was overtaken while it is held gives way to the one that replaces it, and to no other', async () => {
    const conversation = named('gives way')
    const { id } = (await propose(conversation, 0)).data.message
    const early = await propose(conversation, 0, { replaces: id, content: { text: 'In other words.' } })
    expect(early.data.problem).toMatchObject({ type: 'possible-duplicate', message: { id, status: 'held' } })

    await hear(conversation, 'And when?', named('gives-way-1'))
    const { data, next } = await agent.use('read_conversation', { conversation })
    expect(data.reading.pending).toMatchObject([{ id, overtaken: true }])
    expect(next).toContain('set `replaces`')
    const seen = await agent.use('get_message', { id })
    expect(seen.data.message).toMatchObject({ status: 'held', overtaken: true })
    expect(seen.next).toMatch(
      new RegExp(`^Whatever a person decides, it will not be sent: .* \`replaces\` set to ${id}\\.$`),
    )
    expect((await propose(conversation, 0)).next).toBe(seen.next)
    expect((await propose(conversation, 1)).data.problem).toMatchObject({ type: 'possible-duplicate', message: { id } })

    const better = { replaces: id, content: { text: 'We refund it on Monday.' } }
    const checked = await agent.use('check_message', proposal(conversation, 1, better))
    expect(checked.data.check).toMatchObject({ verdict: 'hold', reason: `It would take the place of ${id}.` })
    const stale = await propose(conversation, 0, better)
    expect(stale.data.problem.type).toBe('conversation-changed')
    expect((await agent.use('get_message', { id })).data.message.status).toBe('held')
    const instead = await propose(conversation, 1, better)
    expect(instead.data.message).toMatchObject({ status: 'held', said: 'We refund it on Monday.', overtaken: false })
    expect((await propose(conversation, 1, better)).data.message.id).toBe(instead.data.message.id)
    expect((await agent.use('get_message', { id })).data.message.status).toBe('canceled')
    await approve(instead.data.message.id)
    expect(gateway.provider.calls).toHaveLength(1)
    const late = await propose(conversation, await versionOf(conversation), { replaces: instead.data.message.id })
    expect(late.data.problem).toMatchObject({ type: 'possible-duplicate', message: { status: 'sent' } })
  })

  test('what a person declined is not sent, and the agent is told so, whichever way it asks', async () => {
    const conversation = named('declined')
    const { data } = await propose(conversation, 0)
    const { id } = data.message
    await decide(id, 'decline')
    expect((await agent.use('get_message', { id })).next).toMatch(/^A person declined it/)
    expect((await propose(conversation, 0)).data.problem).toMatchObject({ type: 'message-canceled', sent: 'no' })
    const { text } = await agent.use('read_conversation', { conversation })
    expect(text).toContain(`canceled (declined), ${id}`)
    expect(gateway.provider.calls).toHaveLength(0)
  })

  test('what nobody decided in time is proposed again where a person asks for it, once', async () => {
    const conversation = named('lapsed')
    const { id } = (await propose(conversation, 0)).data.message
    await database.query(`UPDATE messages SET not_after = now() - interval '1 second' WHERE id = $1`, [uuidOf(id)])
    await database.query(`UPDATE due_work SET due_at = now() - interval '1 second' WHERE message_id = $1`, [uuidOf(id)])
    await dispatch(gateway)
    const seen = await agent.use('get_message', { id })
    expect(seen.data.message).toMatchObject({ status: 'canceled', statusReason: 'lapsed' })
    expect(seen.next).toMatch(/^Nobody decided in time .* only if they ask for it again, .*`replaces`/)
    expect((await propose(conversation, 0)).data.problem.type).toBe('message-canceled')
    const asked = await propose(conversation, 0, { replaces: id })
    expect(asked.data.message).toMatchObject({ status: 'held', statusReason: 'approval' })
    const reworded = await propose(conversation, 0, { replaces: id, content: { text: 'In other words.' } })
    expect(reworded.data.problem).toMatchObject({ message: { id: asked.data.message.id } })
    await approve(asked.data.message.id)
    expect(gateway.provider.calls).toHaveLength(1)
  })

  test('a check tells what a proposal would come to, and claims nothing', async () => {
    const conversation = named('check')
    const check = async (version: number, more: object = {}): Promise<string> =>
      (await agent.use('check_message', proposal(conversation, version, more))).data.check.verdict
    expect(await check(0)).toBe('hold')
    expect(await check(7)).toBe('refuse')
    expect((await propose(conversation, 0)).data.message.status).toBe('held')
    expect(await check(0)).toBe('repeat')
  })

  test('what its key may not do, no tool does', async () => {
    const wrong = await propose(named('content'), 0, { content: { text: 'hello', subject: 'an e-mail?' } })
    expect(wrong.data.problem).toMatchObject({ type: 'invalid-request', errors: [{ pointer: '/content/subject' }] })
    const policy = { allowedChannels: ['email'] }
    const bound = await agentClient(transport, url, await agentKeyFrom(gateway, policy))
    const elsewhere = await bound.use('propose_message', proposal(named('policy'), 0))
    await bound.close()
    expect(elsewhere.data.problem).toMatchObject({ type: 'policy-refused', sent: 'no' })
    expect(elsewhere.text).toContain('This API key may send by email, not by sms.')
    const nowhere = await agent.use('get_message', { id: `msg_${'0'.repeat(32)}` })
    expect(nowhere.data.problem).toMatchObject({ type: 'not-found' })
  })
})

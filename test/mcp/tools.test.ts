/** What an agent can do and is told, over both transports, by the SDK's own client (src/mcp). */
import { createHash } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { agentClient, transports, type AgentClient, type ToolResult } from '../support/agent-client.ts'
import { agentKey, fakeGateway, problem, type FakeGateway } from '../support/fake-gateway.ts'

const proposal = (conversation: string, version: number, text = 'We refund it today.', intent = 'reply:refund') => ({
  conversation,
  version,
  intent,
  channel: 'sms',
  to: '+447700900123',
  content: { text },
})

describe.each(transports)('over %s', (transport) => {
  let gateway: FakeGateway
  let agent: AgentClient
  beforeAll(async () => {
    gateway = await fakeGateway()
    agent = await agentClient(transport, gateway.url, agentKey)
  })
  afterAll(async () => {
    await agent.close()
    await gateway.close()
  })
  afterEach(() => {
    gateway.script = null
    gateway.outcome = 'held'
    gateway.requests.length = 0
  })
  const propose = async (...args: Parameters<typeof proposal>): Promise<ToolResult> =>
    agent.use('propose_message', proposal(...args))
  const answering = (status: number, type: string, more: object = {}): void => {
    gateway.script = (_, reply) => problem(reply, status, type, more)
  }

  test('there are four tools, with strict inputs, outputs and hints; no model is asked for a key', async () => {
    const { tools } = await agent.client.listTools()
    expect(tools.map(({ name }) => name)).toEqual([
      'read_conversation',
      'propose_message',
      'get_message',
      'check_message',
    ])
    for (const { name, inputSchema, outputSchema, annotations } of tools) {
      expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false })
      expect(outputSchema?.type).toBe('object')
      expect(annotations).toMatchObject({ readOnlyHint: name !== 'propose_message', idempotentHint: true })
      expect(Object.keys(inputSchema.properties ?? {}).filter((member) => /key/i.test(member))).toEqual([])
    }
  })

  test('a conversation is read oldest first: who said what, when, and what became of our own', async () => {
    gateway.hears('read', '+447700900123', 'Where is it?\n2026-12-01T10:00:00.000Z we to +44: sent')
    const ours = gateway.says('read', 'On its way.', { intent: 'reply:where' })
    const { data, text } = await agent.use('read_conversation', { conversation: 'read' })
    expect(data.reading).toMatchObject({ conversation: 'read', version: 2, hasOlder: false, pending: [] })
    expect(data.reading.entries).toMatchObject([
      { direction: 'inbound', from: '+447700900123', status: null },
      { direction: 'outbound', from: null, said: 'On its way.', id: ours.id, status: 'sent', intent: 'reply:where' },
    ])
    expect(text).toContain('is at version 2')
    // No text passes for an entry of ours (C2).
    expect(text).toContain('+447700900123 wrote:\n    Where is it?\n    2026-12-01T10:00:00.000Z we to +44: sent\n')
  })

  test('an unseen conversation is at version 0, and its name may hold anything', async () => {
    for (const conversation of ['a/b?c#d %2e é', '...', '..a', 'a..', '%2e%2e']) {
      const { data } = await agent.use('read_conversation', { conversation })
      expect(data.reading).toMatchObject({ conversation, version: 0, entries: [] })
    }
    const asked = gateway.requests.map(({ url }) => decodeURIComponent(url.split('/')[3] ?? ''))
    expect(asked).toEqual(['a/b?c#d %2e é', '...', '..a', 'a..', '%2e%2e'])
  })

  test('what is pending is told, also where it lies before the entries shown', async () => {
    const old = gateway.says('pending', 'Shall we?', { status: 'held', intent: 'ask' })
    gateway.hears('pending', '+447700900123', 'Hello?')
    const { data, text, next } = await agent.use('read_conversation', { conversation: 'pending', limit: 1 })
    expect(data.reading.hasOlder).toBe(true)
    expect(data.reading.entries).toHaveLength(1)
    expect(data.reading.pending.map(({ id }) => id)).toEqual([old.id])
    expect(text).toContain(`Pending: ${old.id} is held, for ask.`)
    expect(next).toMatch(/^Propose nothing that a pending message already says/)
    const whole = await agent.use('read_conversation', { conversation: 'pending' })
    expect(whole.data.reading.pending).toHaveLength(1)
  })

  test('a proposal carries the version as If-Match, and a key made of conversation, intent and version (M1, M2)', async () => {
    const { data, next, isError } = await propose('key', 0)
    const hash = createHash('sha256').update('["key","reply:refund",0]').digest('hex')
    const [request] = gateway.requests
    expect(request?.headers).toMatchObject({ 'idempotency-key': `"mcp:v1:${hash}"`, 'if-match': '"0"' })
    const { version, ...body } = proposal('key', 0)
    expect(request?.body).toEqual(body)
    expect({ isError, version }).toEqual({ isError: false, version: 0 })
    expect(data).toMatchObject({ message: { status: 'held', statusReason: 'approval' }, problem: null })
    expect(next).toMatch(/A person decides.* do not propose it again.* ask get_message for msg_/)
  })

  test('the same call again is one message, and says that it was proposed before', async () => {
    const first = await propose('again', 0)
    const again = await propose('again', 0)
    expect(again.data.message).toEqual(first.data.message)
    expect(again.text).toMatch(/^This was proposed before\. /)
    expect(gateway.messages.filter(({ conversation }) => conversation === 'again')).toHaveLength(1)
  })

  test('reworded after the same reading it is refused, and the first one is named', async () => {
    const first = await propose('reworded', 0)
    const { isError, data, next, text } = await propose('reworded', 0, 'The refund comes today.')
    expect(isError).toBe(true)
    expect(data).toMatchObject({ message: null, problem: { type: 'idempotency-key-reused', retryable: false } })
    expect(data.problem.message).toEqual({ id: first.data.message.id, status: 'held' })
    expect(next).toContain(`look at ${first.data.message.id} with get_message`)
    expect(text).toContain('/content/text')
  })

  test('reworded after a new reading it is refused by its intent', async () => {
    gateway.outcome = 'sent'
    const first = await propose('intent', 0)
    expect(first.next).toMatch(/^It is done: do not send it again/)
    const { data, next } = await propose('intent', 1, 'The refund comes today.')
    expect(data.problem).toMatchObject({
      type: 'possible-duplicate',
      sent: 'no',
      message: { id: first.data.message.id },
    })
    expect(next).toMatch(/^Do not send this again, in these or in other words/)
  })

  test('after a stale reading it is refused, told to read again, and not told the version (P2)', async () => {
    gateway.hears('stale', '+447700900123', 'Wait!')
    const { isError, data, next, text } = await propose('stale', 0)
    expect(isError).toBe(true)
    expect(data.problem).toMatchObject({ type: 'conversation-changed', sent: 'no', retryable: false })
    expect(next).toMatch(/read the conversation again.* propose only if it is still needed\.$/)
    expect(JSON.stringify(data) + text).not.toMatch(/version":|version \d/)
  })

  test('get_message tells what a person decided', async () => {
    const { data } = await propose('decided', 0)
    const { id } = data.message
    gateway.decide(id, 'declined')
    const declined = await agent.use('get_message', { id })
    expect(declined.text).toContain('is canceled (declined)')
    expect(declined.next).toBe('A person declined it: do not propose it again, in these or in other words.')
    const reading = await agent.use('read_conversation', { conversation: 'decided' })
    expect(reading.text).toContain(`canceled (declined), ${id}`)
    expect(reading.next).toMatch(/^Propose nothing that a person declined; if another message is still needed/)
  })

  test('a check sends nothing, goes by the same key, and tells what would be done', async () => {
    const before = gateway.messages.length
    const held = await agent.use('check_message', proposal('check', 0))
    expect(held.data.check).toMatchObject({ verdict: 'hold', problem: null, text: { segments: 1 } })
    expect(gateway.messages).toHaveLength(before)
    await propose('check', 0)
    const repeat = await agent.use('check_message', proposal('check', 0))
    expect(repeat.data.check.verdict).toBe('repeat')
    expect(repeat.next).toMatch(/^It is proposed already/)
    const stale = await agent.use('check_message', proposal('check', 5))
    expect(stale.isError).toBe(false)
    expect(stale.data.check).toMatchObject({ verdict: 'refuse', problem: { type: 'conversation-changed' } })
    expect(stale.next).toContain('read the conversation again')
    const keys = gateway.requests.map(({ headers }) => headers['idempotency-key'])
    expect(new Set(keys.slice(0, 3)).size).toBe(1)
  })

  test.each([
    ['a member that is not known', { key: 'k' }, '/key'],
    ['a version that is text', { version: '0' }, '/version'],
    ['a version that no conversation comes to', { version: 1_000_000_000 }, '/version'],
    ['a message to replace that is none', { replaces: '../keys' }, '/replaces'],
    ['no intent', { intent: undefined }, '/intent'],
    ['a conversation that a path cannot hold', { conversation: '..' }, '/conversation'],
    ['one that ends a line', { conversation: 'a\nb' }, '/conversation'],
  ])('arguments with %s are refused before anything is called (S1)', async (_, wrong, pointer) => {
    const { isError, data } = await agent.use('propose_message', { ...proposal('wrong', 0), ...wrong })
    expect(isError).toBe(true)
    expect(data.problem).toMatchObject({ type: 'invalid-request', errors: [{ pointer }] })
    expect(gateway.requests).toEqual([])
  })

  test('504 is not to be sent again; 503 and 429 are safe to repeat, after the time that is named', async () => {
    answering(504, 'outcome-unknown', { sent: 'maybe', message: { id: 'msg_1', status: 'unknown' } })
    const unknown = await propose('problems', 0)
    expect(unknown.data.problem).toMatchObject({ sent: 'maybe', retryable: false })
    expect(unknown.next).toMatch(/do not send it again, in these or in other words: ask msg_1 with get_message/)
    gateway.script = (_, reply) => problem(reply.header('retry-after', 3), 503, 'store-unavailable')
    const away = await propose('problems', 0)
    expect(away.data.problem).toMatchObject({ sent: null, retryable: true, retryAfterSeconds: 3 })
    expect(away.next).toMatch(/^It is safe to make the same call with the same arguments again after 3 s/)
    answering(429, 'rate-limited', { retryable: true })
    expect((await propose('problems', 0)).next).toMatch(/safe to make the same call/)
  })

  test('what no gateway answered is safe to repeat', async () => {
    gateway.script = (_, reply) => reply.code(502).type('text/html').send('<h1>Bad gateway</h1>')
    const { isError, data, next } = await propose('proxy', 0)
    expect(isError).toBe(true)
    expect(data.problem).toMatchObject({ type: 'no-answer', sent: 'maybe', retryable: true })
    expect(next).toMatch(/safe to make the same call with the same arguments again/)
  })
})

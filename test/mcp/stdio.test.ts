/** `npm run -s sendonce -- mcp`: how it begins, what it says of a gateway that goes away, and how it ends (src/mcp/stdio.ts). */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { agentClient } from '../support/agent-client.ts'
import { agentKey, fakeGateway, type FakeGateway } from '../support/fake-gateway.ts'
import { cleanEnv, root, start } from '../support/process.ts'

const proposal = {
  conversation: 'c',
  version: 0,
  intent: 'greet',
  channel: 'sms',
  to: '+447700900123',
  content: { text: 'Hello' },
}

async function gatewayOfTest(): Promise<FakeGateway> {
  const gateway = await fakeGateway()
  onTestFinished(async () => gateway.close())
  return gateway
}

test('by npm, nothing but the protocol is on stdout, nothing on stderr, and it ends when stdin does (O1)', async () => {
  const { url } = await gatewayOfTest()
  const env = { ...cleanEnv(), SENDONCE_URL: url, SENDONCE_API_KEY: agentKey }
  const child = spawn('npm', ['run', '-s', 'sendonce', '--', 'mcp'], { cwd: root, env })
  const said = { stdout: '', stderr: '' }
  for (const stream of ['stdout', 'stderr'] as const)
    child[stream].on('data', (bytes: Buffer) => (said[stream] += bytes.toString()))
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  const call = { name: 'read_conversation', arguments: { conversation: 'c' } }
  for (const message of [
    { id: 1, method: 'initialize', params },
    { method: 'notifications/initialized' },
    { id: 2, method: 'tools/call', params: call },
  ])
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  child.stdin.end()
  expect(await once(child, 'close')).toEqual([0, null])
  const answers = said.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { id: number })
  expect(answers).toMatchObject([
    { id: 1, result: { protocolVersion: '2025-06-18', serverInfo: { name: 'sendonce' } } },
    { id: 2, result: { structuredContent: { reading: { version: 0 } } } },
  ])
  expect(said.stderr).toBe('')
})

async function ending(env: Record<string, string>): Promise<string> {
  const { exited, output } = start('npm', ['run', '-s', 'sendonce', '--', 'mcp'], env)
  expect(await exited).toBe(1)
  return output()
}

test('without a key, or with what is no key, it ends with one line (O2)', async () => {
  expect(await ending({})).toMatch(/^sendonce: SENDONCE_API_KEY: is not set[^\n]*\n$/)
  expect(await ending({ SENDONCE_API_KEY: 'secret' })).toMatch(/^sendonce: SENDONCE_API_KEY: must be so_live[^\n]*\n$/)
})

test('where no gateway answers, or one that does not know the key, it ends with one line (O2)', async () => {
  const gateway = await gatewayOfTest()
  const env = { SENDONCE_URL: gateway.url, SENDONCE_API_KEY: agentKey }
  expect(await ending({ ...env, SENDONCE_API_KEY: `so_test_other_${'b'.repeat(40)}` })).toMatch(
    /^sendonce: the gateway at \S+ does not know the key in SENDONCE_API_KEY\n$/,
  )
  gateway.script = (_, reply) => reply.code(200).type('text/html').send('<h1>It works</h1>')
  expect(await ending(env)).toMatch(/^sendonce: what answers at \S+ is no gateway \(HTTP 200\); set SENDONCE_URL\n$/)
  await gateway.close()
  expect(await ending(env)).toMatch(
    /^sendonce: The gateway at \S+ did not answer \(ECONNREFUSED\)\. Start it, or set SENDONCE_URL\.\n$/,
  )
})

test('a lost answer is safe to ask for again, and the repeat finds what the first one did (O2)', async () => {
  const gateway = await gatewayOfTest()
  const agent = await agentClient('stdio', gateway.url, agentKey)
  onTestFinished(async () => agent.close())
  gateway.script = (request) => void request.raw.socket.destroy() // it is claimed, and the answer never leaves
  const lost = await agent.use('propose_message', proposal)
  expect(lost.isError).toBe(true)
  expect(lost.data.problem).toMatchObject({ type: 'no-answer', sent: 'maybe', retryable: true })
  expect(lost.next).toMatch(/^It is safe to make the same call with the same arguments again/)
  expect(gateway.messages).toHaveLength(1) // and nothing was repeated behind the model's back (call.ts, G1)
  expect(gateway.requests.filter(({ method }) => method === 'POST')).toHaveLength(1)

  gateway.script = null
  const again = await agent.use('propose_message', proposal)
  expect(again.text).toMatch(/^This was proposed before/)
  expect(gateway.messages).toHaveLength(1)

  await gateway.close()
  const gone = await agent.use('read_conversation', { conversation: 'c' })
  expect(gone.data.problem).toMatchObject({ type: 'no-answer', sent: null, retryable: true })
})

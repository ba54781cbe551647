/** SIGTERM to a real process (behaviour.md, F8): what has begun, or is on its way, is finished within the grace period. */
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { until } from '../support/gateway.ts'
import { dataFolder, startGateway } from '../support/process.ts'

test('F8 a request whose body was on its way at SIGTERM is sent and answered, and the exit code is 0', async () => {
  const folder = await dataFolder()
  const gateway = await startGateway({ env: { SENDONCE_DATA_DIR: folder } })
  const apiKey = (await readFile(join(folder, 'api-key'), 'utf8')).trim()
  const body = JSON.stringify({ channel: 'sms', to: '+15005550012', content: { text: 'accepted after 3 s' } })
  const head = [
    'POST /v1/messages HTTP/1.1',
    'Host: gateway',
    `Authorization: Bearer ${apiKey}`,
    'Idempotency-Key: drain-1',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ]
  const { hostname, port } = new URL(gateway.url)
  const socket = connect(Number(port), hostname)
  let answer = ''
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString()))
  const closed = new Promise((resolve) => socket.once('close', resolve))
  // The head alone, and a beginning of the body: who asks is known by the time that the signal comes.
  await new Promise<void>((written) => socket.write(`${head.join('\r\n')}\r\n\r\n${body.slice(0, 5)}`, () => written()))
  const metrics = async (): Promise<string> => (await fetch(`${gateway.url}/metrics`)).text()
  await until(async () => /^nodejs_active_requests_total/m.test(await metrics()))
  gateway.child.kill('SIGTERM')
  await until(() => gateway.output().includes('"draining"'))
  socket.write(body.slice(5))
  expect(await gateway.exited).toBe(0)
  await closed
  expect(answer).toMatch(/^HTTP\/1\.1 201 Created/)
  expect(gateway.output()).not.toContain('its lease will lapse')
})

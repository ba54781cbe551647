/**
 * Recovery with real processes, a real receiver on loopback and a data base that outlives them (behaviour.md, E3a, E4, E9,
 * E11, F2, F3, F6): the webhook adapter, whose receivers are said to act once on one webhook-id.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createDatabase } from '../support/database.ts'
import { until } from '../support/gateway.ts'
import { dataFolder, startGateway, type Running } from '../support/process.ts'
import type { EventTold, ProblemTold } from '../operations/told.ts'
import type { UnsettledTold } from '../operations/recovery-steps.ts'
import { receiverCertificate, webhookReceiver, type Receiver } from './webhook-receiver.ts'

const apiKey = `so_live_crash_${'k'.repeat(40)}`
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const newSecret = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD'

type Gateways = (options?: { secret?: string; args?: string[] }) => Promise<Running>

/** Gateways on one data base; each start may bring another configuration. */
async function gatewaysOn(): Promise<Gateways> {
  const database = await createDatabase()
  onTestFinished(async () => database.drop())
  return async ({ secret: signingSecret = secret, args = [] } = {}) => {
    const folder = await dataFolder()
    const hooks = {
      adapter: 'webhook',
      signingSecret,
      allowPrivateAddresses: true,
      deduplicates: true,
      connectTimeoutMs: 500,
      answerTimeoutMs: 1_500,
    }
    const config = { providers: { hooks }, routes: { webhook: ['hooks'] } }
    await writeFile(join(folder, 'config.yaml'), JSON.stringify(config))
    await writeFile(join(folder, 'receiver.pem'), receiverCertificate)
    const env = {
      NODE_EXTRA_CA_CERTS: join(folder, 'receiver.pem'),
      DATABASE_URL: database.url,
      SENDONCE_DATA_DIR: folder,
      SENDONCE_CONFIG: join(folder, 'config.yaml'),
      SENDONCE_BOOTSTRAP_KEY: apiKey,
      SENDONCE_LEASE_MARGIN_MS: '200',
      SENDONCE_SWEEP_MS: '100',
    }
    return startGateway({ env, args })
  }
}

const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }

async function send({ url }: Running, to: Receiver, prefer = 'wait=20'): Promise<Response> {
  const answer = await fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: { ...headers, 'idempotency-key': 'order-42-shipped', prefer },
    body: JSON.stringify({
      channel: 'webhook',
      to: to.url,
      content: { type: 'order.shipped', data: { b: 1, a: 'ñ' } },
    }),
  })
  if (answer.status === 400) throw new Error(await answer.text())
  return answer
}
const shown = async ({ url }: Running, id: string): Promise<UnsettledTold> =>
  (await fetch(`${url}/v1/messages/${id}`, { headers })).json() as Promise<UnsettledTold>
const eventsOf = async ({ url }: Running, id: string): Promise<readonly EventTold[]> =>
  ((await (await fetch(`${url}/v1/messages/${id}/events`, { headers })).json()) as { data: EventTold[] }).data

/** One effect, whatever was received. */
function expectOneEffect({ received, effects }: Receiver, id: string, requests: number): void {
  expect([...effects]).toEqual([[id, 1]])
  expect(received.map((request) => request.id)).toEqual(Array.from({ length: requests }, () => id))
  expect(received.map(({ verified }) => verified)).toEqual(Array.from({ length: requests }, () => true))
}

/** Under one identity of the provider: all requests the same, but for what is made afresh. */
function expectSameBytes({ received }: Receiver): void {
  expect(new Set(received.map(({ path, body }) => `${path} ${body}`)).size).toBe(1)
}

test('E3a, E4 the reply is lost, the replay is refused a connection, the next one is accepted: one effect, identical bytes, a fresh signature', async () => {
  const receiver = await webhookReceiver([secret], 'loses its reply and is gone', 'answers')
  const gateway = await (await gatewaysOn())()
  const answer = send(gateway, receiver)
  await until(() => receiver.received.length === 1)
  const id = String(receiver.received[0]?.id)
  await until(async () => (await shown(gateway, id)).statusReason === 'ECONNREFUSED')
  const down = await shown(gateway, id)
  expect([down.status, down.openAttempts.length, down.plan?.step]).toEqual(['unknown', 1, 'replay'])
  await receiver.comeBack()
  expect((await answer).status).toBe(201)
  const message = (await (await answer).json()) as UnsettledTold
  expect([message.id, message.resolution?.by]).toEqual([id, 'provider_replay'])
  expectOneEffect(receiver, id, 2)
  expectSameBytes(receiver)
  const [first, second] = receiver.received
  expect(Number(second?.timestamp)).toBeGreaterThan(Number(first?.timestamp))
  expect(second?.signature).not.toBe(first?.signature)
})

test("E3a a proxy's bare 503 is no refusal: unknown, and the same call again", async () => {
  const receiver = await webhookReceiver([secret], 'answers 503', 'answers')
  const gateway = await (await gatewaysOn())()
  const answer = await send(gateway, receiver)
  expect(answer.status).toBe(201)
  const { id } = (await answer.json()) as UnsettledTold
  expectOneEffect(receiver, id, 2)
  expectSameBytes(receiver)
  const ended = (await eventsOf(gateway, id)).filter(({ type }) => type === 'attempt_ended')
  expect(ended.map(({ data }) => [data['outcome'], data['httpStatus']])).toEqual([
    ['unknown', 503],
    ['accepted', 204],
  ])
})

test('F3 killed between the lost reply and the replay: the next process makes it, and it is sent once', async () => {
  const receiver = await webhookReceiver([secret], 'loses its reply', 'answers')
  const start = await gatewaysOn()
  const first = await start({ args: ['--role', 'api'] }) // so that no replay comes before the kill
  const lost = await send(first, receiver, 'wait=0')
  const { id } = (await lost.json()) as UnsettledTold
  await until(async () => (await shown(first, id)).status === 'unknown')
  first.child.kill('SIGKILL')
  expect(await first.exited).toBeNull()
  expect(receiver.received).toHaveLength(1)

  const second = await start()
  const answer = await send(second, receiver)
  expect([answer.status, answer.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
  expectOneEffect(receiver, id, 2)
  expectSameBytes(receiver)
})

test('F2 killed while the receiver holds its answer: the lease lapses, and the next process makes the same call', async () => {
  const receiver = await webhookReceiver([secret], 'holds its answer', 'answers')
  const start = await gatewaysOn()
  const first = await start()
  const lost = send(first, receiver).catch(() => 'no answer')
  await until(() => receiver.received.length === 1)
  first.child.kill('SIGKILL')
  expect(await lost).toBe('no answer')

  const second = await start()
  const answer = await send(second, receiver)
  expect(answer.status).toBe(201)
  const { id } = (await answer.json()) as UnsettledTold
  expectOneEffect(receiver, id, 2)
  expectSameBytes(receiver)
  expect((await eventsOf(second, id)).map(({ type }) => type)).toContain('lease_lapsed')
})

test('F6 stopped past its lease while the receiver holds the answer: another gateway repeats the call; one effect, and the late result is taken in', async () => {
  const receiver = await webhookReceiver([secret], 'holds its answer', 'answers')
  const start = await gatewaysOn()
  const [first, second] = await Promise.all([start(), start()])
  const early = send(first, receiver)
  await until(() => receiver.received.length === 1)
  const id = String(receiver.received[0]?.id)
  first.child.kill('SIGSTOP')
  await until(async () => (await shown(second, id)).status === 'sent', 20_000)
  expect((await shown(second, id)).resolution?.by).toBe('provider_replay')
  receiver.answerAll()
  first.child.kill('SIGCONT')
  expect((await early).status).toBe(201)
  await until(async () => (await eventsOf(second, id)).some(({ type }) => type === 'late_outcome'))
  const late = (await eventsOf(second, id)).filter(({ type }) => type === 'late_outcome')
  expect(late.map(({ data }) => data['outcome'])).toEqual(['accepted'])
  expectOneEffect(receiver, id, 2)
  expectSameBytes(receiver)
  for (const each of [first, second]) expect(each.output()).not.toMatch(/accepted_twice|verdict_corrected/)
})

test('E11, E9 the signing secret changed while unknown: no replay; a person decides, posts it twice, and one call follows', async () => {
  const receiver = await webhookReceiver([secret, newSecret], 'loses its reply', 'answers')
  const start = await gatewaysOn()
  const first = await start({ args: ['--role', 'api'] })
  const { id } = (await (await send(first, receiver, 'wait=0')).json()) as UnsettledTold
  await until(async () => (await shown(first, id)).plan !== null)
  first.child.kill('SIGKILL')
  await first.exited

  const second = await start({ secret: newSecret })
  await until(async () => (await shown(second, id)).plan === null)
  expect((await eventsOf(second, id)).at(-1)?.type).toBe('gave_up')
  const answer = await send(second, receiver)
  const problem = (await answer.json()) as ProblemTold
  expect([answer.status, problem.retryable, problem.sent]).toEqual([504, false, 'maybe'])
  expect(receiver.received).toHaveLength(1)

  const [attempt] = (await shown(second, id)).openAttempts
  const verdict = { attempt, outcome: 'not_sent', resend: true, evidence: 'asked the receiver' }
  const resolve = async (): Promise<Response> =>
    fetch(`${second.url}/v1/messages/${id}/resolve`, { method: 'POST', headers, body: JSON.stringify(verdict) })
  const both = await Promise.all([resolve(), resolve()])
  expect(both.map(({ status }) => status)).toEqual([200, 200])
  expect((await send(second, receiver)).status).toBe(201)
  expect((await resolve()).status).toBe(200)
  expectOneEffect(receiver, id, 2)
  second.child.kill('SIGTERM')
  expect(await second.exited).toBe(0)
  expect(receiver.received).toHaveLength(2)
})

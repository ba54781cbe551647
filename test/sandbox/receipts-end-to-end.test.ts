/** The recipients that show receipts, as a newcomer meets them: a gateway just started, with the sandbox in its process. */
import { expect, test } from 'vitest'
import type { DeliveryTold } from '../operations/receiving.ts'
import type { EventTold, MessageTold } from '../operations/told.ts'
import { createDatabase } from '../support/database.ts'
import { until } from '../support/gateway.ts'
import { dataFolder, start, node, startGateway, type Running } from '../support/process.ts'
import { onTestFinished } from 'vitest'

const apiKey = `so_test_receipts_${'k'.repeat(40)}`
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }

async function newGateway(more: Record<string, string> = {}): Promise<Running> {
  const database = await createDatabase()
  onTestFinished(async () => database.drop())
  const env = { DATABASE_URL: database.url, SENDONCE_DATA_DIR: await dataFolder(), SENDONCE_BOOTSTRAP_KEY: apiKey }
  return startGateway({ env: { ...env, ...more } })
}

type Told = MessageTold & { readonly delivery: DeliveryTold | null }

async function send(
  { url }: Running,
  to: string,
  key: string,
  more: object = {},
): Promise<{ status: number; id: string }> {
  const body = JSON.stringify({ channel: 'sms', to, content: { text: 'hello' }, ...more })
  const answer = await fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: { ...headers, 'idempotency-key': key },
    body,
  })
  const told = (await answer.json()) as { id?: string; message?: { id: string } }
  return { status: answer.status, id: told.id ?? told.message?.id ?? '' }
}
const shown = async ({ url }: Running, id: string): Promise<Told> =>
  (await (await fetch(`${url}/v1/messages/${id}`, { headers })).json()) as Told
async function receiptsOf({ url }: Running, id: string): Promise<EventTold[]> {
  const { data } = (await (await fetch(`${url}/v1/messages/${id}/events`, { headers })).json()) as { data: EventTold[] }
  return data.filter(({ type }) => type === 'receipt')
}
const metric = async ({ url }: Running, result: string): Promise<number> => {
  const text = await (await fetch(`${url}/metrics`)).text()
  const all = [...text.matchAll(new RegExp(`sendonce_receipts_total\\{[^}]*result="${result}"\\} (\\d+)`, 'g'))]
  return all.reduce((sum, [, count]) => sum + Number(count), 0)
}

test('any recipient is delivered a moment later; the magic ones as their table says', async () => {
  const gateway = await newGateway()
  const settled = async (to: string, key: string, more: object = {}): Promise<Told> => {
    const { id } = await send(gateway, to, key, more)
    await until(async () => (await shown(gateway, id)).delivery !== null)
    return shown(gateway, id)
  }
  for (const provider of ['sandbox-blind', 'sandbox-keyed', 'sandbox-lookup', 'sandbox-lookup-eventual'])
    expect(await settled('+447700900123', provider, { provider })).toMatchObject({
      status: 'sent',
      resolution: null,
      delivery: { status: 'delivered', code: null },
    })
  expect(await settled('+15005550014', 'first')).toMatchObject({ status: 'sent', delivery: { status: 'delivered' } })
  expect(await settled('+15005550015', 'undelivered')).toMatchObject({
    status: 'sent',
    delivery: { status: 'undelivered', code: 'unreachable' },
  })

  const repeatedBefore = await metric(gateway, 'repeated')
  const twice = await settled('+15005550013', 'twice')
  await until(
    async () => (await metric(gateway, 'repeated')) + (await metric(gateway, 'applied')) >= repeatedBefore + 8,
  )
  expect(await receiptsOf(gateway, twice.id)).toHaveLength(1)

  const lost = await send(gateway, '+15005550016', 'settles')
  expect(lost.status).toBe(504)
  await until(async () => (await shown(gateway, lost.id)).status === 'sent')
  expect(await shown(gateway, lost.id)).toMatchObject({
    resolution: { by: 'receipt' },
    delivery: { status: 'delivered' },
  })
  expect((await send(gateway, '+15005550016', 'settles')).status).toBe(201)

  const silent = await send(gateway, '+15005550005', 'lost')
  expect(silent.status).toBe(504)
  expect((await shown(gateway, silent.id)).status).toBe('unknown')
  gateway.child.kill('SIGTERM')
  expect(await gateway.exited).toBe(0)
})

test('a sandbox by itself tells the gateway at PUBLIC_URL, if both know the secret', async () => {
  const { child, output } = start(node, ['src/sandbox/main.ts'], {
    SANDBOX_PORT: '0',
    SENDONCE_DATA_DIR: await dataFolder(),
    SANDBOX_WEBHOOK_SECRET: secret,
  })
  await until(() => output().includes('SANDBOX_URL='))
  const sandboxUrl = /SANDBOX_URL=(\S+)/.exec(output())?.[1] ?? ''
  const port = 20_000 + (process.pid % 20_000)
  const gateway = await newGateway({
    SANDBOX_URL: sandboxUrl,
    SANDBOX_WEBHOOK_SECRET: secret,
    PUBLIC_URL: `http://127.0.0.1:${port}/`,
    PORT: String(port),
  })
  const { id } = await send(gateway, '+447700900123', 'apart')
  await until(async () => (await shown(gateway, id)).delivery?.status === 'delivered')
  const forged = await fetch(`${gateway.url}/v1/providers/sandbox-blind/webhooks`, { method: 'POST', body: '{}' })
  expect([forged.status, forged.headers.get('content-type')]).toEqual([401, 'application/problem+json; charset=utf-8'])
  child.kill('SIGTERM')

  const without = await newGateway({ SANDBOX_URL: sandboxUrl })
  const nobody = await fetch(`${without.url}/v1/providers/sandbox-blind/webhooks`, { method: 'POST', body: '{}' })
  expect([nobody.status, ((await nobody.json()) as { detail: string }).detail]).toEqual([
    404,
    expect.stringContaining('its setting SANDBOX_WEBHOOK_SECRET is missing'),
  ])
})

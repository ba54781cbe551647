/** The sandbox as a provider that can be asked what it accepted. */
import { expect, onTestFinished, test, vi } from 'vitest'
import {
  bodyOf,
  countsOf,
  errorFor,
  exchange,
  lookUp,
  newSandbox,
  numberOf,
  patience,
  sendTo,
  statusOf,
} from '../support/sandbox-client.ts'

const provider = 'sandbox-lookup'
const somebody = '+447700900123'
const idOf = (bytes: string): string => (bodyOf(bytes) as { id: string }).id
const rowFor = (id: string, reference = 'msg_1'): object => ({
  id,
  reference,
  acceptedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string,
})

/** The clock by which the sandbox writes and shows; timers go on as ever. */
function clockAt(time: string): (ms: number) => void {
  vi.useFakeTimers({ toFake: ['Date'], now: new Date(time) })
  onTestFinished(() => void vi.useRealTimers())
  return (ms) => void vi.setSystemTime(Date.now() + ms)
}

test('a look-up shows one row an acceptance, in their order, with the ids of the answers (S5)', async () => {
  const { sandbox } = await newSandbox()
  expect(await lookUp(sandbox.url, provider)).toEqual({ data: [] })
  const first = idOf(await sendTo(sandbox.url, somebody, { provider }))
  expect(await lookUp(sandbox.url, provider)).toEqual({ data: [rowFor(first)] })
  const second = idOf(await sendTo(sandbox.url, somebody, { provider }))
  expect(second).not.toBe(first)
  expect(await lookUp(sandbox.url, provider)).toEqual({ data: [rowFor(first), rowFor(second)] })
})

test('a look-up shows what this provider accepted under this reference, and nothing else', async () => {
  const { sandbox } = await newSandbox()
  await sendTo(sandbox.url, somebody, { provider })
  expect(await lookUp(sandbox.url, 'sandbox-blind')).toEqual({ data: [] })
  expect(await lookUp(sandbox.url, provider, 'msg_2')).toEqual({ data: [] })

  const odd = { provider: 'a&b c', messageId: 'msg_+ ?' }
  const id = idOf(await sendTo(sandbox.url, somebody, odd))
  const shown = await lookUp(sandbox.url, encodeURIComponent(odd.provider), encodeURIComponent(odd.messageId))
  expect(shown).toEqual({ data: [rowFor(id, odd.messageId)] })
})

test.each([
  ['reject', 0],
  ['rate-limited', 0],
  ['unavailable', 0],
  ['error-before', 0],
  ['lost-reply', 1],
  ['half-answer', 1],
  ['garbage', 1],
  ['error-after', 1],
] as const)('after %s a look-up shows %i accepted, whatever was answered', async (name, acceptedCount) => {
  const { sandbox } = await newSandbox()
  await sendTo(sandbox.url, numberOf(name), { provider })
  const { data } = (await lookUp(sandbox.url, provider)) as { data: object[] }
  expect(data).toHaveLength(acceptedCount)
})

test('a look-up shows a late reply before it comes, and a slow one once it is accepted', async () => {
  const { sandbox } = await newSandbox()
  const late = sendTo(sandbox.url, numberOf('late-reply'), { provider, headers: ['x-answer-timeout-ms: 0'] })
  await expect.poll(() => countsOf(sandbox.url), patience).toBe('1 asked, 1 accepted')
  const shown = (await lookUp(sandbox.url, provider)) as { data: { id: string }[] }
  expect(shown).toEqual({ data: [rowFor(idOf(await late))] })

  const slow = sendTo(sandbox.url, numberOf('slow'), { provider, messageId: 'msg_slow' })
  await expect.poll(() => lookUp(sandbox.url, provider, 'msg_slow'), patience).not.toEqual({ data: [] })
  expect(await lookUp(sandbox.url, provider, 'msg_slow')).toEqual({ data: [rowFor(idOf(await slow), 'msg_slow')] })
})

test('the time of an acceptance is the time at which it was accepted', async () => {
  clockAt('2026-01-02T03:04:05.678Z')
  const { sandbox } = await newSandbox()
  await sendTo(sandbox.url, somebody, { provider })
  expect(await lookUp(sandbox.url, provider)).toMatchObject({ data: [{ acceptedAt: '2026-01-02T03:04:05.678Z' }] })
})

test.each([
  ['2 s where nothing else is said', {}, 2000],
  ['as long as it is told', { eventualDelayMs: 60_000 }, 60_000],
])('an eventual look-up hides an acceptance for %s', async (_, options, delayMs) => {
  const advance = clockAt('2026-01-02T03:04:05.678Z')
  const { sandbox } = await newSandbox(options)
  const id = idOf(await sendTo(sandbox.url, somebody, { provider }))
  const eventual = (): Promise<unknown> => lookUp(sandbox.url, provider, 'msg_1', '&consistency=eventual')
  expect(await eventual()).toEqual({ data: [] })
  advance(delayMs - 1)
  const second = idOf(await sendTo(sandbox.url, somebody, { provider }))
  expect(await eventual()).toEqual({ data: [] })
  advance(1)
  expect(await eventual()).toEqual({ data: [rowFor(id)] })
  expect(await lookUp(sandbox.url, provider)).toEqual({ data: [rowFor(id), rowFor(second)] })
})

test('what was accepted outlives a restart, with its id and its time', async () => {
  const { sandbox, ledgerFile } = await newSandbox()
  await sendTo(sandbox.url, numberOf('lost-reply'), { provider })
  const shown = (await lookUp(sandbox.url, provider)) as { data: object[] }
  expect(shown.data).toHaveLength(1)
  await sandbox.close()

  const again = await newSandbox({ ledgerFile })
  expect(await lookUp(again.sandbox.url, provider)).toEqual(shown)
})

test('look-ups are not counted, and leave a message its first request', async () => {
  const { sandbox } = await newSandbox()
  await lookUp(sandbox.url, provider)
  expect(bodyOf(await exchange(sandbox.url, 'GET /ledger'))).toEqual({ data: [] })
  expect(statusOf(await sendTo(sandbox.url, numberOf('unavailable'), { provider }))).toBe(503)
  await lookUp(sandbox.url, provider)
  expect(bodyOf(await exchange(sandbox.url, 'GET /ledger'))).toEqual({
    data: [{ messageId: 'msg_1', provider, to: numberOf('unavailable'), acceptedCount: 0, requestCount: 1 }],
  })
})

test.each([
  '',
  '?provider=sandbox-lookup',
  '?reference=msg_1',
  '?provider=&reference=msg_1',
  '?provider=sandbox-lookup&reference=',
  '?provider=sandbox-lookup&reference=msg_1&consistency=perhaps',
])('a look-up that cannot be read (%j) is 400', async (query) => {
  const { sandbox } = await newSandbox()
  const bytes = await exchange(sandbox.url, `GET /v1/messages${query}`)
  expect(statusOf(bytes)).toBe(400)
  expect(bodyOf(bytes)).toEqual(errorFor('invalid_request'))
})

/** The configuration changes, or another was faster, while an outcome is unknown (behaviour.md, E11, F9; reconcile-message.ts, K3). */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { reconcileMessage } from '../../src/operations/reconcile-message.ts'
import { createReconciler } from '../../src/workers/reconciler.ts'
import { useDatabase } from '../support/database.ts'
import { accepted, lost, notSent, sms, testGateway, type TestGateway } from '../support/gateway.ts'
import {
  able,
  answers,
  hourMs,
  lostMessage,
  passingTime,
  reconfigure,
  recoverableProvider,
  shown,
  takeStep,
} from './recovery-steps.ts'
import { dispatch, makeDue, untilStatus } from './steps.ts'
import { attemptIn, problemIn, timelineOf, told, uuidOf } from './told.ts'

const database = useDatabase()
const time = passingTime()
let gateway: TestGateway
let step: (id: string) => Promise<boolean>
beforeAll(async () => {
  gateway = await testGateway(database.url, { provider: recoverableProvider(able({ key: true })), clock: time.clock })
  const reconciler = createReconciler(gateway.deps)
  step = async (id) => takeStep(database, reconciler, id)
})
beforeEach(() => {
  time.reset()
  reconfigure(gateway.provider, { name: 'fake', identity: 'fake-identity', capabilities: able({ key: true }) })
  gateway.provider.calls.length = 0
  gateway.provider.looks.length = 0
})
afterAll(async () => gateway.close())

test.each(['key', 'look'])(
  'E11, R3 another identity of the provider: nothing follows by itself (%s), and a person may have it sent again',
  async (by) => {
    reconfigure(gateway.provider, { capabilities: able({ [by]: true }) })
    const id = await lostMessage(gateway, `e11-${by}`)
    reconfigure(gateway.provider, { identity: 'another account' })
    answers(gateway.provider, accepted('again'))
    time.pass(hourMs)
    expect(await step(id)).toBe(true)
    expect([gateway.provider.calls.length, gateway.provider.looks.length]).toEqual([1, 0])
    expect(await shown(gateway, id)).toMatchObject({ status: 'unknown', plan: null, attempts: 1 })
    expect((await timelineOf(gateway, id)).at(-1)?.type).toBe('gave_up')
    const answer = await gateway.send(sms('once'), { key: `e11-${by}` })
    expect([told(answer), problemIn(answer).retryable]).toEqual(['504 outcome-unknown', false])

    const attempt = await attemptIn(gateway, id)
    const verdict = { attempt, outcome: 'not_sent', resend: true, evidence: 'not in the old account' }
    expect(told(await gateway.post(`/v1/messages/${id}/resolve`, verdict))).toBe('200 queued')
    await makeDue(database)
    await dispatch(gateway)
    await untilStatus(gateway, id, 'sent')
    const [first, second] = gateway.provider.calls
    expect(gateway.provider.calls).toHaveLength(2)
    // What was rendered for the one account is not sent to the other.
    expect(second?.rendered === null || second?.rendered !== first?.rendered).toBe(true)
  },
)

test('E11 a step that is lost on the new identity is planned for that one, from its own first attempt', async () => {
  const id = await lostMessage(gateway, 'e11-later')
  reconfigure(gateway.provider, { identity: 'another account' })
  const attempt = await attemptIn(gateway, id)
  await gateway.post(`/v1/messages/${id}/resolve`, { attempt, outcome: 'not_sent', resend: true, evidence: 'none' })
  answers(gateway.provider, lost(), accepted())
  await dispatch(gateway)
  await untilStatus(gateway, id, 'unknown')
  expect(await shown(gateway, id)).toMatchObject({ plan: { step: 'replay', steps: 0 } })
  await step(id)
  expect((await shown(gateway, id)).status).toBe('sent')
  const [, second, third] = gateway.provider.calls
  expect(third?.rendered).toBe(second?.rendered)
})

test('K3 the provider does not deduplicate any more: the replay is given up at once, and nothing is called', async () => {
  const id = await lostMessage(gateway, 'no-key')
  reconfigure(gateway.provider, { capabilities: able() })
  answers(gateway.provider, accepted())
  await step(id)
  expect(gateway.provider.calls).toHaveLength(1)
  expect(await shown(gateway, id)).toMatchObject({ status: 'unknown', plan: null })
})

test('K3 the provider does not deduplicate any more, and can be asked: it is asked', async () => {
  const id = await lostMessage(gateway, 'key-to-look')
  reconfigure(gateway.provider, { capabilities: able({ look: true }) })
  await step(id)
  expect(await shown(gateway, id)).toMatchObject({ status: 'unknown', plan: { step: 'look' } })
  expect([gateway.provider.calls.length, gateway.provider.looks.length]).toEqual([1, 0])
})

test('K3, R4 a provider that is not configured any more: its steps are put off, and end with their window', async () => {
  const id = await lostMessage(gateway, 'gone')
  const { plan } = await shown(gateway, id)
  reconfigure(gateway.provider, { name: 'other' })
  await step(id)
  expect(await shown(gateway, id)).toMatchObject({ status: 'unknown', plan })
  time.pass(24 * hourMs)
  await step(id)
  expect(await shown(gateway, id)).toMatchObject({ status: 'unknown', plan: null })
  expect(gateway.provider.calls).toHaveLength(1)
})

test('K3 no slot is free, or the provider is stopped: the step is put off, not lost', async () => {
  const id = await lostMessage(gateway, 'busy')
  const { slots } = gateway.deps
  const releases = Array.from({ length: gateway.provider.concurrency - 1 }, () => slots.tryTake(gateway.provider))
  slots.stop('fake')
  await step(id)
  slots.resume('fake')
  expect(gateway.provider.calls).toHaveLength(1)
  expect(await shown(gateway, id)).toMatchObject({ status: 'unknown', plan: { step: 'replay', steps: 0 } })
  for (const release of releases) release?.()
  answers(gateway.provider, accepted())
  await step(id)
  expect((await shown(gateway, id)).status).toBe('sent')
})

test('F9 a replica that took a step and slept: another took it meanwhile, and nothing is called again before its time', async () => {
  const id = await lostMessage(gateway, 'slept')
  const [taken] = await gateway.deps.store.findMessages([uuidOf(id)])
  if (taken === undefined) throw new Error('it is there')
  answers(gateway.provider, notSent('refused_for_now', 60_000), accepted())
  await step(id)
  const { plan } = await shown(gateway, id)
  await reconcileMessage(gateway.deps, taken, new Map())
  expect(gateway.provider.calls.map(({ attemptNumber }) => attemptNumber)).toEqual([1, 2])
  expect(await shown(gateway, id)).toMatchObject({ status: 'unknown', attempts: 2, plan })
})

test('W1 (webhook.ts) a request that is rendered again, after a change of identity, shows the same `createdAt`', async () => {
  const rendered: string[] = []
  const render = gateway.provider.render.bind(gateway.provider)
  reconfigure(gateway.provider, {
    render: (message, attempt) => {
      rendered.push(attempt.createdAt.toISOString())
      return render(message, attempt)
    },
  })
  const id = await lostMessage(gateway, 'w1')
  reconfigure(gateway.provider, { identity: 'another' })
  gateway.provider.answer = () => accepted()
  const [attempt] = (await gateway.get(`/v1/messages/${id}`)).json<{ openAttempts: string[] }>().openAttempts
  await gateway.post(`/v1/messages/${id}/resolve`, {
    attempt,
    outcome: 'not_sent',
    evidence: 'not there',
    resend: true,
  })
  await dispatch(gateway)
  expect(rendered).toHaveLength(2)
  expect(rendered[1]).toBe(rendered[0])
})

/** A person decides while the gateway recovers, or evidence comes after a decision (behaviour.md, E9; resolve-message.ts, Q1 to Q3). */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { unknownCommand } from '../../src/commands/unknown.ts'
import type { LookResult } from '../../src/core/outcome.ts'
import { createReconciler } from '../../src/workers/reconciler.ts'
import { useDatabase } from '../support/database.ts'
import {
  accepted,
  found,
  lost,
  notSent,
  nothing,
  rejected,
  sms,
  testGateway,
  until,
  type TestGateway,
} from '../support/gateway.ts'
import {
  able,
  alarmsOf,
  answers,
  lostMessage,
  makeStepDue,
  passingTime,
  reconfigure,
  recoverableProvider,
  shown,
  takeStep,
} from './recovery-steps.ts'
import { dispatch, dispatchNothing, makeDue, untilStatus } from './steps.ts'
import { attemptIn, heldOutcome, problemIn, timelineOf, told } from './told.ts'

const database = useDatabase()
const time = passingTime()
let gateway: TestGateway
let reconciler: ReturnType<typeof createReconciler>
let step: (id: string) => Promise<boolean>
beforeAll(async () => {
  gateway = await testGateway(database.url, { provider: recoverableProvider(able()), clock: time.clock })
  reconciler = createReconciler(gateway.deps)
  step = async (id) => takeStep(database, reconciler, id)
})
beforeEach(() => {
  time.reset()
  gateway.provider.show = () => nothing()
  gateway.provider.calls.length = 0
  gateway.deps.metrics.alarms.reset()
})
afterAll(async () => gateway.close())

const lookable = (): void => reconfigure(gateway.provider, { capabilities: able({ look: true }) })
const keyed = (): void => reconfigure(gateway.provider, { capabilities: able({ key: true }) })

const decide = async (id: string, attempt: string | undefined, verdict: object) =>
  gateway.post(`/v1/messages/${id}/resolve`, { attempt, evidence: 'seen in the console', ...verdict })
const notSentAgain = { outcome: 'not_sent', resend: true }

async function openIn(id: string): Promise<readonly string[]> {
  return (await shown(gateway, id)).openAttempts
}

/** A look-up that has begun, and does not end until the test says so. */
async function looking(id: string): Promise<{ end: (result: LookResult) => Promise<void> }> {
  const { promise, resolve } = Promise.withResolvers<LookResult>()
  gateway.provider.looks.length = 0
  gateway.provider.show = async () => promise
  await makeStepDue(database, id)
  const { done } = await reconciler.runOnce()
  await until(() => gateway.provider.looks.length === 1)
  return {
    end: async (result) => {
      resolve(result)
      await done
    },
  }
}

test('E9 a person decides while a look is planned: the look is not made, and the same decision twice resends once', async () => {
  lookable()
  const id = await lostMessage(gateway, 'planned')
  const [attempt] = await openIn(id)
  answers(gateway.provider, accepted())
  const both = await Promise.all([decide(id, attempt, notSentAgain), decide(id, attempt, notSentAgain)])
  expect(both.map(told)).toEqual(['200 queued', '200 queued'])
  expect(await step(id)).toBe(false)
  await dispatch(gateway)
  await untilStatus(gateway, id, 'sent')
  expect(told(await decide(id, attempt, notSentAgain))).toBe('200 sent')
  expect(told(await decide(id, attempt, { outcome: 'sent' }))).toBe('409 already-decided')
  await makeDue(database)
  await dispatchNothing(gateway)
  expect(gateway.provider.calls).toHaveLength(2)
  expect((await timelineOf(gateway, id)).filter(({ type }) => type === 'resolved')).toHaveLength(1)
})

test('E9 evidence against an earlier "not sent": found by a look that ran meanwhile, it is corrected, with an alarm', async () => {
  lookable()
  const id = await lostMessage(gateway, 'corrected')
  const [attempt] = await openIn(id)
  const look = await looking(id)
  expect(told(await decide(id, attempt, { outcome: 'not_sent' }))).toBe('200 failed')
  expect(told(await gateway.send(sms('once'), { key: 'corrected' }))).toBe('422 message-rejected')
  await look.end(found())
  const { status, resolution } = await shown(gateway, id)
  expect([status, resolution]).toMatchObject(['sent', { by: 'lookup', outcome: 'sent', attempt }])
  expect(await alarmsOf(gateway)).toEqual({ verdict_corrected: 1 })
  expect(told(await gateway.send(sms('once'), { key: 'corrected' }))).toBe('201 sent')
  const events = (await timelineOf(gateway, id)).map(({ type }) => type)
  expect(events.indexOf('looked')).toBeGreaterThan(events.indexOf('resolved'))
})

test('E9 evidence against "not sent" while its resend waits: it is not sent again', async () => {
  lookable()
  const id = await lostMessage(gateway, 'corrected-in-time')
  const [attempt] = await openIn(id)
  const look = await looking(id)
  await decide(id, attempt, notSentAgain)
  await look.end(found())
  expect((await shown(gateway, id)).status).toBe('sent')
  await makeDue(database)
  await dispatchNothing(gateway)
  expect(gateway.provider.calls).toHaveLength(1)
})

test('E9 a look that finds nothing says nothing against a decision that came first', async () => {
  lookable()
  const id = await lostMessage(gateway, 'decided')
  const [attempt] = await openIn(id)
  const look = await looking(id)
  await decide(id, attempt, { outcome: 'sent', providerMessageId: 'SM5' })
  await look.end(nothing())
  expect(await shown(gateway, id)).toMatchObject({ status: 'sent', providerMessageId: 'SM5' })
  expect(await alarmsOf(gateway)).toEqual({})
})

test('Q2 several open attempts: each wants its verdict, the plan stands until the last one, and one call follows', async () => {
  keyed()
  const id = await lostMessage(gateway, 'several')
  answers(gateway.provider, lost())
  await step(id)
  const [first, second] = await openIn(id)
  expect(await openIn(id)).toHaveLength(2)
  expect(told(await decide(id, second, notSentAgain))).toBe('200 unknown')
  expect(await shown(gateway, id)).toMatchObject({ openAttempts: [first], plan: { step: 'replay' } })
  expect(told(await decide(id, second, notSentAgain))).toBe('200 unknown')
  expect(told(await decide(id, second, { outcome: 'sent' }))).toBe('409 already-decided')
  answers(gateway.provider, accepted())
  expect(told(await decide(id, first, notSentAgain))).toBe('200 queued')
  await dispatch(gateway)
  await untilStatus(gateway, id, 'sent')
  expect(gateway.provider.calls.map(({ attemptNumber }) => attemptNumber)).toEqual([1, 2, 3])
  expect(new Set(gateway.provider.calls.map(({ rendered }) => rendered)).size).toBe(1)
})

test('Q1 a verdict on an attempt whose replay runs, or has settled it, is told so', async () => {
  keyed()
  const id = await lostMessage(gateway, 'overtaken')
  const [attempt] = await openIn(id)
  const replay = heldOutcome()
  gateway.provider.answer = async () => replay.promise
  await makeStepDue(database, id)
  const { done } = await reconciler.runOnce()
  await untilStatus(gateway, id, 'sending')
  expect(told(await decide(id, attempt, notSentAgain))).toBe('409 not-unknown')
  replay.resolve(accepted())
  await done
  const late = await decide(id, attempt, notSentAgain)
  expect(told(late)).toBe('409 already-decided')
  expect(problemIn(late).decision).toMatchObject({ by: 'provider_replay', outcome: 'sent' })
  expect(told(await decide(id, attempt, { outcome: 'sent' }))).toBe('200 sent')
  expect(told(await decide(id, 'att_0197a1b2c3d47e5f8a9b0c1d2e3f4a5c', { outcome: 'sent' }))).toBe('404 not-found')
  expect(gateway.provider.calls).toHaveLength(2)
})

test('Q1 an attempt that was never unknown wants no verdict', async () => {
  keyed()
  answers(gateway.provider, notSent(), accepted())
  await gateway.send(sms('plain'), { key: 'plain', prefer: 'wait=0' })
  const id = String(gateway.provider.calls[0]?.messageId)
  await untilStatus(gateway, id, 'queued')
  await makeDue(database)
  await dispatch(gateway)
  await untilStatus(gateway, id, 'sent')
  const [first] = (await timelineOf(gateway, id)).filter(({ type }) => type === 'attempt_started')
  expect(told(await decide(id, String(first?.attempt), { outcome: 'sent' }))).toBe('404 not-found')
})

test('E6, M6 the replay was refused for good and the first attempt is proven absent: failed, and no further call', async () => {
  reconfigure(gateway.provider, { capabilities: able({ key: true, look: true }) })
  const id = await lostMessage(gateway, 'refused')
  answers(gateway.provider, rejected(), accepted())
  await step(id)
  expect(await shown(gateway, id)).toMatchObject({ status: 'unknown', plan: { step: 'look' } })
  for (let looks = 0; looks < 2; looks++) {
    time.pass(5_100)
    await step(id)
  }
  expect(await shown(gateway, id)).toMatchObject({ status: 'failed', statusReason: 'provider_refused' })
  expect(told(await gateway.send(sms('once'), { key: 'refused' }))).toBe('422 message-rejected')
  expect(gateway.provider.calls).toHaveLength(2)
})

test('`sendonce unknown` with several open attempts: list names the step, show tells them all, resolve settles them all', async () => {
  keyed()
  const run = async (...args: string[]): Promise<string> => {
    let printed = ''
    await unknownCommand(gateway.deps, args, (text) => (printed += text))
    return printed
  }
  const id = await lostMessage(gateway, 'terminal')
  answers(gateway.provider, lost())
  await step(id)
  const open = await openIn(id)
  const listed = JSON.parse(await run('list', '--json')) as { message: string; next: string }[]
  expect(listed.find(({ message }) => message === id)?.next).toMatch(/^replay /)
  const printed = await run('show', id)
  expect(open.map((attempt) => printed.includes(attempt))).toEqual([true, true])
  const shownAsJson = JSON.parse(await run('show', id, '--json')) as {
    message: { openAttempts: string[]; plan: unknown }
  }
  expect(shownAsJson.message.openAttempts).toEqual(open)
  const verdict = ['resolve', id, '--outcome', 'not_sent', '--evidence', 'none there', '--resend']
  const would = JSON.parse(await run(...verdict, '--dry-run', '--json')) as { verdicts: { attempt: string }[] }
  expect(would.verdicts.map(({ attempt }) => attempt)).toEqual(open)
  answers(gateway.provider, accepted())
  expect(await run(...verdict)).toBe(`${id} is queued\n`)
  expect(await run(...verdict)).toBe(`${id} is queued\n`)
  await dispatch(gateway)
  await untilStatus(gateway, id, 'sent')
  expect(gateway.provider.calls).toHaveLength(3)
  expect(await run('list')).not.toContain(id)
})

test('`sendonce unknown resolve --resend` again, after a replay that was not accepted: the same, and no second call', async () => {
  keyed()
  const id = await lostMessage(gateway, 'terminal-again')
  answers(gateway.provider, notSent())
  await step(id)
  const [attempt] = await openIn(id)
  const replay = await attemptIn(gateway, id)
  const refused = await decide(id, replay, { outcome: 'not_sent' })
  expect([told(refused), problemIn(refused).detail]).toEqual([
    '409 not-unknown',
    expect.stringContaining('openAttempts'),
  ])
  let printed = ''
  await unknownCommand(gateway.deps, ['list'], (text) => (printed += text))
  expect([printed.includes(String(attempt)), printed.includes(replay)]).toEqual([true, false])
  printed = ''
  const verdict = ['resolve', id, '--outcome', 'not_sent', '--evidence', 'none there', '--resend']
  for (let times = 0; times < 2; times++) await unknownCommand(gateway.deps, verdict, (text) => (printed += text))
  expect(printed).toBe(`${id} is queued\n${id} is queued\n`)
})

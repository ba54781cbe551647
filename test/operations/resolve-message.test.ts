/** A person settles an unknown outcome (resolve-message.ts, Q1; state-machine.ts, M3, M4). */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Outcome } from '../../src/core/outcome.ts'
import { decide } from '../../src/core/state-machine.ts'
import { useDatabase } from '../support/database.ts'
import { accepted, lost, notSent, sms, testGateway, until, type TestGateway } from '../support/gateway.ts'
import { dispatchNothing, lapse, makeDue, rescue, untilStatus } from './steps.ts'
import {
  attemptIn,
  heldOutcome,
  isReplay,
  messageIn,
  newApiKey,
  present,
  problemIn,
  timelineOf,
  told,
  uuidOf,
} from './told.ts'

const database = useDatabase()
let gateway: TestGateway
let replica: TestGateway
beforeAll(async () => {
  gateway = await testGateway(database.url)
  replica = await testGateway(database.url)
})
beforeEach(() => {
  gateway.provider.calls.length = 0
  gateway.provider.answer = () => lost()
})
afterAll(async () => {
  await gateway.close()
  await replica.close()
})

interface Unknown {
  readonly id: string
  readonly attempt: string
}

async function unknownMessage(key: string): Promise<Unknown> {
  const answer = await gateway.send(sms('resolve'), { key })
  expect(told(answer)).toBe('504 outcome-unknown')
  const id = String(problemIn(answer).message?.id)
  return { id, attempt: await attemptIn(gateway, id) }
}

const resolve = async ({ id, attempt }: Unknown, more: object, from = gateway): ReturnType<TestGateway['post']> =>
  from.post(`/v1/messages/${id}/resolve`, { attempt, evidence: 'seen in the console', ...more })

test('Q1 a verdict of sent makes it sent: who, when, on what evidence; repeats hear 201', async () => {
  const asked = await unknownMessage('sent')
  const answer = await resolve(asked, { outcome: 'sent', providerMessageId: 'SM7' })
  expect(told(answer)).toBe('200 sent')
  const { resolution, providerMessageId, sentAt } = messageIn(answer)
  expect(providerMessageId).toBe('SM7')
  expect(resolution).toMatchObject({
    by: 'operator',
    attempt: asked.attempt,
    outcome: 'sent',
    apiKey: 'test',
    evidence: 'seen in the console',
    at: sentAt,
  })
  const again = await gateway.send(sms('resolve'), { key: 'sent' })
  expect([told(again), isReplay(again), messageIn(again).id]).toEqual(['201 sent', true, asked.id])
  expect((await gateway.send(sms('resolve'), { key: 'sent' })).body).toBe(again.body)
  const resolved = (await timelineOf(gateway, asked.id)).filter(({ type }) => type === 'resolved')
  expect(resolved).toMatchObject([{ attempt: asked.attempt, data: { outcome: 'sent', apiKey: 'test' } }])
  expect(gateway.provider.calls).toHaveLength(1)
})

test('Q1 a verdict of not sent makes it failed, `sent: no`; nothing is sent by it', async () => {
  const asked = await unknownMessage('not-sent')
  expect(told(await resolve(asked, { outcome: 'not_sent' }))).toBe('200 failed')
  gateway.provider.answer = () => accepted()
  await makeDue(database)
  await dispatchNothing(gateway)
  const again = await gateway.send(sms('resolve'), { key: 'not-sent' })
  expect([told(again), isReplay(again)]).toEqual(['422 message-rejected', true])
  expect(problemIn(again)).toMatchObject({ sent: 'no', retryable: false, message: { status: 'failed' } })
  expect(gateway.provider.calls).toHaveLength(1)
})

test('Q1 the same verdict again is 200 with the present state, written down once', async () => {
  const asked = await unknownMessage('again')
  const verdicts = Array.from({ length: 10 }, async (_, i) =>
    resolve(asked, { outcome: 'sent' }, i % 2 === 0 ? gateway : replica),
  )
  const answers = await Promise.all(verdicts)
  expect(answers.map(told)).toEqual(answers.map(() => '200 sent'))
  expect(new Set(answers.map(({ body }) => body)).size).toBe(1)
  expect((await resolve(asked, { outcome: 'sent', evidence: 'seen again' })).body).toBe(answers[0]?.body)
  expect((await timelineOf(gateway, asked.id)).filter(({ type }) => type === 'resolved')).toHaveLength(1)
})

test('Q1 a contradicting verdict is 409 already-decided, and told what was decided, by whom and when', async () => {
  const asked = await unknownMessage('contradicted')
  const first = messageIn(await resolve(asked, { outcome: 'not_sent' }))
  const second = await newApiKey(gateway, 'default')
  const refused = await gateway.app.inject({
    method: 'POST',
    url: `/v1/messages/${asked.id}/resolve`,
    headers: second.headers,
    payload: { attempt: asked.attempt, outcome: 'sent', evidence: 'I saw it arrive' },
  })
  expect(told(refused)).toBe('409 already-decided')
  expect(problemIn(refused)).toMatchObject({
    sent: 'no',
    retryable: false,
    message: { id: asked.id, status: 'failed' },
  })
  expect(problemIn(refused).decision).toEqual(first.resolution)
  expect(first.resolution).toMatchObject({ by: 'operator', outcome: 'not_sent', apiKey: 'test' })
  expect((await present(gateway, asked.id)).status).toBe('failed')
})

test('Q1 two contradicting verdicts at once: one wins, the other hears who won and when', async () => {
  for (let round = 0; round < 10; round++) {
    const asked = await unknownMessage(`at-once-${round}`)
    const [sent, notSentSaid] = await Promise.all([
      resolve(asked, { outcome: 'sent' }, round % 2 === 0 ? gateway : replica),
      resolve(asked, { outcome: 'not_sent' }, round % 2 === 0 ? replica : gateway),
    ])
    const [winner, loser] = sent.statusCode === 200 ? [sent, notSentSaid] : [notSentSaid, sent]
    expect([winner.statusCode, told(loser)]).toEqual([200, '409 already-decided'])
    expect(problemIn(loser).decision).toEqual(messageIn(winner).resolution)
    expect(messageIn(await gateway.get(`/v1/messages/${asked.id}`))).toEqual(messageIn(winner))
    expect((await timelineOf(gateway, asked.id)).filter(({ type }) => type === 'resolved')).toHaveLength(1)
  }
})

test('Q1 only an unknown one is settled: one that is sent, queued or being called is 409 not-unknown', async () => {
  const outcome = heldOutcome()
  gateway.provider.answer = async () => outcome.promise
  const { id } = messageIn(await gateway.send(sms(), { key: 'running', prefer: 'wait=0' }))
  const running = { id, attempt: await attemptIn(gateway, id) }
  expect(told(await resolve(running, { outcome: 'not_sent' }))).toBe('409 not-unknown')
  outcome.resolve(notSent('refused_for_now', 60_000))
  await untilStatus(gateway, id, 'queued')
  const queued = await resolve(running, { outcome: 'not_sent' })
  expect([told(queued), problemIn(queued).sent]).toEqual(['409 not-unknown', 'maybe'])
  gateway.provider.answer = () => accepted()
  const sent = messageIn(await gateway.send(sms(), { key: 'was-sent' }))
  const known = { id: sent.id, attempt: await attemptIn(gateway, sent.id) }
  const refused = await resolve(known, { outcome: 'not_sent' })
  expect([told(refused), problemIn(refused).sent]).toEqual(['409 not-unknown', 'yes'])
  expect((await present(gateway, sent.id)).status).toBe('sent')
})

test('Q1 a verdict is about an attempt of this message, else 404; it fits its outcome, else 400', async () => {
  const asked = await unknownMessage('whose')
  const other = await unknownMessage('others')
  expect(told(await resolve({ ...asked, attempt: other.attempt }, { outcome: 'sent' }))).toBe('404 not-found')
  expect(told(await resolve({ ...asked, id: `msg_${'0'.repeat(32)}` }, { outcome: 'sent' }))).toBe('404 not-found')
  const wrong = await resolve(asked, { outcome: 'not_sent', providerMessageId: 'SM1' })
  expect(told(wrong)).toBe('400 invalid-request')
  expect(told(await resolve(asked, { outcome: 'maybe' }))).toBe('400 invalid-request')
  expect((await present(gateway, asked.id)).status).toBe('unknown')
})

/** A call that a rescuer has given up, and that can still answer. */
async function givenUp(key: string): Promise<Unknown & { answer: (outcome: Outcome) => void }> {
  const outcome = heldOutcome()
  gateway.provider.answer = async () => outcome.promise
  const { id } = messageIn(await gateway.send(sms('resolve'), { key, prefer: 'wait=0' }))
  await lapse(database, id)
  expect(await rescue(replica)).toBe(1)
  return { id, attempt: await attemptIn(gateway, id), answer: outcome.resolve }
}

test('M4 acceptance learnt after a verdict of not sent corrects it: sent, a new stored answer, an event, an alarm', async () => {
  const asked = await givenUp('corrected')
  await resolve(asked, { outcome: 'not_sent' })
  expect(told(await gateway.send(sms('resolve'), { key: 'corrected' }))).toBe('422 message-rejected')
  asked.answer(accepted('SM9'))
  await untilStatus(gateway, asked.id, 'sent')
  const again = await gateway.send(sms('resolve'), { key: 'corrected' })
  expect([told(again), isReplay(again)]).toEqual(['201 sent', true])
  expect(messageIn(again)).toMatchObject({
    providerMessageId: 'SM9',
    resolution: { by: 'late_answer', outcome: 'sent', attempt: asked.attempt },
  })
  const types = (await timelineOf(gateway, asked.id)).map(({ type }) => type)
  expect(types).toEqual(expect.arrayContaining(['lease_lapsed', 'resolved', 'late_outcome']))
  await until(async () =>
    (await gateway.deps.metrics.alarms.get()).values.some(
      ({ labels, value }) => labels['alarm'] === 'verdict_corrected' && value === 1,
    ),
  )
  expect(gateway.provider.calls).toHaveLength(1)
})

test('M4 what an attempt tells after a verdict of sent changes nothing, and stands in the time line', async () => {
  const asked = await givenUp('confirmed')
  const verdict = await resolve(asked, { outcome: 'sent' })
  asked.answer(notSent())
  await until(async () => (await timelineOf(gateway, asked.id)).some(({ type }) => type === 'late_outcome'))
  expect((await gateway.get(`/v1/messages/${asked.id}`)).body).toBe(verdict.body)
  await dispatchNothing(gateway)
})

test('Q1 a verdict that comes after the late answer is 200 if it says the same, else 409 with what was learnt', async () => {
  const asked = await givenUp('too-late')
  asked.answer(accepted())
  await untilStatus(gateway, asked.id, 'sent')
  expect(told(await resolve(asked, { outcome: 'sent' }))).toBe('200 sent')
  const refused = await resolve(asked, { outcome: 'not_sent' })
  expect(told(refused)).toBe('409 already-decided')
  expect(problemIn(refused)).toMatchObject({ sent: 'yes', decision: { by: 'late_answer', apiKey: null } })
})

test('E10 no verdict has anything sent again after notAfter, however it came to be decided then', async () => {
  const asked = await unknownMessage('after')
  const [message] = await gateway.deps.store.findMessages([uuidOf(asked.id)])
  if (message === undefined) throw new Error('it is there')
  const verdict = { type: 'settle', attemptId: uuidOf(asked.attempt), outcome: 'not_sent', resend: true } as const
  const said = { ...verdict, providerMessageId: null, evidence: 'e', apiKey: 'test' }
  const justBefore = new Date(message.notAfter.getTime() - 1)
  expect(decide(message, { ...said, at: justBefore }).kind).toBe('transition')
  expect(decide(message, { ...said, at: message.notAfter }).kind).toBe('ignored')
})

/** A person has an unknown message sent again (engine.md, warrant `operator`; E9; resolve-message.ts, Q2). */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { accepted, lost, sms, testGateway, type TestGateway } from '../support/gateway.ts'
import { dispatch, dispatchNothing, lapse, rescue, untilStatus } from './steps.ts'
import { attemptIn, heldOutcome, messageIn, present, problemIn, timelineOf, told } from './told.ts'

const database = useDatabase()
let gateway: TestGateway
let replica: TestGateway
beforeAll(async () => {
  gateway = await testGateway(database.url)
  replica = await testGateway(database.url)
})
beforeEach(() => {
  for (const { provider } of [gateway, replica]) {
    provider.calls.length = 0
    provider.answer = () => lost()
  }
})
afterAll(async () => {
  await gateway.close()
  await replica.close()
})

async function unknownMessage(key: string, more: object = {}): Promise<{ id: string; attempt: string }> {
  const answer = await gateway.send(sms('resend', more), { key })
  expect(told(answer)).toBe('504 outcome-unknown')
  const id = String(problemIn(answer).message?.id)
  return { id, attempt: await attemptIn(gateway, id) }
}

const resend = async (asked: { id: string; attempt: string }, more: object = {}, from = gateway) =>
  from.post(`/v1/messages/${asked.id}/resolve`, {
    attempt: asked.attempt,
    outcome: 'not_sent',
    resend: true,
    evidence: 'not in the console',
    ...more,
  })

test('Q2 it is queued under its key, sent once more, and its callers hear 201; the time line tells both attempts', async () => {
  const asked = await unknownMessage('again')
  expect(told(await resend(asked))).toBe('200 queued')
  gateway.provider.answer = () => accepted('second')
  await dispatch(gateway)
  const sent = await gateway.send(sms('resend'), { key: 'again' })
  expect([told(sent), messageIn(sent).id, messageIn(sent).providerMessageId]).toEqual(['201 sent', asked.id, 'second'])
  expect(gateway.provider.calls.map(({ messageId, attemptNumber }) => [messageId, attemptNumber])).toEqual([
    [asked.id, 1],
    [asked.id, 2],
  ])
  const lines = (await timelineOf(gateway, asked.id)).map(
    ({ type, data }) => `${type} ${typeof data['outcome'] === 'string' ? data['outcome'] : ''}`,
  )
  expect(lines).toEqual([
    'claimed ',
    'attempt_started ',
    'attempt_ended unknown',
    'attempt_ended not_sent',
    'resolved not_sent',
    'attempt_started ',
    'attempt_ended accepted',
  ])
})

test('Q2 the same decision posted 20 times, over two gateways, before and after, warrants one attempt', async () => {
  const asked = await unknownMessage('twenty')
  const answers = await Promise.all(
    Array.from({ length: 20 }, async (_, i) => resend(asked, {}, i % 2 === 0 ? gateway : replica)),
  )
  expect(new Set(answers.map((answer) => answer.statusCode))).toEqual(new Set([200]))
  gateway.provider.answer = () => accepted()
  await dispatch(gateway)
  expect(told(await resend(asked))).toBe('200 sent')
  await dispatchNothing(gateway)
  await dispatchNothing(replica)
  expect(gateway.provider.calls.length + replica.provider.calls.length).toBe(2)
})

test('Q1 a contradicting verdict is told who decided what: also resend against not, in either order', async () => {
  const asked = await unknownMessage('against')
  expect(told(await resend(asked))).toBe('200 queued')
  for (const other of [{ resend: false }, { outcome: 'sent', resend: false }]) {
    const answer = await resend(asked, other)
    expect(told(answer)).toBe('409 already-decided')
    expect(problemIn(answer).decision).toMatchObject({ by: 'operator', outcome: 'not_sent', apiKey: 'test' })
  }
  const ended = await unknownMessage('ended')
  expect(told(await resend(ended, { resend: false }))).toBe('200 failed')
  expect(told(await resend(ended))).toBe('409 already-decided')
  expect(gateway.provider.calls).toHaveLength(2)
})

test('E9 the late answer of the first attempt comes before the second: it is sent, nothing goes out again, and an alarm is raised', async () => {
  const outcome = heldOutcome()
  gateway.provider.answer = async () => outcome.promise
  const { id } = messageIn(await gateway.send(sms('late'), { key: 'late', prefer: 'wait=0' }))
  await lapse(database, id)
  await rescue(replica)
  expect(told(await resend({ id, attempt: await attemptIn(gateway, id) }))).toBe('200 queued')
  outcome.resolve(accepted('first'))
  await untilStatus(gateway, id, 'sent')
  await dispatch(gateway, 0)
  expect(await present(gateway, id)).toMatchObject({ providerMessageId: 'first', resolution: { by: 'late_answer' } })
  expect(gateway.provider.calls.filter(({ messageId }) => messageId === id)).toHaveLength(1)
  expect((await gateway.get('/metrics')).body).toMatch(/sendonce_alarms_total\{alarm="verdict_corrected"\} 1/)
})

test('E10 after notAfter nothing is sent again: 409 too-late, and it can still be settled without', async () => {
  const asked = await unknownMessage('expired', { ttlSeconds: 3600 })
  await database.query(`UPDATE messages SET not_after = now() WHERE id::text = replace($1, 'msg_', '')::uuid::text`, [
    asked.id,
  ])
  expect(told(await resend(asked))).toBe('409 too-late')
  expect(told(await resend(asked, { resend: false }))).toBe('200 failed')
})

test('a resend of a message that was sent is refused as a mistake, and nothing is decided', async () => {
  const asked = await unknownMessage('mistake')
  expect(told(await resend(asked, { outcome: 'sent' }))).toBe('400 invalid-request')
  expect((await present(gateway, asked.id)).status).toBe('unknown')
})

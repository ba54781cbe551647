/** `sendonce unknown`: what a person at a terminal sees and decides (src/commands/unknown.ts). */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { unknownCommand } from '../../src/commands/unknown.ts'
import { useDatabase } from '../support/database.ts'
import { accepted, lost, sms, testGateway, type TestGateway } from '../support/gateway.ts'
import { dispatch, lapse, rescue, untilStatus } from './steps.ts'
import { attemptIn, heldOutcome, messageIn, present, problemIn } from './told.ts'

const database = useDatabase()
let gateway: TestGateway
beforeAll(async () => {
  gateway = await testGateway(database.url)
})
beforeEach(() => {
  gateway.provider.answer = () => lost()
})
afterAll(async () => gateway.close())

async function unknownMessage(key: string): Promise<string> {
  return String(problemIn(await gateway.send(sms(`text of ${key}`), { key })).message?.id)
}

/** What the command prints. */
async function run(...args: string[]): Promise<string> {
  let printed = ''
  await unknownCommand(gateway.deps, args, (text) => (printed += text))
  return printed
}
const listed = async (...filters: string[]): Promise<string[]> =>
  (JSON.parse(await run('list', '--json', ...filters)) as { message: string }[]).map(({ message }) => message)

test('list shows what is unknown, oldest first, narrowed by filters, and neither recipient nor text', async () => {
  const [first, second] = [await unknownMessage('l-1'), await unknownMessage('l-2')]
  gateway.provider.answer = () => accepted()
  await gateway.send(sms(), { key: 'l-3' })
  expect(await listed()).toEqual([first, second])
  expect(await listed('--limit', '1')).toEqual([first])
  expect(await listed('--provider', 'fake', '--account', 'default', '--environment', 'live')).toEqual([first, second])
  for (const none of [
    ['--provider', 'x'],
    ['--account', 'x'],
    ['--environment', 'test'],
    ['--older-than', '3600'],
  ])
    expect(await listed(...none)).toEqual([])
  const shown = await run('list')
  expect(shown).toContain(first)
  expect(shown).toContain(await attemptIn(gateway, first))
  expect(shown).not.toMatch(/447700900123|text of/)
})

test('the API lists what is unknown without reading through everything else', async () => {
  const id = await unknownMessage('api')
  const { data } = (await gateway.get('/v1/messages?status=unknown&limit=1')).json<{ data: { id: string }[] }>()
  expect(data.map((message) => message.id)).toEqual([id])
})

test('show tells the evidence; resolve decides by the same operation, with the user of the system as who', async () => {
  const id = await unknownMessage('shown')
  expect(await run('show', id)).toMatch(/attempt_ended.*UND_ERR_SOCKET/)
  const verdict = ['resolve', id, '--outcome', 'sent', '--evidence', 'console', '--provider-message-id', 'SM5']
  expect(await run(...verdict, '--dry-run')).toContain('would settle')
  expect((await present(gateway, id)).status).toBe('unknown')
  expect(await run(...verdict)).toBe(`${id} is sent\n`)
  expect(await run(...verdict)).toBe(`${id} is sent\n`)
  const settled = await present(gateway, id)
  expect(settled.providerMessageId).toBe('SM5')
  expect(settled.resolution?.apiKey).toMatch(/^cli:/)
  await expect(run('resolve', id, '--outcome', 'not_sent', '--evidence', 'x')).rejects.toThrow(/^already-decided/)
})

test('resolve with --resend has it sent again; what is settled is not listed any more, however it was settled', async () => {
  const again = await unknownMessage('again')
  expect(await run('resolve', again, '--outcome', 'not_sent', '--evidence', 'none', '--resend')).toBe(
    `${again} is queued\n`,
  )
  gateway.provider.answer = () => accepted()
  await dispatch(gateway)
  await untilStatus(gateway, again, 'sent')

  const outcome = heldOutcome()
  gateway.provider.answer = async () => outcome.promise
  const { id: late } = messageIn(await gateway.send(sms(), { key: 'late', prefer: 'wait=0' }))
  await lapse(database, late)
  await rescue(gateway)
  expect(await listed()).toContain(late)
  outcome.resolve(accepted())
  await untilStatus(gateway, late, 'sent')
  const still = await listed()
  expect(still).not.toContain(again)
  expect(still).not.toContain(late)
  const rows = await database.query<{ tasks: number }>(
    `SELECT count(*)::int AS tasks FROM due_work WHERE task <> 'unknown'`,
  )
  expect(rows).toEqual([{ tasks: 0 }])
})

test('metrics tell how many are unknown, how old the oldest is, and how they were settled', async () => {
  await unknownMessage('metrics')
  const { body } = await gateway.get('/metrics')
  const value = (name: string): number => Number(new RegExp(`^${name} ([\\d.e+-]+)$`, 'm').exec(body)?.[1] ?? NaN)
  expect(value('sendonce_unknown\\{waits_for="person"\\}')).toBe((await listed()).length)
  expect(value('sendonce_unknown_oldest_seconds')).toBeGreaterThan(0)
  expect(body).toMatch(/sendonce_settled_total\{by="operator",to="sent"\} 1/)
  expect(body).toMatch(/sendonce_settled_total\{by="late_answer",to="sent"\} 1/)
})

test.each([
  [['list', '--environment', 'prod'], /--environment/],
  [['show', 'msg_1'], /there is no message msg_1/],
  [['resolve'], /--outcome/],
  [['resolve', 'x', '--outcome', 'sent'], /--evidence/],
  [['resolve', 'x', '--outcome', 'sent', '--evidence', 'e', '--resend'], /--resend/],
  [['settle'], /usage/],
])('a mistake is one clear line: %j', async (args, line) => {
  await expect(run(...args)).rejects.toThrow(line)
})

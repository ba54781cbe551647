/**
 * What proves that no byte of a message text was sent over SMTP: how a delivery can end, on the nodemailer that is pinned.
 * Each row is one delivery to a server that misbehaves in one way; what must hold in all rows is asserted below the table.
 * M1 to M5 are those of smtp-session.ts.
 */
import { Socket } from 'node:net'
import { afterEach, expect, test, vi } from 'vitest'
import type { EmailRequest } from '../../src/core/message-content.ts'
import type { Outcome } from '../../src/core/outcome.ts'
import type { WriteGate } from '../../src/providers/provider.ts'
import { smtp, type SmtpSettings } from '../../src/providers/smtp.ts'
import { attemptContext } from '../support/attempt-context.ts'
import { floods } from '../support/scripted-server.ts'
import {
  drops,
  resetsIt,
  saysAndDrops,
  scriptedSmtp,
  stalls,
  type SmtpScript,
  type SmtpScripted,
} from '../support/smtp-script.ts'

const settings: SmtpSettings = {
  host: '127.0.0.1',
  security: 'none',
  from: 'Sendonce <robot@example.org>',
  connectTimeoutMs: 3000,
  answerTimeoutMs: 3000,
  concurrency: 5,
}
const brief = { connectTimeoutMs: 250, answerTimeoutMs: 250 }
const email: EmailRequest = {
  channel: 'email',
  to: 'first@example.com',
  cc: ['second@example.com'],
  content: { subject: 'canary', text: 'canary in the text' },
}
const attempt = attemptContext({ messageId: 'msg_0198' })

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end()
})

async function staged(script: SmtpScript, own: Partial<SmtpSettings> = {}) {
  const server = await scriptedSmtp(script)
  const provider = smtp.create('mail', 'live', { ...settings, port: server.port, ...own })
  ends.push(
    () => server.close(),
    async () => provider.close(),
  )
  const send = (gate: WriteGate = () => true, message = email) => provider.send(message, attempt, gate, null)
  return { server, provider, send }
}
const hasText = (server: SmtpScripted): boolean => server.lines().some((line) => line.includes('canary'))

interface Row {
  readonly name: string
  readonly script: SmtpScript
  readonly own?: Partial<SmtpSettings>
  readonly gate?: WriteGate
  readonly outcome: Outcome['kind']
  readonly reason?: string
  readonly code: string | RegExp
  readonly unrecognised?: true
  /** What of the text reached the server: none, or some or all of it. */
  readonly text: 'none' | 'some'
  readonly id?: string
  readonly afterMs?: number
  readonly emptyDot?: true
}
const notBegun = { outcome: 'not_sent', reason: 'not_begun', text: 'none' } as const
const later = { outcome: 'not_sent', reason: 'refused_for_now', text: 'none' } as const
const aboutUs = { outcome: 'not_sent', reason: 'credentials', text: 'none' } as const
const refused = { outcome: 'rejected', text: 'none' } as const
const unknown = { outcome: 'unknown', text: 'some' } as const
const login = { user: 'robot', password: 'secret' }
const oneByOne = { EHLO: '250 test' }
const dropped = /^(ECONNECTION|ECONNRESET|EPIPE)$/
const sizeTen = '250-test\r\n250 SIZE 10'

// prettier-ignore
const rows: readonly Row[] = [
  // Before the session stands
  { name: 'a drop before the greeting', script: { greeting: drops }, ...notBegun, code: dropped },
  { name: 'a reset at accept', script: { greeting: resetsIt }, ...notBegun, code: dropped },
  { name: 'a flood in place of a greeting', script: { greeting: floods('220-canary\r\n') }, own: brief, ...notBegun, code: 'connect time-out', afterMs: 250 },
  { name: 'no greeting', script: { greeting: stalls }, own: brief, ...notBegun, code: 'connect time-out', afterMs: 250 },
  { name: 'a greeting 554', script: { greeting: '554 5.3.2 no' }, ...later, code: '554 5.3.2' },
  { name: 'a greeting 421', script: { greeting: '421 4.3.2 busy' }, ...later, code: '421 4.3.2' },
  { name: 'another protocol', script: { greeting: 'SSH-2.0-canary' }, ...notBegun, code: 'EPROTOCOL' },
  { name: 'a drop at EHLO', script: { EHLO: drops }, ...notBegun, code: dropped },
  { name: 'no answer to EHLO', script: { EHLO: stalls }, own: brief, ...notBegun, code: 'connect time-out', afterMs: 250 },
  { name: 'no STARTTLS where it is wanted', script: {}, own: { security: 'starttls' }, ...notBegun, code: 'ETLS' },
  { name: 'a TLS handshake that fails', script: { STARTTLS: saysAndDrops('220 go\r\nno TLS') }, own: { security: 'starttls' }, ...notBegun, code: /./ },
  { name: 'TLS to a server that speaks none', script: {}, own: { security: 'tls' }, ...notBegun, code: /WRONG_VERSION_NUMBER|ECONN/ },
  // Signing in (in clear only here)
  { name: 'credentials refused', script: { AUTH: '535 5.7.8 no' }, own: login, ...aboutUs, code: '535 5.7.8' },
  { name: 'no AUTH at all', script: { AUTH: '502 5.5.1 what' }, own: login, ...aboutUs, code: '502 5.5.1' },
  { name: 'signing in not now', script: { AUTH: '454 4.7.0 later' }, own: login, ...later, code: '454 4.7.0' },
  { name: 'a drop at AUTH', script: { AUTH: drops }, own: login, ...notBegun, code: dropped },
  { name: 'no answer to AUTH', script: { AUTH: stalls }, own: { ...login, ...brief }, ...notBegun, code: 'connect time-out', afterMs: 250 },
  // The envelope
  { name: 'a drop at MAIL', script: { MAIL: drops }, ...notBegun, code: dropped },
  { name: 'a reset at MAIL', script: { MAIL: resetsIt }, ...notBegun, code: dropped },
  { name: 'no answer to MAIL', script: { MAIL: stalls }, own: brief, ...notBegun, code: 'answer time-out', afterMs: 250 },
  { name: 'MAIL wants a login', script: { MAIL: '530 5.7.0 who' }, ...aboutUs, code: '530 5.7.0' },
  { name: 'MAIL refused', script: { MAIL: '550 5.7.1 no' }, ...refused, code: '550 5.7.1' },
  { name: 'MAIL refused, one by one', script: { MAIL: '553 no', ...oneByOne }, ...refused, code: '553' },
  { name: 'MAIL not now', script: { MAIL: '452 4.3.1 full' }, ...later, code: '452 4.3.1' },
  { name: 'a drop at RCPT', script: { RCPT: drops, ...oneByOne }, ...notBegun, code: dropped },
  { name: 'greylisting', script: { RCPT: '450 4.2.0 greylisted canary' }, ...later, code: '450 4.2.0' },
  { name: 'greylisting, one by one', script: { RCPT: '451 4.7.1 greylisted', ...oneByOne }, ...later, code: '451 4.7.1' },
  { name: 'all recipients refused', script: { RCPT: '550 5.1.1 first@example.com' }, ...refused, code: '550 5.1.1' },
  { name: 'the first recipient refused', script: { RCPT: ['550 5.1.1 no', '250 ok'] }, ...refused, code: '550 5.1.1' },
  { name: 'the second refused, one by one', script: { RCPT: ['250 ok', '550 5.1.1 no'], ...oneByOne }, ...refused, code: '550 5.1.1' },
  { name: 'the second not now', script: { RCPT: ['250 ok', '451 4.3.0 no'] }, ...later, code: '451 4.3.0' },
  { name: 'one refused for good and one for now', script: { RCPT: ['451 4.3.0 no', '550 5.1.1 no'] }, ...refused, code: '550 5.1.1' },
  { name: 'a code that is not listed', script: { RCPT: '577 no' }, ...refused, code: '577', unrecognised: true },
  { name: 'a temporary code that is not listed', script: { RCPT: '499 no' }, ...later, code: '499', unrecognised: true },
  { name: 'a code of no such class', script: { RCPT: '999 no' }, ...notBegun, code: 'EENVELOPE' },
  { name: '421 at RCPT', script: { RCPT: '421 4.3.2 bye', ...oneByOne }, ...later, code: '421 4.3.2' },
  { name: 'a drop at DATA', script: { DATA: drops }, ...notBegun, code: dropped },
  { name: 'no answer to DATA', script: { DATA: stalls }, own: brief, ...notBegun, code: 'answer time-out', afterMs: 250 },
  { name: 'DATA refused', script: { DATA: '554 5.5.1 no' }, ...refused, code: '554 5.5.1' },
  { name: 'DATA not now', script: { DATA: '451 4.3.0 no' }, ...later, code: '451 4.3.0' },
  { name: 'a size beyond what is announced', script: { EHLO: sizeTen }, ...refused, code: 'SIZE' },
  { name: 'DATA taken although MAIL was refused', script: { MAIL: '550 5.7.1 no', RCPT: '250 ok', DATA: '354 go on' }, ...refused, code: '550 5.7.1' },
  // nodemailer ends that message, which is empty and goes to nobody
  { name: 'DATA taken although all were refused', script: { RCPT: '550 5.1.1 no', DATA: '354 go on' }, ...refused, code: '550 5.1.1', emptyDot: true },
  { name: 'a cut refusal, then the end', script: { DATA: saysAndDrops('55') }, ...notBegun, code: dropped },
  // The gate
  { name: 'a shut gate', script: {}, gate: () => false, ...notBegun, code: 'write gate shut' },
  { name: 'a gate that throws', script: {}, gate: () => { throw new RangeError('canary') }, ...notBegun, code: 'write gate shut' },
  // The text
  { name: 'a drop in the text', script: { text: drops }, ...unknown, code: dropped },
  { name: 'a drop after the dot', script: { dot: drops }, ...unknown, code: dropped },
  { name: 'a reset after the dot', script: { dot: resetsIt }, ...unknown, code: dropped },
  { name: 'no answer to the dot', script: { dot: stalls }, own: brief, ...unknown, code: 'answer time-out', afterMs: 250 },
  { name: 'a flood after the dot', script: { dot: floods('250-canary\r\n') }, own: brief, ...unknown, code: 'answer time-out', afterMs: 250 },
  { name: 'a line without end after the dot', script: { dot: floods('250 canary') }, own: brief, ...unknown, code: 'answer time-out', afterMs: 250 },
  { name: 'half a 250', script: { dot: saysAndDrops('25') }, ...unknown, code: dropped },
  { name: 'a 250 without its line end', script: { dot: saysAndDrops('250 2.0.0 Ok') }, ...unknown, code: dropped },
  { name: 'a 554 without its line end', script: { dot: saysAndDrops('554 5.6.0 no') }, ...unknown, code: dropped },
  { name: 'the first line of several', script: { dot: saysAndDrops('250-2.0.0 Ok\r\n') }, ...unknown, code: dropped },
  { name: 'no number at the dot', script: { dot: 'canary' }, ...unknown, code: 'unreadable' },
  { name: '354 at the dot', script: { dot: '354 go on' }, ...unknown, code: '354' },
  { name: '451 at the dot', script: { dot: '451 4.3.0 no' }, ...later, text: 'some', code: '451 4.3.0' },
  { name: '421 at the dot', script: { dot: '421 4.3.2 bye' }, ...later, text: 'some', code: '421 4.3.2' },
  { name: '554 at the dot', script: { dot: '554 5.6.0 first@example.com' }, ...refused, text: 'some', code: '554 5.6.0' },
  { name: '552 of several lines', script: { dot: '552-5.3.4 too\r\n552 5.3.4 large' }, ...refused, text: 'some', code: '552 5.3.4' },
  { name: '250', script: {}, outcome: 'accepted', text: 'some', code: '250 2.0.0', id: '4F1B2C3D' },
  { name: '250, one by one', script: oneByOne, outcome: 'accepted', text: 'some', code: '250 2.0.0', id: '4F1B2C3D' },
  { name: '250 of Exim', script: { dot: '250 OK id=1tHxyz-0000AB-Cd' }, outcome: 'accepted', text: 'some', code: '250', id: '1tHxyz-0000AB-Cd' },
  { name: '250 with other words', script: { dot: '250 2.0.0 mail to first@example.com queued as 4F1B2C3D' }, outcome: 'accepted', text: 'some', code: '250 2.0.0' },
  { name: '250 with more words', script: { dot: '250 2.0.0 Ok: queued as 4F1B2C3D for first@example.com' }, outcome: 'accepted', text: 'some', code: '250 2.0.0' },
  { name: '250 with a login', script: {}, own: login, outcome: 'accepted', text: 'some', code: '250 2.0.0', id: '4F1B2C3D' },
]

test.each(rows)('$name: $outcome', async (row) => {
  const { server, send } = await staged(row.script, row.own)
  const gate = vi.fn<WriteGate>(row.gate ?? (() => true))
  const startMs = performance.now()
  const outcome = await send(gate)
  const tookMs = performance.now() - startMs

  const { evidence } = outcome
  expect(outcome).toMatchObject({ kind: row.outcome, ...(row.reason === undefined ? {} : { reason: row.reason }) })
  expect(evidence.code).toMatch(typeof row.code === 'string' ? new RegExp(`^${row.code}$`) : row.code)
  expect(evidence.unrecognised).toBe(row.unrecognised)
  expect(outcome.kind === 'accepted' ? outcome.providerMessageId : null).toBe(row.id ?? null)
  // Nothing of the message and nothing that a server said in words.
  expect(JSON.stringify({ ...outcome, providerMessageId: null })).not.toMatch(/canary|example\.com|no\b.*no|queued/)
  // M1: the phase and the wire agree, and what is not accepted was not delivered (or nobody knows).
  const { isAccepted, isOpen } = { isAccepted: row.outcome === 'accepted', isOpen: row.outcome === 'unknown' }
  if (!isAccepted) await server.drained()
  expect(hasText(server)).toBe(row.text === 'some')
  expect(isOpen || server.delivered().length === (isAccepted ? 1 : 0)).toBe(true)
  expect(server.lines().includes('.') && row.text === 'none').toBe(row.emptyDot === true)
  // M2: the gate is asked once, where the text could follow.
  expect(gate).toHaveBeenCalledTimes(row.text === 'some' || row.gate !== undefined ? 1 : 0)
  // M4
  const lateMs = tookMs - (row.afterMs ?? tookMs)
  expect(lateMs > -5 && lateMs < 250).toBe(true)
  expect(server.connections()).toBeLessThanOrEqual(1)
})

test('a connection that is refused, and a host that is not there, are not begun', async () => {
  const { server, send } = await staged({})
  await server.close()
  expect(await send()).toMatchObject({ kind: 'not_sent', reason: 'not_begun', evidence: { code: 'ECONNREFUSED' } })
  const nowhere = await staged({}, { host: 'nowhere.invalid', ...brief })
  expect(await nowhere.send()).toMatchObject({ kind: 'not_sent', reason: 'not_begun' })
})

test('the text is written in the turn in which the gate is asked (M2)', async () => {
  const { send } = await staged({})
  const write = vi.spyOn(Socket.prototype, 'write')
  const isWritten = (): boolean => write.mock.calls.some(([bytes]) => Buffer.from(bytes).includes('canary'))
  const seen: boolean[] = []
  const outcome = await send(() => {
    seen.push(isWritten())
    setImmediate(() => seen.push(isWritten()))
    return true
  })
  write.mockRestore()
  expect(outcome.kind).toBe('accepted')
  expect(seen).toEqual([false, true])
})

test('a reply to the dot that is late is taken for no other delivery', async () => {
  const held: (() => void)[] = []
  const { server, send } = await staged(
    { dot: (socket) => held.push(() => void socket.write('250 2.0.0 Ok\r\n')) },
    brief,
  )
  expect(await send()).toMatchObject({ kind: 'unknown', evidence: { code: 'answer time-out' } })
  const second = send()
  for (const comes of held) comes()
  expect(await second).toMatchObject({ kind: 'unknown', evidence: { code: 'answer time-out' } })
  expect(server.connections()).toBe(2)
})

test('a delivery that was given up before its text never begins (M4)', async () => {
  let goOn = (): void => {}
  const { server, send } = await staged({ DATA: (socket) => (goOn = () => void socket.write('354 go on\r\n')) }, brief)
  const gate = vi.fn<WriteGate>(() => true)
  expect(await send(gate)).toMatchObject({ kind: 'not_sent', evidence: { code: 'answer time-out' } })
  goOn()
  await server.drained()
  expect(gate).not.toHaveBeenCalled()
  expect(hasText(server)).toBe(false)
})

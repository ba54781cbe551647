/** What goes over SMTP and to whom, as smtp-server takes it and postal-mime reads it; both are not ours. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { Ajv2020 } from 'ajv/dist/2020.js'
import PostalMime from 'postal-mime'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { afterEach, expect, test, vi } from 'vitest'
import type { EmailRequest } from '../../src/core/message-content.ts'
import { checkProvider } from '../../src/providers/registry.ts'
import { smtp, type SmtpSettings } from '../../src/providers/smtp.ts'
import { spoiledEmails } from '../support/adapters.ts'
import { attemptContext } from '../support/attempt-context.ts'
import { selfSigned } from '../support/self-signed.ts'
import { drops, scriptedSmtp } from '../support/smtp-script.ts'

const settings: SmtpSettings = {
  host: '127.0.0.1',
  security: 'none',
  from: 'Sendonce <robot@example.org>',
  connectTimeoutMs: 3000,
  answerTimeoutMs: 3000,
  concurrency: 5,
}
const attempt = attemptContext({ messageId: 'msg_0198', traceparent: '00-trace-01' })
const email = (content: Partial<EmailRequest['content']> = {}, more: Partial<EmailRequest> = {}): EmailRequest => ({
  channel: 'email',
  to: 'amala@example.com',
  content: { subject: 'Hello', text: 'How are you?', ...content },
  ...more,
})

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end()
})

interface Taken {
  readonly from: string
  readonly to: readonly string[]
  readonly raw: Buffer
}

async function mailServer(options: SMTPServerOptions = {}) {
  const taken: Taken[] = []
  let connections = 0
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS', 'AUTH'],
    logger: false,
    closeTimeout: 10,
    onConnect: (_, done) => {
      connections += 1
      done()
    },
    onData(stream, { envelope: { mailFrom, rcptTo } }, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const from = mailFrom === false ? '' : mailFrom.address
        taken.push({ from, to: rcptTo.map(({ address }) => address), raw: Buffer.concat(chunks) })
        done()
      })
    },
    ...options,
  })
  server.on('error', () => {}) // handshakes that fail are among the cases
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  ends.push(() => new Promise<void>((done) => server.close(() => done())))
  return { port: (server.server.address() as AddressInfo).port, taken, connections: () => connections }
}

function providerFor(port: number, own: Partial<SmtpSettings> = {}) {
  const provider = smtp.create('mail', 'live', { ...settings, port, ...own })
  ends.push(async () => provider.close())
  return (message: EmailRequest, of = attempt) => provider.send(message, of, () => true, null)
}

async function arrived(message: EmailRequest, own: Partial<SmtpSettings> = {}) {
  const server = await mailServer()
  expect(await providerFor(server.port, own)(message)).toMatchObject({ kind: 'accepted' })
  const [mail] = server.taken
  if (mail === undefined) throw new Error('nothing arrived')
  return { ...mail, parsed: await PostalMime.parse(mail.raw) }
}

test('everything of an e-mail arrives; blind copies are in the envelope only', async () => {
  const pdf = Buffer.from([0, 13, 10, 46, 10, 255, 128])
  const { from, to, raw, parsed } = await arrived(
    email(
      {
        subject: 'Grüße, 漢字 👩‍👩‍👧‍👦',
        text: 'Zwölf Boxkämpfer\n.\n..\nlast',
        html: '<p>Zwölf</p>',
        headers: { 'X-Order': 'Größe 42', 'In-Reply-To': '<a@b>' },
        attachments: [{ filename: 'Beilage "ä".pdf', contentType: 'application/pdf', content: pdf.toString('base64') }],
      },
      {
        from: '"Fräulein, A" <a.b@example.net>',
        cc: ['c@example.com'],
        bcc: ['b@example.com'],
        replyTo: 'r@example.com',
      },
    ),
  )
  expect({ from, to }).toEqual({ from: 'a.b@example.net', to: ['amala@example.com', 'c@example.com', 'b@example.com'] })
  expect(parsed).toMatchObject({
    from: { name: 'Fräulein, A', address: 'a.b@example.net' },
    to: [{ address: 'amala@example.com' }],
    cc: [{ address: 'c@example.com' }],
    replyTo: [{ address: 'r@example.com' }],
    subject: 'Grüße, 漢字 👩‍👩‍👧‍👦',
    messageId: '<msg_0198@example.net>',
    date: '2026-07-01T12:00:00.000Z',
    inReplyTo: '<a@b>',
    html: expect.stringContaining('<p>Zwölf</p>') as string,
    attachments: [{ filename: 'Beilage "ä".pdf', mimeType: 'application/pdf', disposition: 'attachment' }],
  })
  expect(parsed.bcc).toBeUndefined()
  expect(raw.toString('latin1')).not.toContain('b@example.com>')
  expect(raw.toString('latin1')).not.toContain('trace-01')
  expect(parsed.text?.replaceAll('\r\n', '\n').trimEnd()).toBe('Zwölf Boxkämpfer\n.\n..\nlast')
  expect(Buffer.from(parsed.attachments[0]?.content as ArrayBuffer)).toEqual(pdf)
})

test.each([
  ['dots', '.\r\n.\r\n..\r\n'],
  ['a command', 'a\n.\nMAIL FROM:<x@y.z>\nb'],
  ['bare line ends', 'bare\rcr\r.\rMAIL'],
  ['a long line', `long ${'x'.repeat(5000)}`],
  ['a long line beyond ASCII', 'ü'.repeat(3000)],
  ['controls', '\u0000 zero, tab\t, \u2028'],
  ['From', 'From here\n--\nsignature'],
])('a text of %s is ASCII in short lines on the wire, and arrives whole', async (_name, text) => {
  const headers = { 'X-Long': 'y'.repeat(899), 'X-Words': 'word '.repeat(190), 'X-Wide': 'ü'.repeat(800) }
  const { raw, parsed } = await arrived(email({ subject: 'z'.repeat(899), text, headers }))
  const lines = raw.toString('latin1').split('\r\n')
  expect(lines.filter((line) => line.length > 998 || /[^\t\x20-\x7e]/.test(line))).toEqual([])
  const sameLines = (of: string): string => of.replaceAll(/\r\n|\r|\n/g, '\n').trimEnd()
  expect(sameLines(parsed.text ?? '')).toBe(sameLines(text))
})

test('every attempt is the same bytes; another message is another Message-ID', async () => {
  const server = await mailServer()
  const send = providerFor(server.port)
  const message = email({ html: '<p>x', attachments: [{ filename: 'a', contentType: 'a/b', content: 'YQ==' }] })
  for (const of of [
    attempt,
    { ...attempt, attemptNumber: 2, startedAt: new Date('2027-01-01') },
    { ...attempt, messageId: 'msg_0199' },
  ])
    expect(await send(message, of)).toMatchObject({ kind: 'accepted' })
  const [first, second, other] = server.taken.map(({ raw }) => raw.toString('latin1'))
  expect(second).toBe(first)
  expect(other).toContain('<msg_0199@example.org>')
  expect(server.connections()).toBe(1) // M5
})

const takes = (message: EmailRequest, own: Partial<SmtpSettings> = {}) =>
  smtp.create('mail', 'live', { ...settings, ...own }).limitBroken(message)
const attached = (filename: string, contentType: string) =>
  email({ attachments: [{ filename, contentType, content: '' }] })

test.each([
  ...spoiledEmails.filter(([name]) => name !== '51 recipients'),
  ['a recipient in brackets', email({}, { to: '<a@b.cd>' }), '/to'],
  ['a recipient beyond ASCII', email({}, { to: 'ä@b.cd' }), '/to'],
  ['a copy with a blank', email({}, { cc: ['a@b.cd', 'a @b.cd'] }), '/cc/1'],
  ['a subject of one long word', email({ subject: 'a'.repeat(900) }), '/content/subject'],
  ['a header of one long word', email({ headers: { 'X-A': 'a'.repeat(900) } }), '/content/headers/X-A'],
  ...['bcc', 'Message-ID', 'date', 'Content-Type', 'MIME-Version', 'Resent-Bcc', 'Return-Path', 'From', 'Sender'].map(
    (name) => [`the header ${name}`, email({ headers: { [name]: 'x' } }), `/content/headers/${name}`] as const,
  ),
  ['a media type with a parameter', attached('a', 'text/plain; x=y'), '/content/attachments/0/contentType'],
  ['a media type of parts', attached('a', 'multipart/mixed'), '/content/attachments/0/contentType'],
] as const)('%s breaks a limit, and is not sent by way of a setting either', async (_name, message, pointer) => {
  expect(takes(message)).toMatchObject({ pointer })
  const server = await mailServer()
  expect(await providerFor(server.port)(message)).toMatchObject({
    kind: 'not_sent',
    evidence: { code: 'not_rendered' },
  })
  expect(server.connections()).toBe(0)
})

test('a message needs a sender from somewhere', () => {
  const { from: _, ...without } = settings
  const limitOf = (message: EmailRequest) => smtp.create('mail', 'live', without).limitBroken(message)
  expect(limitOf(email())).toMatchObject({ pointer: '/from' })
  expect(limitOf(email({}, { from: 'a@b.cd' }))).toBeNull()
  expect(takes(email({ headers: { 'List-Unsubscribe': '<https://x>', 'X-A': 'ü' }, attachments: [] }))).toBeNull()
})

test('a message of another channel is a bug, not an answer', async () => {
  const provider = smtp.create('mail', 'live', settings)
  const sms = { channel: 'sms', to: '+447900900123', content: { text: 't' } } as const
  expect(() => provider.limitBroken(sms)).toThrow(TypeError)
  expect(await provider.send(sms, attempt, () => true, null)).toMatchObject({ evidence: { code: 'not_rendered' } })
})

const { key, cert } = selfSigned()
const users: SMTPServerOptions = {
  key,
  cert,
  disabledCommands: [],
  authMethods: ['LOGIN', 'PLAIN'],
  onAuth: ({ username, password }, session, done) =>
    session.secure && username === 'robot' && password === 'se:cret'
      ? done(null, { user: username })
      : done(new Error('no')),
}
const login = { user: 'robot', password: 'se:cret', ca: cert }

test.each<[string, SMTPServerOptions, typeof login & Pick<SmtpSettings, 'security'>]>([
  ['STARTTLS and LOGIN', { ...users, authMethods: ['LOGIN'] }, { ...login, security: 'starttls' }],
  ['STARTTLS and PLAIN', { ...users, authMethods: ['PLAIN'] }, { ...login, security: 'starttls' }],
  ['TLS from the first byte', { ...users, secure: true }, { ...login, security: 'tls' }],
])('it signs in over %s, and a certificate that is not trusted gets nothing', async (_name, options, own) => {
  const server = await mailServer(options)
  expect(await providerFor(server.port, own)(email())).toMatchObject({ kind: 'accepted' })
  const wrong = providerFor(server.port, { ...own, password: 'wrong' })
  expect(await wrong(email())).toMatchObject({ kind: 'not_sent', reason: 'credentials', evidence: { code: '535' } })
  const { ca: _, ...untrusting } = own
  expect(await providerFor(server.port, untrusting)(email())).toMatchObject({ kind: 'not_sent', reason: 'not_begun' })
  expect(server.taken).toHaveLength(1)
})

test('connections that worked are used again; as many are open as there are calls', async () => {
  const server = await mailServer()
  const send = providerFor(server.port)
  await Promise.all([send(email()), send(email()), send(email())])
  expect(server.connections()).toBe(3)
  await Promise.all([send(email()), send(email())])
  expect({ taken: server.taken.length, connections: server.connections() }).toEqual({ taken: 5, connections: 3 })
})

test.each([
  ['was closed meanwhile', { RSET: drops }],
  ['refuses RSET', { RSET: '421 4.3.2 bye' }],
  ['says something else', { RSET: '500 5.5.1 what' }],
])('a kept connection that %s is replaced before the message is begun', async (_name, script) => {
  const server = await scriptedSmtp(script)
  ends.push(() => server.close())
  const send = providerFor(server.port)
  for (let n = 0; n < 3; n += 1) expect(await send(email())).toMatchObject({ kind: 'accepted' })
  expect({ delivered: server.delivered().length, connections: server.connections() }).toEqual({
    delivered: 3,
    connections: 3,
  })
})

test.each(['refused at the dot', 'closed after the 250'])('a connection is not kept that was %s', async (name) => {
  const refuses = name === 'refused at the dot'
  const server = await scriptedSmtp({
    dot: [refuses ? '451 4.3.0 no' : (socket) => void socket.end('250 2.0.0 ok\r\n'), '250 2.0.0 ok'],
  })
  ends.push(() => server.close())
  const send = providerFor(server.port)
  expect((await send(email())).kind).toBe(refuses ? 'not_sent' : 'accepted')
  if (!refuses) await server.drained()
  expect(await send(email())).toMatchObject({ kind: 'accepted' })
  expect(server.connections()).toBe(2)
  expect(server.lines()).not.toContain('RSET')
})

test('a connection is not kept for ever', async () => {
  const server = await scriptedSmtp()
  ends.push(() => server.close())
  const send = providerFor(server.port)
  for (let n = 0; n < 101; n += 1) await send(email())
  expect({ delivered: server.delivered().length, connections: server.connections() }).toEqual({
    delivered: 101,
    connections: 2,
  })
  expect(server.lines()).toContain('QUIT')
})

test('a reply that was not asked for is never taken for the reply to a later dot', async () => {
  const twice = (socket: { write: (bytes: string) => unknown }) =>
    void socket.write('250 2.0.0 ok\r\n250 2.0.0 again\r\n')
  const server = await scriptedSmtp({ dot: [twice, '554 5.6.0 no'] })
  ends.push(() => server.close())
  const send = providerFor(server.port)
  expect(await send(email())).toMatchObject({ kind: 'accepted' })
  expect((await send(email())).kind).not.toBe('accepted')
})

test('a provider that is closed has no connection left', async () => {
  const server = await scriptedSmtp()
  ends.push(() => server.close())
  const provider = smtp.create('mail', 'live', { ...settings, port: server.port })
  expect(await provider.send(email(), attempt, () => true, null)).toMatchObject({ kind: 'accepted' })
  await provider.close()
  await server.drained()
  expect(provider.callMs).toBe(6000)
})

test('a call that is running when the provider is closed ends as far as it got', async () => {
  const server = await scriptedSmtp({ dot: () => {} })
  ends.push(() => server.close())
  const provider = smtp.create('mail', 'live', { ...settings, port: server.port })
  const running = provider.send(email(), attempt, () => true, null)
  await vi.waitUntil(() => server.lines().includes('.'))
  await provider.close()
  expect(await running).toMatchObject({ kind: 'unknown', evidence: { code: 'closed' } })
})

test('an adapter that makes its calls itself is configured like all others', () => {
  const checked = checkProvider({ adapter: 'smtp', host: 'mail.example.org', connectTimeoutMs: 4000 })
  if ('mistakes' in checked) throw new Error(checked.mistakes.join())
  expect(checked.channels).toEqual(['email'])
  expect(checked.create('mail')).toMatchObject({ name: 'mail', adapter: 'smtp', environment: 'live', callMs: 64_000 })
})

test('another host, port or user is another provider', () => {
  const identity = (own: Partial<SmtpSettings>) => smtp.create('mail', 'live', { ...settings, ...own }).identity
  expect(identity({})).toBe(identity({ password: 'x', concurrency: 1 }))
  expect(new Set([{}, { host: 'b' }, { port: 25 }, { user: 'x', password: 'y' }].map(identity)).size).toBe(4)
})

test('settings are strict, bounded and filled with defaults', () => {
  const mistakes = (own: object) => {
    const checked = checkProvider({ adapter: 'smtp', host: 'mail.example.org', ...own })
    return 'mistakes' in checked ? checked.mistakes : []
  }
  const filled: object = { host: 'mail.example.org' }
  new Ajv2020({ useDefaults: true }).validate(smtp.settings, filled)
  expect(filled).toEqual({
    host: 'mail.example.org',
    security: 'starttls',
    connectTimeoutMs: 10_000,
    answerTimeoutMs: 60_000,
    concurrency: 5,
  })
  expect(mistakes({})).toEqual([])
  expect(mistakes({ user: 'a', password: 'b', from: 'Äpfel & Co <a@b.cd>', port: 2525, security: 'tls' })).toEqual([])
  expect(mistakes({ user: 'a' })).toEqual(['.password: is missing'])
  expect(mistakes({ security: 'none', user: 'a', password: 'b' })).toContain(
    '.user: must not be set with these other settings',
  )
  expect(mistakes({ security: 'none' })).toEqual([])
  expect(mistakes({ security: 'maybe' })).not.toEqual([])
  expect(mistakes({ from: 'a@b.cd\nx' })).not.toEqual([])
  expect(mistakes({ from: 'Sendonce' })).not.toEqual([])
  expect(mistakes({ host: 'mail example' })).not.toEqual([])
  expect(mistakes({ port: 0 })).not.toEqual([])
  expect(mistakes({ concurrency: 101 })).not.toEqual([])
  expect(mistakes({ pass: 'x' })).toEqual(['.pass: is not a setting of this adapter'])
})

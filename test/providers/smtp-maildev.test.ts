/** An e-mail that the adapter sent, read back from maildev over its own API: what a person would see in an inbox. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MailDev, type Servers } from 'maildev'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import type { EmailRequest } from '../../src/core/message-content.ts'
import { checkProvider } from '../../src/providers/registry.ts'
import type { Provider } from '../../src/providers/provider.ts'
import { attemptContext } from '../support/attempt-context.ts'

let folder: string
let maildev: MailDev
let servers: Servers
let provider: Provider

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'maildev-'))
  const local = { ip: '127.0.0.1', webIp: '127.0.0.1' }
  maildev = new MailDev({ ...local, smtp: 0, web: 0, silent: true, mailDirectory: folder })
  const said = vi.spyOn(console, 'info').mockReturnValue() // where it listens: it says so whatever `silent` is
  servers = await maildev.start()
  said.mockRestore()
  const checked = checkProvider({
    adapter: 'smtp',
    host: '127.0.0.1',
    port: servers.smtp.getPort(),
    security: 'none',
    from: 'Sendonce <robot@example.org>',
  })
  if ('mistakes' in checked) throw new Error(checked.mistakes.join())
  provider = checked.create('mail')
})
beforeEach(async () => {
  for (const { id } of await inbox()) await ask(`/email/${id}`, 'DELETE')
})
afterAll(async () => {
  await provider.close()
  await maildev.stop()
  await rm(folder, { recursive: true })
})

interface Mailbox {
  readonly address: string
  readonly name?: string
}
/** As its API shows it. */
interface Shown {
  readonly id: string
  readonly subject: string
  readonly from: readonly Mailbox[]
  readonly to: readonly Mailbox[]
  readonly text: string
  readonly html: string
  readonly headers: Readonly<Record<string, unknown>>
  readonly attachments: readonly {
    fileName?: string
    filename: string
    generatedFileName: string
    contentType: string
  }[]
  readonly envelope: { readonly from: Mailbox; readonly to: readonly Mailbox[] }
}

async function ask(path: string, method = 'GET'): Promise<Response> {
  const answer = await fetch(`http://127.0.0.1:${servers.api?.getPort()}/api${path}`, { method })
  expect([path, answer.status]).toEqual([path, 200])
  return answer
}
const inbox = async (): Promise<Shown[]> => (await (await ask('/email')).json()) as Shown[]

const attempt = attemptContext({ messageId: 'msg_0198' })
const send = async (message: EmailRequest, of = attempt) => provider.send(message, of, () => true, null)
const pdf = Buffer.from([0, 13, 10, 46, 10, 255, 128])
const message: EmailRequest = {
  channel: 'email',
  to: 'amala@example.com',
  cc: ['copy@example.com'],
  bcc: ['blind@example.com'],
  replyTo: 'desk@example.com',
  content: {
    subject: 'Grüße, 漢字 👩‍👩‍👧‍👦',
    text: 'Zwölf Boxkämpfer\n.\n..\nlast',
    html: '<p>Zwölf <b>Boxkämpfer</b></p>',
    headers: { 'X-Order': '42', 'In-Reply-To': '<question@example.com>' },
    attachments: [{ filename: 'Beilage ä.pdf', contentType: 'application/pdf', content: pdf.toString('base64') }],
  },
}

test('headers, both bodies and the attachment are there, and who got it', async () => {
  expect(await send(message)).toMatchObject({ kind: 'accepted' })
  const [mail, ...others] = await inbox()
  if (mail === undefined) throw new Error('nothing arrived')
  expect(others).toEqual([])
  expect(mail).toMatchObject({
    subject: message.content.subject,
    from: [{ address: 'robot@example.org', name: 'Sendonce' }],
    to: [{ address: 'amala@example.com' }],
    headers: {
      'message-id': '<msg_0198@example.org>',
      'in-reply-to': '<question@example.com>',
      'x-order': '42',
    },
    envelope: { from: { address: 'robot@example.org' } },
  })
  expect(mail.envelope.to.map(({ address }) => address)).toEqual([
    'amala@example.com',
    'copy@example.com',
    'blind@example.com',
  ])
  expect(mail.text.trimEnd()).toBe(message.content.text)
  expect(mail.html).toContain('<p>Zwölf <b>Boxkämpfer</b></p>')

  expect(mail.attachments).toMatchObject([{ filename: 'Beilage ä.pdf', contentType: 'application/pdf' }])
  const attached = await ask(`/email/${mail.id}/attachment/${mail.attachments[0]?.generatedFileName}`)
  expect(Buffer.from(await attached.arrayBuffer())).toEqual(pdf)

  const source = await (await ask(`/email/${mail.id}/source`)).text()
  expect(source).toContain('Cc: copy@example.com')
  expect(source).toContain('Date: Wed, 01 Jul 2026 12:00:00 +0000') // of the message, not of the attempt
  expect(source).not.toMatch(/blind@example\.com|^bcc:/im)
})

test('sent twice it is twice there: nothing on the way merges equal Message-IDs, so that nothing else may send it twice', async () => {
  expect(await send(message)).toMatchObject({ kind: 'accepted' })
  expect(await send(message, { ...attempt, attemptNumber: 2 })).toMatchObject({ kind: 'accepted' })
  const ids = (await inbox()).map(({ headers }) => headers['message-id'])
  expect(ids).toEqual(['<msg_0198@example.org>', '<msg_0198@example.org>'])
})

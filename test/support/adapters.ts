/** Adapters as tests meet them: an answer judged by an adapter's rules, and the provider that the registry makes. */
import { onTestFinished } from 'vitest'
import type { Capabilities } from '../../src/core/capabilities.ts'
import type { EmailRequest } from '../../src/core/message-content.ts'
import type { Outcome } from '../../src/core/outcome.ts'
import { judgeCall } from '../../src/providers/judge-answer.ts'
import type { AnswerRules, Provider } from '../../src/providers/provider.ts'
import { checkProvider } from '../../src/providers/registry.ts'

export interface Answer {
  readonly status: number
  /** Text as it is; anything else as JSON. */
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly complete?: boolean
  readonly retryAfterMs?: number
}

export const judgedBy =
  ({ answers, capabilities }: { answers: AnswerRules; capabilities: unknown }) =>
  ({ status, body, headers = {}, complete = true, retryAfterMs }: Answer): Outcome => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const answer = { status, body: text, headers, complete, retryAfterMs: retryAfterMs ?? null }
    return judgeCall({ phase: 'answered', answer, code: null }, answers, capabilities as Capabilities)
  }

/** What something in between may answer: never the provider's word. */
export const answersFromBetween: readonly (readonly [string, Answer])[] = [
  ...[400, 401, 403, 404, 408, 409, 413, 422, 425, 429, 500, 502, 503, 504].map(
    (status) => [`a bare ${status}`, { status, body: '<html>upstream</html>' }] as const,
  ),
  ...[401, 403, 429, 503].map(
    (status) => [`a ${status} of a gateway that speaks JSON`, { status, body: { message: 'Forbidden' } }] as const,
  ),
  ['an empty 403', { status: 403, body: '' }],
  ['null', { status: 400, body: 'null' }],
  ['a list', { status: 400, body: '[{"message":"x"}]' }],
  ['204', { status: 204, body: '' }],
  ['307', { status: 307, body: '' }],
]

/** Closed when the test ends. */
export function providerOf(settings: Readonly<Record<string, unknown>>): Provider {
  const checked = checkProvider(settings)
  if ('mistakes' in checked) throw new Error(checked.mistakes.join())
  const made = checked.create('p')
  onTestFinished(() => made.close())
  return made
}

export const mistakesIn = (settings: Readonly<Record<string, unknown>>): readonly string[] => {
  const checked = checkProvider(settings)
  return 'mistakes' in checked ? checked.mistakes : []
}

export const recipient = 'ada.lovelace@example.com'

export const email = (
  more: Partial<EmailRequest> = {},
  content: Partial<EmailRequest['content']> = {},
): EmailRequest => ({
  channel: 'email',
  to: recipient,
  ...more,
  content: { subject: 'Order 42', text: 'On its way.', ...content },
})

/** E-mails that no adapter may render: what they break, and where it stands. */
export const spoiledEmails: readonly (readonly [string, EmailRequest, string])[] = [
  ['a subject with a line break', email({}, { subject: 'Order\r\nBcc: eve@example.com' }), '/content/subject'],
  ['a subject with a lone LF', email({}, { subject: 'Order\nX: y' }), '/content/subject'],
  ['a subject with NUL', email({}, { subject: 'Order\0' }), '/content/subject'],
  ['a subject with a separator of lines', email({}, { subject: 'Order\u2028' }), '/content/subject'],
  ['a subject with half a character', email({}, { subject: '\ud83d' }), '/content/subject'],
  [
    'a header with a line break',
    email({}, { headers: { 'X-A': 'b\r\nBcc: eve@example.com' } }),
    '/content/headers/X-A',
  ],
  ['a header name with a line break', email({}, { headers: { 'X\r\nBcc': 'b' } }), '/content/headers/X\r\nBcc'],
  ['a header name with a colon', email({}, { headers: { 'X:/~': 'b' } }), '/content/headers/X:~1~0'],
  ['a header Bcc', email({}, { headers: { bCC: 'eve@example.com' } }), '/content/headers/bCC'],
  ['a header Content-Type', email({}, { headers: { 'Content-Type': 'x/y' } }), '/content/headers/Content-Type'],
  ['a sender with a line break', email({ from: 'Shop\r\n <shop@example.com>' }), '/from'],
  ['a sender that is two', email({ from: 'a@example.com, b@example.com' }), '/from'],
  ['a sender whose name is a list', email({ from: 'a@example.com, Shop <shop@example.com>' }), '/from'],
  ['a sender that is none', email({ from: 'Shop' }), '/from'],
  ['a recipient that is two', email({ to: `${recipient},eve@example.com` }), '/to'],
  ['a recipient with a line break', email({ to: `${recipient}\r\n` }), '/to'],
  ['a recipient with a control character', email({ to: `\u0001${recipient}` }), '/to'],
  ['a recipient with a name', email({ to: `Ada <${recipient}>` }), '/to'],
  ['a copy that is two', email({ cc: [recipient, 'a@example.com;b@example.com'] }), '/cc/1'],
  ['a blind copy with a line break', email({ bcc: ['a@example.com\n'] }), '/bcc/0'],
  ['a reply address that is two', email({ replyTo: 'a@example.com,b@example.com' }), '/replyTo'],
  ['a file name with a line break', emailWith({ filename: 'a\r\n.pdf' }), '/content/attachments/0/filename'],
  ['a content type with a line break', emailWith({ contentType: 'a/b\r\nc' }), '/content/attachments/0/contentType'],
  ['no text and no HTML', { ...email(), content: { subject: 'Order 42' } }, '/content'],
  ['51 recipients', email({ cc: manyOf(25), bcc: manyOf(25) }), '/to'],
]

function emailWith(attachment: object): EmailRequest {
  return email(
    {},
    { attachments: [{ filename: 'a.pdf', contentType: 'application/pdf', content: 'aGk=', ...attachment }] },
  )
}

export function manyOf(count: number): string[] {
  return Array.from({ length: count }, (_, n) => `r${n}@example.com`)
}

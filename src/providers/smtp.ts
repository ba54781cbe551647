/**
 * SMTP submission (RFC 5321, RFC 6409): any mail server, for e-mail.
 * https://www.rfc-editor.org/rfc/rfc5321
 *
 * Duplicates: the protocol knows none. Message-ID and Date are the same for every attempt, so that a receiver that merges
 * equal Message-IDs can; none has to. Blind.
 * After a time-out: https://www.rfc-editor.org/rfc/rfc1047 describes the gap between the final dot and its reply, in which
 * both sides may be right and the mail is delivered twice. So whatever happens after the first byte of the text and
 * before a reply to the dot is unknown; whatever happens earlier was not sent, for a server must not deliver a text that
 * no dot has ended (RFC 5321, 4.1.1.4).
 *
 * T1. A 4yz reply is "not now" and a 5yz reply "not ever" (RFC 5321, 4.2.1), unless it is about us: then the provider stops.
 * T2. Nothing that a server says in words is kept, but a queue id in a form that is known.
 */
import { Type, type Static } from 'typebox'
import type { Capabilities } from '../core/capabilities.ts'
import type { EmailRequest, Environment, MessageRequest } from '../core/message-content.ts'
import type { Evidence, Outcome } from '../core/outcome.ts'
import { callSettings } from './call-settings.ts'
import { emailOf, headersBroken } from './email-message.ts'
import { identityOf } from './http-provider.ts'
import type { CodeMeaning, OwnAdapter, Provider } from './provider.ts'
import { mailboxFrom, mailboxPattern, smtpMessage, unsendable } from './smtp-message.ts'
import { smtpClient, type SmtpResult, type SmtpStep } from './smtp-session.ts'

const capabilities = {
  channels: ['email'],
  deduplication: null,
  lookup: null,
  lateEvidence: 'none',
  acceptance: 'status',
} as const satisfies Capabilities

type Meaning = Extract<CodeMeaning, 'rejected' | 'refused_for_now' | 'credentials'>
/** RFC 5321 (4.2.3), RFC 4954 (4 and 6), RFC 7504; the first digit says what a code means that is not listed (T1). */
const codes: Readonly<Record<string, { readonly means: Meaning; readonly wording: string }>> = {
  421: { means: 'refused_for_now', wording: 'Service not available, closing transmission channel' },
  450: { means: 'refused_for_now', wording: 'Requested mail action not taken: mailbox unavailable' },
  451: { means: 'refused_for_now', wording: 'Requested action aborted: local error in processing' },
  452: { means: 'refused_for_now', wording: 'Requested action not taken: insufficient system storage' },
  454: { means: 'refused_for_now', wording: 'Temporary authentication failure' },
  455: { means: 'refused_for_now', wording: 'Server unable to accommodate parameters' },
  500: { means: 'rejected', wording: 'Syntax error, command unrecognized' },
  501: { means: 'rejected', wording: 'Syntax error in parameters or arguments' },
  502: { means: 'rejected', wording: 'Command not implemented' },
  503: { means: 'rejected', wording: 'Bad sequence of commands' },
  504: { means: 'rejected', wording: 'Command parameter not implemented' },
  521: { means: 'rejected', wording: 'Host does not accept mail' },
  530: { means: 'credentials', wording: 'Authentication required' },
  534: { means: 'credentials', wording: 'Authentication mechanism is too weak' },
  535: { means: 'credentials', wording: 'Authentication credentials invalid' },
  538: { means: 'credentials', wording: 'Encryption required for requested authentication mechanism' },
  550: { means: 'rejected', wording: 'Requested action not taken: mailbox unavailable' },
  551: { means: 'rejected', wording: 'User not local' },
  552: { means: 'rejected', wording: 'Requested mail action aborted: exceeded storage allocation' },
  553: { means: 'rejected', wording: 'Requested action not taken: mailbox name not allowed' },
  554: { means: 'rejected', wording: 'Transaction failed' },
  555: { means: 'rejected', wording: 'MAIL FROM/RCPT TO parameters not recognized or not implemented' },
  556: { means: 'rejected', wording: 'Domain does not accept mail' },
}

const settings = Type.Object(
  {
    host: Type.String({ pattern: '^[A-Za-z0-9:.-]{1,253}$', description: 'The mail server: a name or an address.' }),
    port: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 65_535, description: 'Default: 587; with `security: tls` 465.' }),
    ),
    security: Type.Enum(['starttls', 'tls', 'none'] as const, {
      default: 'starttls',
      description:
        'starttls: it is asked for, and nothing is sent without it; tls: from the first byte; none: in clear, and then nobody signs in.',
    }),
    ca: Type.Optional(
      Type.String({ minLength: 1, description: 'Certificates (PEM) to trust instead of the usual ones.' }),
    ),
    user: Type.Optional(Type.String({ minLength: 1, description: 'Who signs in; without it nobody does.' })),
    password: Type.Optional(Type.String({ minLength: 1, description: 'Of that user.' })),
    from: Type.Optional(
      Type.String({
        pattern: mailboxPattern,
        description: 'The sender of messages that name none: an address, or `Name <address>`.',
      }),
    ),
    clientName: Type.Optional(
      Type.String({ pattern: '^[A-Za-z0-9:.\\[\\]-]{1,253}$', description: "What EHLO says; else this host's name." }),
    ),
    ...callSettings({ connectTimeoutMs: 10_000, answerTimeoutMs: 60_000 }),
    concurrency: Type.Integer({
      minimum: 1,
      maximum: 100,
      default: 5,
      description: 'How many connections are open at one time; those that worked are kept for a while.',
    }),
  },
  {
    additionalProperties: false,
    dependentRequired: { user: ['password'], password: ['user'] },
    if: { properties: { security: { const: 'none' } }, required: ['security'] },
    // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
    then: { properties: { user: false, password: false } },
  },
)
export type SmtpSettings = Static<typeof settings>

const limitBroken = (message: MessageRequest, own: SmtpSettings) => emailBroken(emailOf(message, 'smtp'), own.from)

function emailBroken(email: EmailRequest, configuredFrom: string | undefined) {
  if (email.from !== undefined && mailboxFrom(email.from) === null)
    return { pointer: '/from', detail: 'The sender is an address, or `Name <address>`: ASCII, the address unquoted.' }
  return headersBroken(email, configuredFrom) ?? unsendable(email)
}

function create(name: string, environment: Environment, own: SmtpSettings): Provider {
  const { host, port, security, ca, user, password, clientName } = own
  const client = smtpClient({
    host,
    port: port ?? (security === 'tls' ? 465 : 587),
    secure: security === 'tls',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    tls: { minVersion: 'TLSv1.2', ...(ca === undefined ? {} : { ca }) },
    ...(clientName === undefined ? {} : { name: clientName }),
    login: user === undefined || password === undefined ? null : { user, pass: password },
  })
  return {
    name,
    adapter: 'smtp',
    environment,
    capabilities,
    identity: identityOf(['smtp', host, String(port), user ?? '']),
    callMs: own.connectTimeoutMs + own.answerTimeoutMs,
    concurrency: own.concurrency,
    limitBroken: (message) => limitBroken(message, own),
    render: () => null, // kept for providers that take keys only
    send: async (message, attempt, gate) => {
      const rendered = await smtpMessageOf(message, own, attempt)
      return rendered === null ? notRendered : judge(await client.deliver(rendered, own, gate))
    },
    look: async () => ({
      kind: 'failed',
      retryAfterMs: null,
      evidence: { phase: 'not_begun', code: 'no_look_up', detail: 'SMTP cannot be asked.' },
    }),
    parseWebhook: { lacks: 'the adapter smtp knows none' },
    close: async () => client.close(),
  }
}

/** Null where it cannot be made: a bug of ours; but it is certain that nothing was sent. */
async function smtpMessageOf(message: MessageRequest, own: SmtpSettings, attempt: Parameters<Provider['send']>[1]) {
  try {
    const email = emailOf(message, 'smtp')
    const from = mailboxFrom(email.from ?? own.from ?? '')
    return from === null || emailBroken(email, own.from) !== null ? null : await smtpMessage(email, from, attempt)
  } catch {
    return null // the evidence says so; what was thrown may repeat the message
  }
}

const notSent = (code: string, detail: string): Outcome => ({
  kind: 'not_sent',
  reason: 'not_begun',
  retryAfterMs: null,
  evidence: { phase: 'not_begun', code, detail },
})
const notRendered = notSent('not_rendered', 'The adapter could not make an e-mail of the message.')

/** What a delivery proves. */
export function judge(result: SmtpResult): Outcome {
  switch (result.phase) {
    case 'not_begun':
      return notSent(result.code, 'No byte of the message text left the gateway.')
    case 'too_large':
      return {
        kind: 'rejected',
        evidence: {
          phase: 'answered',
          code: 'SIZE',
          detail: 'It is larger than the server announced to take (RFC 1870).',
        },
      }
    case 'refused':
      return refusal(result.reply, result.step)
    case 'begun':
      return {
        kind: 'unknown',
        evidence: {
          phase: 'begun',
          code: result.code,
          detail: 'The message text had begun; no reply to its end was read.',
        },
      }
    case 'replied': {
      const { reply } = result
      if (/^2\d\d/.test(reply)) {
        const evidence: Evidence = {
          phase: 'answered',
          code: codeOf(reply),
          detail: 'The server accepted the message.',
        }
        return { kind: 'accepted', providerMessageId: queueIdIn(reply), evidence }
      }
      if (/^[45]\d\d/.test(reply)) return refusal(reply, 'envelope')
      return {
        kind: 'unknown',
        evidence: { phase: 'answered', code: codeOf(reply), detail: 'No reply that the end of a message may have.' },
      }
    }
  }
}

/** A reply before the text, or to its end: 4yz or 5yz. */
function refusal(reply: string, step: SmtpStep): Outcome {
  const rule = codes[reply.slice(0, 3)]
  const byDigit = reply.startsWith('4') ? 'refused_for_now' : 'rejected'
  const means = step === 'envelope' ? (rule?.means ?? byDigit) : ofSession(step, reply)
  const evidence: Evidence = {
    phase: 'answered',
    code: codeOf(reply),
    detail: rule?.wording ?? 'A reply code that the adapter does not know.',
    ...(rule === undefined ? { unrecognised: true } : {}),
  }
  return means === 'rejected'
    ? { kind: means, evidence }
    : { kind: 'not_sent', reason: means, retryAfterMs: null, evidence }
}

/** Before the envelope nothing was said about this message. */
const ofSession = (step: SmtpStep, reply: string): Exclude<Meaning, 'rejected'> =>
  step === 'login' && reply.startsWith('5') ? 'credentials' : 'refused_for_now'

/** The code and the enhanced one (RFC 3463), no words. */
function codeOf(reply: string): string {
  const [, code, enhanced] = /^(\d{3})(?:[ -]([245]\.\d{1,3}\.\d{1,3})(?=\s|$))?/.exec(reply) ?? []
  return code === undefined ? 'unreadable' : enhanced === undefined ? code : `${code} ${enhanced}`
}

/** T2: Postfix and its kin, and Exim. */
const queueIdIn = (reply: string): string | null =>
  /^250 (?:2\.\d\.\d )?[Oo][Kk]:? (?:id=|queued as )([\w-]{6,64})$/.exec(reply)?.[1] ?? null

export const smtp: OwnAdapter<SmtpSettings> = { adapter: 'smtp', capabilities, settings, create }

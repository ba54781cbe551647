/**
 * The one place that speaks SMTP, over nodemailer's connection, and says how far a delivery got: by phase and not by error
 * code, which is the same before and after the text. What a reply means is smtp.ts's.
 *
 * M1. `begun` is said from the turn on in which the first byte of the text was handed over, and only a reply to its final
 *     dot ends it. Before that turn nothing was sent: a server must not deliver what no dot has ended.
 * M2. The gate is asked in that very turn, after DATA was answered; a shut gate writes none of the text, and no dot.
 * M3. All recipients or none: if one was refused, the text is not begun.
 * M4. Time-outs are this file's own. A delivery that was given up can no longer begin.
 * M5. A connection is kept only after an acceptance, is asked by RSET before it is used again, and given up at any doubt.
 */
import { Readable } from 'node:stream'
import SMTPConnection, { type SMTPConnectionOptions } from 'nodemailer/lib/smtp-connection'
import type { CallSettings, WriteGate } from './provider.ts'
import type { SmtpMessage } from './smtp-message.ts'

/** Where a refusal came: opening the session, signing in, or the envelope (MAIL, RCPT, DATA). */
export type SmtpStep = 'session' | 'login' | 'envelope'

export type SmtpResult =
  | { readonly phase: 'not_begun'; readonly code: string }
  | { readonly phase: 'refused'; readonly step: SmtpStep; readonly reply: string }
  /** The server announced a greatest size (RFC 1870), and this is beyond it. */
  | { readonly phase: 'too_large' }
  | { readonly phase: 'begun'; readonly code: string }
  /** To the final dot. */
  | { readonly phase: 'replied'; readonly reply: string }

export interface SmtpServer extends SMTPConnectionOptions {
  readonly login: { readonly user: string; readonly pass: string } | null
}

/** A connection and who is told that it is gone. */
interface Session {
  readonly connection: SMTPConnection
  fail: (error: unknown) => void
  deliveries: number
  idle?: NodeJS.Timeout
}

interface SmtpError extends Error {
  readonly code?: string
  readonly originalCode?: string
  readonly command?: string
  readonly response?: string
  readonly responseCode?: number
  readonly rejectedErrors?: readonly SmtpError[]
}

const keptForMs = 15_000
const mostDeliveries = 100

export interface SmtpClient {
  /** Resolves when it has ended or its time is over, and never rejects. */
  deliver(message: SmtpMessage, times: CallTimes, gate: WriteGate): Promise<SmtpResult>
  close(): void
}
type CallTimes = Pick<CallSettings, 'connectTimeoutMs' | 'answerTimeoutMs'>

export function smtpClient({ login, ...server }: SmtpServer): SmtpClient {
  const kept: Session[] = []
  const all = new Set<Session>()

  function opened(fail: Session['fail']): Session {
    const never = 3_600_000 // M4
    const times = { connectionTimeout: never, greetingTimeout: never, socketTimeout: never, dnsTimeout: never }
    const connection = new SMTPConnection({ ...server, ...times, socketCloseTimeout: 0, logger: false })
    const session: Session = { connection, fail, deliveries: 0 }
    all.add(session)
    connection.on('error', (error: unknown) => session.fail(error))
    connection.on('end', () => {
      all.delete(session)
      // What ended it is told in the same turn, but after this.
      setImmediate(() => session.fail(new Error('closed')))
    })
    return session
  }

  function keep(session: Session): void {
    session.deliveries += 1
    if (session.deliveries >= mostDeliveries) return leave(session)
    session.fail = () => drop(session)
    session.idle = setTimeout(() => leave(session), keptForMs).unref()
    kept.push(session)
  }
  function drop(session: Session): void {
    clearTimeout(session.idle)
    const at = kept.indexOf(session)
    if (at >= 0) kept.splice(at, 1)
    session.connection.close()
  }
  function leave(session: Session): void {
    session.connection.quit()
    drop(session)
  }

  function deliver(message: SmtpMessage, times: CallTimes, gate: WriteGate): Promise<SmtpResult> {
    return new Promise((resolve) => {
      let session: Session | undefined
      let step: SmtpStep = 'session'
      let begun = false
      let ended = false

      const end = (result: SmtpResult): void => {
        if (ended) return
        ended = true
        clearTimeout(timer)
        resolve(result)
        if (session === undefined) return
        session.fail = () => {}
        if (result.phase === 'replied' && result.reply.startsWith('2')) keep(session)
        else drop(session)
      }
      const giveUp = (code: string): void => end(begun ? { phase: 'begun', code } : { phase: 'not_begun', code })
      const fail = (error: unknown): void =>
        end(begun ? afterText(error as SmtpError) : beforeText(error as SmtpError, step))
      let timer = setTimeout(giveUp, times.connectTimeoutMs, 'connect time-out')

      /** Mutable, and written to by nodemailer: who was refused stands in it before the text is asked for. */
      const envelope: { from: string; to: string[]; size: number; rejectedErrors?: SmtpError[] } = {
        from: message.from,
        to: [...message.recipients],
        size: message.text.length,
      }
      const text = new Readable({
        read() {
          if (ended || begun) return
          const refused = envelope.rejectedErrors ?? []
          if (refused.length > 0) return fail(Object.assign(new Error('refused'), { rejectedErrors: refused }))
          if (!isOpen(gate)) return giveUp('write gate shut')
          begun = true
          this.push(message.text)
          this.push(null)
        },
      })
      const ready = (of: Session): void => {
        if (ended) return drop(of)
        clearTimeout(timer)
        step = 'envelope'
        // After a blocked event loop the reply may lie there unread: look once before saying that there is none.
        timer = setTimeout(() => setImmediate(giveUp, 'answer time-out'), times.answerTimeoutMs)
        of.connection.send(envelope, text, (error, info) => {
          if (error) fail(error)
          else end({ phase: 'replied', reply: info?.response ?? '' })
        })
      }
      const anew = (): void => {
        if (ended) return
        const fresh = (session = opened(fail))
        fresh.connection.connect((error) => {
          if (error) return fail(error)
          if (login === null) return ready(fresh)
          step = 'login'
          fresh.connection.login({ ...login }, (refusal) => (refusal ? fail(refusal) : ready(fresh)))
        })
      }
      const known = kept.pop()
      if (known === undefined) return anew()
      session = known
      clearTimeout(known.idle)
      let asked = true
      const another = (): void => {
        if (!asked) return
        asked = false
        known.fail = () => {}
        drop(known)
        anew()
      }
      known.fail = another
      known.connection.reset((error) => {
        if (error) return another()
        if (!asked) return
        asked = false
        known.fail = fail
        ready(known)
      })
    })
  }

  return {
    deliver,
    close: () => {
      for (const session of all) session.connection.close()
    },
  }
}

function isOpen(gate: WriteGate): boolean {
  try {
    return gate()
  } catch {
    return false // a gate that fails has let nothing through
  }
}

/** M1: only the reply to the dot itself; a connection's end is none, whatever it left unended. */
const afterText = ({ code, command, response, originalCode }: SmtpError): SmtpResult =>
  code === 'EMESSAGE' && command === 'DATA' && response !== undefined
    ? { phase: 'replied', reply: response }
    : { phase: 'begun', code: originalCode ?? code ?? 'closed' }

function beforeText(error: SmtpError, step: SmtpStep): SmtpResult {
  const { code, originalCode, command, response, responseCode } = error
  const refused = (error.rejectedErrors ?? []).flatMap((each) => each.response ?? [])
  // For good beats for now: the message cannot go to all of them.
  const reply = refused.find((each) => each.startsWith('5')) ?? refused[0] ?? response
  if (code === 'EMESSAGE' && command === 'MAIL FROM' && responseCode === undefined) return { phase: 'too_large' }
  if (reply !== undefined && /^[45]\d\d/.test(reply) && code !== 'ETLS') return { phase: 'refused', step, reply }
  return { phase: 'not_begun', code: originalCode ?? code ?? 'closed' }
}

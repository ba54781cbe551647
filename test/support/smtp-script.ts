/**
 * An SMTP server on loopback that answers as its script says, and keeps every byte that it got. It is no nodemailer: it
 * knows lines, the end of a text, and what to do at each.
 */
import { createServer, type AddressInfo, type Socket } from 'node:net'

/** At each of these the script may say something else than a good server, or do something to the connection. */
type Moment = 'greeting' | 'EHLO' | 'STARTTLS' | 'AUTH' | 'MAIL' | 'RCPT' | 'DATA' | 'text' | 'dot' | 'RSET' | 'QUIT'
type Act = string | ((socket: Socket, nth: number) => void)
export type SmtpScript = Partial<Record<Moment, Act | readonly Act[]>>

const good: Record<Moment, string> = {
  greeting: '220 test',
  EHLO: '250-test\r\n250-PIPELINING\r\n250 8BITMIME',
  STARTTLS: '502 5.5.1 no',
  AUTH: '235 2.7.0 ok',
  MAIL: '250 2.1.0 ok',
  RCPT: '250 2.1.5 ok',
  DATA: '354 go on',
  text: '',
  dot: '250 2.0.0 Ok: queued as 4F1B2C3D',
  RSET: '250 2.0.0 ok',
  QUIT: '221 2.0.0 bye',
}

export const drops = (socket: Socket): void => void socket.destroy()
export const resetsIt = (socket: Socket): void => void socket.resetAndDestroy()
export const stalls = (): void => {}
export const saysAndDrops =
  (bytes: string) =>
  (socket: Socket): void =>
    void socket.end(bytes)

export interface SmtpScripted {
  readonly port: number
  /** What the client said, a line each; texts stand as they came, dot-stuffed. */
  lines(): readonly string[]
  /** Texts that were ended by their dot and answered with a 250: what a real server would deliver. */
  delivered(): readonly string[]
  connections(): number
  /** Resolves once every connection has ended. */
  drained(): Promise<void>
  close(): Promise<void>
}

export async function scriptedSmtp(script: SmtpScript = {}): Promise<SmtpScripted> {
  const lines: string[] = []
  const delivered: string[] = []
  const open = new Set<Socket>()
  const counts = new Map<Moment, number>()
  let connections = 0
  let wake = (): void => {}
  const server = createServer((socket) => {
    connections += 1
    open.add(socket)
    let unread = ''
    let text: string | null = null
    let recipients = -1 // no sender yet
    const act = (moment: Moment): string => {
      const nth = (counts.get(moment) ?? 0) + 1
      counts.set(moment, nth)
      const given = script[moment] ?? good[moment]
      const acts = Array.isArray(given) ? (given as readonly Act[]) : [given as Act]
      const outOfTurn =
        script[moment] === undefined && ((moment === 'RCPT' && recipients < 0) || (moment === 'DATA' && recipients < 1))
      const does = outOfTurn ? '503 5.5.1 not now' : (acts[Math.min(nth, acts.length) - 1] ?? good[moment])
      if (typeof does === 'function') does(socket, nth)
      else if (does !== '' && !socket.destroyed) socket.write(`${does}\r\n`)
      return typeof does === 'string' ? does : ''
    }
    socket.on('error', () => {}) // resets are what this server is for
    socket.on('close', () => {
      open.delete(socket)
      if (open.size === 0) wake()
    })
    socket.on('data', (chunk) => {
      unread += chunk.toString('latin1')
      for (let end = unread.indexOf('\r\n'); end >= 0; end = unread.indexOf('\r\n')) {
        const line = unread.slice(0, end)
        unread = unread.slice(end + 2)
        lines.push(line)
        if (text === null) {
          const moment = (Object.keys(good) as Moment[]).find((known) => line.toUpperCase().startsWith(known))
          const reply = moment === undefined ? '' : act(moment)
          if (moment === 'MAIL') recipients = reply.startsWith('2') ? 0 : -1
          if (moment === 'RCPT' && reply.startsWith('2')) recipients += 1
          if (moment === 'DATA' && reply.startsWith('3')) text = ''
        } else if (line === '.') {
          const whole = text
          text = null
          if (act('dot').startsWith('2') && recipients > 0) delivered.push(whole)
          recipients = -1
        } else {
          if (text === '') act('text')
          text += `${line}\r\n`
        }
      }
    })
    act('greeting')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    lines: () => lines,
    delivered: () => delivered,
    connections: () => connections,
    drained: () => new Promise((resolve) => (open.size === 0 ? resolve() : (wake = resolve))),
    close: () => {
      for (const socket of open) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

/**
 * The load: a closed loop on kept connections, each of which sends its next request when the last one was answered.
 * Plain sockets and prepared text, for what the load costs is taken from the programs that it measures.
 */
import { connect, type Socket } from 'node:net'
import { bodyOf } from '../message.ts'
import { answerParent } from '../parent.ts'

export interface LoadJob {
  readonly url: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly connections: number
  readonly warmMs: number
  readonly measureMs: number
  /** Ends after so many requests, if that is sooner. */
  readonly limit: number
  readonly keys:
    | { readonly kind: 'fresh'; readonly prefix: string }
    | { readonly kind: 'among'; readonly prefix: string; readonly count: number }
    | { readonly kind: 'one'; readonly key: string }
  /** Send another message than the one that has the key. */
  readonly changed: boolean
  readonly expected: number
}

export interface LoadResult {
  /** All that were sent and answered, warm-up included. */
  readonly answered: number
  /** Of the time that was measured. */
  readonly measured: number
  readonly measuredMs: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
  readonly cpuS: number
  /** From the first request to the last answer. */
  readonly totalMs: number
  /** What was not as expected, and how often. */
  readonly unexpected: Readonly<Record<string, number>>
}

const patienceMs = 30_000

async function run(job: LoadJob, tell: (told: string) => void): Promise<LoadResult> {
  const { hostname, port } = new URL(job.url)
  const sockets = await Promise.all(Array.from({ length: job.connections }, async () => open(hostname, Number(port))))
  const head = Object.entries({ Host: `${hostname}:${port}`, 'Content-Type': 'application/json', ...job.headers })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
  const times: number[] = []
  const unexpected: Record<string, number> = {}
  const wrong = (what: string): void => void (unexpected[what] = (unexpected[what] ?? 0) + 1)
  let [sent, answered, next] = [0, 0, 0]
  let phase: 'warm' | 'measure' | 'done' = 'warm'
  let [measureAt, measuredMs] = [0, 0]
  let cpu = process.cpuUsage()

  const keyOf = (): string => {
    const { keys } = job
    if (keys.kind === 'fresh') return `${keys.prefix}${next++}`
    return keys.kind === 'one' ? keys.key : `${keys.prefix}${Math.floor(Math.random() * keys.count)}`
  }
  const requestText = (): string => {
    const key = keyOf()
    const body = bodyOf(key, job.changed)
    return `POST ${job.path} HTTP/1.1\r\n${head}Idempotency-Key: ${key}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  }
  const measure = (): void => {
    phase = 'measure'
    tell('measuring')
    cpu = process.cpuUsage()
    measureAt = performance.now()
  }
  const stop = (): void => {
    if (phase === 'done') return
    phase = 'done'
    tell('measured')
    measuredMs = performance.now() - measureAt
    cpu = process.cpuUsage(cpu)
  }

  const begin = performance.now()
  if (job.warmMs === 0) measure()
  else setTimeout(measure, job.warmMs)
  const ending = setTimeout(stop, job.warmMs + job.measureMs)
  await Promise.all(
    sockets.map(
      async (socket) =>
        new Promise<void>((done) => {
          let text = ''
          let startedAt = 0
          const late = setTimeout(
            () => {
              wrong('no answer')
              socket.destroy()
            },
            patienceMs + job.warmMs + job.measureMs,
          )
          const more = (): void => {
            if (phase === 'done' || sent >= job.limit) {
              socket.removeAllListeners('close')
              socket.destroy()
              clearTimeout(late)
              return done()
            }
            sent++
            startedAt = performance.now()
            socket.write(requestText(), 'latin1')
          }
          socket.on('data', (chunk) => {
            text += chunk.toString('latin1')
            const headEnd = text.indexOf('\r\n\r\n')
            if (headEnd < 0) return
            const length = /\r\ncontent-length: (\d+)/i.exec(text)?.[1]
            if (length !== undefined && text.length < headEnd + 4 + Number(length)) return
            if (phase === 'measure') times.push(performance.now() - startedAt)
            answered++
            const status = text.slice(9, 12)
            if (status !== String(job.expected) || length === undefined) wrong(`status ${status}`)
            text = ''
            more()
          })
          socket.once('close', () => {
            wrong('connection closed')
            clearTimeout(late)
            done()
          })
          more()
        }),
    ),
  )
  clearTimeout(ending)
  stop()
  const totalMs = performance.now() - begin
  const sorted = Float64Array.from(times).toSorted()
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN
  return {
    answered,
    measured: times.length,
    measuredMs,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    maxMs: at(1),
    cpuS: (cpu.user + cpu.system) / 1e6,
    totalMs,
    unexpected,
  }
}

async function open(host: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true }, () => resolve(socket))
    socket.once('error', reject)
  })
}

answerParent(run)

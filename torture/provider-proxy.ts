/**
 * A TCP proxy before the sandbox: the network on the way, and the provider's own front door. It loses requests and
 * answers, answers in the provider's place, and keeps the log of what really left a gateway.
 *
 * P1. What left is in the log even if it never arrived: for a blind provider it may have.
 * P2. Nothing is forwarded for a gateway that has closed its side.
 */
import { createHash } from 'node:crypto'
import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net'
import { sandboxErrors } from '../src/sandbox/magic.ts'
import type { Chance } from './chance.ts'
import { answerBytes, seenAnswer, seenRequest, takeWhole, type SeenAnswer, type Whole } from './requests.ts'

/** What becomes of one request. Each `refused …` is an answer that the sandbox documents: nothing was accepted by this call. */
export const providerFates = [
  'request lost',
  'half a request',
  'answer lost',
  'answer closed',
  'half an answer',
  'answer late',
  'answer too late',
  'bare 503, not passed on',
  'bare 503, passed on',
  'refused for now',
  'refused for good',
] as const
export type ProviderFate = (typeof providerFates)[number] | 'passed'

/** One send that left a gateway. */
export interface SentOut {
  readonly messageId: string
  /** When its first byte came, by this machine's clock. */
  readonly at: number
  readonly fate: ProviderFate
  readonly digest: string
  /** What the gateway was told, if it was told all of it. */
  answered: SeenAnswer | null
}

const { rate_limited, unavailable, recipient_refused } = sandboxErrors
const refusal = (code: string, { status, message }: { status: number; message: string }): Buffer =>
  answerBytes(status, 'Refused', 'application/json', JSON.stringify({ error: { code, message } }), 'retry-after: 1\r\n')
const bare503 = answerBytes(503, 'Service Unavailable', 'text/html', '<h1>upstream connect error</h1>')

export class ProviderProxy {
  readonly log: SentOut[] = []
  readonly #sockets = new Set<Socket>()
  readonly #server: Server
  readonly #upstreamPort: number
  readonly #chance: Chance
  readonly #onFault: (fate: ProviderFate) => void
  #port = 0
  #faultRate = 0

  private constructor(upstreamPort: number, chance: Chance, onFault: (fate: ProviderFate) => void) {
    this.#upstreamPort = upstreamPort
    this.#chance = chance
    this.#onFault = onFault
    this.#server = createServer((client) => this.#serve(client))
  }

  static async listen(
    upstreamUrl: string,
    chance: Chance,
    onFault: (fate: ProviderFate) => void,
  ): Promise<ProviderProxy> {
    const proxy = new ProviderProxy(Number(new URL(upstreamUrl).port), chance, onFault)
    await proxy.#open()
    return proxy
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** Of all requests, the part that meets a fate. */
  set faultRate(rate: number) {
    this.#faultRate = rate
  }

  /** Nobody listens, and what is open is cut. */
  async refuse(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    for (const socket of this.#sockets) socket.resetAndDestroy()
    await closed
  }

  async listenAgain(): Promise<void> {
    if (!this.#server.listening) await this.#open()
  }

  async close(): Promise<void> {
    if (this.#server.listening) await this.refuse()
  }

  async #open(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(this.#port, '127.0.0.1', () => {
        this.#server.off('error', reject)
        resolve()
      })
    })
    this.#port = (this.#server.address() as AddressInfo).port
  }

  #serve(client: Socket): void {
    const upstream = connect(this.#upstreamPort, '127.0.0.1')
    let asked = Buffer.alloc(0)
    let firstAt = 0
    const exchange = new Exchange(client, upstream)
    for (const socket of [client, upstream]) {
      this.#sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => {}) // cutting is what this is for
      socket.on('close', () => {
        this.#sockets.delete(socket)
        exchange.end()
      })
    }
    client.on('data', (bytes: Buffer) => {
      if (asked.length === 0) firstAt = Date.now()
      asked = Buffer.concat([asked, bytes])
      const taken = takeWhole(asked)
      if (taken === null) return
      asked = Buffer.from(taken.rest)
      this.#handle(taken.whole, firstAt, exchange)
    })
    upstream.on('data', (bytes: Buffer) => exchange.answer(bytes))
  }

  #handle(request: Whole, at: number, exchange: Exchange): void {
    const { messageId, isSend } = seenRequest(request)
    const isHit = this.#chance.happens(this.#faultRate)
    const drawn = isHit ? this.#chance.pick(providerFates) : 'passed'
    const fate = drawn === 'refused for good' && !isSend ? 'passed' : drawn // no look-up is refused for good
    if (fate !== 'passed') this.#onFault(fate)
    let entry: SentOut | null = null
    if (isSend) {
      const digest = createHash('sha256').update(request.body).digest('hex')
      entry = { messageId, at, fate, digest, answered: null }
      this.log.push(entry)
    }
    const late = fate === 'answer late' ? this.#chance.between(300, 4_000) : 6_500
    exchange.begin(request, fate, late, (answered) => {
      if (entry !== null) entry.answered = answered
    })
  }
}

/** One request at a time on one connection: its fate, and what its gateway is told. */
class Exchange {
  readonly #client: Socket
  readonly #upstream: Socket
  #fate: ProviderFate = 'passed'
  #lateMs = 0
  #told: Buffer = Buffer.alloc(0)
  #onAnswered: (answer: SeenAnswer) => void = () => {}

  constructor(client: Socket, upstream: Socket) {
    this.#client = client
    this.#upstream = upstream
  }

  begin(request: Whole, fate: ProviderFate, lateMs: number, onAnswered: (answer: SeenAnswer) => void): void {
    this.#fate = fate
    this.#lateMs = lateMs
    this.#told = Buffer.alloc(0)
    this.#onAnswered = onAnswered
    switch (fate) {
      case 'request lost':
        this.#client.resetAndDestroy()
        return
      case 'half a request':
        this.#upstream.write(request.bytes.subarray(0, request.bytes.length - 20))
        setTimeout(() => this.#client.resetAndDestroy(), 20)
        return
      case 'bare 503, not passed on':
        this.#tell(bare503)
        return
      case 'refused for now':
        this.#tell(lateMs % 2 < 1 ? refusal('rate_limited', rate_limited) : refusal('unavailable', unavailable))
        return
      case 'refused for good':
        this.#tell(refusal('recipient_refused', recipient_refused))
        return
      case 'answer lost':
      case 'answer closed':
      case 'half an answer':
      case 'answer late':
      case 'answer too late':
      case 'bare 503, passed on':
      case 'passed':
        this.#upstream.write(request.bytes)
    }
  }

  answer(bytes: Buffer): void {
    switch (this.#fate) {
      case 'answer lost':
        this.#client.resetAndDestroy()
        return
      case 'answer closed':
        this.#client.end()
        return
      case 'half an answer':
        this.#client.write(bytes.subarray(0, bytes.length / 2))
        this.#client.end()
        return
      case 'bare 503, passed on':
        this.#fate = 'request lost' // what else the provider says is not passed on
        this.#tell(bare503)
        this.#client.end()
        return
      case 'answer late':
      case 'answer too late':
        setTimeout(() => this.#tell(bytes), this.#lateMs)
        return
      case 'passed':
        this.#tell(bytes)
        return
      case 'request lost':
      case 'half a request':
      case 'bare 503, not passed on':
      case 'refused for now':
      case 'refused for good':
    }
  }

  /** One side has closed. What was written to the other still arrives, as it would without a proxy. */
  end(): void {
    this.#upstream.destroy()
    this.#client.destroySoon()
  }

  #tell(bytes: Buffer): void {
    if (!this.#client.writable) return
    this.#client.write(bytes)
    this.#told = Buffer.concat([this.#told, bytes])
    const taken = takeWhole(this.#told)
    if (taken !== null) this.#onAnswered(seenAnswer(taken.whole))
  }
}

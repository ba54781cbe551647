/**
 * A TCP proxy between one gateway and PostgreSQL. It cuts a connection at a statement: before the server has seen it, or
 * after the commit and before its answer; or holds, cuts and refuses all of them.
 */
import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net'

export type StoreFate =
  /** The statement never reaches the server. */
  | 'lost before'
  /** The server has committed; nobody hears of it. */
  | 'lost after'
  | 'closed after'
  /** From here on no byte passes on this connection, and no side is told. */
  | 'silence'
  /** It passes, and whoever asked for the strike is told. */
  | 'told'

export interface Strike {
  /** The name of a prepared statement. */
  readonly statement: string
  /** Only where what is sent with it fits. */
  readonly matching?: RegExp
  readonly fate: StoreFate
  /** @param text what the gateway sent with it */
  readonly onStruck: (text: string) => void
}

/** The end of every answer of PostgreSQL: ReadyForQuery, idle. By then the statement has been committed. */
const readyForQuery = Buffer.from([0x5a, 0, 0, 0, 5, 0x49])

export class StoreProxy {
  readonly #sockets = new Set<Socket>()
  readonly #strikes: Strike[] = []
  readonly #server: Server
  readonly #upstreamUrl: string
  #held = false
  #shut = false

  private constructor(upstreamUrl: string) {
    this.#upstreamUrl = upstreamUrl
    this.#server = createServer((client) => this.#serve(client))
  }

  static async listen(upstreamUrl: string): Promise<StoreProxy> {
    const proxy = new StoreProxy(upstreamUrl)
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve))
    return proxy
  }

  /** The data base, through the proxy. */
  get url(): string {
    const url = new URL(this.#upstreamUrl)
    url.hostname = '127.0.0.1'
    url.port = String((this.#server.address() as AddressInfo).port)
    return url.href
  }

  /** Strikes the next connection that runs the statement. @returns takes the strike back, if it has not happened */
  strike(strike: Strike): () => void {
    this.#strikes.push(strike)
    return () => {
      const at = this.#strikes.indexOf(strike)
      if (at >= 0) this.#strikes.splice(at, 1)
    }
  }

  /** Nothing passes for a while, and then everything. */
  hold(isHeld: boolean): void {
    this.#held = isHeld
    for (const socket of this.#sockets)
      if (isHeld) socket.pause()
      else socket.resume()
  }

  cutAll(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy()
  }

  /** Cuts what is open, and whatever comes. */
  shut(isShut: boolean): void {
    this.#shut = isShut
    if (isShut) this.cutAll()
  }

  calm(): void {
    this.#strikes.length = 0
    this.shut(false)
    this.hold(false)
  }

  async close(): Promise<void> {
    this.cutAll()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #serve(client: Socket): void {
    if (this.#shut) {
      client.resetAndDestroy()
      return
    }
    const { hostname, port } = new URL(this.#upstreamUrl)
    const upstream = connect(Number(port), hostname)
    let fate: StoreFate | null = null
    for (const socket of [client, upstream]) {
      this.#sockets.add(socket)
      socket.setNoDelay(true)
      if (this.#held) socket.pause()
      socket.on('error', () => {}) // cutting is what this is for
      socket.on('close', () => {
        this.#sockets.delete(socket)
        client.destroy()
        upstream.destroy()
      })
    }
    client.on('data', (bytes) => {
      fate ??= this.#fateOf(bytes)
      if (fate === 'lost before') client.resetAndDestroy()
      else if (fate !== 'silence') upstream.write(bytes)
    })
    upstream.on('data', (bytes) => {
      if (fate === null) client.write(bytes)
      else if (fate === 'silence' || !bytes.subarray(-readyForQuery.length).equals(readyForQuery)) return
      else if (fate === 'closed after') client.end()
      else client.resetAndDestroy()
    })
  }

  /** The names of prepared statements stand in Parse and Bind, ended by a zero: this one, or a variant that is named after it. */
  #fateOf(bytes: Buffer): StoreFate | null {
    const sent = bytes.toString('latin1')
    const at = this.#strikes.findIndex(
      ({ statement, matching }) =>
        new RegExp(`\\0${statement}(-[a-z-]+)?\\0`).test(sent) && matching?.test(sent) !== false,
    )
    const [strike] = at < 0 ? [] : this.#strikes.splice(at, 1)
    if (strike === undefined) return null
    strike.onStruck(sent)
    return strike.fate === 'told' ? null : strike.fate
  }
}

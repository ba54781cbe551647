/**
 * A TCP proxy on loopback before PostgreSQL. It cuts or silences a connection at a statement that a test names, before
 * the server has seen it, or after the server has carried it out and before its answer is passed on.
 */
import { createServer, connect, type AddressInfo, type Socket } from 'node:net'

export type Fault =
  /** The statement never reaches the server. */
  | 'reset before'
  /** The server has carried it out and committed; nobody hears of it. */
  | 'reset after'
  | 'end after'
  /** From here on no byte passes, and no side is told. */
  | 'silence'

export interface TcpProxy {
  /** The same data base, through the proxy. */
  urlOf(databaseUrl: string): string
  /** Strikes the next connection that runs the prepared statement `name`. */
  strike(name: string, fault: Fault): void
  /** Strikes that have not happened yet. */
  pending(): number
  /** Cuts what is open and whatever comes, until `open`. */
  shut(): void
  open(): void
  close(): Promise<void>
}

/** The end of every answer of PostgreSQL: ReadyForQuery, idle. By then the statement has been committed. */
const readyForQuery = Buffer.from([0x5a, 0, 0, 0, 5, 0x49])

export async function tcpProxy(serverUrl: string): Promise<TcpProxy> {
  const { hostname, port } = new URL(serverUrl)
  const sockets = new Set<Socket>()
  const strikes: { name: string; fault: Fault }[] = []
  let isShut = false

  const server = createServer((client) => {
    if (isShut) {
      client.resetAndDestroy()
      return
    }
    const upstream = connect(Number(port), hostname)
    let fault: Fault | null = null
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => {}) // cutting is what this is for
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        upstream.destroy()
      })
    }
    client.on('data', (bytes) => {
      fault ??= takeStrike(strikes, bytes)
      if (fault === 'reset before') client.resetAndDestroy()
      else if (fault !== 'silence') upstream.write(bytes)
    })
    upstream.on('data', (bytes) => {
      if (fault === null) client.write(bytes)
      else if (fault === 'silence' || !bytes.subarray(-readyForQuery.length).equals(readyForQuery)) return
      else if (fault === 'end after') client.end()
      else client.resetAndDestroy()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port: ownPort } = server.address() as AddressInfo
  const cutAll = (): void => {
    for (const socket of sockets) socket.resetAndDestroy()
  }
  return {
    urlOf: (databaseUrl) => {
      const url = new URL(databaseUrl)
      url.hostname = '127.0.0.1'
      url.port = String(ownPort)
      return url.href
    },
    strike: (name, fault) => void strikes.push({ name, fault }),
    pending: () => strikes.length,
    shut: () => {
      isShut = true
      cutAll()
    },
    open: () => {
      isShut = false
    },
    close: () => {
      cutAll()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

/** The names of prepared statements stand in Parse and Bind, ended by a zero: this one, or a variant that is named after it. */
function takeStrike(strikes: { name: string; fault: Fault }[], bytes: Buffer): Fault | null {
  const sent = bytes.toString('latin1')
  const found = strikes.findIndex(({ name }) => new RegExp(`${name}(-[a-z-]+)?\\0`).test(sent))
  return found < 0 ? null : (strikes.splice(found, 1)[0]?.fault ?? null)
}

/**
 * Servers on loopback that behave as a script says, below HTTP where need be, and keep every byte that reached them.
 * A script is run for each connection; most are one of the helpers below. No timers: a script acts when bytes arrive.
 */
import { createServer, type AddressInfo, type Socket } from 'node:net'

type OnRequest = (nth: number, request: string) => void

export interface Peer {
  readonly socket: Socket
  /** Runs `act` each time a whole request (head and body) has arrived; `nth` counts over all connections, from 1. */
  readonly onRequest: (act: OnRequest) => void
}
export type Script = (peer: Peer) => void

export interface ScriptedServer {
  readonly origin: string
  /** The same address under https: for scripts that spoil the handshake. */
  readonly tlsOrigin: string
  /** Every byte of every connection, in order of arrival, one character a byte. */
  received(): string
  connections(): number
  /** Resolves once all connections have ended: after it, nothing more can arrive. */
  drained(): Promise<void>
  close(): Promise<void>
}

const nothing = (): void => {}

export async function scriptedServer(script: Script): Promise<ScriptedServer> {
  const open = new Set<Socket>()
  let received = ''
  let connections = 0
  let requests = 0
  let wake = nothing
  const server = createServer((socket) => {
    connections += 1
    open.add(socket)
    let unread = ''
    let act: OnRequest = nothing
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1')
      unread += chunk.toString('latin1')
      for (let end = endOfMessage(unread); end !== null; end = endOfMessage(unread)) {
        const request = unread.slice(0, end)
        unread = unread.slice(end)
        requests += 1
        act(requests, request)
      }
    })
    socket.on('error', nothing) // resets are what these servers are for
    socket.on('close', () => {
      open.delete(socket)
      if (open.size === 0) wake()
    })
    script({ socket, onRequest: (next) => (act = next) })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    origin: `http://127.0.0.1:${port}`,
    tlsOrigin: `https://127.0.0.1:${port}`,
    received: () => received,
    connections: () => connections,
    drained: () => new Promise((resolve) => (open.size === 0 ? resolve() : (wake = resolve))),
    close: () => {
      for (const socket of open) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

/** A server that says nothing itself: the test acts on `last()`, the connection that came last. */
export async function silentServer(): Promise<{ server: ScriptedServer; last: () => Socket }> {
  const sockets: Socket[] = []
  const server = await scriptedServer(({ socket }) => sockets.push(socket))
  return {
    server,
    last: () => {
      const socket = sockets.at(-1)
      if (socket === undefined) throw new Error('no connection yet')
      return socket
    },
  }
}

/** Where the first request or answer in `bytes` ends, or null while it is not whole. Those here have a `content-length`. */
export function endOfMessage(bytes: string): number | null {
  const head = bytes.indexOf('\r\n\r\n')
  if (head < 0) return null
  const length = /\r\ncontent-length: (\d+)/i.exec(bytes.slice(0, head))?.[1] ?? '0'
  const end = head + 4 + Number(length)
  return bytes.length < end ? null : end
}

type Act = (socket: Socket) => void

export const staysSilent: Act = nothing
export const closes: Act = (socket) => socket.end()
export const resets: Act = (socket) => socket.resetAndDestroy()
export const says =
  (bytes: string | Buffer, ...then: Act[]): Act =>
  (socket) => {
    socket.write(bytes)
    for (const act of then) act(socket)
  }
/** Writes the same bytes again and again for as long as the other side listens. */
export const floods =
  (bytes: string): Act =>
  (socket) => {
    if (socket.destroyed) return
    socket.write(bytes)
    setImmediate(() => floods(bytes)(socket))
  }

export const atAccept =
  (act: Act): Script =>
  ({ socket }) =>
    act(socket)
/** Acts when the first bytes arrive, whatever they are: a TLS hello, say. */
export const atFirstBytes =
  (act: Act): Script =>
  ({ socket }) =>
    socket.once('data', () => act(socket))
/** The n-th whole request (counted over all connections) meets the n-th act; the last act serves all that follow. */
export const afterRequest =
  (...acts: readonly [Act, ...Act[]]): Script =>
  ({ socket, onRequest }) =>
    onRequest((nth) => (acts[Math.min(nth, acts.length) - 1] ?? acts[0])(socket))

/** An HTTP/1.1 answer with a correct `content-length` unless `headers` says otherwise. */
export function http(status: string, body = '', headers: readonly string[] = []): string {
  const length = headers.some((line) => /^(content-length|transfer-encoding):/i.test(line))
    ? []
    : [`content-length: ${Buffer.byteLength(body)}`]
  return [`HTTP/1.1 ${status}`, ...length, ...headers, '', body].join('\r\n')
}

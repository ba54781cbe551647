/**
 * What stands between us and a vendor: a TCP proxy on loopback that spoils every exchange in one way. It counts the whole
 * requests that it read, whether it passes them on or not; what the vendor behind it got, that one counts. No timers: it
 * acts when a connection, a request or an answer is there.
 */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { endOfMessage } from './scripted-server.ts'

/** At most one of these; none of them: bytes pass as they are. */
export interface Fault {
  /** A connection was accepted. */
  readonly atAccept?: (client: Socket) => void
  /** A whole request was read. The vendor never hears of it. */
  readonly inPlaceOfVendor?: (client: Socket) => void
  /** The vendor has acted, and this is the whole of its answer. */
  readonly withAnswer?: (client: Socket, answer: Buffer) => void
}

export interface FaultProxy {
  readonly origin: string
  /** From here on. */
  spoil(fault: Fault): void
  /** Does something to every connection of ours that is open. */
  toEach(act: (client: Socket) => void): void
  /** Whole requests that were read. */
  requests(): number
  connections(): number
  /** Resolves once we hold no connection: after it, nothing more can arrive. */
  drained(): Promise<void>
  close(): Promise<void>
}

export async function faultProxy(vendorOrigin: string): Promise<FaultProxy> {
  const { hostname, port } = new URL(vendorOrigin)
  const clients = new Set<Socket>()
  const vendors = new Set<Socket>()
  let fault: Fault = {}
  let [requests, connections] = [0, 0]
  let wake = (): void => {}

  const server = createServer((client) => {
    connections += 1
    clients.add(client)
    client.on('error', () => {}) // resets are what this is for
    const vendor = connect(Number(port), hostname)
    vendors.add(vendor)
    vendor.on('error', () => {}) // as above
    vendor.on('close', () => vendors.delete(vendor))
    client.on('close', () => {
      clients.delete(client)
      vendor.destroy()
      if (clients.size === 0) wake()
    })
    eachMessage(client, (request) => {
      requests += 1
      if (fault.inPlaceOfVendor === undefined) vendor.write(request)
      else fault.inPlaceOfVendor(client)
    })
    eachMessage(vendor, (answer) => {
      if (fault.withAnswer === undefined) client.write(answer)
      else fault.withAnswer(client, answer)
    })
    fault.atAccept?.(client)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spoil: (next) => void (fault = next),
    toEach: (act) => clients.forEach(act),
    requests: () => requests,
    connections: () => connections,
    drained: () => new Promise((resolve) => (clients.size === 0 ? resolve() : (wake = resolve))),
    close: () => {
      for (const socket of [...clients, ...vendors]) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

/** Both sides say how long a message is by `content-length`. */
function eachMessage(socket: Socket, act: (message: Buffer) => void): void {
  let unread = Buffer.alloc(0)
  socket.on('data', (chunk) => {
    unread = Buffer.concat([unread, Buffer.from(chunk)])
    for (let end = endOfMessage(unread.toString('latin1')); end !== null;) {
      const message = unread.subarray(0, end)
      unread = unread.subarray(end)
      act(message)
      end = endOfMessage(unread.toString('latin1'))
    }
  })
}

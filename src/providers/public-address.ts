/**
 * Which addresses may be called where callers, not the configuration, say whereto (server-side request forgery). Judged
 * where the connection is made, by the address that is connected to: a name can answer otherwise a moment later.
 *
 * A1. Allowed is what is known to be public: IPv4 in no special range, IPv6 in 2000::/3 and in no special range. What
 *     carries an IPv4 address inside (mapped, compatible, NAT64, 6to4, Teredo) is none of these, whatever is inside.
 * A2. A name is resolved once a connection. If one address of the answer is not allowed, none is called.
 * A3. For an address in the URL there is no look-up: it is judged before connecting.
 * A4. A refusal comes before the connection is opened: nothing was sent, and nothing will be.
 */
import { lookup as systemLookup, type LookupAddress, type LookupAllOptions } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { buildConnector } from 'undici'
import { CallRefused, connectorOptions } from './http-outcome.ts'

/** May a connection be made to this address? */
export type Allowed = (address: string) => boolean

const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Where clouds hand out credentials to whoever asks from inside, beyond 169.254.0.0/16 and fe80::/10: Azure, Alibaba,
 * AWS, Google. The first looks public, the others private.
 */
const metadata = ['168.63.129.16/32', '100.100.100.200/32', 'fd00:ec2::/32', 'fd20:ce::254/128'].map((range) =>
  ipaddr.parseCIDR(range),
)

/** Addresses that anybody on the internet could call. */
export const isPublicAddress: Allowed = (text) => {
  const address = addressOf(text)
  return address?.range() === 'unicast' && (address.kind() === 'ipv4' || (address as ipaddr.IPv6).match(globalUnicast))
}

const insideRanges: readonly string[] = ['loopback', 'private', 'uniqueLocal', 'carrierGradeNat']

/** Those, and the addresses of networks inside; still no link-local or metadata address. */
export const isPublicOrPrivateAddress: Allowed = (text) =>
  isPublicAddress(text) || insideRanges.includes(addressOf(text)?.range() ?? '')

/** Undefined for what is no address, or a metadata service's. */
function addressOf(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  // Node connects, and reads less as an address than this library does (not `0x7f.1`): both must know it.
  if (isIP(text) === 0 || !ipaddr.isValid(text)) return undefined
  const address = ipaddr.parse(text)
  return ipaddr.subnetMatch(address, { metadata }, 'other') === 'metadata' ? undefined : address
}

type Resolve = (
  name: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/** For node:net: the addresses of a name, if all are allowed (A2). */
export function checkedLookup(allowed: Allowed, resolve: Resolve = systemLookup): LookupFunction {
  return (name, options, callback) =>
    resolve(name, { ...options, all: true }, (error, addresses) => {
      const [first] = addresses ?? []
      if (error !== null) callback(error, [])
      else if (first === undefined) callback(Object.assign(new Error('no address'), { code: 'ENOTFOUND' }), [])
      else if (!addresses.every(({ address }) => allowed(address))) callback(addressRefused(), [])
      else if (options.all === true) callback(null, addresses)
      else callback(null, first.address, first.family)
    })
}

export function checkedConnector(allowed: Allowed, resolve?: Resolve): buildConnector.connector {
  const connect = buildConnector({ ...connectorOptions, lookup: checkedLookup(allowed, resolve) })
  return (options, callback) => {
    if (isIP(options.hostname) !== 0 && !allowed(options.hostname)) throw addressRefused() // A3
    return connect(options, callback)
  }
}

/** It does not tell the address: whoever asks would learn what is inside. */
export const whyRefused = 'The receiver is at an address that is not called: private, link-local, reserved or the like.'

const addressRefused = (): CallRefused => new CallRefused('address_refused', whyRefused)

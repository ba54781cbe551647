/**
 * Which addresses may be called, and that no other one is ever connected to. A1 to A4 are those of public-address.ts.
 * The referee of the ranges is node's own BlockList, filled from IANA's registries of special-purpose addresses.
 */
import type { LookupAddress } from 'node:dns'
import { BlockList, isIP } from 'node:net'
import { promisify } from 'node:util'
import { array, assert as holds, constantFrom, ipV6, nat, oneof, property, string, tuple } from 'fast-check'
import type { Agent } from 'undici'
import { expect, onTestFinished, test } from 'vitest'
import { agentFor, callProvider, CallRefused } from '../../src/providers/http-outcome.ts'
import { judgeCall } from '../../src/providers/judge-answer.ts'
import type { AnswerRules } from '../../src/providers/provider.ts'
import {
  type Allowed,
  checkedConnector,
  checkedLookup,
  isPublicAddress,
  isPublicOrPrivateAddress,
} from '../../src/providers/public-address.ts'
import { blindCapabilities } from '../support/attempt-context.ts'
import { afterRequest, http, says, type ScriptedServer, scriptedServer } from '../support/scripted-server.ts'
import { words } from '../support/words.ts'

test.each(
  words(`
    127.0.0.1 127.255.255.254 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 169.254.0.1
    100.64.0.1 100.127.255.255 0.0.0.0 0.1.2.3 255.255.255.255 224.0.0.1 239.255.255.250 192.0.0.192 192.0.2.1
    198.51.100.1 203.0.113.1 198.18.0.1 198.19.255.255 192.88.99.1 240.0.0.1 168.63.129.16 100.100.100.200
    :: ::1 fe80::1 febf::1 fec0::1 fc00::1 fd00:ec2::254 fd20:ce::254 ff02::1 ff0e::1 2001:db8::1 3fff::1 2001:2::1
    2001:10::1 2001:20::1 100::1 100:0:0:1::1 5f00::1 4000::1 ::ffff:127.0.0.1 ::ffff:a9fe:a9fe ::ffff:8.8.8.8
    ::ffff:0:127.0.0.1 ::127.0.0.1 ::7f00:1 64:ff9b::7f00:1 64:ff9b::8.8.8.8 64:ff9b:1::a00:1 2002:7f00:1::
    2002:a00:1::1 2002:808:808:: 2001::1 2001:0:4136:e378:8000:63bf:f5ff:fffe fe80::1%eth0 0:0:0:0:0:0:0:1 FE80::1`),
)('%s is not public (A1)', (address) => {
  expect(isIP(address)).not.toBe(0)
  expect(isPublicAddress(address)).toBe(false)
})

test.each(
  words(`
    8.8.8.8 1.1.1.1 9.255.255.255 11.0.0.0 172.15.255.255 172.32.0.0 100.63.255.255 100.128.0.0 169.253.255.255
    169.255.0.0 192.167.255.255 223.255.255.255 168.63.129.17 198.17.255.255 2606:4700::1111 2a00:1450:4001::200e
    2001:4860:4860::8888 2001:200::1 2003::1 3ffe:ffff::1`),
)('%s is public (A1)', (address) => {
  expect(isPublicAddress(address)).toBe(true)
})

/** https://www.iana.org/assignments/iana-ipv4-special-registry, without the single addresses inside; multicast; Azure's metadata. */
const special4 = words(`
  0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
  192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24
  203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 168.63.129.16/32`)
/** https://www.iana.org/assignments/iana-ipv6-special-registry, inside 2000::/3, the one block of global unicast. */
const special6 = words('2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20')

function listOf(ranges: readonly string[], family: 'ipv4' | 'ipv6'): (address: string) => boolean {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', prefix] = range.split('/')
    list.addSubnet(address, Number(prefix), family)
  }
  return (address) => list.check(address, family)
}
const isSpecial4 = listOf(special4, 'ipv4')
const isSpecial6 = listOf(special6, 'ipv6')
const isGlobal6 = listOf(['2000::/3'], 'ipv6')

const dotted = (n: number): string => [24, 16, 8, 0].map((shift) => (n >>> shift) & 255).join('.')
const numberOf = (address: string): number => address.split('.').reduce((n, byte) => n * 256 + Number(byte), 0)
const edges4 = special4.flatMap((range) => {
  const [address = '', prefix] = range.split('/')
  const [first, size] = [numberOf(address), 2 ** (32 - Number(prefix))]
  return [first - 1, first, first + 1, first + size - 1, first + size]
})
const anyV4 = oneof(nat(2 ** 32 - 1), constantFrom(...edges4)).map((n) => dotted(n >>> 0))

test('every IPv4 address is judged as the registry has it, at the edges of each range too (A1)', () => {
  holds(property(anyV4, (address) => isPublicAddress(address) === !isSpecial4(address)))
  for (const edge of edges4.map((n) => dotted(n >>> 0)))
    expect({ edge, isPublic: isPublicAddress(edge) }).toEqual({ edge, isPublic: !isSpecial4(edge) })
})

const hextet = (n: number): string => n.toString(16)
const nearV6 = tuple(
  constantFrom(0x2000, 0x2001, 0x2002, 0x2003, 0x2620, 0x2606, 0x3ffe, 0x3fff, 0x1fff, 0x4000, 0xfc00, 0xfe80),
  constantFrom(0, 1, 2, 3, 0x4f, 0xdb8, 0xdb9, 0xfff, 0x1000, 0x1ff, 0x200),
  nat(0xffff),
  nat(0xffff),
).map(([a, b, c, d]) => `${hextet(a)}:${hextet(b)}:${hextet(c)}::${hextet(d)}`)

test('every IPv6 address is judged as the registries have it, however it is spelled (A1)', () => {
  const check = (address: string): void => {
    const expected = isGlobal6(address) && !isSpecial6(address)
    expect([isPublicAddress(address), isPublicAddress(address.toUpperCase())]).toEqual([expected, expected])
  }
  holds(property(oneof(ipV6(), nearV6), check), { numRuns: 2000 })
})

test('an IPv4 address inside an IPv6 address never makes it public, whichever it is (A1)', () => {
  const check = (v4: string): void => {
    const hex = `${hextet(numberOf(v4) >>> 16)}:${hextet(numberOf(v4) & 0xffff)}`
    const inside = words(`
      ::ffff:${v4} ::${v4} 64:ff9b::${v4} 64:ff9b:1::${v4} ::ffff:0:${v4}
      ::ffff:${hex} ::${hex} 64:ff9b::${hex} 2002:${hex}::1 2001::${hex}`)
    expect(inside.filter((address) => isPublicAddress(address))).toEqual([])
  }
  holds(property(anyV4, check))
})

test('what is no address is not allowed, and no text makes the judgement fail', () => {
  const anyText = oneof(
    string(),
    array(constantFrom(...'0123456789abcdefx.:%[]/'.split(''))).map((parts) => parts.join('')),
  )
  const judged = (text: string): boolean =>
    isIP(text) !== 0 || !(isPublicAddress(text) || isPublicOrPrivateAddress(text))
  holds(property(anyText, judged), { numRuns: 2000 })
  for (const text of ['', '8.8.8.8 ', ...words('0x7f.1 127.1 2130706433 0177.0.0.1 [::1] localhost 8.8.8.8/32')])
    expect({ text, allowed: isPublicAddress(text) || isPublicOrPrivateAddress(text) }).toEqual({ text, allowed: false })
})

test.each(words('127.0.0.1 10.0.0.1 192.168.1.1 172.16.0.1 100.64.0.1 ::1 fd12::1 8.8.8.8 2606:4700::1'))(
  'with private addresses allowed, %s may be called',
  (address) => {
    expect(isPublicOrPrivateAddress(address)).toBe(true)
  },
)

test.each(
  words(`
    169.254.169.254 fd00:ec2::254 fd20:ce::254 100.100.100.200 168.63.129.16 192.0.0.192 fe80::1 0.0.0.0 :: 224.0.0.1
    ff02::1 255.255.255.255 ::ffff:127.0.0.1 64:ff9b::a00:1 2002:a00:1::`),
)('with private addresses allowed, %s may not: metadata, multicast, and what hides another address', (address) => {
  expect(isPublicOrPrivateAddress(address)).toBe(false)
})

// Spellings of 127.0.0.1 and 169.254.169.254 that some parsers take.
const spellings = words(`
  2130706433 0x7f000001 0177.0.0.1 127.1 017700000001 0x7f.1 127.0.0.1. 0x7f.0.0.0x1 2852039166 0xa9fea9fe
  0251.0376.0251.0376 %31%32%37.0.0.1 ①②⑦.0.0.1 127。0。0。1 0 0x [::1] [::ffff:127.0.0.1] [::127.0.0.1]
  [0:0:0:0:0:ffff:7f00:1] [64:ff9b::7f00:1] [2002:7f00:1::]`)
test.each(spellings)('the host %s of a URL is read as an address, and that is refused', (host) => {
  const { hostname } = new URL(`https://${host}/`)
  const address = hostname.replaceAll(/^\[|\]$/g, '')
  expect(isIP(address)).not.toBe(0)
  expect(isPublicAddress(address)).toBe(false)
})

type Answer = LookupAddress[] | NodeJS.ErrnoException
/** A resolver that answers with the n-th answer the n-th time, and counts. */
function resolver(...answers: readonly [Answer, ...Answer[]]) {
  const asked: string[] = []
  const resolve: NonNullable<Parameters<typeof checkedLookup>[1]> = (name, options, callback) => {
    const answer = answers[Math.min(asked.push(name), answers.length) - 1] ?? answers[0]
    expect(options.all).toBe(true)
    if (Array.isArray(answer)) callback(null, answer)
    else callback(answer, [])
  }
  return { asked, resolve }
}
const v4 = (address: string): LookupAddress => ({ address, family: 4 })
const v6 = (address: string): LookupAddress => ({ address, family: 6 })
const lookUp = (allowed: Allowed, resolve?: ReturnType<typeof resolver>['resolve'], options: object = { all: true }) =>
  promisify(checkedLookup(allowed, resolve))('receiver.example', options)

test.each<[string, LookupAddress[]]>([
  ['a private address', [v4('10.0.0.1')]],
  ['a metadata address', [v4('169.254.169.254')]],
  ['a private address before a public one', [v4('127.0.0.1'), v4('8.8.8.8')]],
  ['a private address behind a public one', [v4('8.8.8.8'), v4('192.168.0.1')]],
  ['a private address of the other family', [v4('8.8.8.8'), v6('fd00::1')]],
  ['a loopback address of IPv6', [v6('::1')]],
  ['a mapped address', [v6('::ffff:10.0.0.1')]],
  ['what is no address', [v4('0x7f.1')]],
])('a name that leads to %s is refused whole, after one look-up (A2)', async (_, answer) => {
  const { resolve, asked } = resolver(answer)
  await expect(lookUp(isPublicAddress, resolve)).rejects.toThrow(CallRefused)
  await expect(lookUp(isPublicAddress, resolve, {})).rejects.toMatchObject({ code: 'address_refused' })
  expect(asked).toHaveLength(2)
})

test('a name that leads to public addresses leads to all of them, or to the first where one was asked for', async () => {
  const answer = [v6('2606:4700::1111'), v4('1.1.1.1')]
  expect(await lookUp(isPublicAddress, resolver(answer).resolve)).toEqual(answer)
  expect(await lookUp(isPublicAddress, resolver(answer).resolve, {})).toBe('2606:4700::1111')
})

test('a look-up that fails, or finds nothing, is no refusal: it may find something later', async () => {
  const failure = Object.assign(new Error('no answer'), { code: 'EAI_AGAIN' })
  await expect(lookUp(isPublicAddress, resolver(failure).resolve)).rejects.toBe(failure)
  await expect(lookUp(isPublicAddress, resolver([]).resolve)).rejects.toMatchObject({ code: 'ENOTFOUND' })
})

test.each(['localhost', '0x7f.1', '127.1', '2130706433'])(
  '%s is refused with the look-up of the system too',
  async (name) => {
    await expect(promisify(checkedLookup(isPublicAddress))(name, { all: true })).rejects.toThrow(CallRefused)
  },
)

const times = { connectTimeoutMs: 3000, answerTimeoutMs: 3000 }
const only =
  (...addresses: string[]): Allowed =>
  (address) =>
    addresses.includes(address)

const rules: AnswerRules = {
  isAccepted: (status) => status === 204,
  messageIdOf: () => null,
  errorCodeOf: () => null,
  codes: {},
}

/** One call to `origin`; with what it came to, and how often the server was reached by then. */
async function call(agent: Agent, origin: string) {
  const request = { origin, path: '/', method: 'POST', headers: {}, body: '{}' } as const
  const result = await callProvider(agent, request, times, () => true)
  return { ...result, outcome: judgeCall(result, rules, blindCapabilities('status')) }
}
function agentWith(allowed: Allowed, resolve?: ReturnType<typeof resolver>['resolve']): Agent {
  const agent = agentFor({ ...times, concurrency: 4 }, checkedConnector(allowed, resolve))
  onTestFinished(() => agent.destroy())
  return agent
}
async function receiver(): Promise<ScriptedServer> {
  const server = await scriptedServer(afterRequest(says(http('204 No Content', '', ['connection: close']))))
  onTestFinished(() => server.close())
  return server
}
const named = ({ origin }: ScriptedServer, name = 'receiver.example'): string => origin.replace('127.0.0.1', name)

const refused = {
  phase: 'not_begun',
  code: 'address_refused',
  outcome: { kind: 'rejected', evidence: { phase: 'not_begun', code: 'address_refused' } },
}

test.each([
  ['the address itself', '127.0.0.1'],
  ['another spelling of it', '0x7f.1'],
  ['a name of it', 'localhost'],
])('a call to %s is refused for good, and no connection is opened (A3, A4)', async (_, host) => {
  const server = await receiver()
  expect(await call(agentWith(isPublicAddress), named(server, host))).toMatchObject(refused)
  expect([server.connections(), server.received()]).toEqual([0, ''])
  expect(await call(agentWith(isPublicOrPrivateAddress), named(server, host))).toMatchObject({ phase: 'answered' })
})

test('over TLS it is the same', async () => {
  const server = await receiver()
  const { resolve } = resolver([v4('127.0.0.1')])
  for (const host of ['127.0.0.1', 'receiver.example'])
    expect(await call(agentWith(isPublicAddress, resolve), server.tlsOrigin.replace('127.0.0.1', host))).toMatchObject(
      refused,
    )
  expect(server.connections()).toBe(0)
})

test('the name stays the one of the certificate, though the address is looked up here', async () => {
  const server = await scriptedServer(({ socket }) => socket.once('data', () => socket.destroy()))
  onTestFinished(() => server.close())
  const agent = agentWith(only('127.0.0.1'), resolver([v4('127.0.0.1')]).resolve)
  expect(await call(agent, server.tlsOrigin.replace('127.0.0.1', 'receiver.example'))).toMatchObject({
    phase: 'not_begun',
  })
  expect(server.received()).toContain('receiver.example')
})

test('a name that leads elsewhere at the next look-up is judged anew, and each connection is looked up once (A2)', async () => {
  const server = await receiver()
  const { resolve, asked } = resolver([v4('127.0.0.1')], [v4('127.0.0.2')], [v4('127.0.0.1')])
  const agent = agentWith(only('127.0.0.1'), resolve)
  const [first, second, third] = [
    await call(agent, named(server)),
    await call(agent, named(server)),
    await call(agent, named(server)),
  ]
  expect([first.phase, second.code, third.phase]).toEqual(['answered', 'address_refused', 'answered'])
  expect([server.connections(), asked.length]).toEqual([2, 3])
})

test('of a mixed answer none is called, also not the allowed one (A2)', async () => {
  const server = await receiver()
  const { resolve } = resolver([v4('127.0.0.1'), v4('127.0.0.2')])
  expect(await call(agentWith(only('127.0.0.1'), resolve), named(server))).toMatchObject(refused)
  expect(server.connections()).toBe(0)
})

test('several allowed addresses are tried in turn', async () => {
  const server = await receiver()
  const { resolve } = resolver([v6('::1'), v4('127.0.0.1')])
  const reached = await call(agentWith(only('::1', '127.0.0.1'), resolve), named(server))
  expect([reached.phase, server.connections()]).toEqual(['answered', 1])
})

test('a name without addresses is not sent, and may be called again later', async () => {
  const server = await receiver()
  expect(await call(agentWith(isPublicAddress, resolver([]).resolve), named(server))).toMatchObject({
    outcome: { kind: 'not_sent', reason: 'not_begun', evidence: { code: 'ENOTFOUND' } },
  })
})

test.each([
  ['a refusal', '127.0.0.2'],
  ['an address', '127.0.0.1'],
])('a look-up that takes too long ends as not sent; when it ends in %s, nothing follows', async (_, address) => {
  const server = await receiver()
  let answer = (): void => {}
  const connector = checkedConnector(only('127.0.0.1'), (_name, _options, callback) => {
    answer = () => callback(null, [v4(address)])
  })
  const agent = agentFor({ connectTimeoutMs: 50, answerTimeoutMs: 50, concurrency: 1 }, connector)
  const request = { origin: named(server), path: '/', method: 'POST', headers: {}, body: '' } as const
  const result = await callProvider(agent, request, { connectTimeoutMs: 50, answerTimeoutMs: 50 }, () => true)
  expect(result).toEqual({ phase: 'not_begun', code: 'connect time-out' })
  answer()
  await agent.destroy()
  expect(server.connections()).toBe(0)
})

test('one refused call leaves others to the same origin as they are', async () => {
  const server = await receiver()
  const { resolve } = resolver([v4('127.0.0.1')], [v4('127.0.0.2')], [v4('127.0.0.1')], [v4('127.0.0.2')])
  const agent = agentWith(only('127.0.0.1'), resolve)
  const results = await Promise.all(Array.from({ length: 4 }, () => call(agent, named(server))))
  expect(results.map(({ outcome }) => outcome.kind).toSorted()).toEqual([
    'accepted',
    'accepted',
    'rejected',
    'rejected',
  ])
  expect(server.connections()).toBe(2)
})

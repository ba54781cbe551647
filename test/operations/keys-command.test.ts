/** `sendonce keys`: what whoever runs the gateway does with API keys (src/commands/keys.ts). */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { keysCommand } from '../../src/commands/keys.ts'
import { parseApiKey } from '../../src/core/api-key.ts'
import { policyDefaults, policyOf } from '../../src/core/key-policy.ts'
import { useDatabase } from '../support/database.ts'
import { testGateway, type TestGateway } from '../support/gateway.ts'
import { node, start } from '../support/process.ts'

const database = useDatabase()
let gateway: TestGateway
beforeAll(async () => {
  gateway = await testGateway(database.url)
})
afterAll(async () => gateway.close())

interface Printed {
  readonly id: string
  readonly key: string
  readonly revokedAt: string | null
}

/** What the command prints: one line of JSON. */
async function run<T = Printed>(...args: string[]): Promise<T> {
  let printed = ''
  await keysCommand(gateway.deps, args, (text) => (printed += text))
  expect(printed).toMatch(/^.+\n$/)
  return JSON.parse(printed) as T
}
const acme = ['--account', 'acme', '--environment', 'live']
const create = async (...more: string[]): Promise<Printed> => run('create', ...acme, '--scopes', 'send,read', ...more)
const ask = async ({ key }: Printed): Promise<number> =>
  (await gateway.get('/v1/messages', { authorization: `Bearer ${key}` })).statusCode

test('create prints the key, which works, with its account, environment, scopes, kind and policy', async () => {
  const printed = await create()
  expect(printed).toMatchObject({
    account: 'acme',
    environment: 'live',
    scopes: ['send', 'read'],
    kind: 'service',
    policy: policyDefaults.service,
    createdBy: expect.stringMatching(/^cli:/) as unknown,
  })
  expect(Object.keys(printed).slice(0, 2)).toEqual(['id', 'key'])
  expect(parseApiKey(printed.key)).toMatchObject({ environment: 'live', id: printed.id })
  expect(await ask(printed)).toBe(200)
})

test('the kind is a person’s where a scope needs one, and what was asked else', async () => {
  expect(await run('create', ...acme, '--scopes', 'read,approve')).toMatchObject({ kind: 'person' })
  expect(await create('--kind', 'person')).toMatchObject({ kind: 'person' })
  const policy = { requireApproval: 'first_contact', allowedChannels: ['sms'] } as const
  expect(await create('--kind', 'agent', '--name', 'bot', '--policy', JSON.stringify(policy))).toMatchObject({
    kind: 'agent',
    name: 'bot',
    policy: policyOf('agent', policy),
  })
})

test('list shows the keys of an account and environment, more than a page of them, without a secret', async () => {
  await database.query(
    `INSERT INTO api_keys (id, account_id, environment, kind, secret_hash, scopes)
     SELECT 'many' || n, 'acme', 'test', 'service', sha256('s'), '{send}' FROM generate_series(1, 450) AS n`,
  )
  const listed = await run<Printed[]>('list', '--account', 'acme', '--environment', 'test')
  expect(new Set(listed.map(({ id }) => id)).size).toBe(450)
  expect(listed.filter((key) => 'key' in key || 'secretHash' in key)).toEqual([])
  expect(await run<Printed[]>('list', '--account', 'nobody', '--environment', 'test')).toEqual([])
})

test('rotate prints another key, beside which the first holds for the grace; revoke ends both, and again is the same', async () => {
  const first = await create()
  const second = await run('rotate', first.id)
  expect(second).toMatchObject({ id: first.id, previousSecretUntil: expect.any(String) as unknown })
  expect([await ask(first), await ask(second)]).toEqual([200, 200])
  expect(await run('rotate', first.id, '--grace', '0')).toMatchObject({ previousSecretUntil: null })
  const revoked = await run('revoke', first.id)
  expect(revoked.revokedAt).not.toBeNull()
  expect(await run('revoke', first.id)).toEqual(revoked)
  await expect(run('rotate', first.id)).rejects.toThrow(/^api-key-revoked/)
})

test.each([
  [['create'], /--account/],
  [['create', '--account', 'Acme', '--environment', 'live'], /--account/],
  [['create', '--account', 'acme', '--environment', 'prod'], /--environment/],
  [['create', ...acme], /--scopes/],
  [['create', ...acme, '--scopes', 'send,all'], /--scopes/],
  [['create', ...acme, '--scopes', 'send', '--kind', 'robot'], /\/kind/],
  [['create', ...acme, '--scopes', 'send,admin', '--kind', 'agent'], /\/scopes\/1.*service or person/],
  [['create', ...acme, '--scopes', 'send', '--name', 'a\nb'], /\/name/],
  [['create', ...acme, '--scopes', 'send', '--policy', '{'], /--policy/],
  [['create', ...acme, '--scopes', 'send', '--policy', '{"allowedChannels":["fax"]}'], /\/policy\/allowedChannels\/0/],
  [['list', '--account', 'acme'], /--environment/],
  [['rotate'], /there is no API key/],
  [['rotate', 'nobody'], /there is no API key nobody/],
  [['rotate', 'nobody', '--grace', '1.5'], /--grace/],
  [['rotate', 'nobody', '--grace', ''], /--grace/],
  [['rotate', 'nobody', '--grace', '604801'], /--grace/],
  [['revoke', 'no', 'body'], /there is no API key/],
])('a mistake is one clear line: %j', async (args, line) => {
  const error: unknown = await run(...args).catch((caught: unknown) => caught)
  expect(error).toBeInstanceOf(Error)
  expect((error as Error).message).toMatch(line)
  expect((error as Error).message).not.toContain('\n')
})

test.each([[[]], [['remove']]])('what is no command (%j) is told which there are', async (args) => {
  await expect(run(...args)).rejects.toThrow(/usage.*create[^]*list[^]*rotate[^]*revoke/)
})

test('the program prints one line of JSON, and a mistake as one line on stderr with a non-zero exit', async () => {
  const keys = (...args: string[]) => start(node, ['src/cli.ts', 'keys', ...args], { DATABASE_URL: database.url })
  const made = keys('create', ...acme, '--scopes', 'send,read')
  expect(await made.exited).toBe(0)
  expect(await ask(JSON.parse(made.output()) as Printed)).toBe(200)
  const mistaken = keys('create', ...acme, '--scopes', 'everything')
  expect(await mistaken.exited).toBe(1)
  expect(mistaken.output()).toMatch(/^sendonce: --scopes: [^\n]+\n$/)
})

/** Who asks (src/http/auth.ts, U1 and U3), with a store and a clock that are stepped. */
import type { FastifyRequest } from 'fastify'
import { beforeEach, expect, test } from 'vitest'
import { apiKeyText, apiScopes, secretHash } from '../../src/core/api-key.ts'
import { policyDefaults, policyOf } from '../../src/core/key-policy.ts'
import type { Environment } from '../../src/core/message-content.ts'
import { authenticator, type Authenticate } from '../../src/http/auth.ts'
import type { StoredApiKey } from '../../src/store/api-keys.ts'

const [present, previous, another] = ['p', 'q', 'r'].map((letter) => letter.repeat(40)) as [string, string, string]
const start = Date.UTC(2026, 11, 1)
const bootstrapKey = apiKeyText({ environment: 'live', id: 'boot', secret: present })
const stored: StoredApiKey = {
  id: 'k',
  account: 'acme',
  environment: 'live',
  kind: 'agent',
  name: null,
  scopes: ['send'],
  policy: { requireApproval: 'first_contact' },
  createdAt: new Date(start),
  createdBy: null,
  previousUntil: null,
  revokedAt: null,
  secretHash: secretHash(present),
  previousSecretHash: null,
}

let key: StoredApiKey | undefined
let reads: number
let nowMs: number
let authenticate: Authenticate
beforeEach(() => {
  key = stored
  reads = 0
  nowMs = start
  const findApiKey = async (id: string): Promise<StoredApiKey | undefined> => {
    reads++
    return key?.id === id ? key : undefined
  }
  authenticate = authenticator({ findApiKey }, bootstrapKey, {
    latest: () => new Date(nowMs),
    mark: () => ({ monotonicMs: nowMs, wallMs: nowMs }),
    elapsedMs: (since) => nowMs - since.monotonicMs,
  })
})

const ask = async (
  secret: string,
  { id = 'k', environment = 'live' }: { id?: string; environment?: Environment } = {},
) =>
  authenticate({
    headers: { authorization: `Bearer ${apiKeyText({ environment, id, secret })}` },
  } as unknown as FastifyRequest)
const refused = { type: 'unauthorized' }

test('a caller has the account, environment, kind and scopes of its key, and its policy whole', async () => {
  expect(await ask(present)).toEqual({
    account: 'acme',
    environment: 'live',
    apiKey: 'k',
    kind: 'agent',
    scopes: ['send'],
    policy: policyOf('agent', stored.policy),
    isBootstrap: false,
  })
})

test('the bootstrap key is a person with all scopes and the default policy, and stands in no table', async () => {
  expect(await ask(present, { id: 'boot' })).toEqual({
    account: 'default',
    environment: 'live',
    apiKey: 'boot',
    kind: 'person',
    scopes: apiScopes,
    policy: policyDefaults.person,
    isBootstrap: true,
  })
  expect(reads).toBe(0)
})

test('the secret before the present one holds until its time, by the clock of the data base', async () => {
  key = { ...stored, previousSecretHash: secretHash(previous), previousUntil: new Date(start + 100) }
  expect(await ask(previous)).toEqual(await ask(present))
  nowMs = start + 99
  await expect(ask(previous)).resolves.toMatchObject({ apiKey: 'k' })
  nowMs = start + 100 // what was read is believed still, and says when
  await expect(ask(previous)).rejects.toMatchObject(refused)
  await expect(ask(present)).resolves.toMatchObject({ apiKey: 'k' })
})

test('U3 a new secret holds at once, also where the key as it was is believed', async () => {
  await ask(present)
  key = { ...stored, secretHash: secretHash(another) }
  await expect(ask(another)).resolves.toMatchObject({ apiKey: 'k' })
  await expect(ask(present)).rejects.toMatchObject(refused)
})

test('U3 a key is believed for a second, and a revocation is seen after it', async () => {
  await ask(present)
  key = { ...stored, revokedAt: new Date(start) }
  nowMs = start + 999
  await expect(ask(present)).resolves.toMatchObject({ apiKey: 'k' })
  expect(reads).toBe(1)
  nowMs = start + 1_000
  await expect(ask(present)).rejects.toMatchObject(refused)
})

test('U1 every refusal costs one look at the data base, however often it is asked', async () => {
  key = { ...stored, previousSecretHash: secretHash(previous), previousUntil: new Date(start - 1) }
  await ask(present) // believed from now on
  const costs: number[] = []
  const wrong: [string, { id?: string; environment?: Environment }][] = [
    [another, {}],
    [previous, {}],
    [present, { environment: 'test' }],
    [present, { id: 'unknown' }],
    [another, { id: 'boot' }],
  ]
  for (const [secret, place] of [...wrong, ...wrong]) {
    const before = reads
    await expect(ask(secret, place)).rejects.toMatchObject(refused)
    costs.push(reads - before)
  }
  expect(new Set(costs)).toEqual(new Set([1]))
})

test.each(['', 'Basic YTpi', 'Bearer', 'Bearer so_live_k', `Bearer ${bootstrapKey} more`])(
  'what is no API key (%s) is refused without a look',
  async (authorization) => {
    await expect(authenticate({ headers: { authorization } } as unknown as FastifyRequest)).rejects.toMatchObject(
      refused,
    )
    expect(reads).toBe(0)
  },
)

/** /v1/api-keys, from the request to the row (src/operations/*-api-key.ts, src/store/api-keys.ts). */
import type { LightMyRequestResponse } from 'fastify'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { apiScopes, parseApiKey, secretHash } from '../../src/core/api-key.ts'
import { policyDefaults } from '../../src/core/key-policy.ts'
import { useDatabase } from '../support/database.ts'
import { apiKey as bootstrapText, sms, testGateway, type TestGateway } from '../support/gateway.ts'
import { isReplay, newApiKey, problemIn, told, type Asker } from './told.ts'

const database = useDatabase()
let gateway: TestGateway
/** Ahead of the real clock by so much: what was read of a key is believed by it, and a grace runs out by it. */
let aheadMs = 0
let acme: Asker
let rival: Asker
beforeAll(async () => {
  gateway = await testGateway(database.url, {
    clock: (real) => ({
      ...real,
      latest: () => new Date(real.latest().getTime() + aheadMs),
      now: () => new Date(real.now().getTime() + aheadMs),
      elapsedMs: (since) => real.elapsedMs(since) + aheadMs,
    }),
  })
  acme = await newApiKey(gateway, 'acme', { scopes: ['admin', 'send'], kind: 'person' })
  rival = await newApiKey(gateway, 'rival', { scopes: ['admin'], kind: 'person' })
})
afterAll(async () => gateway.close())

interface Shown {
  readonly id: string
  readonly key: string
  readonly policy: object
  readonly previousSecretUntil: string | null
  readonly revokedAt: string | null
}
const shown = (response: LightMyRequestResponse): Shown => response.json<Shown>()

async function post(path: string, body: object | undefined, { headers }: Pick<Asker, 'headers'> = acme) {
  const content = body === undefined ? {} : { payload: body }
  return gateway.app.inject({ method: 'POST', url: `/v1/api-keys${path}`, headers, ...content })
}
const list = async (query = '', { headers } = acme) => gateway.get(`/v1/api-keys${query}`, headers)
const create = async (body: object = {}, asker = acme): Promise<Shown> => {
  const response = await post('', { scopes: ['read'], ...body }, asker)
  expect(response.statusCode).toBe(201)
  return shown(response)
}
/** What a request with this key is answered. */
const ask = async (key: string, path = '/v1/messages'): Promise<number> =>
  (await gateway.get(path, { authorization: `Bearer ${key}` })).statusCode
/** What was believed of keys is read again. */
const laterBy = <T>(ms: number, work: () => Promise<T>): Promise<T> => {
  aheadMs += ms
  return work()
}
const secondLater = async <T>(work: () => Promise<T>): Promise<T> => laterBy(1_000, work)

test('a key that was made works at once, and is shown whole, with its policy and its place', async () => {
  const response = await post('', {
    kind: 'agent',
    name: 'support assistant',
    scopes: ['send', 'read'],
    policy: { requireApproval: { channels: ['sms'] }, duplicateGuard: { mode: 'refuse' }, allowedChannels: ['sms'] },
  })
  const { id, key, ...rest } = shown(response)
  expect(response.headers.location).toBe(`/v1/api-keys/${id}`)
  expect(response.headers['cache-control']).toBe('no-store')
  expect(parseApiKey(key)).toMatchObject({ environment: 'live', id })
  expect(rest).toEqual({
    object: 'api_key',
    account: 'acme',
    environment: 'live',
    kind: 'agent',
    name: 'support assistant',
    scopes: ['send', 'read'],
    policy: {
      requireConversationVersion: true,
      requireApproval: { channels: ['sms'] },
      duplicateGuard: { mode: 'refuse', windowSeconds: 86_400 },
      allowedChannels: ['sms'],
      allowedProviders: null,
    },
    createdAt: expect.any(String) as unknown,
    createdBy: acme.id,
    previousSecretUntil: null,
    revokedAt: null,
  })
  expect(await ask(key)).toBe(200)
  expect((await gateway.get(`/v1/api-keys/${id}`, acme.headers)).json()).toEqual({ id, ...rest })
})

test('of a policy what was given is stored, and nothing of the defaults', async () => {
  const [bare, given] = [await create(), await create({ policy: { duplicateGuard: { mode: 'hold' } } })]
  expect(bare.policy).toEqual(policyDefaults.service)
  const rows = await database.query<{ id: string; policy: string | null }>(
    'SELECT id, policy FROM api_keys WHERE id = ANY ($1)',
    [[bare.id, given.id]],
  )
  expect(new Map(rows.map(({ id, policy }) => [id, policy]))).toEqual(
    new Map([
      [bare.id, null],
      [given.id, '{"duplicateGuard":{"mode":"hold"}}'],
    ]),
  )
})

test.each([
  [['send', 'admin'], 'service'],
  [['read', 'approve'], 'person'],
] as const)('a key for %j without a kind is one of a %s', async (scopes, kind) => {
  expect(await create({ scopes })).toMatchObject({ kind, scopes, name: null })
})

test.each([
  ['agent', ['send', 'admin'], '/scopes/1', 'service or person'],
  ['agent', ['approve'], '/scopes/0', 'person'],
  ['service', ['send', 'read', 'resolve'], '/scopes/2', 'person'],
] as const)('A1 a key of kind %s for %j is refused, with the place and what to do', async (kind, scopes, at, other) => {
  const response = await post('', { kind, scopes })
  expect(told(response)).toBe('400 invalid-request')
  const { errors, detail } = response.json<{ errors: { pointer: string; detail: string }[]; detail: string }>()
  expect(errors).toEqual([{ pointer: at, detail: expect.stringContaining(`ask for the kind ${other}`) as unknown }])
  expect(detail).toContain(at)
})

const channels = { allowedChannels: ['sms', 'pigeon'] }
test.each([
  [{}, '/scopes'],
  [{ scopes: [] }, '/scopes'],
  [{ scopes: ['send', 'send'] }, '/scopes'],
  [{ scopes: ['everything'] }, '/scopes/0'],
  [{ scopes: ['send'], kind: 'robot' }, '/kind'],
  [{ scopes: ['send'], name: '' }, '/name'],
  [{ scopes: ['send'], name: 'two\nlines' }, '/name'],
  [{ scopes: ['send'], account: 'rival' }, '/account'],
  [{ scopes: ['send'], environment: 'test' }, '/environment'],
  [{ scopes: ['send'], policy: null }, '/policy'],
  [{ scopes: ['send'], policy: { requireApprovals: 'never' } }, '/policy/requireApprovals'],
  [{ scopes: ['send'], policy: { requireApproval: 'sometimes' } }, '/policy/requireApproval'],
  [{ scopes: ['send'], policy: { requireApproval: { channels: ['pigeon'] } } }, '/policy/requireApproval/channels/0'],
  [{ scopes: ['send'], policy: { duplicateGuard: { windowSeconds: 0 } } }, '/policy/duplicateGuard/windowSeconds'],
  [{ scopes: ['send'], policy: { duplicateGuard: { windowSeconds: 86_401 } } }, '/policy/duplicateGuard/windowSeconds'],
  [{ scopes: ['send'], policy: channels }, '/policy/allowedChannels/1'],
  [{ scopes: ['send'], policy: { allowedProviders: [] } }, '/policy/allowedProviders'],
])('a body is strict: %j is refused at %s', async (body, pointer) => {
  const response = await post('', body)
  expect(told(response)).toBe('400 invalid-request')
  expect(problemIn(response)).toMatchObject({ errors: [{ pointer }] })
})

test('keys are listed newest first, page by page, revoked ones too, of this account and environment alone', async () => {
  const lister = await newApiKey(gateway, 'lister', { scopes: ['admin'] })
  await newApiKey(gateway, 'lister', { environment: 'test' })
  const made: string[] = [lister.id]
  for (let nth = 0; nth < 4; nth++) made.push((await create({ name: `n${nth}` }, lister)).id)
  await database.query(`UPDATE api_keys SET created_at = now() WHERE id = ANY ($1)`, [made.slice(1, 4)])
  await post(`/${made[1]}/revoke`, undefined, lister)
  const read: { id: string; createdAt: string; revokedAt: string | null }[] = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const page = await list(`?limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`, lister)
    const body = page.json<{ data: typeof read; nextCursor: string | null }>()
    read.push(...body.data)
    cursor = body.nextCursor
  }
  const order = (key: (typeof read)[number]): string => `${key.createdAt} ${key.id}`
  expect(read.map(order)).toEqual(read.map(order).toSorted().toReversed())
  expect(read.map(({ id }) => id).toSorted()).toEqual(made.toSorted())
  expect(read.filter(({ revokedAt }) => revokedAt !== null).map(({ id }) => id)).toEqual([made[1]])
})

test.each([
  'x',
  Buffer.from('2026 k').toString('base64url'),
  Buffer.from('2026-13-01T00:00:00.000Z k\u0000').toString('base64url'),
])('a cursor that is none (%s) is refused', async (cursor) => {
  expect(problemIn(await list(`?cursor=${cursor}`))).toMatchObject({ errors: [{ pointer: '/cursor' }] })
})

test('H1 keys of another account or environment are not there, whatever is asked of them', async () => {
  const { id, key } = await create()
  const elsewhere = await newApiKey(gateway, 'acme', { scopes: ['admin'], environment: 'test', kind: 'person' })
  for (const asker of [rival, elsewhere]) {
    const asked = [
      gateway.get(`/v1/api-keys/${id}`, asker.headers),
      post(`/${id}/rotate`, {}, asker),
      post(`/${id}/revoke`, undefined, asker),
    ]
    const unknown = await post('/unknown/revoke', undefined, asker)
    for (const response of await Promise.all(asked)) {
      expect(told(response)).toBe('404 not-found')
      expect(response.json<{ detail: string }>().detail).toBe(unknown.json<{ detail: string }>().detail)
    }
    expect((await list('?limit=200', asker)).body).not.toContain(id)
  }
  expect(await secondLater(() => ask(key))).toBe(200)
})

test('the scope admin is needed for each of them', async () => {
  const sender = await newApiKey(gateway, 'acme', { scopes: ['send', 'read', 'approve', 'resolve'] })
  const { id } = await create()
  const answers = [
    await list('', sender),
    await post('', { scopes: ['read'] }, sender),
    await gateway.get(`/v1/api-keys/${id}`, sender.headers),
    await post(`/${id}/rotate`, {}, sender),
    await post(`/${id}/revoke`, undefined, sender),
  ]
  expect(answers.map(told)).toEqual(Array.from({ length: 5 }, () => '403 forbidden'))
})

test('a rotation gives another secret, and the one before it holds until the grace is over', async () => {
  const first = await create({ scopes: ['send', 'read'] })
  const response = await post(`/${first.id}/rotate`, { graceSeconds: 60 })
  const second = shown(response)
  expect([response.statusCode, second.id]).toEqual([200, first.id])
  expect(second.key).not.toBe(first.key)
  expect([await ask(first.key), await ask(second.key)]).toEqual([200, 200])

  const [row] = await database.query<{ left: number }>(
    `SELECT extract(epoch FROM previous_until - clock_timestamp())::float AS left FROM api_keys WHERE id = $1`,
    [first.id],
  )
  expect(row?.left).toBeGreaterThan(50)
  expect(row?.left).toBeLessThanOrEqual(60)
  expect(second.previousSecretUntil).not.toBeNull()
  const present = async () => shown(await gateway.get(`/v1/api-keys/${first.id}`, acme.headers))
  expect(await present()).toMatchObject({ previousSecretUntil: second.previousSecretUntil })
  await laterBy(61_000, async () => {
    expect([await ask(first.key), await ask(second.key)]).toEqual([401, 200])
    expect(await present()).toMatchObject({ previousSecretUntil: null })
  })
})

test('P2 the grace is the data base’s: where its row says it is over, the secret is another one', async () => {
  const first = await create()
  const second = shown(await post(`/${first.id}/rotate`, {}))
  expect(await ask(first.key)).toBe(200)
  await database.query(`UPDATE api_keys SET previous_until = clock_timestamp() WHERE id = $1`, [first.id])
  aheadMs = 0 // this clock is the data base's again
  expect([await ask(second.key), await laterBy(1_000, () => ask(first.key))]).toEqual([200, 401])
})

test('P2 a second rotation within the grace ends the older secret at once: two hold at most', async () => {
  const first = await create()
  const second = shown(await post(`/${first.id}/rotate`, {}))
  const third = shown(await post(`/${first.id}/rotate`, {}))
  const answers = await secondLater(async () => [await ask(first.key), await ask(second.key), await ask(third.key)])
  expect(answers).toEqual([401, 200, 200])
})

test('a grace of nothing ends the present secret, and the one before it', async () => {
  const first = await create()
  const second = shown(await post(`/${first.id}/rotate`, {}))
  const third = shown(await post(`/${first.id}/rotate`, { graceSeconds: 0 }))
  expect(third.previousSecretUntil).toBeNull()
  const answers = await secondLater(async () => [await ask(first.key), await ask(second.key), await ask(third.key)])
  expect(answers).toEqual([401, 401, 200])
})

test('rotations at once follow one another: the last two secrets hold', async () => {
  const first = await create()
  const rotations = await Promise.all(Array.from({ length: 4 }, async () => post(`/${first.id}/rotate`, {})))
  const keys = [first.key, ...rotations.map((response) => shown(response).key)]
  const answers = await secondLater(async () => Promise.all(keys.map(async (key) => ask(key))))
  expect(answers.filter((status) => status === 200)).toHaveLength(2)
  expect(answers[0]).toBe(401)
})

test.each([
  [undefined, ''],
  [{ graceSeconds: -1 }, '/graceSeconds'],
  [{ graceSeconds: 604_801 }, '/graceSeconds'],
  [{ graceSeconds: '60' }, '/graceSeconds'],
  [{ grace: 60 }, '/grace'],
])('a rotation with the body %j is refused', async (body, pointer) => {
  const { id } = await create()
  expect(problemIn(await post(`/${id}/rotate`, body))).toMatchObject({ errors: [{ pointer }] })
})

test('a revoked key verifies nothing, with neither of its secrets; again is the same, and it gets no other secret', async () => {
  const first = await create()
  const second = shown(await post(`/${first.id}/rotate`, {}))
  const revoked = await post(`/${first.id}/revoke`, undefined)
  expect(shown(revoked)).toMatchObject({ previousSecretUntil: null, revokedAt: expect.any(String) as unknown })
  const answers = await secondLater(async () => [await ask(first.key), await ask(second.key)])
  expect(answers).toEqual([401, 401])
  const again = await post(`/${first.id}/revoke`, undefined)
  expect([again.statusCode, again.body]).toEqual([200, revoked.body])
  expect(told(await post(`/${first.id}/rotate`, {}))).toBe('409 api-key-revoked')
  expect((await gateway.get(`/v1/api-keys/${first.id}`, acme.headers)).body).toBe(revoked.body)
})

test('a key may rotate and revoke itself, and its messages stay the account’s', async () => {
  const self = await create({ scopes: ['admin', 'send', 'read'] })
  const headersOf = ({ key }: Shown) => ({ headers: { authorization: `Bearer ${key}` } })
  const sent = await gateway.send(sms('self'), { key: 'self', ...headersOf(self) })
  const next = shown(await post(`/${self.id}/rotate`, { graceSeconds: 0 }, headersOf(self)))
  const again = await gateway.send(sms('self'), { key: 'self', ...headersOf(next) })
  expect([again.body, isReplay(again)]).toEqual([sent.body, true])
  expect((await post(`/${self.id}/revoke`, undefined, headersOf(next))).statusCode).toBe(200)
  expect(await secondLater(() => ask(next.key))).toBe(401)
  expect(told(await gateway.send(sms('self'), { key: 'self', headers: acme.headers }))).toBe('201 sent')
})

test('the bootstrap key makes keys of its account, and stands in no list', async () => {
  const bootstrap = { id: 'test', headers: { authorization: `Bearer ${bootstrapText}` } }
  const made = await create({ scopes: [...apiScopes] }, bootstrap)
  expect(made).toMatchObject({ account: 'default', kind: 'person', createdBy: 'test' })
  expect((await list('', bootstrap)).json<{ data: Shown[] }>().data.map(({ id }) => id)).toEqual([made.id])
  expect(told(await post('/test/revoke', undefined, bootstrap))).toBe('404 not-found')
})

test('no secret and no hash of one is in a log, a list or a row: it is shown once', async () => {
  const made = await create({ name: 'the label' })
  const rotated = shown(await post(`/${made.id}/rotate`, {}))
  await ask(made.key.replace(/.$/, 'x'))
  const secrets = [made.key, rotated.key].map((key) => parseApiKey(key)?.secret ?? 'none')
  const hashes = secrets.map(secretHash)
  const dump = await database.query<{ row: string }>(`SELECT k::text AS row FROM api_keys k`)
  const kept = [...gateway.logged, ...dump.map(({ row }) => row)].join('\n')
  const shownLater = [
    (await list('?limit=200')).body,
    (await gateway.get(`/v1/api-keys/${made.id}`, acme.headers)).body,
  ].join()
  expect(kept).toContain(made.id)
  for (const secret of secrets) {
    expect(kept).not.toContain(secret)
    expect(shownLater).not.toContain(secret)
  }
  const logs = gateway.logged.join('\n')
  expect(logs).not.toContain('the label')
  for (const hash of hashes)
    for (const form of [hash.toString('hex'), hash.toString('base64')]) {
      expect(shownLater).not.toContain(form)
      expect(logs).not.toContain(form)
    }
})

test('what is done to keys is logged, with who did it', async () => {
  const { id } = await create()
  await post(`/${id}/rotate`, {})
  await post(`/${id}/revoke`, undefined)
  await post(`/${id}/revoke`, undefined)
  const lines = gateway.logged.map((line) => JSON.parse(line) as { apiKey?: string; by?: string; msg: string })
  const ofKey = lines.filter(({ apiKey }) => apiKey === id)
  expect(ofKey.map(({ msg }) => msg)).toEqual([
    'an API key was made',
    'an API key was given another secret',
    'an API key was revoked',
  ])
  expect(new Set(ofKey.map(({ by }) => by))).toEqual(new Set([acme.id]))
})

/**
 * API keys with their accounts: cold reads and writes. Of secrets there are only hashes here.
 *
 * P1. What is changed or listed is named by account and environment too: nobody reaches the keys of another.
 * P2. A secret is replaced in one statement, by the data base's clock: the present one becomes the previous one, and the
 *     one that was the previous one until then is gone. What is revoked gets no new secret, and stays as it was.
 */
import type { ApiKind, ApiScope } from '../core/api-key.ts'
import type { ApiKey } from '../core/api-key-view.ts'
import type { Scope } from '../core/idempotency.ts'
import type { GivenPolicy } from '../core/key-policy.ts'
import type { Environment } from '../core/message-content.ts'
import type { Database, Statement } from './database.ts'
import type { ApiKeyModel } from './generated/models.ts'

export interface StoredApiKey extends ApiKey {
  readonly secretHash: Buffer
  /** Null: there is none, whatever the time. */
  readonly previousSecretHash: Buffer | null
}

export type NewApiKey = Omit<StoredApiKey, 'createdAt' | 'previousUntil' | 'previousSecretHash' | 'revokedAt'>

const fromRow = (row: ApiKeyModel): ApiKey => ({
  id: row.id,
  account: row.accountId,
  environment: row.environment as Environment,
  kind: row.kind as ApiKind,
  name: row.name,
  scopes: row.scopes as ApiScope[],
  policy: row.policy === null ? null : (JSON.parse(row.policy) as GivenPolicy),
  createdAt: row.createdAt,
  createdBy: row.createdBy,
  previousUntil: row.previousUntil,
  revokedAt: row.revokedAt,
})

/** Whoever's it is: the secret has not been looked at yet. */
export async function findApiKey(database: Database, id: string): Promise<StoredApiKey | undefined> {
  const row = await database.cold(async (prisma) => prisma.apiKey.findUnique({ where: { id } }))
  if (row === null) return undefined
  return {
    ...fromRow(row),
    secretHash: Buffer.from(row.secretHash),
    previousSecretHash: row.previousSecretHash === null ? null : Buffer.from(row.previousSecretHash),
  }
}

/** Of a key in a list: newest first, and by id among those of one millisecond. */
export interface ApiKeyPlace {
  readonly createdAt: Date
  readonly id: string
}

export async function listApiKeys(
  database: Database,
  { account, environment }: Scope,
  limit: number,
  before: ApiKeyPlace | null,
): Promise<ApiKey[]> {
  const older =
    before === null
      ? {}
      : { OR: [{ createdAt: { lt: before.createdAt } }, { createdAt: before.createdAt, id: { lt: before.id } }] }
  const rows = await database.cold(async (prisma) =>
    prisma.apiKey.findMany({
      where: { accountId: account, environment, ...older },
      orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
      take: limit,
    }),
  )
  return rows.map(fromRow)
}

/** Makes the account too if it is new. */
export async function insertApiKey(database: Database, key: NewApiKey): Promise<ApiKey> {
  const { id, account, environment, kind, name, secretHash, scopes, policy, createdBy } = key
  const row = await database.cold(async (prisma) =>
    prisma.apiKey.create({
      data: {
        id,
        environment,
        kind,
        name,
        secretHash: new Uint8Array(secretHash),
        scopes: [...scopes],
        policy: policy === null ? null : JSON.stringify(policy),
        createdBy,
        account: { connectOrCreate: { where: { id: account }, create: { id: account } } },
      },
    }),
  )
  return fromRow(row)
}

const replaceSecretStatement: Statement = {
  name: 'replace-secret',
  text: `UPDATE api_keys SET secret_hash = $4,
      previous_secret_hash = CASE WHEN $5::int > 0 THEN secret_hash END,
      previous_until = CASE WHEN $5::int > 0 THEN clock_timestamp() + make_interval(secs => $5::int) END
    WHERE id = $3 AND account_id = $1 AND environment = $2 AND revoked_at IS NULL RETURNING previous_until AS until`,
}

/** @returns until when the secret before it holds (null: no longer); undefined: there is no such key, or it is revoked */
export async function replaceSecret(
  database: Database,
  { account, environment }: Scope,
  id: string,
  secretHash: Buffer,
  graceS: number,
): Promise<Date | null | undefined> {
  const values = [account, environment, id, secretHash, graceS]
  return (await database.run<{ until: Date | null }>(replaceSecretStatement, values))[0]?.until
}

const revokeStatement: Statement = {
  name: 'revoke-api-key',
  text: `UPDATE api_keys SET revoked_at = coalesce(revoked_at, clock_timestamp())
    WHERE id = $3 AND account_id = $1 AND environment = $2 RETURNING revoked_at AS since`,
}

/** Again is the same. @returns since when it is revoked; undefined: there is no such key */
export async function revokeApiKey(
  database: Database,
  { account, environment }: Scope,
  id: string,
): Promise<Date | undefined> {
  return (await database.run<{ since: Date }>(revokeStatement, [account, environment, id]))[0]?.since
}

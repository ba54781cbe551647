/** Idempotency keys beside the claim: further names, tombstones. */
import type { Scope } from '../core/idempotency.ts'
import type { Database, Statement } from './database.ts'

const nameStatement: Statement = {
  name: 'name-key',
  text: `INSERT INTO idempotency_keys (account_id, environment, key, message_id, fingerprint, fingerprint_version)
    SELECT account_id, environment, $3, message_id, fingerprint, fingerprint_version FROM idempotency_keys
    WHERE account_id = $1 AND environment = $2 AND key = $4 AND message_id IS NOT NULL
    ON CONFLICT DO NOTHING RETURNING key`,
}

/** Makes `name` another name of the message behind `known`. @returns false if the name was taken (by whatever) */
export async function insertName(database: Database, scope: Scope, name: string, known: string): Promise<boolean> {
  return (await database.run(nameStatement, [scope.account, scope.environment, name, known])).length === 1
}

const voidStatement: Statement = {
  name: 'void-key',
  text: `INSERT INTO idempotency_keys (account_id, environment, key, voided_by) VALUES ($1, $2, $3, $4)
    ON CONFLICT DO NOTHING RETURNING key`,
}

/** Inserts a tombstone under the constraint that claims use. @returns false if the key was taken (by whatever) */
export async function insertTombstone(database: Database, scope: Scope, key: string, apiKey: string): Promise<boolean> {
  return (await database.run(voidStatement, [scope.account, scope.environment, key, apiKey])).length === 1
}

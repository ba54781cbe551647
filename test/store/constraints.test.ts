/** The data base refuses what no sequence of events could have made, and its words are those of the core. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { apiKinds, apiScopes, scopesOfKind } from '../../src/core/api-key.ts'
import { channels, environments } from '../../src/core/message-content.ts'
import { deliveryStatuses, heldReasons, isFinal, statuses, type CanceledReason } from '../../src/core/message.ts'
import { outcomeKinds } from '../../src/core/outcome.ts'
import { useDatabase } from '../support/database.ts'
import { apiKey, conversation, guard, inbound, key, receipt, refused, wholeKey } from './impossible-rows.ts'
import { insert, insertMessage, rightRows } from './rows.ts'

const database = useDatabase()
const { queued, canceled } = rightRows

test.each(Object.entries(rightRows))('a message that is %s is a row that is taken', async (_, row) => {
  await expect(insertMessage(database, row)).resolves.toBeUndefined()
})

test('a key with its message, and a tombstone that says who made it, are taken', async () => {
  await insert(database, 'idempotency_keys', wholeKey)
  const tombstone = { ...key, key: 'void', message_id: null, voided_by: 'someone' }
  await expect(insert(database, 'idempotency_keys', tombstone)).resolves.toBeUndefined()
})

test.each(apiKinds)('an API key of a %s is taken with every scope that its kind may hold', async (kind) => {
  await insert(database, 'accounts', { id: kind })
  const row = { ...apiKey, account_id: kind, kind, id: kind, scopes: scopesOfKind[kind] }
  await expect(insert(database, 'api_keys', row)).resolves.toBeUndefined()
})

test('a conversation, what was said in it and what guards it are taken', async () => {
  await insert(database, 'conversations', conversation)
  await insert(database, 'conversations', { ...conversation, conversation: 'd', version: 3, based_on: 2 })
  await insert(database, 'conversations', { ...conversation, conversation: 'e', version: 0, moved: 0, based_on: 0 })
  await insert(database, 'inbound_messages', inbound)
  await insert(database, 'inbound_messages', { ...inbound, id: randomUUID(), event_id: 'f', sender: null, body: null })
  await insert(database, 'duplicate_guards', guard)
  const seen = { ...guard, content_hash: Buffer.alloc(16, 1), refuses: false, is_second: true }
  await expect(insert(database, 'duplicate_guards', seen)).resolves.toBeUndefined()
})

test('an inbound message is there once under its event id, in each conversation of each account and from each source', async () => {
  const told = { ...inbound, event_id: 'once' }
  for (const more of [
    {},
    { conversation: 'other' },
    { account_id: 'other' },
    { environment: 'test' },
    { source: 'fake' },
  ])
    await insert(database, 'inbound_messages', { ...told, ...more, id: randomUUID() })
  const again = insert(database, 'inbound_messages', { ...told, id: randomUUID(), body: 'another' })
  await expect(again).rejects.toMatchObject({ constraint: 'inbound_once' })
})

test.each(
  Object.entries(refused).flatMap(([name, [table, ...rows]]) => rows.map((row, nth) => ({ name, nth, table, row }))),
)('$name refuses an impossible row ($nth)', async ({ name, table, row }) => {
  const inserted = table === 'messages' ? insertMessage(database, row) : insert(database, table, row)
  await expect(inserted).rejects.toMatchObject({ code: '23514', constraint: name })
})

/** Of all CHECKs, and of the rules in the one of `messages`, which calls a function: the name, and what it asks. */
async function rulesOf(): Promise<Map<string, string>> {
  const checks = await database.query<{ name: string; definition: string }>(
    `SELECT conname AS name, pg_get_constraintdef(oid) AS definition FROM pg_constraint
     WHERE contype = 'c' AND connamespace = 'public'::regnamespace AND conname <> 'message_is_whole'`,
  )
  const [of] = await database.query<{ source: string }>(
    `SELECT prosrc AS source FROM pg_proc WHERE proname = 'message_is_whole'`,
  )
  const rules = [...(of?.source ?? '').matchAll(/WHEN NOT \(([^]*?)\) THEN '(\w+)'/g)]
  expect(rules.length).toBe((of?.source ?? '').split('WHEN NOT').length - 1)
  return new Map([
    ...checks.map(({ name, definition }) => [name, definition] as const),
    ...rules.map(([, asked = '', name = '']) => [name, asked] as const),
  ])
}

test('every CHECK has a row here that it refuses', async () => {
  expect([...(await rulesOf()).keys()].toSorted()).toEqual(Object.keys(refused).toSorted())
})

test('a message that is refused does not stand in the log of the data base', async () => {
  const error: unknown = await insertMessage(database, { ...queued, recipient: '+447700900999', version: 0 }).catch(
    (refusal: unknown) => refusal,
  )
  expect(JSON.stringify({ ...(error as object), text: String(error) })).not.toContain('900999')
})

test('one intent that is guarded has one message in its account and environment', async () => {
  const guarded = { ...queued, intent: 'once', intent_guard: 'once' }
  await insertMessage(database, guarded)
  await insertMessage(database, { ...guarded, environment: 'test' })
  await insertMessage(database, { ...canceled, intent: 'once' })
  await expect(insertMessage(database, guarded)).rejects.toMatchObject({ constraint: 'messages_one_per_intent' })
})

const canceledReasons = { declined: true, lapsed: true, conversation_changed: true } satisfies Record<
  CanceledReason,
  true
>

test.each([
  ['statuses', 'status_is_known', statuses],
  ['channels', 'messages_channel_check', channels],
  ['environments', 'messages_environment_check', environments],
  ['environments of keys', 'idempotency_keys_environment_check', environments],
  ['environments of API keys', 'api_keys_environment_check', environments],
  ['reasons to be held', 'messages_held_for_check', heldReasons],
  ['reasons of canceled ones', 'messages_canceled_reason_check', Object.keys(canceledReasons)],
  ['outcomes', 'messages_outcome_check', outcomeKinds],
  ['environments of receipts', 'receipts_environment_check', environments],
  ['kinds of receipts', 'receipts_kind_check', ['accepted', ...deliveryStatuses]],
  ['scopes', 'api_keys_scopes_check', apiScopes],
  ['kinds of API keys', 'api_keys_kind_check', apiKinds],
  ['statuses that retention erases', 'erased_messages_status_check', statuses.filter(isFinal)],
])('the %s of the data base are those of the core', async (_, name, words) => {
  const found = [...((await rulesOf()).get(name) ?? '').matchAll(/'([^']+)'/g)].map(([, word]) => String(word))
  expect(found.toSorted()).toEqual([...words].toSorted())
})

test('texts that are compared or unique are compared byte by byte, the same under every locale', async () => {
  const loose = await database.query(
    `SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
       JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
       JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_collation l ON l.oid = a.attcollation
       JOIN pg_am m ON m.oid = (SELECT relam FROM pg_class WHERE oid = i.indexrelid)
     WHERE c.relnamespace = 'public'::regnamespace AND c.relname IN ('accounts', 'api_keys', 'idempotency_keys', 'messages', 'receipts',
         'conversations', 'inbound_messages', 'duplicate_guards')
       AND t.typname = 'text' AND m.amname = 'btree' AND l.collname <> 'C' AND a.attname <> 'environment'`,
  )
  expect(loose).toEqual([])
})

test('a provider tells of one event once, under its own name', async () => {
  await insert(database, 'receipts', receipt)
  await insert(database, 'receipts', { ...receipt, provider: 'other' })
  await expect(insert(database, 'receipts', receipt)).rejects.toMatchObject({ constraint: 'receipts_pkey' })
  const rows = await database.query<{ definition: string }>(
    `SELECT indexdef AS definition FROM pg_indexes WHERE tablename = 'receipts'`,
  )
  expect(rows.filter(({ definition }) => definition.includes('applied_at'))).toEqual([])
})

test('no index names a column that an outcome changes, predicates included', async () => {
  const rows = await database.query<{ definition: string }>(
    `SELECT indexdef AS definition FROM pg_indexes WHERE tablename = 'messages'`,
  )
  const changed =
    /\b(status|version|attempts|outcome|evidence|due_at|lease_until|updated_at|sent_at|resolution|answer_status|attempt_\w+|provider_message_id|failed_reason|open_attempts|plan|rendered|delivery|proof|decision|canceled_reason)\b/
  expect(rows.map(({ definition }) => definition).filter((definition) => changed.test(definition))).toEqual([])
  expect(rows.length).toBeGreaterThan(3)
})

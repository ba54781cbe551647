/** The data base refuses what no sequence of events could have made, and its words are those of the core. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { apiKinds, apiScopes, scopesOfKind } from '../../src/core/api-key.ts'
import { channels, environments } from '../../src/core/message-content.ts'
import { deliveryStatuses, isFinal, statuses } from '../../src/core/message.ts'
import { outcomeKinds } from '../../src/core/outcome.ts'
import { useDatabase } from '../support/database.ts'
import { insert, insertMessage, rightRows, type Row } from './rows.ts'

const database = useDatabase()
const hash = Buffer.alloc(32)
const key: Row = { account_id: 'default', environment: 'live', key: 'k', message_id: randomUUID() }
const wholeKey: Row = { ...key, fingerprint: hash, fingerprint_version: 1 }
const apiKey: Row = {
  id: 'k',
  account_id: 'default',
  environment: 'live',
  kind: 'service',
  secret_hash: hash,
  scopes: ['send'],
}

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

const receipt: Row = {
  provider: 'fake',
  event_id: 'e',
  environment: 'live',
  message_id: randomUUID(),
  kind: 'delivered',
  occurred_at: new Date(),
}

const { queued, scheduled, sending, unknown, sent, failed, expired, canceled } = rightRows
const notEnded: Row = { outcome: null, attempt_ended_at: null, evidence: null }
const neverCalled: Row = {
  ...notEnded,
  attempts: 0,
  attempt_id: null,
  attempt_number: null,
  attempt_provider: null,
  attempt_started_at: null,
}
/** Each CHECK, and rows that it must refuse. */
const refused: Readonly<Record<string, readonly [table: string, ...rows: Row[]]>> = {
  messages_environment_check: ['messages', { ...queued, environment: 'production' }],
  messages_channel_check: ['messages', { ...queued, channel: 'pigeon' }],
  messages_version_check: ['messages', { ...queued, version: 0 }],
  messages_attempts_check: ['messages', { ...sending, attempts: -1 }],
  messages_outcome_check: ['messages', { ...unknown, outcome: 'perhaps', open_attempts: '[]' }],
  messages_attempt_number_check: ['messages', { ...sending, attempt_number: 0 }],
  status_is_known: ['messages', { ...queued, status: 'held' }],
  attempt_is_whole: [
    'messages',
    { ...queued, attempts: 1 },
    { ...sending, attempts: 0 },
    { ...sending, attempt_provider: null },
    { ...sending, attempt_number: null },
    { ...sending, attempt_started_at: null },
    { ...canceled, attempt_started_at: new Date() },
  ],
  outcome_is_whole: [
    'messages',
    { ...unknown, evidence: null },
    { ...unknown, attempt_ended_at: null },
    { ...sending, attempt_ended_at: new Date() },
    { ...canceled, outcome: 'not_sent', evidence: '{}', attempt_ended_at: new Date() },
  ],
  only_sending_runs: [
    'messages',
    { status: 'sending', lease_until: new Date() },
    { ...unknown, status: 'sending', lease_until: new Date() },
    { ...sending, status: 'queued', due_at: new Date() },
    { ...sending, status: 'unknown' },
    { ...sending, ...canceled },
    { ...sending, ...expired },
    { ...sent, ...notEnded },
  ],
  scheduled_has_not_begun: [
    'messages',
    { ...scheduled, send_at: null },
    { ...rightRows['queued again'], status: 'scheduled', send_at: new Date() },
  ],
  queued_was_not_sent: [
    'messages',
    { ...queued, due_at: null },
    { ...unknown, status: 'queued', due_at: new Date() },
    { ...rightRows['queued again'], outcome: 'rejected' },
  ],
  sending_has_a_lease: ['messages', { ...sending, lease_until: null }],
  unknown_has_evidence: [
    'messages',
    { status: 'unknown' },
    { status: 'unknown', open_attempts: '[]' },
    { ...rightRows['queued again'], status: 'unknown' },
  ],
  only_unknown_has_a_plan: ['messages', { ...sending, plan: '{}' }, { ...queued, plan: '{}' }, { ...sent, plan: '{}' }],
  only_what_is_not_settled_is_open: [
    'messages',
    { ...rightRows['queued again'], open_attempts: '[]' },
    { ...sent, open_attempts: '[]' },
    { ...failed, open_attempts: '[]' },
  ],
  only_what_may_go_out_is_rendered: [
    'messages',
    { ...scheduled, rendered: 'bytes' },
    { ...sent, rendered: 'bytes' },
    { ...canceled, rendered: 'bytes' },
  ],
  only_what_was_accepted_is_delivered: [
    'messages',
    { ...queued, delivery: '{}' },
    { ...unknown, delivery: '{}' },
    { ...failed, delivery: '{}' },
  ],
  only_what_runs_has_a_proof: ['messages', { ...unknown, proof: '{}' }, { ...sent, proof: '{}' }],
  sent_was_accepted: [
    'messages',
    { ...sent, sent_at: null },
    { ...sent, outcome: 'unknown' },
    { ...sent, ...neverCalled },
    { ...sent, ...neverCalled, resolution: '{}' },
  ],
  failed_has_a_reason: [
    'messages',
    { ...failed, failed_reason: null },
    { ...failed, failed_reason: 'bad luck' },
    { ...failed, outcome: 'unknown' },
    { ...failed, outcome: 'accepted' },
    { ...failed, ...neverCalled },
    { ...unknown, ...expired },
    { ...expired, failed_reason: 'resolved_not_sent' },
    { ...expired, failed_reason: 'resolved_not_sent', resolution: '{}' },
    { ...queued, failed_reason: 'expired' },
  ],
  canceled_was_not_sent: [
    'messages',
    { ...canceled, ...sent, status: 'canceled', sent_at: null },
    { ...unknown, ...canceled },
  ],
  final_has_its_answer: [
    'messages',
    { ...sent, answer_status: null },
    { ...failed, answer_status: null },
    { ...canceled, answer_status: null },
    { ...queued, answer_status: 202 },
  ],
  intent_is_guarded: [
    'messages',
    { ...queued, intent: 'i', intent_guard: 'j' },
    { ...queued, intent_guard: 'i' },
    { ...canceled, intent: 'i', intent_guard: 'i' },
  ],
  accounts_id_check: ['accounts', { id: 'Not An Account' }, { id: '' }],
  api_keys_id_check: ['api_keys', { ...apiKey, id: 'a_b' }],
  api_keys_environment_check: ['api_keys', { ...apiKey, environment: 'production' }],
  api_keys_secret_hash_check: ['api_keys', { ...apiKey, secret_hash: Buffer.from('in clear') }],
  api_keys_scopes_check: ['api_keys', { ...apiKey, kind: 'person', scopes: ['send', 'everything'] }],
  api_keys_kind_check: ['api_keys', { ...apiKey, kind: 'robot' }],
  api_keys_name_check: ['api_keys', { ...apiKey, name: '' }, { ...apiKey, name: 'n'.repeat(101) }],
  api_keys_previous_secret_hash_check: [
    'api_keys',
    { ...apiKey, previous_secret_hash: Buffer.from('in clear'), previous_until: new Date() },
  ],
  previous_secret_lapses: [
    'api_keys',
    { ...apiKey, previous_secret_hash: hash },
    { ...apiKey, previous_until: new Date() },
  ],
  kind_holds_its_scopes: [
    'api_keys',
    ...apiKinds.flatMap((kind) =>
      apiScopes
        .filter((scope) => !scopesOfKind[kind].includes(scope))
        .map((scope) => ({ ...apiKey, kind, scopes: ['send', scope] })),
    ),
  ],
  idempotency_keys_environment_check: ['idempotency_keys', { ...wholeKey, environment: 'production' }],
  idempotency_keys_key_check: ['idempotency_keys', { ...wholeKey, key: '' }, { ...wholeKey, key: 'k'.repeat(256) }],
  idempotency_keys_fingerprint_check: ['idempotency_keys', { ...wholeKey, key: 'f', fingerprint: Buffer.alloc(31) }],
  key_is_whole: [
    'idempotency_keys',
    { ...key, key: 'half' },
    { ...wholeKey, key: 'both', voided_by: 'someone' },
    { ...wholeKey, key: 'no version', fingerprint_version: null },
    { ...key, key: 'nobody', message_id: null },
    { ...wholeKey, key: 'tombstone', message_id: null, voided_by: 'someone' },
  ],
  due_work_task_check: ['due_work', { message_id: randomUUID(), task: 'rest', due_at: new Date() }],
  receipts_event_id_check: ['receipts', { ...receipt, event_id: '' }, { ...receipt, event_id: 'e'.repeat(256) }],
  receipts_environment_check: ['receipts', { ...receipt, environment: 'production' }],
  receipts_kind_check: ['receipts', { ...receipt, kind: 'read' }],
  erased_messages_status_check: ['erased_messages', { message_id: randomUUID(), status: 'unknown' }],
}

test.each(
  Object.entries(refused).flatMap(([name, [table, ...rows]]) => rows.map((row, nth) => ({ name, nth, table, row }))),
)('$name refuses an impossible row ($nth)', async ({ name, table, row }) => {
  const inserted = table === 'messages' ? insertMessage(database, row) : insert(database, table, row)
  await expect(inserted).rejects.toMatchObject({ code: '23514', constraint: name })
})

test('every CHECK has a row here that it refuses', async () => {
  const rows = await database.query<{ name: string }>(
    `SELECT conname AS name FROM pg_constraint WHERE contype = 'c' AND connamespace = 'public'::regnamespace`,
  )
  expect(rows.map(({ name }) => name).toSorted()).toEqual(Object.keys(refused).toSorted())
})

test('one intent that is guarded has one message in its account and environment', async () => {
  const guarded = { ...queued, intent: 'once', intent_guard: 'once' }
  await insertMessage(database, guarded)
  await insertMessage(database, { ...guarded, environment: 'test' })
  await insertMessage(database, { ...canceled, intent: 'once' })
  await expect(insertMessage(database, guarded)).rejects.toMatchObject({ constraint: 'messages_one_per_intent' })
})

test.each([
  ['statuses', 'status_is_known', statuses],
  ['channels', 'messages_channel_check', channels],
  ['environments', 'messages_environment_check', environments],
  ['environments of keys', 'idempotency_keys_environment_check', environments],
  ['environments of API keys', 'api_keys_environment_check', environments],
  ['outcomes', 'messages_outcome_check', outcomeKinds],
  ['environments of receipts', 'receipts_environment_check', environments],
  ['kinds of receipts', 'receipts_kind_check', ['accepted', ...deliveryStatuses]],
  ['scopes', 'api_keys_scopes_check', apiScopes],
  ['kinds of API keys', 'api_keys_kind_check', apiKinds],
  ['statuses that retention erases', 'erased_messages_status_check', statuses.filter(isFinal)],
])('the %s of the data base are those of the core', async (_, name, words) => {
  const [row] = await database.query<{ definition: string }>(
    `SELECT pg_get_constraintdef(oid) AS definition FROM pg_constraint WHERE conname = $1`,
    [name],
  )
  const found = [...(row?.definition ?? '').matchAll(/'([^']+)'/g)].map(([, word]) => String(word))
  expect(found.toSorted()).toEqual([...words].toSorted())
})

test('texts that are compared or unique are compared byte by byte, the same under every locale', async () => {
  const loose = await database.query(
    `SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
       JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
       JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_collation l ON l.oid = a.attcollation
       JOIN pg_am m ON m.oid = (SELECT relam FROM pg_class WHERE oid = i.indexrelid)
     WHERE c.relnamespace = 'public'::regnamespace AND c.relname IN ('accounts', 'api_keys', 'idempotency_keys', 'messages', 'receipts')
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
    /\b(status|version|attempts|outcome|evidence|due_at|lease_until|updated_at|sent_at|resolution|answer_status|attempt_\w+|provider_message_id|failed_reason|open_attempts|plan|rendered|delivery|proof)\b/
  expect(rows.map(({ definition }) => definition).filter((definition) => changed.test(definition))).toEqual([])
  expect(rows.length).toBeGreaterThan(3)
})

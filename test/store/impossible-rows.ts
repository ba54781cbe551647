/** Rows that the data base must refuse, by the CHECK that refuses each, and right ones of the tables besides `messages`. */
import { randomUUID } from 'node:crypto'
import { apiKinds, apiScopes, scopesOfKind } from '../../src/core/api-key.ts'
import { rightRows, type Row } from './rows.ts'

const hash = Buffer.alloc(32)
export const key: Row = { account_id: 'default', environment: 'live', key: 'k', message_id: randomUUID() }
export const wholeKey: Row = { ...key, fingerprint: hash, fingerprint_version: 1 }
export const apiKey: Row = {
  id: 'k',
  account_id: 'default',
  environment: 'live',
  kind: 'service',
  secret_hash: hash,
  scopes: ['send'],
}

export const receipt: Row = {
  provider: 'fake',
  event_id: 'e',
  environment: 'live',
  message_id: randomUUID(),
  kind: 'delivered',
  occurred_at: new Date(),
}

const { held, declined, lapsed, queued, scheduled, sending, unknown, sent, failed, expired, canceled } = rightRows
export const conversation: Row = { account_id: 'default', environment: 'live', conversation: 'c', version: 1, moved: 1 }
export const inbound: Row = {
  id: randomUUID(),
  account_id: 'default',
  environment: 'live',
  conversation: 'c',
  source: 'api',
  event_id: 'e',
  sender: 's',
  body: 't',
}
export const guard: Row = {
  account_id: 'default',
  environment: 'live',
  content_hash: Buffer.alloc(16),
  message_id: randomUUID(),
  window_s: 900,
  refuses: true,
  is_second: false,
}

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
export const refused: Readonly<Record<string, readonly [table: string, ...rows: Row[]]>> = {
  messages_environment_check: ['messages', { ...queued, environment: 'production' }],
  messages_channel_check: ['messages', { ...queued, channel: 'pigeon' }],
  messages_version_check: ['messages', { ...queued, version: 0 }],
  messages_attempts_check: ['messages', { ...sending, attempts: -1 }],
  messages_outcome_check: ['messages', { ...unknown, outcome: 'perhaps', open_attempts: '[]' }],
  messages_attempt_number_check: ['messages', { ...sending, attempt_number: 0 }],
  status_is_known: ['messages', { ...queued, status: 'waiting' }],
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
  messages_held_for_check: ['messages', { ...held, held_for: 'no reason' }],
  messages_canceled_reason_check: ['messages', { ...declined, canceled_reason: 'no reason' }],
  messages_conversation_version_check: ['messages', { ...queued, conversation_version: -1 }],
  held_waits_for_a_person: [
    'messages',
    { status: 'held' },
    { ...held, decision: '{}' },
    { ...rightRows['queued again'], due_at: null, ...held },
  ],
  only_what_was_held_is_decided: ['messages', { ...queued, decision: '{}' }, { ...canceled, decision: '{}' }],
  only_what_was_held_is_declined: [
    'messages',
    { ...canceled, canceled_reason: 'declined' },
    { ...canceled, canceled_reason: 'lapsed' },
    { ...lapsed, held_for: null },
    { ...rightRows['queued, and approved'], canceled_reason: 'declined' },
    { ...queued, canceled_reason: 'conversation_changed' },
    { ...held, canceled_reason: 'conversation_changed' },
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
  conversations_environment_check: ['conversations', { ...conversation, environment: 'production' }],
  conversations_moved_check: ['conversations', { ...conversation, moved: -1 }],
  conversation_has_not_moved: [
    'conversations',
    { ...conversation, based_on: 1 },
    { ...conversation, version: 3, based_on: 1 },
    { ...conversation, version: 3, moved: 0, based_on: 2 },
  ],
  inbound_messages_environment_check: ['inbound_messages', { ...inbound, environment: 'production' }],
  inbound_messages_event_id_check: [
    'inbound_messages',
    { ...inbound, event_id: '' },
    { ...inbound, event_id: 'e'.repeat(1_021) },
  ],
  said_or_erased: ['inbound_messages', { ...inbound, sender: null }, { ...inbound, body: null }],
  messages_content_hash_check: ['messages', { ...queued, content_hash: Buffer.alloc(15) }],
  duplicate_guards_environment_check: ['duplicate_guards', { ...guard, environment: 'production' }],
  duplicate_guards_content_hash_check: ['duplicate_guards', { ...guard, content_hash: Buffer.alloc(15) }],
  duplicate_guards_window_s_check: ['duplicate_guards', { ...guard, window_s: 0 }],
  duplicate_is_not_refused: ['duplicate_guards', { ...guard, is_second: true }],
  due_work_task_check: ['due_work', { message_id: randomUUID(), task: 'rest', due_at: new Date() }],
  receipts_event_id_check: ['receipts', { ...receipt, event_id: '' }, { ...receipt, event_id: 'e'.repeat(256) }],
  receipts_environment_check: ['receipts', { ...receipt, environment: 'production' }],
  receipts_kind_check: ['receipts', { ...receipt, kind: 'read' }],
  erased_messages_status_check: ['erased_messages', { message_id: randomUUID(), status: 'unknown' }],
}

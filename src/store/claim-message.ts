/**
 * The claim: one statement that inserts keys, under their unique constraint, and messages with their first attempt, for
 * all requests that wait for it. Whoever inserts the key has the right to act; whoever does not, reads what is there.
 *
 * C1. Key, second name (conversation and reference), message and due work are inserted together or not at all.
 * C2. The winner is known by `RETURNING`, never by a row count; a conflict makes no error and touches nothing.
 * C3. The lease is set by the data base's clock, in the same statement.
 * C4. The version of a conversation and the guard against a second message are judged under the lock of their rows, by a
 *     CHECK: where it fails nothing was inserted. A claim that they bind goes alone; all others go in groups.
 */
import type { Fingerprint } from '../core/fingerprint.ts'
import { attemptOf, type Message } from '../core/message.ts'
import { conversationCheck, violatedConstraint } from './database-errors.ts'
import { claim, claimPlain, type ClaimRow } from './claim-statement.ts'
import type { Database } from './database.ts'
import { grouped } from './grouped.ts'

/** A message about to be claimed: `createdAt` is set by the data base. */
export interface Claim {
  readonly message: Message
  readonly fingerprint: Fingerprint
  /** The derived key of (conversation, reference) if `message.idempotencyKey` is another one. */
  readonly secondKey: string | null
  /** Of a claim that begins its first attempt at once. */
  readonly leaseMs: number | null
  /** The version that the conversation must have; null: whichever. */
  readonly ifVersion: number | null
  /** It is checked again before it leaves: the version that it finds is noted with it, as with `ifVersion`. */
  readonly rechecks: boolean
  /** The guard against a second message of the same content; null: it is off. */
  readonly guard: { readonly contentHash: string; readonly windowS: number; readonly refuses: boolean } | null
}

export type ClaimResult =
  | { readonly kind: 'claimed'; readonly message: Message }
  /** The key, or the reference, has a message or a tombstone. */
  | { readonly kind: 'key_taken' }
  | { readonly kind: 'intent_taken' }
  | { readonly kind: 'conversation_moved' }
  /** Its guard refuses it. */
  | { readonly kind: 'duplicate' }

/** It has one name, and belongs to no conversation. */
const isPlain = ({ message, secondKey }: Claim): boolean =>
  secondKey === null && message.request.conversation === undefined

/** About what a claim adds to a statement; the rest of a row is small. */
const sizeOf = ({ message }: Claim): number => message.canonical.length + (message.rendered?.length ?? 0) + 1_024

const orderOf = (row: ClaimRow): string =>
  `${String(row.account_id)} ${String(row.environment)} ${String(row.idempotency_key)}`

function rowOf({ message, fingerprint, secondKey, leaseMs, ifVersion, rechecks, guard }: Claim): ClaimRow {
  const { request, state } = message
  const attempt = attemptOf(state)
  return {
    id: message.id,
    account_id: message.account,
    environment: message.environment,
    idempotency_key: message.idempotencyKey,
    request: message.canonical,
    fingerprint_version: fingerprint.version,
    metadata: JSON.stringify(message.metadata),
    channel: request.channel,
    recipient: request.to,
    conversation: request.conversation,
    reference: request.reference,
    intent: request.intent,
    provider: message.provider,
    traceparent: message.traceparent ?? undefined,
    send_at: message.sendAt ?? undefined,
    not_after: message.notAfter,
    status: state.status,
    attempt_id: attempt?.id,
    attempt_identity: attempt?.identity,
    rendered: message.rendered ?? undefined,
    fingerprint: fingerprint.hash.toString('hex'),
    second_key: secondKey ?? undefined,
    lease_ms: leaseMs ?? undefined,
    api_key_id: message.sentBy ?? undefined,
    held_for: message.heldFor ?? undefined,
    allowed_providers: message.allowedProviders === null ? undefined : JSON.stringify(message.allowedProviders),
    moves:
      request.conversation === undefined ? undefined : state.status === 'held' || state.status === 'scheduled' ? 0 : 1,
    if_version: ifVersion ?? undefined,
    rechecks: rechecks || undefined,
    content_hash: guard?.contentHash,
    window_s: guard?.windowS,
    refuses: guard?.refuses === true || undefined,
    known_duplicate: message.possibleDuplicateOf ?? undefined,
  }
}

/** C4. */
const isBound = ({ ifVersion, rechecks, guard }: Claim): boolean =>
  ifVersion !== null || rechecks || guard?.refuses === true

/** The returned function throws StoreUnavailable; if its effect is `doubtful`, read the key back and compare the id. */
export function messageClaimer(database: Database): (claim: Claim) => Promise<ClaimResult> {
  const claimAll = async (claims: readonly Claim[]): Promise<ClaimResult[]> => {
    // In the order of the keys, so that two replicas never wait for each other.
    const rows = claims
      .map(rowOf)
      .map((row) => ({ row, order: orderOf(row) }))
      .toSorted((a, b) => (a.order < b.order ? -1 : 1))
      .map(({ row }) => row)
    const statement = claims.every(isPlain) ? claimPlain : claim
    const claimed = await database.run<Inserted>(statement, [JSON.stringify(rows)])
    const byId = new Map(claimed.map((row) => [row.id, row]))
    return claims.map(({ message, leaseMs }) => {
      const row = byId.get(message.id)
      return row === undefined ? { kind: 'key_taken' } : { kind: 'claimed', message: asClaimed(message, row, leaseMs) }
    })
  }
  const claimGroup = grouped<Claim, ClaimResult>(claimAll, database.soon, sizeOf)
  return async (asked) => {
    try {
      if (!isBound(asked)) return await claimGroup(asked)
      const [result] = await claimAll([asked])
      if (result === undefined) throw new Error('one claim has one result')
      return result
    } catch (error) {
      switch (violatedConstraint(error)) {
        case 'messages_one_per_intent':
          return { kind: 'intent_taken' }
        case 'idempotency_keys_pkey':
          return { kind: 'key_taken' }
        case conversationCheck:
          return { kind: 'conversation_moved' }
        case 'duplicate_is_not_refused':
          return { kind: 'duplicate' }
        default:
          throw error
      }
    }
  }
}

interface Inserted {
  id: string
  createdAt: Date
  conversationVersion: number | null
  possibleDuplicateOf: string | null
}

/** What was inserted, with what the data base knew. */
function asClaimed(message: Message, inserted: Inserted, leaseMs: number | null): Message {
  const { state } = message
  const { createdAt, conversationVersion, possibleDuplicateOf } = inserted
  const known = { ...message, createdAt, updatedAt: createdAt, conversationVersion, possibleDuplicateOf }
  if (state.status === 'queued') return { ...known, state: { ...state, dueAt: createdAt } }
  if (state.status !== 'sending') return known
  const leaseUntil = new Date(createdAt.getTime() + (leaseMs ?? 0))
  return { ...known, state: { ...state, attempt: { ...state.attempt, startedAt: createdAt, leaseUntil } } }
}

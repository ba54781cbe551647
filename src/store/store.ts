/** The store as operations, workers and routes see it: functions over one data base, bundled so that a test can stand in. */
import type { ApiKey } from '../core/api-key-view.ts'
import type { InboundMessage } from '../core/conversation-view.ts'
import type { Scope } from '../core/idempotency.ts'
import type { Channel } from '../core/message-content.ts'
import type { Message, ShownMessage } from '../core/message.ts'
import type { TimelineEntry } from '../core/events.ts'
import * as apiKeys from './api-keys.ts'
import { messageClaimer, type Claim, type ClaimResult } from './claim-message.ts'
import * as conversations from './conversations.ts'
import type { Database, Statement } from './database.ts'
import * as duplicates from './duplicates.ts'
import { findConversationOfReply, type FoundConversation, type ReplySearch } from './find-conversation.ts'
import * as dueWork from './due-work.ts'
import * as keys from './keys.ts'
import * as reading from './read-messages.ts'
import * as receipts from './receipts.ts'
import { eraseResults } from './erase-results.ts'
import { messageSaver, recordEvents, type Change } from './save-message.ts'

export interface Store {
  claimMessage(claim: Claim): Promise<ClaimResult>
  /** @returns false: another change came first, nothing was written @throws ConversationMoved */
  saveMessage(change: Change): Promise<boolean>
  recordEvents(messageId: string, entries: readonly TimelineEntry[]): Promise<void>
  findKey(scope: Scope, keys: readonly string[]): Promise<reading.FoundKey | undefined>
  /** Of a key whose message is final. */
  findAnswer(scope: Scope, key: string): Promise<reading.FoundAnswer | undefined>
  findMessages(ids: readonly string[]): Promise<Message[]>
  findVersions(ids: readonly string[]): Promise<Map<string, number>>
  findMessage(scope: Scope, id: string): Promise<Message | undefined>
  findByIntent(scope: Scope, intent: string): Promise<ShownMessage | undefined>
  listMessages(
    scope: Scope,
    filter: reading.MessageFilter,
    limit: number,
    before: string | null,
  ): Promise<ShownMessage[]>
  findEvents(messageId: string): Promise<(TimelineEntry & { id: string })[]>
  /** Messages that are due for a task now, by the data base's clock; put off for a while. */
  takeDue(task: dueWork.Task, limit: number): Promise<Message[]>
  postponeDue(task: dueWork.Task, messageId: string, ms: number): Promise<void>
  findLapsed(claimedSince: Date, limit: number): Promise<Message[]>
  findSweepStart(name: string): Promise<Date | null>
  saveSweep(name: string, seenUntil: Date): Promise<void>
  countDueWork(): Promise<dueWork.DueDepth>
  /** Of messages that wait for something other than a dispatch, oldest first. */
  findWaitingIds(status: dueWork.WaitingStatus, limit: number): Promise<string[]>
  eraseResults(finalBefore: Date, limit: number): Promise<number>
  /** @returns what is kept under the event's id: this receipt, or the one that came first */
  keepReceipt(receipt: receipts.Receipt): Promise<receipts.KeptReceipt>
  markApplied(receipt: receipts.Receipt): Promise<void>
  findUnapplied(since: Date, ageMs: number, limit: number): Promise<receipts.KeptReceipt[]>
  eraseReceipts(receivedBefore: Date, limit: number): Promise<number>
  /** The conversation that a reply belongs to. */
  findConversationOfReply(reply: ReplySearch): Promise<FoundConversation | undefined>
  insertName(scope: Scope, name: string, known: string): Promise<boolean>
  insertTombstone(scope: Scope, key: string, apiKey: string): Promise<boolean>
  findConversation(scope: Scope, name: string): Promise<conversations.Conversation>
  recordInbound(inbound: conversations.Inbound): Promise<conversations.RecordedInbound>
  listInbound(scope: Scope, conversation: string, limit: number, before: string | null): Promise<InboundMessage[]>
  eraseInbound(receivedBefore: Date, limit: number): Promise<number>
  findFirstOfContent(scope: Scope, to: string, contentHash: string, windowS: number): Promise<string | undefined>
  wasReached(scope: Scope, channel: Channel, to: string): Promise<boolean>
  eraseGuards(limit: number): Promise<number>
  /** Whoever's it is, revoked ones too. */
  findApiKey(id: string): Promise<apiKeys.StoredApiKey | undefined>
  listApiKeys(scope: Scope, limit: number, before: apiKeys.ApiKeyPlace | null): Promise<ApiKey[]>
  insertApiKey(key: apiKeys.NewApiKey): Promise<ApiKey>
  /** @returns until when the secret before it holds (null: no longer); undefined: there is no such key, or it is revoked */
  replaceSecret(scope: Scope, id: string, secretHash: Buffer, graceS: number): Promise<Date | null | undefined>
  /** @returns since when it is revoked; undefined: there is no such key */
  revokeApiKey(scope: Scope, id: string): Promise<Date | undefined>
  /** The data base's own time. */
  readTime(): Promise<Date>
}

export function createStore(database: Database): Store {
  const findKey = reading.keyFinder(database)
  const findAnswer = reading.answerFinder(database)
  return {
    claimMessage: messageClaimer(database),
    saveMessage: messageSaver(database),
    recordEvents: async (...news) => recordEvents(database, ...news),
    findKey: async (scope, names) => findKey({ scope, keys: names }),
    findAnswer: async (scope, key) => findAnswer({ scope, key }),
    findMessages: async (ids) => reading.findMessages(database, ids),
    findVersions: async (ids) => reading.findVersions(database, ids),
    findMessage: async (...id) => reading.findMessage(database, ...id),
    findByIntent: async (...intent) => reading.findByIntent(database, ...intent),
    listMessages: async (...list) => reading.listMessages(database, ...list),
    findEvents: async (id) => reading.findEvents(database, id),
    takeDue: async (...due) => dueWork.takeDue(database, ...due),
    postponeDue: async (...put) => dueWork.postponeDue(database, ...put),
    findLapsed: async (...since) => dueWork.findLapsed(database, ...since),
    findSweepStart: async (name) => dueWork.findSweepStart(database, name),
    saveSweep: async (...sweep) => dueWork.saveSweep(database, ...sweep),
    countDueWork: async () => dueWork.countDueWork(database),
    findWaitingIds: async (...status) => dueWork.findWaitingIds(database, ...status),
    eraseResults: async (...old) => eraseResults(database, ...old),
    keepReceipt: receipts.receiptKeeper(database),
    markApplied: receipts.receiptMarker(database),
    findUnapplied: async (...since) => receipts.findUnapplied(database, ...since),
    eraseReceipts: async (...old) => receipts.eraseReceipts(database, ...old),
    findConversationOfReply: async (reply) => findConversationOfReply(database, reply),
    insertName: async (...name) => keys.insertName(database, ...name),
    insertTombstone: async (...tombstone) => keys.insertTombstone(database, ...tombstone),
    findConversation: async (...name) => conversations.findConversation(database, ...name),
    recordInbound: async (inbound) => conversations.recordInbound(database, inbound),
    listInbound: async (...list) => conversations.listInbound(database, ...list),
    eraseInbound: async (...old) => conversations.eraseInbound(database, ...old),
    findFirstOfContent: async (...content) => duplicates.findFirstOfContent(database, ...content),
    wasReached: async (...recipient) => duplicates.wasReached(database, ...recipient),
    eraseGuards: async (limit) => duplicates.eraseGuards(database, limit),
    findApiKey: async (id) => apiKeys.findApiKey(database, id),
    listApiKeys: async (...list) => apiKeys.listApiKeys(database, ...list),
    insertApiKey: async (key) => apiKeys.insertApiKey(database, key),
    replaceSecret: async (...secret) => apiKeys.replaceSecret(database, ...secret),
    revokeApiKey: async (...id) => apiKeys.revokeApiKey(database, ...id),
    readTime: async () => readTime(database),
  }
}

const time: Statement = { name: 'time', text: 'SELECT clock_timestamp() AS now' }

async function readTime(database: Database): Promise<Date> {
  const [row] = await database.run<{ now: Date }>(time, [])
  if (row === undefined) throw new Error('SELECT gives one row')
  return row.now
}

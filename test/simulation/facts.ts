/** What the checker knows of a history: more than any part of it does. */
import { idFromUuid, uuidFromId } from '../../src/core/ids.ts'
import type { MessageRow } from '../../src/store/message-rows.ts'
import type { Asked } from './answer-rules.ts'
import type { Approvals } from './approval-rules.ts'
import type { Said } from './conversation-rules.ts'
import type { Tables } from './tables.ts'
import type { Write } from './vendor.ts'
import { epochMs, type World } from './world.ts'

export interface Facts {
  readonly world: World
  readonly tables: Tables
  /** All requests of callers that arrived, by their ids. */
  readonly asked: Map<string, Asked>
  readonly said: Said
  readonly approvals: Approvals
  /** All requests whose first byte left, by the event that they are about. */
  readonly writes: Map<string, Write[]>
  readonly acceptances: Map<string, number>
  /** Events about which a person was mistaken: how often they said `not_sent` of what was or would be accepted, or `sent` of what was not. */
  readonly mistaken: Map<string, { notSent: number; sent: number }>
  /** Until when each attempt's lease runs, by message and attempt number. */
  readonly leases: Map<string, number>
  /** When something was settled of a message last, truly: what is written of it is by a gateway's clock. */
  readonly settledMs: Map<string, number>
  /** How many verdicts stand in each time line. */
  readonly verdicts: Map<string, number>
  /** Ids of requests that claimed. */
  readonly claimers: Set<string>
  claims: number
  /** Final answers that were ever committed, by message. */
  readonly stored: Set<string>
  /** Public ids of messages whose claim was executed though its sender was told that it is in doubt. */
  readonly doubtedClaims: Set<string>
  /** A rule that does not hold. */
  readonly broken: (rule: string, what: string) => void
}

interface Marks {
  readonly request: string
  readonly event: string
}
const marksOf = (row: MessageRow): Marks => JSON.parse(row.metadata) as Marks
export const eventOf = (row: MessageRow): string => marksOf(row).event
/** The request that claimed it. */
export const claimerOf = ({ asked }: Pick<Facts, 'asked'>, row: MessageRow): Asked | undefined =>
  asked.get(marksOf(row).request)
export const nameOf = (row: MessageRow): string => `${idFromUuid('message', row.id)} (${eventOf(row)})`
export const leaseId = (messageId: string, attempt: number): string => `${messageId} ${attempt}`
export const answerId = (messageId: string, status: number, body: string): string => `${messageId} ${status} ${body}`
export const uuidOf = (id: string): string => uuidFromId('message', id) ?? ''
export const trueTime = ({ world }: Pick<Facts, 'world'>): number => epochMs + world.now()

/** It was accepted, or may yet be. */
const isDangerous = ({ fate }: Write): boolean => fate === 'accepted' || fate === 'travels'
export const dangersOf = ({ writes }: Facts, event: string): Write[] => (writes.get(event) ?? []).filter(isDangerous)
export const liesOf = ({ mistaken }: Facts, event: string) => mistaken.get(event) ?? { notSent: 0, sent: 0 }
export const wasAccepted = ({ acceptances }: Facts, event: string): boolean => (acceptances.get(event) ?? 0) > 0

/** Two requests are one to a provider that recognises our key, at the same account and in the key's life. */
export function isSameByKey(a: Write, b: Write, nowMs: number): boolean {
  const { deduplication } = a.vendor.capabilities
  return (
    deduplication !== null &&
    a.vendor === b.vendor &&
    a.identity === b.identity &&
    a.messageId === b.messageId &&
    nowMs - Math.min(a.beganMs, b.beganMs) < deduplication.lifetimeMs
  )
}

/** What a played statement runs on, and how it reads its parameters. */
import type { InboundMessage } from '../../src/core/conversation-view.ts'
import type { MessageRow } from '../../src/store/message-rows.ts'
import { databaseError, type Tables } from './tables.ts'

export type Json = Readonly<Record<string, unknown>>

export interface Execution {
  readonly tables: Tables
  readonly nowMs: number
  /** Told of every row that is written, before and after; both are the committed rows. */
  readonly changed: (before: MessageRow | null, after: MessageRow | null) => void
  /** Told of what came into a conversation. */
  readonly received: (place: string, inbound: InboundMessage) => void
}

/** Variants of a statement are named after it. */
export const isClaim = (name: string): boolean => /^claim(-|$)/.test(name)
export const isSave = (name: string): boolean => /^save(-|$)/.test(name)

export const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null)
export const dateOrNull = (value: unknown): Date | null => (typeof value === 'string' ? new Date(value) : null)
export const numberOrNull = (value: unknown): number | null => (typeof value === 'number' ? value : null)
export const text = (value: unknown): string => {
  if (typeof value !== 'string') throw databaseError('23502', 'not null')
  return value
}

/** As `json_to_recordset` reads them: a member that is absent is NULL. */
export const rowsOf = (json: unknown): readonly Json[] =>
  (JSON.parse(String(json)) as Json[]).map((row) => new Proxy(row, { get: (of, name) => of[String(name)] ?? null }))

/** The three logs of a run, put together by key: what callers heard, what the provider saw, what the tables hold. */
import { readFile } from 'node:fs/promises'
import type { LedgerEntry } from '../src/sandbox/tally.ts'
import type { Heard, History } from './history.ts'
import type { Asked } from './keys.ts'
import type { SentOut } from './provider-proxy.ts'
import type { MessageRow, Tables } from './tables.ts'

export interface KeyEvidence {
  readonly asked: Asked
  readonly heard: readonly Heard[]
  /** Undefined: there is no such key. Null: a tombstone. */
  readonly claimedAs: string | null | undefined
  readonly rows: readonly MessageRow[]
  readonly row: MessageRow | undefined
  /** What left the gateways for this message, in order. */
  readonly sentOut: readonly SentOut[]
  readonly accepted: number
  readonly requests: number
}

export interface Evidence {
  readonly keys: readonly KeyEvidence[]
  readonly tables: Tables
  /** Messages that the provider knows and the tables do not. */
  readonly unclaimed: readonly string[]
}

export async function readLedger(path: string): Promise<LedgerEntry[]> {
  const text = await readFile(path, 'utf8').catch(() => '') // nothing was sent
  return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as LedgerEntry]))
}

export function evidenceFrom(
  asked: readonly Asked[],
  history: History,
  ledger: readonly LedgerEntry[],
  log: readonly SentOut[],
  tables: Tables,
): Evidence {
  const rowsOf = Map.groupBy(tables.messages, ({ key }) => key)
  const entriesOf = Map.groupBy(ledger, ({ messageId }) => messageId)
  const sentOutOf = Map.groupBy(log, ({ messageId }) => messageId)
  const known = new Set(tables.messages.map(({ id }) => id))
  const keys = asked.map((each) => {
    const rows = rowsOf.get(each.key) ?? []
    const entries = rows.flatMap(({ id }) => entriesOf.get(id) ?? [])
    return {
      asked: each,
      heard: history.of(each.key),
      claimedAs: tables.keys.get(each.key),
      rows,
      row: rows[0],
      sentOut: rows.flatMap(({ id }) => sentOutOf.get(id) ?? []),
      accepted: entries.filter(({ accepted }) => accepted).length,
      requests: entries.filter(({ requested }) => requested).length,
    }
  })
  const unclaimed = [...new Set([...entriesOf.keys(), ...sentOutOf.keys()])].filter((id) => !known.has(id))
  return { keys, tables, unclaimed }
}

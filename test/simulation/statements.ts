/**
 * The statements of src/store by their names, over the simulated tables. Everything of the store that is TypeScript (its
 * groups, its rows, what an error proves) runs as it is; SQL alone is played, and test/store/conformance.ts holds what is
 * played here against PostgreSQL.
 */
import type { Statement } from '../../src/store/database.ts'
import type { MessageRow } from '../../src/store/message-rows.ts'
import { keyOf, type Tables } from './tables.ts'
import {
  claim,
  eraseResults,
  insertEvents,
  insertName,
  insertTombstone,
  rowsOf,
  save,
  type Execution,
} from './write-statements.ts'

type Rows = readonly object[]
type Played = (execution: Execution, values: readonly unknown[]) => Rows

const noAnswer = { answerContentType: null, answerLocation: null, answerBody: null }
const withAnswer = (tables: Tables, row: MessageRow): object => ({
  ...row,
  ...(tables.answers.get(row.id) ?? noAnswer),
})
const byId = (a: { id: string }, b: { id: string }): number => (a.id < b.id ? -1 : 1)

function findByIds({ tables }: Execution, ids: unknown): MessageRow[] {
  return [...new Set(ids as string[])].flatMap((id) => tables.messages.get(id) ?? [])
}

function findByKey({ tables }: Execution, [json]: readonly unknown[]): Rows {
  return rowsOf(json).flatMap((asked) => {
    const row = tables.keys.get(keyOf(String(asked['account_id']), String(asked['environment']), String(asked['key'])))
    if (row === undefined) return []
    const message = row.messageId === null ? undefined : tables.messages.get(row.messageId)
    return [
      {
        asker: asked['asker'],
        key: row.key,
        firstSeenAt: row.firstSeenAt,
        keyMessageId: row.messageId,
        fingerprint: row.fingerprint,
        keyFingerprintVersion: row.fingerprintVersion,
        erasedStatus: tables.erased.get(row.messageId ?? '') ?? null,
        ...(message === undefined ? { id: null } : withAnswer(tables, message)),
      },
    ]
  })
}

function findAnswer({ tables }: Execution, [json]: readonly unknown[]): Rows {
  return rowsOf(json).flatMap((asked) => {
    const row = tables.keys.get(keyOf(String(asked['account_id']), String(asked['environment']), String(asked['key'])))
    const message = tables.messages.get(row?.messageId ?? '')
    const stored = tables.answers.get(row?.messageId ?? '')
    if (row === undefined || message === undefined || stored === undefined) return []
    const { answerContentType: contentType, answerLocation: location, answerBody: body } = stored
    const { fingerprint, fingerprintVersion: version } = row
    return [{ asker: asked['asker'], fingerprint, version, status: message.answerStatus, contentType, location, body }]
  })
}

const takenForMs = 30_000

function takeDue({ tables, nowMs }: Execution, [limit, task]: readonly unknown[]): Rows {
  const taken = [...tables.dueWork]
    .filter(([, due]) => due.task === task && due.dueAtMs <= nowMs)
    .toSorted(([, a], [, b]) => a.dueAtMs - b.dueAtMs)
    .slice(0, Number(limit))
  for (const [id, due] of taken) tables.dueWork.set(id, { ...due, dueAtMs: nowMs + takenForMs })
  return taken
    .flatMap(([id]) => tables.messages.get(id) ?? [])
    .toSorted(byId)
    .map((row) => withAnswer(tables, row))
}

function postpone({ tables, nowMs }: Execution, [id, task, ms]: readonly unknown[]): Rows {
  const due = tables.dueWork.get(String(id))
  if (due !== undefined && due.task === task)
    tables.dueWork.set(String(id), { ...due, dueAtMs: nowMs + Math.round(Number(ms)) })
  return []
}

function findLapsed({ tables, nowMs }: Execution, [since, limit]: readonly unknown[]): Rows {
  const now = new Date(nowMs)
  return [...tables.messages.values()]
    .filter(({ status, leaseUntil }) => status === 'sending' && leaseUntil !== null && leaseUntil <= now)
    .filter(({ id, createdAt }) => {
      const due = tables.dueWork.get(id)
      return (due?.task === 'lease' && due.dueAtMs <= nowMs) || (createdAt >= (since as Date) && createdAt <= now)
    })
    .toSorted(byId)
    .slice(0, Number(limit))
    .map((row) => withAnswer(tables, row))
}

function countDue({ tables, nowMs }: Execution): Rows {
  const of = (...tasks: string[]): number =>
    [...tables.dueWork.values()].filter(({ task }) => tasks.includes(task)).length
  const oldest = [...tables.dueWork].filter(([, { task }]) => task === 'unknown').map(([id]) => id)
  const row = tables.messages.get(oldest.toSorted()[0] ?? '')
  const oldestUnknownS = row === undefined ? 0 : (nowMs - row.createdAt.getTime()) / 1000
  return [{ waiting: of('dispatch', 'lease'), reconciled: of('reconcile'), unknown: of('unknown'), oldestUnknownS }]
}

function saveSweep({ tables }: Execution, [name, seen]: readonly unknown[]): Rows {
  const before = tables.sweeps.get(String(name))
  if (before === undefined || before < (seen as Date)) tables.sweeps.set(String(name), seen as Date)
  return []
}

const played: Readonly<Record<string, Played>> = {
  claim,
  save,
  'record-events': ({ tables }, [id, json]) => {
    insertEvents(tables, String(id), rowsOf(json))
    return []
  },
  'message-by-key': findByKey,
  'answer-by-key': findAnswer,
  'messages-by-ids': (execution, [ids]) => findByIds(execution, ids).map((row) => withAnswer(execution.tables, row)),
  'versions-by-ids': (execution, [ids]) => findByIds(execution, ids).map(({ id, version }) => ({ id, version })),
  'message-by-id': (execution, [id, account, environment]) =>
    findByIds(execution, [id])
      .filter((row) => row.accountId === account && row.environment === environment)
      .map((row) => withAnswer(execution.tables, row)),
  'message-by-intent': ({ tables }, [account, environment, intent]) =>
    [...tables.messages.values()].filter(
      (row) => row.accountId === account && row.environment === environment && row.intentGuard === intent,
    ),
  'take-due': takeDue,
  postpone,
  'lapsed-leases': findLapsed,
  'sweep-start': ({ tables }, [name]) => {
    const seenUntil = tables.sweeps.get(String(name))
    return seenUntil === undefined ? [] : [{ seenUntil }]
  },
  'sweep-end': saveSweep,
  'due-depth': countDue,
  'unknown-ids': ({ tables }, [limit]) =>
    [...tables.dueWork]
      .filter(([, { task }]) => task === 'unknown' || task === 'reconcile')
      .map(([id]) => ({ id }))
      .toSorted(byId)
      .slice(0, Number(limit)),
  'erase-results': eraseResults,
  // No webhooks come in here: nothing is kept, and nothing is left to apply or to erase.
  'unapplied-receipts': () => [],
  'erase-receipts': () => [],
  'name-key': insertName,
  'void-key': insertTombstone,
  time: ({ nowMs }) => [{ now: new Date(nowMs) }],
}

/** Runs one statement: all of it at this instant, or it throws as PostgreSQL does. */
export function play({ name }: Statement, values: readonly unknown[], execution: Execution): Rows {
  const work = played[name]
  if (work === undefined) throw new Error(`the simulated data base does not know the statement ${name}`)
  return work(execution, values)
}

/**
 * The statements of src/store by their names, over the simulated tables. Everything of the store that is TypeScript (its
 * groups, its rows, what an error proves) runs as it is; SQL alone is played, and test/store/conformance.ts holds what is
 * played here against PostgreSQL.
 */
import type { Statement } from '../../src/store/database.ts'
import type { MessageRow } from '../../src/store/message-rows.ts'
import { claim } from './claim-statement.ts'
import { firstAlike, guardOf, recordInbound } from './conversation-statements.ts'
import { rowsOf, type Execution } from './execution.ts'
import { keepReceipts, markReceipts, nameOfReceipt } from './receipt-statements.ts'
import { keyOf, type Tables } from './tables.ts'
import { eraseResults, insertEvents, insertName, insertTombstone, save, saveFirst } from './write-statements.ts'

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

function takeDue({ tables, nowMs }: Execution, [limit, tasks]: readonly unknown[]): Rows {
  const taken = [...tables.dueWork]
    .filter(([, due]) => (tasks as string[]).includes(due.task) && due.dueAtMs <= nowMs)
    .toSorted(([, a], [, b]) => a.dueAtMs - b.dueAtMs)
    .slice(0, Number(limit))
  for (const [id, due] of taken) tables.dueWork.set(id, { ...due, dueAtMs: nowMs + takenForMs })
  return taken
    .flatMap(([id]) => tables.messages.get(id) ?? [])
    .toSorted(byId)
    .map((row) => withAnswer(tables, row))
}

function postpone({ tables, nowMs }: Execution, [id, tasks, ms]: readonly unknown[]): Rows {
  const due = tables.dueWork.get(String(id))
  if (due !== undefined && (tasks as string[]).includes(due.task))
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
  return [
    {
      waiting: of('dispatch', 'lease'),
      held: of('held'),
      reconciled: of('reconcile'),
      unknown: of('unknown'),
      oldestUnknownS,
    },
  ]
}

function saveSweep({ tables }: Execution, [name, seen]: readonly unknown[]): Rows {
  const before = tables.sweeps.get(String(name))
  if (before === undefined || before < (seen as Date)) tables.sweeps.set(String(name), seen as Date)
  return []
}

const played: Readonly<Record<string, Played>> = {
  claim,
  'claim-plain': claim,
  save,
  'save-first': saveFirst,
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
  'waiting-ids': ({ tables }, [tasks, limit]) =>
    [...tables.dueWork]
      .filter(([, { task }]) => (tasks as string[]).includes(task))
      .map(([id]) => ({ id }))
      .toSorted(byId)
      .slice(0, Number(limit)),
  'erase-results': eraseResults,
  'keep-receipts': keepReceipts,
  'find-receipts': ({ tables }, [json]) =>
    rowsOf(json).flatMap(
      ({ provider, event_id: eventId }) => tables.receipts.get(nameOfReceipt(provider, eventId)) ?? [],
    ),
  'mark-receipts': markReceipts,
  'unapplied-receipts': ({ tables, nowMs }, [since, ageMs, limit]) =>
    [...tables.receipts.values()]
      .filter(({ messageId, environment }) => tables.messages.get(messageId)?.environment === environment)
      .filter(({ receivedAt, appliedAt }) => appliedAt === null && receivedAt >= (since as Date))
      .filter(({ receivedAt }) => receivedAt.getTime() < nowMs - Number(ageMs))
      .toSorted((a, b) => a.receivedAt.getTime() - b.receivedAt.getTime())
      .slice(0, Number(limit)),
  // Retention is longer than what the collector takes; here results alone are erased sooner.
  'erase-receipts': () => [],
  'erase-inbound': () => [],
  'erase-guards': ({ tables, nowMs }, [limit, keptS]) => {
    const over = [...tables.guards].filter(([, row]) => row.seenAtMs < nowMs - Number(keptS) * 1_000)
    for (const [name] of over.slice(0, Number(limit))) tables.guards.delete(name)
    return over.slice(0, Number(limit)).map(([, { messageId }]) => ({ message_id: messageId }))
  },
  conversation: ({ tables }, [account, environment, name]) => {
    const row = tables.conversations.get(keyOf(String(account), String(environment), String(name)))
    return row === undefined ? [] : [{ ...row, updatedAt: row.version > 0 ? row.updatedAt : null }]
  },
  'record-inbound': recordInbound,
  'inbound-by-event': ({ tables }, [account, environment, name, source, eventId]) =>
    (tables.inbound.get(keyOf(String(account), String(environment), String(name))) ?? []).filter(
      (each) => each.source === source && each.eventId === eventId,
    ),
  'inbound-by-provider-event': ({ tables }, [, source, eventId]) =>
    [...tables.inbound.values()].flat().filter((each) => each.source === source && each.eventId === eventId),
  'inbound-of-conversation': ({ tables }, [account, environment, name, before, limit]) =>
    (tables.inbound.get(keyOf(String(account), String(environment), String(name))) ?? [])
      .filter(({ id }) => before === null || id < (before as string))
      .toReversed()
      .slice(0, Number(limit)),
  'first-of-content': ({ tables, nowMs }, [account, environment, hash, windowS, to]) => {
    const messageId = firstAlike(tables, guardOf(account, environment, hash), String(to), Number(windowS), nowMs)
    return messageId === null ? [] : [{ messageId }]
  },
  'was-reached': ({ tables }, [account, environment, channel, to]) =>
    [...tables.messages.values()]
      .filter((row) => row.accountId === account && row.environment === environment && row.channel === channel)
      .filter((row) => row.recipient === to && row.status === 'sent')
      .slice(0, 1),
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

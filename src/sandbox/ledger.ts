/**
 * What the sandbox saw of each message, on disk before the sandbox answers: an append-only JSONL file and the counts
 * over it. It knows nothing of HTTP or of behaviours. One process owns a file; a second one would count apart.
 *
 * L1. A promise of `record` resolves after its line was synced; a kill -9 later loses nothing.
 * L2. Counts rise in the turn in which `record` is called: of two requests of one message only one is the first.
 * L3. `rows` shows nothing that is not on disk.
 * L4. After a failed write nothing is recorded any more: what the file holds is not known until it is read again.
 */
import { open, type FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { makeFolder } from '../data-folder.ts'

export interface LedgerEntry {
  readonly messageId: string
  readonly provider: string
  readonly to: string
  /** A request for the message came. */
  readonly requested: boolean
  /** The message was accepted: with its request, or (requested: false) some time after it. */
  readonly accepted: boolean
}

/** One message; `provider` and `to` are those of its latest entry. */
interface LedgerRow {
  readonly messageId: string
  readonly provider: string
  readonly to: string
  readonly acceptedCount: number
  readonly requestCount: number
}

export interface Ledger {
  requestCountOf(messageId: string): number
  record(entry: LedgerEntry): Promise<void>
  /** All messages in the order in which they first came, or the one asked for. */
  rows(messageId?: string): Promise<readonly LedgerRow[]>
  clear(): Promise<void>
  close(): Promise<void>
}

/** What goes to disk with one sync, and the promise of all who wait for it. */
interface Flush {
  clears: boolean
  lines: string
  readonly done: PromiseWithResolvers<void>
}
const emptyFlush = (): Flush => ({ clears: false, lines: '', done: Promise.withResolvers() })

export async function openLedger(path: string): Promise<Ledger> {
  const { file, rows } = await openAndRead(path)
  let next = emptyFlush()
  let latest = Promise.resolve()
  let writer: Promise<void> | undefined
  let failure: Error | undefined

  function flushed(): Promise<void> {
    latest = next.done.promise
    writer ??= write()
    return latest
  }

  /** The only writer: all that came while one flush was on its way goes with the next. */
  async function write(): Promise<void> {
    await Promise.resolve() // what is recorded in this same turn goes with the first flush
    while (next.clears || next.lines !== '') {
      const flush = next
      next = emptyFlush()
      try {
        if (failure !== undefined) throw failure
        if (flush.clears) await file.truncate(0)
        await file.appendFile(flush.lines)
        await file.datasync()
        flush.done.resolve()
      } catch (cause) {
        failure ??= unusable(path, cause)
        flush.done.reject(failure)
      }
    }
    writer = undefined
  }

  return {
    requestCountOf: (messageId) => rows.get(messageId)?.requestCount ?? 0,
    record(entry) {
      count(rows, entry)
      next.lines += `${JSON.stringify(entry)}\n`
      return flushed()
    },
    async rows(messageId) {
      const shown =
        messageId === undefined ? [...rows.values()] : [rows.get(messageId)].filter((row) => row !== undefined)
      await latest
      return shown
    },
    clear() {
      rows.clear()
      next.clears = true
      next.lines = ''
      return flushed()
    },
    async close() {
      await writer
      await file.close()
    },
  }
}

/** Replaces the message's row and never changes one, so that a row once handed out stays what it was. */
function count(rows: Map<string, LedgerRow>, { messageId, provider, to, requested, accepted }: LedgerEntry): void {
  const before = rows.get(messageId)
  rows.set(messageId, {
    messageId,
    provider,
    to,
    acceptedCount: (before?.acceptedCount ?? 0) + (accepted ? 1 : 0),
    requestCount: (before?.requestCount ?? 0) + (requested ? 1 : 0),
  })
}

async function openAndRead(path: string): Promise<{ file: FileHandle; rows: Map<string, LedgerRow> }> {
  let file: FileHandle | undefined
  try {
    await makeFolder(dirname(path))
    file = await open(path, 'a+', 0o600)
    const bytes = await file.readFile()
    // A kill within a write leaves a line without its end. Its record never resolved: nobody was told of it.
    const end = bytes.lastIndexOf('\n') + 1
    if (end < bytes.length) await file.truncate(end)
    return { file, rows: rowsFrom(bytes.subarray(0, end)) }
  } catch (cause) {
    await file?.close()
    throw unusable(path, cause)
  }
}

/** Line by line over the bytes: the whole file as one text would end at V8's limit of 512 MiB. */
function rowsFrom(bytes: Buffer): Map<string, LedgerRow> {
  const rows = new Map<string, LedgerRow>()
  let line = 1
  for (let start = 0; start < bytes.length; line += 1) {
    const end = bytes.indexOf('\n', start)
    count(rows, entryFrom(bytes.toString('utf8', start, end), line))
    start = end + 1
  }
  return rows
}

function entryFrom(text: string, line: number): LedgerEntry {
  let entry: Partial<LedgerEntry> | null
  try {
    entry = JSON.parse(text) as Partial<LedgerEntry> | null
  } catch (cause) {
    throw new Error(`line ${line} is not JSON; move the file away or delete it`, { cause })
  }
  if (typeof entry?.messageId !== 'string' || typeof entry.provider !== 'string' || typeof entry.to !== 'string')
    throw new Error(`line ${line} is no entry of a ledger; move the file away or delete it`)
  const { messageId, provider, to, requested, accepted } = entry
  return { messageId, provider, to, requested: requested === true, accepted: accepted === true }
}

function unusable(path: string, cause: unknown): Error {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new Error(`The sandbox cannot use its ledger ${path}: ${why}`, { cause })
}

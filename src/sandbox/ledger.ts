/**
 * What the sandbox saw of each message, on disk before the sandbox answers: an append-only JSONL file, and what its
 * entries add up to (tally.ts). It knows nothing of HTTP or of behaviours. One process owns a file; a second one would
 * count apart.
 *
 * L1. A promise of `record` resolves after its line was synced; a kill -9 later loses nothing.
 * L2. Counts and keys change in the turn in which `record` is called: of two requests of one message only one is the
 *     first, and of two under one key only one finds it free.
 * L3. `rows` and `acceptancesOf` show nothing that is not on disk. `keyStateOf` does not wait: who answers by it records
 *     the request first, and lines reach the disk in their order.
 * L4. After a failed write nothing is recorded any more: what the file holds is not known until it is read again.
 * L5. Nothing runs across a restart: what had not been accepted has ended without acceptance.
 */
import { open, type FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { makeFolder } from '../data-folder.ts'
import { newTally, type Acceptance, type LedgerEntry, type LedgerRow, type Tally } from './tally.ts'

export interface Ledger extends Pick<Tally, 'requestCountOf' | 'keyStateOf'> {
  record(entry: LedgerEntry): Promise<void>
  rows(messageId?: string): Promise<readonly LedgerRow[]>
  acceptancesOf(provider: string, messageId: string): Promise<readonly Acceptance[]>
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
  const { file, tally } = await openAndRead(path)
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
    requestCountOf: (messageId) => tally.requestCountOf(messageId),
    keyStateOf: (provider, claim) => tally.keyStateOf(provider, claim),
    record(entry) {
      tally.add(entry)
      next.lines += `${JSON.stringify(entry)}\n`
      return flushed()
    },
    async rows(messageId) {
      const shown = tally.rows(messageId)
      await latest
      return shown
    },
    async acceptancesOf(provider, messageId) {
      const shown = tally.acceptancesOf(provider, messageId)
      await latest
      return shown
    },
    clear() {
      tally.clear()
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

async function openAndRead(path: string): Promise<{ file: FileHandle; tally: Tally }> {
  let file: FileHandle | undefined
  try {
    await makeFolder(dirname(path))
    file = await open(path, 'a+', 0o600)
    const bytes = await file.readFile()
    // A kill within a write leaves a line without its end. Its record never resolved: nobody was told of it.
    const end = bytes.lastIndexOf('\n') + 1
    if (end < bytes.length) await file.truncate(end)
    return { file, tally: tallyFrom(bytes.subarray(0, end)) }
  } catch (cause) {
    await file?.close()
    throw unusable(path, cause)
  }
}

/** Line by line over the bytes: the whole file as one text would end at V8's limit of 512 MiB. */
function tallyFrom(bytes: Buffer): Tally {
  const tally = newTally()
  let line = 1
  for (let start = 0; start < bytes.length; line += 1) {
    const end = bytes.indexOf('\n', start)
    tally.add(entryFrom(bytes.toString('utf8', start, end), line))
    start = end + 1
  }
  return tally
}

function entryFrom(text: string, line: number): LedgerEntry {
  let entry: Partial<LedgerEntry> | null
  try {
    entry = JSON.parse(text) as Partial<LedgerEntry> | null
  } catch (cause) {
    throw new Error(`line ${line} is not JSON; move the file away or delete it`, { cause })
  }
  if (!isText(entry?.messageId) || !isText(entry.provider) || !isText(entry.to) || !areWhole(entry))
    throw new Error(`line ${line} is no entry of a ledger; move the file away or delete it`)
  const { messageId, provider, to, requested, accepted, acceptance, claim } = entry
  return {
    messageId,
    provider,
    to,
    requested: requested === true,
    accepted: accepted === true,
    acceptance,
    claim: claim && { key: claim.key, digest: claim.digest }, // not whether it ran (L5)
  }
}

const isText = (value: unknown): value is string => typeof value === 'string'

/** Half a claim is refused as half an entry is: to pass over it would be to forget a key. */
function areWhole({ acceptance, claim }: Partial<LedgerEntry>): boolean {
  if (acceptance !== undefined && !(isText(acceptance?.id) && isText(acceptance.acceptedAt))) return false
  return claim === undefined || (isText(claim?.key) && isText(claim.digest))
}

function unusable(path: string, cause: unknown): Error {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new Error(`The sandbox cannot use its ledger ${path}: ${why}`, { cause })
}

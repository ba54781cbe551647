import { appendFile, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { openLedger, type Ledger } from '../../src/sandbox/ledger.ts'
import type { Acceptance, KeyClaim, LedgerEntry } from '../../src/sandbox/tally.ts'

const entryFor = (messageId: string, differing: Partial<LedgerEntry> = {}): LedgerEntry => ({
  messageId,
  provider: 'sandbox-blind',
  to: '+447700900123',
  requested: true,
  accepted: true,
  ...differing,
})

const rowFor = (messageId: string, requestCount: number, acceptedCount: number): object => ({
  messageId,
  provider: 'sandbox-blind',
  to: '+447700900123',
  acceptedCount,
  requestCount,
})

const acceptance = (id: string): Acceptance => ({ id, acceptedAt: '2026-01-02T03:04:05.678Z' })
const claim: KeyClaim = { key: 'order-42', digest: 'd1' }
const stateOf = (ledger: Ledger, differing: Partial<KeyClaim & { provider: string }> = {}): unknown =>
  ledger.keyStateOf(differing.provider ?? 'sandbox-blind', { ...claim, ...differing })

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sendonce-ledger-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

async function newLedger(path?: string): Promise<{ ledger: Ledger; path: string }> {
  const ledgerPath = path ?? join(await newFolder(), 'ledger.jsonl')
  const ledger = await openLedger(ledgerPath)
  onTestFinished(() => ledger.close())
  return { ledger, path: ledgerPath }
}

/** The prototype of node's file handles, which node does not export: where a sync can be watched or made to fail. */
async function fileHandles(): Promise<{ datasync: () => Promise<void> }> {
  const file = await open(join(await newFolder(), 'probe'), 'a')
  await file.close()
  return Object.getPrototypeOf(file) as { datasync: () => Promise<void> }
}

test('counts requests and acceptances apart, one row a message, in the order in which messages came', async () => {
  const { ledger } = await newLedger()
  await ledger.record(entryFor('msg_b'))
  await ledger.record(entryFor('msg_a', { accepted: false }))
  await ledger.record(entryFor('msg_b'))
  await ledger.record(entryFor('msg_a', { requested: false }))

  expect(await ledger.rows()).toEqual([rowFor('msg_b', 2, 2), rowFor('msg_a', 1, 1)])
  expect(await ledger.rows('msg_a')).toEqual([rowFor('msg_a', 1, 1)])
  expect(await ledger.rows('msg_unseen')).toEqual([])
  expect(ledger.requestCountOf('msg_b')).toBe(2)
  expect(ledger.requestCountOf('msg_unseen')).toBe(0)
})

test('counts in the turn in which it is told, so that only one of two requests is the first (L2)', async () => {
  const { ledger } = await newLedger()
  const recorded = ledger.record(entryFor('msg_a'))
  expect(ledger.requestCountOf('msg_a')).toBe(1)
  await recorded
})

test('a key is claimed in the turn in which its entry is recorded, so that only one of two finds it free (L2)', async () => {
  const { ledger } = await newLedger()
  expect(stateOf(ledger)).toBe('free')
  const recorded = ledger.record(entryFor('msg_a', { claim, acceptance: acceptance('sbx_1') }))
  expect(stateOf(ledger)).toEqual(acceptance('sbx_1'))
  expect(stateOf(ledger, { digest: 'd2' })).toBe('key_reused')
  expect(stateOf(ledger, { key: 'order-43' })).toBe('free')
  expect(stateOf(ledger, { provider: 'sandbox-keyed' })).toBe('free')
  await recorded
})

test('a key is in use until its request is accepted, and free for that request where it was not', async () => {
  const { ledger } = await newLedger()
  await ledger.record(entryFor('msg_a', { accepted: false, claim: { ...claim, isRunning: true } }))
  expect(stateOf(ledger)).toBe('key_in_use')
  expect(stateOf(ledger, { digest: 'd2' })).toBe('key_reused')
  await ledger.record(entryFor('msg_a', { requested: false, claim, acceptance: acceptance('sbx_1') }))
  expect(stateOf(ledger)).toEqual(acceptance('sbx_1'))

  const ended = { key: 'ended', digest: 'd1' }
  await ledger.record(entryFor('msg_b', { accepted: false, claim: ended }))
  expect(stateOf(ledger, ended)).toBe('free')
  expect(stateOf(ledger, { ...ended, digest: 'd2' })).toBe('key_reused')
})

test('a key stands for the first acceptance under it, though one that was forgotten comes later (T3)', async () => {
  const { ledger } = await newLedger()
  await ledger.record(entryFor('msg_a', { accepted: false, claim: { ...claim, isRunning: true } }))
  await ledger.clear()
  await ledger.record(entryFor('msg_a', { claim, acceptance: acceptance('sbx_1') }))
  await ledger.record(entryFor('msg_a', { requested: false, claim, acceptance: acceptance('sbx_2') }))
  expect(stateOf(ledger)).toEqual(acceptance('sbx_1'))
  expect(await ledger.acceptancesOf('sandbox-blind', 'msg_a')).toEqual([acceptance('sbx_1'), acceptance('sbx_2')])
})

test('acceptances are told apart by provider and message, each once', async () => {
  const { ledger } = await newLedger()
  const of = (provider: string, id: string): Partial<LedgerEntry> => ({ provider, acceptance: acceptance(id) })
  await ledger.record(entryFor('msg_a', of('one', 'sbx_1')))
  await ledger.record(entryFor('msg_a', of('two', 'sbx_2')))
  await ledger.record(entryFor('msg_b', of('one', 'sbx_3')))
  await ledger.record(entryFor('msg_a', of('one', 'sbx_4')))
  await ledger.record(entryFor('msg_a', { provider: 'one', accepted: false }))
  expect(await ledger.acceptancesOf('one', 'msg_a')).toEqual([acceptance('sbx_1'), acceptance('sbx_4')])
  expect(await ledger.acceptancesOf('two', 'msg_a')).toEqual([acceptance('sbx_2')])
  expect(await ledger.acceptancesOf('two', 'msg_b')).toEqual([])
  expect(await ledger.acceptancesOf('one', 'msg_unseen')).toEqual([])
})

test('a record resolves after its line is synced, and rows and acceptances wait for it too (L1, L3)', async () => {
  const { ledger, path } = await newLedger()
  const syncing = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const spy = vi.spyOn(await fileHandles(), 'datasync').mockImplementationOnce(() => {
    syncing.resolve()
    return released.promise
  })
  onTestFinished(() => spy.mockRestore())

  const told: string[] = []
  const recorded = ledger.record(entryFor('msg_a')).then(() => told.push('record'))
  const rows = ledger.rows().then(() => told.push('rows'))
  const acceptances = ledger.acceptancesOf('sandbox-blind', 'msg_a').then(() => told.push('acceptances'))
  await syncing.promise
  expect(await readFile(path, 'utf8')).toBe(`${JSON.stringify(entryFor('msg_a'))}\n`)
  expect(told).toEqual([])

  released.resolve()
  await Promise.all([recorded, rows, acceptances])
  expect(told.toSorted()).toEqual(['acceptances', 'record', 'rows'])
})

test('all that waits while one flush is on its way goes with the next', async () => {
  const { ledger } = await newLedger()
  const syncing = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const spy = vi.spyOn(await fileHandles(), 'datasync').mockImplementationOnce(() => {
    syncing.resolve()
    return released.promise
  })
  onTestFinished(() => spy.mockRestore())

  const first = ledger.record(entryFor('msg_first'))
  await syncing.promise
  const others = Array.from({ length: 100 }, (_, index) => ledger.record(entryFor(`msg_${index}`)))
  released.resolve()
  await Promise.all([first, ...others])

  expect(spy).toHaveBeenCalledTimes(2)
  expect(await ledger.rows()).toHaveLength(101)
})

test('a file opened again holds what was recorded, and is appended to', async () => {
  const { ledger, path } = await newLedger()
  await ledger.record(entryFor('msg_a'))
  const again = await newLedger(path) // the first one is still open, as after a kill
  expect(await again.ledger.rows()).toEqual([rowFor('msg_a', 1, 1)])

  await again.ledger.record(entryFor('msg_a'))
  const third = await newLedger(path)
  expect(await third.ledger.rows()).toEqual([rowFor('msg_a', 2, 2)])
})

test('a file opened again knows keys and acceptances, and that nothing runs any more (L5)', async () => {
  const { ledger, path } = await newLedger()
  await ledger.record(entryFor('msg_a', { claim, acceptance: acceptance('sbx_1') }))
  const running = { key: 'running', digest: 'd1' }
  await ledger.record(entryFor('msg_b', { accepted: false, claim: { ...running, isRunning: true } }))

  const again = await newLedger(path)
  expect(stateOf(again.ledger)).toEqual(acceptance('sbx_1'))
  expect(stateOf(again.ledger, { digest: 'd2' })).toBe('key_reused')
  expect(stateOf(again.ledger, running)).toBe('free')
  expect(stateOf(again.ledger, { ...running, digest: 'd2' })).toBe('key_reused')
  expect(await again.ledger.acceptancesOf('sandbox-blind', 'msg_a')).toEqual([acceptance('sbx_1')])
})

test('a file of an earlier sandbox, without ids and keys, counts as it did', async () => {
  const path = join(await newFolder(), 'ledger.jsonl')
  const line = '{"messageId":"msg_a","provider":"sandbox-blind","to":"+447700900123","requested":true,"accepted":true}'
  await writeFile(path, `${line}\n`)
  const { ledger } = await newLedger(path)
  await ledger.record(entryFor('msg_a', { claim, acceptance: acceptance('sbx_1') }))
  expect(await ledger.rows()).toEqual([rowFor('msg_a', 2, 2)])
  expect(await ledger.acceptancesOf('sandbox-blind', 'msg_a')).toEqual([acceptance('sbx_1')])
})

test('a last line without its end is cut, and the next line stands by itself', async () => {
  const { ledger, path } = await newLedger()
  await ledger.record(entryFor('msg_é'))
  await appendFile(path, '{"messageId":"msg_torn","provi')

  const again = await newLedger(path)
  expect(await again.ledger.rows()).toEqual([rowFor('msg_é', 1, 1)])
  await again.ledger.record(entryFor('msg_next'))
  expect(await readFile(path, 'utf8')).toBe(
    `${JSON.stringify(entryFor('msg_é'))}\n${JSON.stringify(entryFor('msg_next'))}\n`,
  )
})

test('a whole last line without its line end is cut as well: its record never resolved', async () => {
  const path = join(await newFolder(), 'ledger.jsonl')
  await writeFile(path, JSON.stringify(entryFor('msg_a')))
  const { ledger } = await newLedger(path)
  expect(await ledger.rows()).toEqual([])
})

const withMember = (name: string, value: unknown): string =>
  `${JSON.stringify({ ...entryFor('msg_a'), [name]: value })}\n`

test.each([
  ['not JSON', '{"messageId"\n', 'line 2 is not JSON'],
  ['no entry', 'null\n', 'line 2 is no entry of a ledger'],
  ['an entry without a message', '{"provider":"p","to":"t"}\n', 'line 2 is no entry of a ledger'],
  ['an entry with half a claim', withMember('claim', { key: 'k' }), 'line 2 is no entry of a ledger'],
  ['an entry with no claim in its place', withMember('claim', null), 'line 2 is no entry of a ledger'],
  ['an entry with half an acceptance', withMember('acceptance', { id: 'sbx_1' }), 'line 2 is no entry of a ledger'],
  ['an entry with no acceptance in its place', withMember('acceptance', null), 'line 2 is no entry of a ledger'],
])('a line that is %s is refused with its number', async (_, line, told) => {
  const path = join(await newFolder(), 'ledger.jsonl')
  await writeFile(path, `${JSON.stringify(entryFor('msg_a'))}\n${line}${JSON.stringify(entryFor('msg_b'))}\n`)
  await expect(openLedger(path)).rejects.toThrow(told)
})

test('clear empties file, counts, keys and acceptances, and what is recorded after it stays', async () => {
  const { ledger, path } = await newLedger()
  await ledger.record(entryFor('msg_a', { claim, acceptance: acceptance('sbx_1') }))
  await Promise.all([ledger.record(entryFor('msg_b')), ledger.clear(), ledger.record(entryFor('msg_c'))])

  expect(await ledger.rows()).toEqual([rowFor('msg_c', 1, 1)])
  expect(stateOf(ledger)).toBe('free')
  expect(await ledger.acceptancesOf('sandbox-blind', 'msg_a')).toEqual([])
  expect(await readFile(path, 'utf8')).toBe(`${JSON.stringify(entryFor('msg_c'))}\n`)
})

test('a missing folder is made; one that cannot be written is named in the error', async () => {
  const folder = await newFolder()
  const { path } = await newLedger(join(folder, 'a', 'b', 'ledger.jsonl'))
  expect(await readFile(path, 'utf8')).toBe('')

  // Below a file no folder can be made, whoever asks; permissions would not stop root.
  await writeFile(join(folder, 'file'), '')
  const blocked = join(folder, 'file', 'ledger.jsonl')
  await expect(openLedger(blocked)).rejects.toThrow(`The sandbox cannot use its ledger ${blocked}: `)
  await expect(openLedger('/proc/sendonce/ledger.jsonl')).rejects.toThrow('The sandbox cannot use its ledger')
  await expect(openLedger(folder)).rejects.toThrow(/^The sandbox cannot use its ledger .*EISDIR/)
})

test('after a failed write nothing is recorded and nothing is shown (L4)', async () => {
  const { ledger } = await newLedger()
  const spy = vi.spyOn(await fileHandles(), 'datasync').mockRejectedValueOnce(new Error('no space left'))
  onTestFinished(() => spy.mockRestore())

  await expect(ledger.record(entryFor('msg_a'))).rejects.toThrow('no space left')
  await expect(ledger.record(entryFor('msg_b'))).rejects.toThrow('no space left')
  await expect(ledger.rows()).rejects.toThrow('no space left')
  await expect(ledger.acceptancesOf('sandbox-blind', 'msg_a')).rejects.toThrow('no space left')
})

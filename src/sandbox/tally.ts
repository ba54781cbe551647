/**
 * What the entries of a ledger add up to, in memory: the counts of each message, the id and the time of each acceptance,
 * and what became of each key. It knows neither the file (ledger.ts) nor what is answered (server.ts).
 *
 * T1. Nothing but entries changes a tally, one in one turn: the entries read from a file give what their writer knew.
 * T2. What was handed out once is never changed; it is replaced.
 * T3. A key is known by provider and key, from its first claim on. The first acceptance under it is the one it stands
 *     for, whatever comes after.
 */

/** What the provider calls what it accepted, and when it accepted it. */
export interface Acceptance {
  readonly id: string
  readonly acceptedAt: string
}

/** A key, and the digest of the request that came with it. */
export interface KeyClaim {
  readonly key: string
  readonly digest: string
}

export interface LedgerEntry {
  readonly messageId: string
  readonly provider: string
  readonly to: string
  /** A request for the message came. */
  readonly requested: boolean
  /** The message was accepted: with its request, or (requested: false) some time after it. */
  readonly accepted: boolean
  /** Of what was accepted; absent in what earlier sandboxes wrote: they made an id for the answer and kept none. */
  readonly acceptance?: Acceptance | undefined
  /** Where the request ran under a key (a repeat that did not run has none). Running: it is accepted later. */
  readonly claim?: (KeyClaim & { readonly isRunning?: true }) | undefined
}

/** One message; `provider` and `to` are those of its latest entry. */
export interface LedgerRow {
  readonly messageId: string
  readonly provider: string
  readonly to: string
  readonly acceptedCount: number
  readonly requestCount: number
}

/** `free`: never claimed, or by the same request, which ended without being accepted. */
export type KeyState = 'free' | 'key_in_use' | 'key_reused' | Acceptance

export interface Tally {
  add(entry: LedgerEntry): void
  clear(): void
  requestCountOf(messageId: string): number
  /** All messages in the order in which they first came, or the one asked for. */
  rows(messageId?: string): readonly LedgerRow[]
  /** What this provider accepted of a message, in the order of acceptance. */
  acceptancesOf(provider: string, messageId: string): readonly Acceptance[]
  keyStateOf(provider: string, claim: KeyClaim): KeyState
}

interface Seen {
  readonly row: LedgerRow
  readonly acceptances: readonly { readonly provider: string; readonly acceptance: Acceptance }[]
}

interface KnownKey {
  readonly digest: string
  readonly isRunning: boolean
  readonly acceptance: Acceptance | undefined
}

export function newTally(): Tally {
  const messages = new Map<string, Seen>()
  const keys = new Map<string, KnownKey>()
  return {
    add(entry) {
      messages.set(entry.messageId, seenAfter(messages.get(entry.messageId), entry))
      const { provider, claim, acceptance } = entry
      if (claim === undefined) return
      const name = nameOf(provider, claim.key)
      // Forgotten while it ran, and claimed anew since: the late acceptance counts, and changes no answer (T3).
      if (keys.get(name)?.acceptance !== undefined) return
      keys.set(name, { digest: claim.digest, isRunning: claim.isRunning === true, acceptance })
    },
    clear() {
      messages.clear()
      keys.clear()
    },
    requestCountOf: (messageId) => messages.get(messageId)?.row.requestCount ?? 0,
    rows(messageId) {
      const shown = messageId === undefined ? [...messages.values()] : [messages.get(messageId)]
      return shown.flatMap((seen) => (seen === undefined ? [] : [seen.row]))
    },
    acceptancesOf(provider, messageId) {
      const seen = messages.get(messageId)?.acceptances ?? []
      return seen.filter((one) => one.provider === provider).map((one) => one.acceptance)
    },
    keyStateOf(provider, { key, digest }) {
      const known = keys.get(nameOf(provider, key))
      if (known === undefined) return 'free'
      if (known.digest !== digest) return 'key_reused'
      return known.acceptance ?? (known.isRunning ? 'key_in_use' : 'free')
    },
  }
}

/** A key holds no space, so that no two pairs make one name. */
const nameOf = (provider: string, key: string): string => `${key} ${provider}`

function seenAfter(before: Seen | undefined, entry: LedgerEntry): Seen {
  const { messageId, provider, to, requested, accepted, acceptance } = entry
  const acceptances = before?.acceptances ?? []
  return {
    row: {
      messageId,
      provider,
      to,
      acceptedCount: (before?.row.acceptedCount ?? 0) + (accepted ? 1 : 0),
      requestCount: (before?.row.requestCount ?? 0) + (requested ? 1 : 0),
    },
    acceptances: acceptance === undefined ? acceptances : [...acceptances, { provider, acceptance }],
  }
}

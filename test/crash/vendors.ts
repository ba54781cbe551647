/**
 * Providers as small honest models: what one accepted, under which key or reference, and what it tells of it. A vendor
 * outlives the gateways that call it, and its ledger is the truth that they are held against.
 */
import type { Capabilities } from '../../src/core/capabilities.ts'
import type { LookResult, Outcome } from '../../src/core/outcome.ts'
import type { WriteGate } from '../../src/providers/provider.ts'
import { accepted, found, lost, nothing, notSent, rejected, type Call } from '../support/gateway.ts'

export const callMs = 20_000
const settlingMs = 5_000
const base = { channels: ['sms'], lookup: null, deduplication: null, lateEvidence: 'none', acceptance: 'body' } as const
const keyed = { keyField: 'key', keyFormat: 'message_id', lifetimeMs: 600_000, marginMs: 60_000 } as const
const lookup = { match: 'exact', settlingMs, retentionMs: 3_600_000, marginMs: 60_000 } as const

/** What a provider can do about a lost answer: the columns of the matrix. */
export const kinds = {
  blind: base,
  'key: first answer again': { ...base, deduplication: { ...keyed, repeat: 'same_response' } },
  'key: conflict is accepted': { ...base, deduplication: { ...keyed, repeat: 'conflict_is_accepted' } },
  'look-up, strong': { ...base, lookup: { ...lookup, strength: 'strong' } },
  'look-up, weak': { ...base, lookup: { ...lookup, strength: 'weak', retentionMs: 180_000 } },
} as const satisfies Readonly<Record<string, Capabilities>>
export type Kind = keyof typeof kinds

export type Act =
  | 'serves'
  | 'refuses'
  | 'refuses without reading the key'
  | 'refuses for now'
  | 'is not reached'
  | 'accepts, answer lost'
  | 'accepts not, answer lost'
  | 'accepts, answers 500'
  | 'accepts not, answers 500'
  | 'accepts after the time-out'
  | 'says that the key is in use'

/** How it goes wrong: the rows. */
export interface Fault {
  /** Call by call; what follows is served. */
  readonly acts: readonly Act[]
  readonly refuses?: true
  readonly looksThatFail?: number
  /** Kinds that can meet it; all, if absent. */
  readonly of?: readonly Kind[]
}
const keyedKinds = ['key: first answer again', 'key: conflict is accepted'] as const
const lookKinds = ['look-up, strong', 'look-up, weak'] as const

export const faults = {
  none: { acts: [] },
  'refuses it': { acts: [], refuses: true },
  'refuses it for now, then accepts': { acts: ['refuses for now'] },
  'connection refused, then accepts': { acts: ['is not reached'] },
  'accepts, answer lost': { acts: ['accepts, answer lost'] },
  'accepts not, answer lost': { acts: ['accepts not, answer lost'] },
  'accepts, answers 500': { acts: ['accepts, answers 500'] },
  'accepts not, answers 500': { acts: ['accepts not, answers 500'] },
  'accepts after the time-out': { acts: ['accepts after the time-out'] },
  'answer lost, then refuses it': { acts: ['accepts not, answer lost'], refuses: true },
  'answer lost, replay not reached': { acts: ['accepts, answer lost', 'is not reached'], of: keyedKinds },
  'accepts, answer lost, then refuses it': {
    acts: ['accepts, answer lost', 'refuses without reading the key'],
    of: keyedKinds,
  },
  'answer lost, key in use': { acts: ['accepts, answer lost', 'says that the key is in use'], of: keyedKinds },
  'answer lost, look-up fails': { acts: ['accepts, answer lost'], looksThatFail: 1, of: lookKinds },
  'not accepted, look-up fails': { acts: ['accepts not, answer lost'], looksThatFail: 1, of: lookKinds },
  'not accepted, resend not reached': { acts: ['accepts not, answer lost', 'is not reached'], of: lookKinds },
} as const satisfies Readonly<Record<string, Fault>>
export type FaultName = keyof typeof faults

export interface Asked {
  readonly messageId: string
  readonly body: string | null
  /** What the vendor said; nobody may have heard it. */
  readonly told: Outcome
  heard: boolean
}

export interface Vendor {
  readonly requests: readonly Asked[]
  /** When each acceptance was, or will be. */
  readonly acceptances: readonly { readonly reference: string; readonly atMs: number }[]
  /** What it did, in words: for the report of a rule that did not hold. */
  readonly did: readonly string[]
  send(call: Call, gate: WriteGate): Outcome
  look(messageId: string): LookResult
  /** The answer of the last request reached a gateway that lived. */
  wasHeard(): void
}

const error500 = (): Outcome => ({
  kind: 'unknown',
  evidence: { phase: 'answered', httpStatus: 500, detail: 'not its own error body' },
})
const inUse = (): Outcome => ({
  kind: 'unknown',
  retryAfterMs: 2_000,
  evidence: { phase: 'answered', httpStatus: 409, code: 'key_in_use', detail: 'the first one runs' },
})
const acceptedBefore = (): Outcome => ({
  kind: 'accepted',
  providerMessageId: null,
  evidence: { phase: 'answered', httpStatus: 409, code: 'duplicate', detail: 'accepted before' },
})

/** The latest that a request which is over for us may still be accepted: what a settling time promises. */
const latestMs = callMs + settlingMs - 1_000
const weakIndexMs = 20_000

export function newVendor(kind: Kind, fault: Fault, nowMs: () => number): Vendor {
  const { deduplication, lookup: looking }: Capabilities = kinds[kind]
  const requests: Asked[] = []
  const acceptances: { reference: string; atMs: number }[] = []
  const did: string[] = []
  let dialled = 0
  let looked = 0

  /** The key of a request is what stands in its bytes. */
  const referenceIn = ({ messageId, rendered }: Call): string =>
    deduplication === null ? messageId : (JSON.parse(rendered ?? '{}') as { messageId: string }).messageId

  const answer = (call: Call, act: Act): Outcome => {
    const reference = referenceIn(call)
    const before = deduplication === null ? undefined : acceptances.find((one) => one.reference === reference)
    if (act === 'refuses without reading the key') return rejected()
    if (act === 'says that the key is in use' || (before !== undefined && before.atMs > nowMs())) return inUse()
    if (before !== undefined) return deduplication?.repeat === 'same_response' ? accepted() : acceptedBefore()
    const accept = (inMs = 0): void => void acceptances.push({ reference, atMs: nowMs() + inMs })
    switch (act) {
      case 'serves':
        accept()
        return accepted()
      case 'accepts, answer lost':
        accept()
        return lost()
      case 'accepts, answers 500':
        accept()
        return error500()
      case 'accepts after the time-out':
        accept(latestMs)
        return lost()
      case 'accepts not, answer lost':
        return lost()
      case 'accepts not, answers 500':
        return error500()
      case 'refuses for now':
        return notSent('refused_for_now', 1_000)
      case 'refuses':
        return rejected()
      case 'is not reached':
        return notSent()
    }
  }

  return {
    requests,
    acceptances,
    did,
    send: (call, gate) => {
      if (!gate()) return notSent()
      const act = fault.acts[dialled] ?? (fault.refuses === true ? 'refuses' : 'serves')
      dialled += 1
      did.push(act)
      if (act === 'is not reached') return notSent()
      const told = answer(call, act)
      requests.push({ messageId: call.messageId, body: call.rendered, told, heard: false })
      return told
    },
    look: (messageId) => {
      looked += 1
      const fails = looked <= (fault.looksThatFail ?? 0)
      const visibleMs = nowMs() - (looking?.strength === 'weak' ? weakIndexMs : 0)
      const count = acceptances.filter((one) => one.reference === messageId && one.atMs <= visibleMs).length
      did.push(fails ? 'fails to look' : count > 0 ? 'shows it' : 'shows nothing')
      if (fails)
        return { kind: 'failed', retryAfterMs: null, evidence: { phase: 'begun', detail: 'no answer to the look-up' } }
      return count > 0 ? found(count) : nothing()
    },
    wasHeard: () => {
      const last = requests.at(-1)
      if (last !== undefined) last.heard = true
    },
  }
}

/**
 * A provider as it is on its own side: honest, with a ledger. What it declares it does; what it does not declare it may
 * do or not. It never hears of the gateway's state, and the checker alone reads its ledger.
 */
import type { Capabilities } from '../../src/core/capabilities.ts'
import { capabilitiesOf, indexingMs, processingMs, travelMs, type VendorKind } from './vendor-kinds.ts'
import type { World } from './world.ts'

/** One request whose first byte left a gateway. */
export interface Write {
  readonly event: string
  /** Public id. */
  readonly messageId: string
  readonly attempt: number
  /** Public id. */
  readonly attemptId: string
  readonly vendor: Vendor
  readonly identity: string
  readonly body: string
  readonly beganMs: number
  /** `repeated`: known by its key, and nothing was done for it. */
  fate: 'travels' | 'lost' | 'accepted' | 'repeated' | 'refused'
  /** Its gateway read a refusal that the vendor documents. */
  refusalRead: boolean
  /** The vendor's id of what it accepted. */
  providerId: string | null
}

export interface Reply {
  readonly status: number
  readonly body: object | string
}

interface Accepted {
  readonly id: string
  readonly reference: string
  readonly identity: string
  readonly atMs: number
  readonly shownFromMs: number
}

interface KnownKey {
  readonly body: string
  readonly sinceMs: number
  /** Null: it is being worked on. */
  reply: Reply | null
  accepted: boolean
}

export interface VendorMoods {
  lost: number
  limited: number
  troubled: number
  /** Refuses our credentials while true. */
  refusesUs: boolean
}

export interface Vendor {
  readonly name: string
  readonly kind: VendorKind
  readonly capabilities: Capabilities
  readonly moods: VendorMoods
  /** Its receipts name the attempt, and not the message alone. */
  readonly namesAttempts: boolean
  /** It tells again what was not heard. */
  readonly tellsAgain: boolean
  /** Requests that arrived before this are what they were; `done` tells what came of it, if anything does. */
  receive(write: Write, done: (reply: Reply) => void): void
  look(identity: string, reference: string): Reply
  /** Recipients that it refuses for good. */
  readonly refuses: Set<string>
}

const error = (status: number, code: string): Reply => ({ status, body: { error: { code, message: code } } })

export function createVendor(
  world: World,
  name: string,
  kind: VendorKind,
  acceptedNow: (write: Write) => void,
): Vendor {
  const { chance } = world
  const capabilities = capabilitiesOf(kind, chance.pick(['body', 'status']))
  const { deduplication, lookup } = capabilities
  const ledger: Accepted[] = []
  const keys = new Map<string, KnownKey>()
  const moods: VendorMoods = { lost: 0, limited: 0, troubled: 0, refusesUs: false }
  const refuses = new Set<string>()
  const isKeyKnown = (key: KnownKey): boolean =>
    deduplication !== null && world.now() - key.sinceMs < deduplication.lifetimeMs

  const accept = (write: Write): Reply => {
    const id = `${name}-${ledger.length + 1}`
    const isShown = lookup?.strength === 'strong' || chance.happens(0.7)
    const shownFromMs = isShown
      ? world.now() + chance.between(0, lookup?.strength === 'weak' ? 20_000 : indexingMs)
      : Infinity
    ledger.push({ id, reference: write.messageId, identity: write.identity, atMs: world.now(), shownFromMs })
    write.fate = 'accepted'
    write.providerId = id
    world.note(name, () => `ACCEPTS ${write.event} (attempt ${write.attempt} of ${write.messageId}) as ${id}`)
    acceptedNow(write)
    return { status: 201, body: { id } }
  }
  const refuse = (write: Write, reply: Reply): Reply => {
    write.fate = 'refused'
    world.note(name, () => `refuses ${write.event} (attempt ${write.attempt}) with ${reply.status}`)
    return reply
  }
  /** What a request comes to that no key speaks for. */
  const work = (write: Write): Reply => {
    if (moods.refusesUs) return refuse(write, error(401, 'unauthorised'))
    if (chance.happens(moods.limited)) return refuse(write, error(429, 'rate_limited'))
    if (refuses.has(write.event)) return refuse(write, error(400, 'refused'))
    if (!chance.happens(moods.troubled)) return accept(write)
    // Trouble, in front of it or behind: whether it was taken is not said.
    if (chance.happens(0.5)) accept(write)
    else write.fate = 'refused'
    return chance.pick<Reply>([
      error(500, 'internal_error'),
      { status: 503, body: 'unavailable' },
      { status: 502, body: '' },
    ])
  }
  const repeated = (write: Write, key: KnownKey): Reply => {
    write.fate = 'repeated'
    if (key.body !== write.body) return error(409, 'key_reused')
    if (key.reply === null) return error(409, 'key_in_use')
    world.sometimes('a replay was recognised by its key')
    return key.accepted && deduplication?.repeat === 'conflict_is_accepted' ? error(409, 'sent_before') : key.reply
  }

  return {
    name,
    kind,
    capabilities,
    moods,
    namesAttempts: chance.happens(0.5),
    tellsAgain: chance.happens(0.6),
    refuses,
    receive: (write, done) => {
      if (chance.happens(moods.lost)) {
        world.after(chance.between(1, travelMs), () => void (write.fate = 'lost'))
        return
      }
      const inMs = chance.happens(0.8) ? chance.between(1, 100) : chance.between(1, travelMs)
      world.after(inMs, () => {
        const id = `${write.identity} ${write.messageId}`
        const known = keys.get(id)
        if (known !== undefined && isKeyKnown(known)) return done(repeated(write, known))
        const key: KnownKey = { body: write.body, sinceMs: world.now(), reply: null, accepted: false }
        if (deduplication !== null) keys.set(id, key)
        world.after(chance.happens(0.8) ? chance.between(0, 50) : chance.between(0, processingMs), () => {
          const reply = work(write)
          // What was not taken plants no key.
          if (write.fate !== 'accepted') keys.delete(id)
          key.accepted = write.fate === 'accepted'
          key.reply = { status: 201, body: { id: ledger.at(-1)?.id } } // whatever was said of it the first time
          done(reply)
        })
      })
    },
    look: (identity, reference) => {
      const now = world.now()
      if (moods.refusesUs) return error(401, 'unauthorised')
      const shown = ledger.filter(
        (row) =>
          row.reference === reference &&
          row.identity === identity &&
          row.shownFromMs <= now &&
          now - row.atMs < (lookup?.retentionMs ?? 0),
      )
      return { status: 200, body: { data: shown.map(({ id }) => ({ id })) } }
    },
  }
}

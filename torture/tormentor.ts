/**
 * The tormentor: one fault after the other, each kind once in a shuffled round, several at a time. What it does is
 * counted when it has happened, and undone by itself.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Chance } from './chance.ts'
import type { Gateway } from './gateways.ts'
import { keyPattern } from './keys.ts'
import type { StoreProxy, Strike } from './store-proxy.ts'
import { drainMs, leaseMs, type World } from './world.ts'

/** A statement whose commit was carried out, or not, without its gateway hearing of it. */
export interface Struck {
  readonly fault: string
  readonly gateway: number
  readonly at: number
  readonly keys: readonly string[]
}

const storeFates = ['lost before', 'lost after', 'closed after', 'silence'] as const
const statements = { claim: ['claim'], result: ['save'], 'other statement': otherStatements() } as const

const ofGateway = [
  'gateway: killed',
  'gateway: killed at its claim',
  'gateway: killed before its result',
  'gateway: killed at its result',
  'gateway: stopped for a moment',
  'gateway: stopped past its lease',
  'gateway: stopped at its claim',
  'gateway: drained',
] as const
const ofAll = ['PostgreSQL: killed', 'provider: nobody listens', 'provider: killed'] as const
const ofStore = ['store: held', 'store: cut', 'store: nobody listens'] as const
const ofStatement = (Object.keys(statements) as (keyof typeof statements)[]).flatMap((what) =>
  storeFates.map((fate) => ({ kind: `store: ${what} ${fate}`, what, fate })),
)
export const stoppedForLong = 'gateway: stopped at its claim, past ten leases'

type Moment = Pick<Strike, 'statement' | 'fate' | 'matching'>
const atClaim: Moment = { statement: 'claim', fate: 'told' }
const momentOf = {
  'gateway: killed at its claim': atClaim,
  'gateway: killed before its result': { statement: 'save', fate: 'lost before' },
  'gateway: killed at its result': { statement: 'save', fate: 'told' },
  // Of a call that begins at once, and that nobody repeats meanwhile: it is the gate that must keep it back.
  'gateway: stopped at its claim': { ...atClaim, matching: /"provider":"sandbox-blind"[^}]*"status":"sending"/ },
} as const satisfies Partial<Record<(typeof ofGateway)[number], Moment>>
/** Only of a call whose absence can be proven. */
const atStrongClaim: Moment = { ...atClaim, matching: /"provider":"sandbox-lookup"[^}]*"status":"sending"/ }

/** A run of so many seconds has time for it. */
export const longStopSeconds = 100

export const faultKinds: readonly string[] = [
  ...ofGateway,
  ...ofAll,
  ...ofStore,
  ...ofStatement.map(({ kind }) => kind),
]

function otherStatements(): string[] {
  return ['take-due', 'message-by-key', 'versions-by-ids', 'record-events', 'lapsed-leases', 'void-key', 'name-key']
}

export class Tormentor {
  readonly struck: Struck[] = []
  readonly #world: World
  readonly #chance: Chance
  readonly #count: (fault: string) => void
  /** Could not be: no gateway was free, or the statement did not come. */
  readonly #missed: string[] = []
  readonly #running = new Set<Promise<void>>()
  /** What a fault did wrong that was only to be undone. */
  readonly #errors: unknown[] = []
  readonly #down = new Set<string>()

  constructor(world: World, chance: Chance, count: (fault: string) => void) {
    this.#world = world
    this.#chance = chance
    this.#count = count
  }

  async run(untilMs: number): Promise<void> {
    const { provider } = this.#world
    provider.faultRate = 0.12
    if (untilMs - Date.now() > (longStopSeconds - 1) * 1_000) this.#begin(async () => this.#stopForLong())
    let round: string[] = []
    while (Date.now() < untilMs) {
      if (round.length === 0) round = this.#chance.shuffled(faultKinds)
      const isAgain = this.#missed.length > 0 && this.#chance.happens(0.5)
      const kind = (isAgain ? this.#missed.shift() : round.pop()) ?? ''
      this.#begin(async () => {
        if (!(await this.#inflict(kind))) this.#missed.push(kind)
      })
      await pause(this.#chance.between(250, 1_000))
    }
    provider.faultRate = 0
    await this.#quieten()
  }

  async #quieten(): Promise<void> {
    for (const store of this.#world.stores) store.calm()
    while (this.#running.size > 0) await Promise.all(this.#running)
    for (const store of this.#world.stores) store.calm()
    if (this.#errors.length > 0) throw this.#errors[0]
  }

  #begin(fault: () => Promise<void>): void {
    const running = fault()
      .catch((error: unknown) => void this.#errors.push(error))
      .finally(() => void this.#running.delete(running))
    this.#running.add(running)
  }

  /** @returns false: it could not be */
  async #inflict(kind: string): Promise<boolean> {
    const gatewayFault = ofGateway.find((each) => each === kind)
    if (gatewayFault !== undefined) return this.#onGateway(gatewayFault)
    const all = ofAll.find((each) => each === kind)
    if (all !== undefined) return this.#onAll(all)
    const { stores, gateways } = this.#world
    const { number } = this.#chance.pick(gateways)
    const store = stores[number] as StoreProxy
    const wide = ofStore.find((each) => each === kind)
    if (wide !== undefined) return this.#onStore(wide, store)
    const found = ofStatement.find((each) => each.kind === kind)
    if (found === undefined) throw new Error(`no such fault: ${kind}`)
    const moment = { statement: this.#chance.pick(statements[found.what]), fate: found.fate }
    return this.#strike(number, moment, found.kind)
  }

  async #onGateway(kind: (typeof ofGateway)[number]): Promise<boolean> {
    const gateway = this.#take()
    if (gateway === null) return false
    const stop = (): void => gateway.signal('SIGSTOP')
    const past = leaseMs + this.#chance.between(1_000, 3_500)
    try {
      switch (kind) {
        case 'gateway: killed':
          this.#count(kind)
          await gateway.kill()
          break
        case 'gateway: killed at its claim':
        case 'gateway: killed before its result':
        case 'gateway: killed at its result':
          if (!(await this.#strike(gateway.number, momentOf[kind], kind, stop))) return false
          await gateway.kill()
          break
        case 'gateway: stopped for a moment':
          this.#count(kind)
          await gateway.freeze(this.#chance.between(300, 3_000))
          return true
        case 'gateway: stopped past its lease':
          this.#count(kind)
          await gateway.freeze(past)
          return true
        case 'gateway: stopped at its claim':
          if (!(await this.#strike(gateway.number, momentOf[kind], kind, stop))) return false
          await gateway.freeze(past)
          return true
        case 'gateway: drained':
          this.#count(kind)
          await gateway.drain(drainMs)
      }
      await pause(this.#chance.between(0, 500))
      await gateway.start()
      return true
    } finally {
      gateway.isBusy = false
    }
  }

  /** A call whose absence the others have proven meanwhile: its gateway wakes, and must not make it. */
  async #stopForLong(): Promise<void> {
    const gateway = this.#take()
    if (gateway === null) return
    try {
      const stop = (): void => gateway.signal('SIGSTOP')
      let isStopped = false
      for (let tries = 0; tries < 3 && !isStopped; tries++)
        isStopped = await this.#strike(gateway.number, atStrongClaim, stoppedForLong, stop)
      if (!isStopped) return
      await gateway.freeze(10 * leaseMs + 7_000)
    } finally {
      gateway.isBusy = false
    }
  }

  /** One gateway at least is left alone. */
  #take(): Gateway | null {
    const free = this.#world.gateways.filter(({ isBusy }) => !isBusy)
    if (free.length < 2) return null
    const gateway = this.#chance.pick(free)
    gateway.isBusy = true
    return gateway
  }

  async #onAll(kind: (typeof ofAll)[number]): Promise<boolean> {
    if (this.#down.has(kind)) return false
    this.#down.add(kind)
    this.#count(kind)
    await this.#takeDown(kind)
    this.#down.delete(kind)
    return true
  }

  async #takeDown(kind: (typeof ofAll)[number]): Promise<void> {
    const { postgres, provider, sandbox } = this.#world
    switch (kind) {
      case 'PostgreSQL: killed':
        await postgres.kill()
        return
      case 'provider: nobody listens':
        await provider.refuse()
        await pause(this.#chance.between(300, 3_000))
        await provider.listenAgain()
        return
      case 'provider: killed':
        await sandbox.kill()
        await pause(this.#chance.between(0, 1_000))
        await sandbox.start()
    }
  }

  async #onStore(kind: (typeof ofStore)[number], store: StoreProxy): Promise<boolean> {
    this.#count(kind)
    switch (kind) {
      case 'store: held':
        store.hold(true)
        await pause(this.#chance.between(200, 6_000))
        store.hold(false)
        break
      case 'store: cut':
        store.cutAll()
        break
      case 'store: nobody listens':
        store.shut(true)
        await pause(this.#chance.between(200, 3_000))
        store.shut(false)
    }
    return true
  }

  /** Waits a while for the statement to come. @returns whether it came */
  async #strike(gateway: number, moment: Moment, fault: string, then: () => void = () => {}): Promise<boolean> {
    const happened = Promise.withResolvers<void>()
    const onStruck = (text: string): void => {
      then()
      this.#count(fault)
      this.struck.push({ fault, gateway, at: Date.now(), keys: text.match(keyPattern) ?? [] })
      happened.resolve()
    }
    const takeBack = this.#world.stores[gateway]?.strike({ ...moment, onStruck })
    const came = await Promise.race([happened.promise.then(() => true), pause(5_000).then(() => false)])
    takeBack?.()
    return came
  }
}

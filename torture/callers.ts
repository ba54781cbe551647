/** The callers: a closed loop over many keys. Each gives up now and then, and repeats with the same key, anywhere. */
import { setTimeout as pause } from 'node:timers/promises'
import { isDefinite, tellsOfMessage, type Heard, type History, type Operation } from './history.ts'
import type { Chance } from './chance.ts'
import { ask, type Ask, type Got } from './client.ts'
import type { Gateway } from './gateways.ts'
import { manner, type Asked, type Manner } from './keys.ts'

export const apiKey = `so_test_torture_${'k'.repeat(40)}`
const authorization = `Bearer ${apiKey}`

/** What the gateway needs to find out that the data base is away: longer than a short wait (send-message.ts). */
const minPatienceMs = 1_500
const asyncPatienceMs = 5_000
/** No answer is waited for beyond what was promised and this. */
const hopelessMs = 12_000

/** Asked once, of one gateway, and written into the history. */
interface Line {
  readonly key: string
  readonly operation: Operation
  readonly gateway: number
  readonly promisedMs: number
}

export class Callers {
  readonly #gateways: readonly Gateway[]
  readonly #history: History

  constructor(gateways: readonly Gateway[], history: History) {
    this.#gateways = gateways
    this.#history = history
  }

  /** Any; but as behind a load balancer, seldom one that has answered nothing for long. */
  anyGateway(chance: Chance): number {
    const awake = this.#gateways.filter(({ isFrozen }) => !isFrozen)
    return chance.pick(awake.length > 0 && chance.happens(0.9) ? awake : this.#gateways).number
  }

  /** Pursues a key with all its racers until each has heard something definite, or has had enough. */
  async pursue(asked: Asked, isOver: () => boolean): Promise<void> {
    const voiding = asked.voids ? this.#void(asked) : null
    const racers = Array.from({ length: asked.racers }, async (_, i) =>
      this.#race(asked, asked.chance.fork(`racer ${i}`), isOver),
    )
    await Promise.all([voiding, ...racers])
  }

  async #race(asked: Asked, chance: Chance, isOver: () => boolean): Promise<void> {
    let known: Heard | null = null
    for (let tries = 0; tries < 8 && !isOver(); tries++) {
      const gateway = this.anyGateway(chance)
      const isWithoutHeader = known !== null && asked.isNamed && chance.happens(0.2)
      const heard = await this.send(asked, gateway, manner(chance), asked.body, isWithoutHeader)
      if (tellsOfMessage(heard)) known ??= heard
      if (known?.messageId !== undefined && known.messageId !== null && asked.cancels && chance.happens(0.5))
        await this.#cancel(asked, known.messageId, this.anyGateway(chance))
      if (known !== null && chance.happens(0.06))
        await this.send(asked, this.anyGateway(chance), manner(chance), asked.otherBody)
      if (isDefinite(heard)) {
        // At once, elsewhere: what one gateway has told, every other one must know.
        if (chance.happens(0.5))
          await this.send(asked, this.anyGateway(chance), { wait: 0, giveUpMs: null }, asked.body)
        if (chance.happens(0.75)) return
      }
      await pause(chance.between(5, 600))
    }
  }

  async send(asked: Asked, gateway: number, how: Manner, body: string, isWithoutHeader = false): Promise<Heard> {
    const { wait } = how
    const operation = body === asked.body ? 'send' : 'send otherwise'
    const prefer = wait === 'respond-async' ? wait : `wait=${wait}`
    const name: Record<string, string> = isWithoutHeader ? {} : { 'idempotency-key': asked.key }
    const promisedMs = wait === 'respond-async' ? asyncPatienceMs : Math.max(wait * 1_000, minPatienceMs)
    const giveUpMs = how.giveUpMs ?? promisedMs + hopelessMs
    const line: Line = { key: asked.key, operation, gateway, promisedMs }
    return this.#ask(line, '/v1/messages', { headers: { ...name, prefer }, body, giveUpMs })
  }

  async #cancel({ key }: Asked, messageId: string, gateway: number): Promise<void> {
    const line: Line = { key, operation: 'cancel', gateway, promisedMs: hopelessMs }
    await this.#ask(line, `/v1/messages/${messageId}/cancel`, { headers: {}, body: null, giveUpMs: hopelessMs })
  }

  async #void({ key, chance }: Asked): Promise<void> {
    const own = chance.fork('void')
    await pause(own.between(0, 20))
    for (let tries = 0; tries < 3; tries++) {
      const line: Line = { key, operation: 'void', gateway: this.anyGateway(own), promisedMs: hopelessMs }
      const asked = { headers: {}, body: null, giveUpMs: hopelessMs }
      const heard = await this.#ask(line, `/v1/idempotency-keys/${key}/void`, asked)
      if (heard.status === 200 || heard.said === 'key-taken') return
      await pause(own.between(5, 300))
    }
  }

  async #ask(line: Line, path: string, asked: Pick<Ask, 'headers' | 'body' | 'giveUpMs'>): Promise<Heard> {
    const beganMs = Date.now()
    const url = `${this.#gateways[line.gateway]?.url}${path}`
    const got = await ask({ method: 'POST', url, ...asked, headers: { authorization, ...asked.headers } })
    const heard = heardFrom(line, beganMs, got)
    this.#history.add(heard)
    return heard
  }
}

function heardFrom({ key, operation, gateway, promisedMs }: Line, beganMs: number, got: Got): Heard {
  const nothing = { status: 0, sent: null, retryable: null, messageId: null, replayed: false, bytes: null }
  const about = { key, operation, gateway, beganMs, endedMs: Date.now(), dueMs: beganMs + promisedMs, end: got.end }
  if (got.end !== 'answer') return { ...about, ...nothing, said: got.end === 'gave up' ? '' : got.code }
  const { status, headers, body } = got
  const type = String(headers['content-type'])
  const told = parsed(body)
  const problem = typeof told['type'] === 'string' && type.startsWith('application/problem+json')
  const message = problem ? (told['message'] as { id?: string } | undefined) : told
  const { sent = null, retryable = null } = told as { sent?: string; retryable?: boolean }
  return {
    ...about,
    status,
    said: problem ? String(told['type']).replace('/problems/', '') : 'message',
    sent,
    retryable,
    messageId: typeof message?.['id'] === 'string' ? message['id'] : null,
    replayed: headers['idempotent-replayed'] === 'true',
    bytes: JSON.stringify([status, type, headers['location'] ?? null, body]),
  }
}

function parsed(body: string): Record<string, unknown> {
  try {
    return JSON.parse(body) as Record<string, unknown>
  } catch {
    return {} // the checker tells of an answer that says nothing
  }
}

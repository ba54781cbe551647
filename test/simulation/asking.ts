/** How whoever sends in a history asks a gateway, and what they hear: with patience, through any that is up. */
import { canonicalText } from '../../src/core/fingerprint.ts'
import type { SmsRequest } from '../../src/core/message-content.ts'
import type { Answer } from '../../src/core/answer.ts'
import { versionFromIfMatch } from '../../src/core/conversation.ts'
import { namesOf, type Sender, type SendRequest } from '../../src/operations/plan-message.ts'
import { Refusal } from '../../src/operations/refusal.ts'
import { sendMessage } from '../../src/operations/send-message.ts'
import type { Asked } from './answer-rules.ts'
import type { Checker } from './checker.ts'
import type { Incarnation, SimGateway } from './gateway.ts'
import { keyOf } from './tables.ts'
import type { World } from './world.ts'

/** What is asked for, and under which key. */
export interface Wish {
  readonly account: string
  readonly key: string
  readonly request: SmsRequest
  /** What happens once, whatever its text: the checker's name of it. */
  readonly event: string
  readonly sender: Sender
  readonly ifMatch: string | null
}

/** Null: nothing, in all the patience that the caller has. */
export type Heard = Answer | Refusal | null

export interface Asking {
  /** @param incarnation absent: any that is up */
  readonly ask: (wish: Wish, hear: (heard: Heard) => void, incarnation?: Incarnation) => void
  readonly anyUp: () => Incarnation | undefined
}

/** How long a caller waits for an answer before it asks again. */
const patienceMs = 6_000

export function createAsking(world: World, gateways: readonly SimGateway[], checker: Checker): Asking {
  const { chance } = world
  let requests = 0

  const anyUp = (): Incarnation | undefined => {
    const up = gateways.flatMap((gateway) => gateway.up() ?? [])
    return up.length === 0 ? undefined : chance.pick(up)
  }

  const askedOf = (request: SendRequest, id: string, { account, key }: Wish, incarnation: Incarnation): Asked => {
    const pausedBefore = incarnation.wasPaused
    return {
      id,
      account,
      names: namesOf(request),
      request: request.request,
      canonical: canonicalText(request.request),
      async: request.async,
      waitMs: request.waitMs,
      ifMatch: request.ifMatch === null ? null : (versionFromIfMatch(request.ifMatch) ?? null),
      sender: request.sender,
      isRepeat: checker.facts.tables.keys.has(keyOf(account, 'live', key)),
      arrivedMs: world.now(),
      wasPaused: () => pausedBefore || incarnation.wasPaused,
    }
  }

  const ask: Asking['ask'] = (wish, again, incarnation = anyUp()) => {
    let isOver = false
    const hear = (heard: Heard): void => {
      if (isOver) return
      isOver = true
      again(heard)
    }
    if (incarnation === undefined) return void world.after(chance.between(10, 1_000), () => hear(null))
    const id = `r${++requests}`
    const { account, key, request, event, sender, ifMatch } = wish
    const asked: SendRequest = {
      scope: { account, environment: 'live' },
      keyHeader: { kind: 'key', key },
      request: { ...request, metadata: { request: id, event } },
      waitMs: chance.pick([0, 500, 3_000, 5_000]),
      async: chance.happens(0.3),
      traceparent: null,
      ifMatch,
      sender,
    }
    const { process, deps } = incarnation
    world.after(patienceMs, () => hear(null))
    process.after(chance.happens(0.3) ? 1 : chance.between(1, 20), () => {
      const about = askedOf(asked, id, wish, incarnation)
      checker.facts.asked.set(id, about)
      world.note(
        process.name,
        () =>
          `${id} asks for ${event} under ${key}${asked.async ? ', async' : ''}${ifMatch === null ? '' : `, if at ${ifMatch}`}`,
      )
      sendMessage(deps, asked, about.names).then(
        (answer) => {
          if (!process.isAlive()) return
          world.note(process.name, () => `${id} is answered ${answer.status}${answer.replayed ? ', a replay' : ''}`)
          checker.answered(about, answer)
          process.after(chance.between(1, 20), () => hear(answer))
        },
        (error: unknown) => {
          if (!process.isAlive()) return
          if (!(error instanceof Refusal)) return checker.facts.broken('no bug is thrown', `${id}: ${String(error)}`)
          world.note(process.name, () => `${id} is refused: ${error.type}`)
          checker.refused(about, error)
          process.after(chance.between(1, 20), () => hear(error))
        },
      )
    })
  }
  return { ask, anyUp }
}

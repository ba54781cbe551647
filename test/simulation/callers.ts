/**
 * The callers of a history: each has something to say once, and repeats it under the same name until it knows enough.
 * Some send another body under a key, give one reference under two keys, cancel, or make a key void.
 */
import { canonicalText } from '../../src/core/fingerprint.ts'
import type { MessageRequest, SmsRequest } from '../../src/core/message-content.ts'
import { cancelMessage } from '../../src/operations/cancel-message.ts'
import { namesOf, type SendRequest } from '../../src/operations/plan-message.ts'
import { Refusal } from '../../src/operations/refusal.ts'
import { sendMessage } from '../../src/operations/send-message.ts'
import { voidKey } from '../../src/operations/void-key.ts'
import { idFromUuid } from '../../src/core/ids.ts'
import type { Answer } from '../../src/core/answer.ts'
import type { Asked } from './answer-rules.ts'
import type { Checker } from './checker.ts'
import { eventOf } from './facts.ts'
import type { Incarnation, SimGateway } from './gateway.ts'
import { epochMs, type World } from './world.ts'

const apiKey = 'someone'

export interface Saying {
  readonly account: string
  readonly keys: readonly string[]
  readonly request: SmsRequest
}

export interface Callers {
  readonly sayings: readonly Saying[]
  /** Asks once more for each, with patience. @returns when all have been answered */
  askAll(): void
  /** Requests that are not answered yet, and whose gateway lives. */
  unanswered(): number
}

/** How long a caller waits for an answer before it asks again. */
const patienceMs = 6_000

export function createCallers(
  world: World,
  gateways: readonly SimGateway[],
  checker: Checker,
  activeMs: number,
): Callers {
  const { chance } = world
  let requests = 0
  let open = 0
  const sayings = Array.from({ length: chance.between(1, 7) }, (_, i) => newSaying(world, i))

  const anyUp = (): Incarnation | undefined => {
    const up = gateways.flatMap((gateway) => gateway.up() ?? [])
    return up.length === 0 ? undefined : chance.pick(up)
  }

  /** @param again the caller heard nothing, or not enough */
  const ask = (
    saying: Saying,
    key: string,
    request: SmsRequest,
    again: (heard: Answer | Refusal | null) => void,
  ): void => {
    const incarnation = anyUp()
    let isOver = false
    const hear = (heard: Answer | Refusal | null): void => {
      if (isOver) return
      isOver = true
      again(heard)
    }
    if (incarnation === undefined) return void world.after(chance.between(10, 1_000), () => hear(null))
    const id = `r${++requests}`
    const asked = newRequest(saying, key, { ...request, metadata: { request: id } })
    world.after(patienceMs, () => hear(null))
    incarnation.process.after(chance.between(1, 20), () => {
      open++
      const about = askedOf(asked, id, incarnation)
      world.note(
        incarnation.process.name,
        () => `${about.id} asks for ${request.content.text} under ${key}${asked.async ? ', async' : ''}`,
      )
      const end = (): void => void open--
      sendMessage(incarnation.deps, asked, namesOf(asked)).then(
        (answer) => {
          end()
          if (!incarnation.process.isAlive()) return
          world.note(
            incarnation.process.name,
            () => `${about.id} is answered ${answer.status}${answer.replayed ? ', a replay' : ''}`,
          )
          checker.answered(about, answer)
          incarnation.process.after(chance.between(1, 20), () => hear(answer))
        },
        (error: unknown) => {
          end()
          if (!incarnation.process.isAlive()) return
          if (!(error instanceof Refusal))
            return checker.facts.broken('no bug is thrown', `${about.id}: ${String(error)}`)
          world.note(incarnation.process.name, () => `${about.id} is refused: ${error.type}`)
          checker.refused(about, error)
          incarnation.process.after(chance.between(1, 20), () => hear(error))
        },
      )
    })
  }

  const newRequest = (saying: Saying, key: string, request: SmsRequest): SendRequest => ({
    scope: { account: saying.account, environment: 'live' },
    keyHeader: { kind: 'key', key },
    request,
    waitMs: chance.pick([0, 500, 3_000, 5_000]),
    async: chance.happens(0.3),
    traceparent: null,
    hasPrecondition: false,
  })
  const askedOf = (request: SendRequest, id: string, incarnation: Incarnation): Asked => {
    const pausedBefore = incarnation.wasPaused
    return {
      id,
      account: request.scope.account,
      names: namesOf(request),
      request: request.request,
      canonical: canonicalText(request.request),
      async: request.async,
      waitMs: request.waitMs,
      arrivedMs: world.now(),
      wasPaused: () => pausedBefore || incarnation.wasPaused,
    }
  }

  const keepAsking = (saying: Saying, times: number): void => {
    const { text } = saying.request.content
    const isOther = chance.happens(0.12)
    const request: SmsRequest = isOther ? { ...saying.request, content: { text: `${text}, other` } } : saying.request
    ask(saying, chance.pick(saying.keys), request, (heard) => {
      const isEnough = heard !== null && 'status' in heard && heard.status === 201
      if (times > 1 && world.now() < activeMs && chance.happens(isEnough ? 0.5 : 0.9))
        world.after(chance.between(10, isEnough ? 30_000 : 4_000), () => keepAsking(saying, times - 1))
    })
  }

  for (const saying of sayings) {
    const startMs = chance.between(0, activeMs / 2)
    for (let racers = chance.happens(0.3) ? 2 : 1; racers > 0; racers--)
      world.after(startMs + chance.between(0, 10), () => keepAsking(saying, chance.between(1, 5)))
    if (chance.happens(0.2)) world.after(startMs + chance.between(0, 15_000), () => cancel(saying))
    if (chance.happens(0.1)) world.after(startMs + chance.between(0, 3_000), () => makeVoid(saying))
  }

  const cancel = (saying: Saying): void => {
    const incarnation = anyUp()
    const row = [...checker.facts.tables.messages.values()].find((one) => eventOf(one) === saying.request.content.text)
    if (incarnation === undefined || row === undefined) return
    const scope = { account: saying.account, environment: 'live' } as const
    world.note(incarnation.process.name, () => `${eventOf(row)} is to be canceled`)
    incarnation.process.after(1, () => {
      cancelMessage(incarnation.deps, scope, idFromUuid('message', row.id), apiKey).catch(() => {})
    })
  }
  const makeVoid = (saying: Saying): void => {
    const incarnation = anyUp()
    if (incarnation === undefined) return
    const scope = { account: saying.account, environment: 'live' } as const
    incarnation.process.after(1, () => {
      voidKey(incarnation.deps, scope, saying.keys[0] ?? '', apiKey).then(
        () => world.sometimes('a key was made void'),
        () => {},
      )
    })
  }

  return {
    sayings,
    unanswered: () => open,
    askAll: () => {
      for (const saying of sayings)
        for (const key of saying.keys)
          ask(saying, key, saying.request, (heard) => {
            if (heard === null) checker.facts.broken('13 liveness', `${key} is not answered when all is well`)
            else if (heard instanceof Refusal && (heard.type === 'store-unavailable' || heard.type === 'overloaded'))
              checker.facts.broken('13 liveness', `${key} is refused (${heard.type}) when all is well`)
          })
    },
  }
}

function newSaying({ chance }: World, i: number): Saying {
  const text = `e${i + 1}`
  const isNamedTwice = chance.happens(0.2)
  const inSeconds = (least: number, most: number): string =>
    new Date(epochMs + chance.between(least * 1_000, most * 1_000)).toISOString()
  const request: MessageRequest = {
    channel: 'sms',
    to: `+4477009001${String(i).padStart(2, '0')}`,
    content: { text },
    ...(isNamedTwice ? { conversation: 'c', reference: text } : {}),
    ...(chance.happens(0.1) ? { intent: 'one of them' } : {}),
    ...(chance.happens(0.2) ? { sendAt: inSeconds(1, 40) } : {}),
    ...(chance.happens(0.25) ? { notAfter: inSeconds(20, 90) } : {}),
  }
  const keys = isNamedTwice ? [`k${i + 1}`, `k${i + 1}-again`] : [chance.happens(0.2) ? 'shared' : `k${i + 1}`]
  return { account: chance.pick(['one', 'two']), keys, request }
}

/**
 * The callers of a history: each has something to say once, and repeats it under the same name until it knows enough.
 * Some send another body under a key, give one reference under two keys, cancel, or make a key void.
 */
import type { MessageRequest, SmsRequest } from '../../src/core/message-content.ts'
import { cancelMessage } from '../../src/operations/cancel-message.ts'
import { voidKey } from '../../src/operations/void-key.ts'
import { idFromUuid } from '../../src/core/ids.ts'
import { checkWellAnswered } from './answer-rules.ts'
import type { Asking, Wish } from './asking.ts'
import type { Checker } from './checker.ts'
import { eventOf } from './facts.ts'
import { epochMs, type World } from './world.ts'
import { ordinary } from './senders.ts'

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
}

export function createCallers(world: World, { ask, anyUp }: Asking, checker: Checker, activeMs: number): Callers {
  const { chance } = world
  const sayings = Array.from({ length: chance.between(1, 7) }, (_, i) => newSaying(world, i))
  const wishOf = ({ account }: Saying, key: string, request: SmsRequest): Wish => ({
    account,
    key,
    request,
    event: request.content.text,
    sender: ordinary,
    ifMatch: null,
  })

  const keepAsking = (saying: Saying, times: number): void => {
    const { text } = saying.request.content
    const isOther = chance.happens(0.12)
    const request: SmsRequest = isOther ? { ...saying.request, content: { text: `${text}, other` } } : saying.request
    ask(wishOf(saying, chance.pick(saying.keys), request), (heard) => {
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
    askAll: () => {
      for (const saying of sayings)
        for (const key of saying.keys)
          ask(wishOf(saying, key, saying.request), (heard) => {
            checkWellAnswered(checker.facts, key, heard)
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
    ...(chance.happens(0.25) ? { notAfter: inSeconds(5, 70) } : {}),
  }
  const keys = isNamedTwice ? [`k${i + 1}`, `k${i + 1}-again`] : [chance.happens(0.2) ? 'shared' : `k${i + 1}`]
  return { account: chance.pick(['one', 'two']), keys, request }
}

/**
 * Those who write in a conversation, after reading it or not. Each has some things to say, and tries until it believes that
 * they are said; an agent makes a new key for each try, says it in other words, and does not always read again before.
 */
import { etagOf } from '../../src/core/conversation.ts'
import { idFromUuid } from '../../src/core/ids.ts'
import type { SmsRequest } from '../../src/core/message-content.ts'
import { cancelMessage } from '../../src/operations/cancel-message.ts'
import { Refusal } from '../../src/operations/refusal.ts'
import type { Asking, Heard, Wish } from './asking.ts'
import type { Checker } from './checker.ts'
import { checkWellAnswered } from './answer-rules.ts'
import { eventOf } from './facts.ts'
import { newWriter, type Writer } from './senders.ts'
import { epochMs, type World } from './world.ts'

/** A conversation of an account, with whom it is. */
export interface Place {
  readonly account: string
  readonly conversation: string
  readonly to: string
}

/** One thing that a writer wants to say, once. */
interface Purpose {
  readonly writer: Writer
  readonly place: Place
  readonly name: string
  readonly text: string
  readonly hasIntent: boolean
  /** Whoever reads nothing names no version. */
  readonly reads: boolean
}

/** What it has read. */
interface Reading {
  readonly version: number
  /** It seems to be said: by itself, or by another with the same intent. */
  readonly isSaid: boolean
}

export interface Writers {
  /** Asks once more for each thing that it ever asked for. */
  askAll(): void
}

export function createWriters(
  world: World,
  { ask, anyUp }: Asking,
  checker: Checker,
  places: readonly Place[],
  activeMs: number,
): Writers {
  const { chance } = world
  const wishes: Wish[] = []
  let names = 0

  const read = ({ place, name, text }: Purpose, then: (reading: Reading | null) => void): void => {
    const incarnation = anyUp()
    if (incarnation === undefined) return then(null)
    const { deps, process } = incarnation
    const scope = { account: place.account, environment: 'live' } as const
    const reading = async (): Promise<Reading> => {
      const { version } = await deps.store.findConversation(scope, place.conversation)
      const shown = await deps.store.listMessages(scope, { conversation: place.conversation }, 50, null)
      const isSaid = shown.some(
        ({ request, state }) =>
          state.status !== 'canceled' &&
          (request.intent === name || (request.channel === 'sms' && request.content.text === text)),
      )
      return { version, isSaid }
    }
    process.after(1, () => {
      reading().then(
        (known) => process.after(chance.between(1, 10), () => then(known)),
        () => process.after(chance.between(1, 10), () => then(null)),
      )
    })
    // Its gateway may be dead by now: then it reads no more, and says nothing.
  }

  const wishOf = ({ writer, place, name, text, hasIntent }: Purpose, reading: Reading | null, tries: number): Wish => {
    const event = `${name}.${tries}`
    const isReworded = writer.kind === 'agent' && chance.happens(0.3)
    const inMs = (ms: number): string => new Date(epochMs + world.now() + ms).toISOString()
    const sendAtMs = chance.happens(writer.kind === 'agent' ? 0.15 : 0.3) ? chance.between(500, 12_000) : null
    const request: SmsRequest = {
      channel: 'sms',
      to: place.to,
      content: { text: isReworded ? `${text}, that is to say ${tries}` : text },
      conversation: place.conversation,
      ...(hasIntent ? { intent: name } : {}),
      ...(sendAtMs === null ? {} : { sendAt: inMs(sendAtMs) }),
      // Else one that is held would wait for a day.
      notAfter: inMs((sendAtMs ?? 0) + chance.between(3_000, 30_000)),
    }
    const ifMatch = reading === null || chance.happens(0.05) ? null : etagOf(reading.version)
    return { account: place.account, key: event, event, request, sender: writer.sender, ifMatch }
  }

  const isOver = (): boolean => world.now() >= activeMs

  /** @param known what was read before; null: nothing */
  const say = (purpose: Purpose, tries: number, known: Reading | null): void => {
    const attempt = (reading: Reading | null): void => {
      if (isOver() || (reading?.isSaid === true && chance.happens(0.6))) return
      world.after(chance.pick([0, chance.between(1, 50), chance.between(100, 4_000)]), () => {
        const wish = wishOf(purpose, reading, tries)
        wishes.push(wish)
        const hear = (heard: Heard): void => {
          if (isOver() || tries >= 6) return
          // The same under the same key, for once, whatever has become of the conversation.
          if (chance.happens(0.2)) return void world.after(chance.between(1, 8_000), () => ask(wish, hear))
          const reads = purpose.reads && (heard instanceof Refusal || chance.happens(0.4))
          if (isDone(heard) && !chance.happens(0.25)) return
          if (heard instanceof Refusal && heard.type === 'possible-duplicate' && chance.happens(0.6)) return
          world.after(chance.between(10, 3_000), () => say(purpose, tries + 1, reads ? null : reading))
        }
        const incarnation = anyUp()
        ask(wish, hear, incarnation)
        // Two of one mind, on one reading, at the same moment.
        if (reading !== null && chance.happens(0.2)) {
          const event = `${wish.event}.twin`
          wishes.push({ ...wish, key: event, event })
          ask({ ...wish, key: event, event }, () => {}, incarnation)
        }
        if (chance.happens(0.1)) world.after(chance.between(1, 6_000), () => cancel(purpose.place, wish.event))
      })
    }
    if (known !== null || !purpose.reads) attempt(known)
    else read(purpose, attempt)
  }
  const isDone = (heard: Heard): boolean =>
    heard !== null && !(heard instanceof Refusal) && (heard.status === 201 || heard.status === 202)

  const cancel = ({ account }: Place, event: string): void => {
    const incarnation = anyUp()
    const row = [...checker.facts.tables.messages.values()].find((one) => eventOf(one) === event)
    if (incarnation === undefined || row === undefined) return
    const { process, deps } = incarnation
    const scope = { account, environment: 'live' } as const
    process.after(1, () => {
      cancelMessage(deps, scope, idFromUuid('message', row.id), 'someone').catch(() => {}) // too late, say
    })
  }

  for (const place of places) {
    // What writers of one conversation have to say is often the same.
    const texts = ['ok', 'on its way', 'sorry'].map((text) => `${place.conversation}: ${text}`)
    for (let writers = chance.between(1, 3); writers > 0; writers--) {
      const name = `w${++names}`
      const writer = newWriter(chance, name)
      for (let things = chance.between(1, 3); things > 0; things--) {
        const purpose: Purpose = {
          writer,
          place,
          // Two writers may have the same in mind.
          name: `${name}.${things}`,
          text: chance.pick(texts),
          hasIntent: chance.happens(0.3),
          reads: writer.kind === 'agent' || chance.happens(0.3),
        }
        const startMs = chance.between(0, activeMs * 0.7)
        for (let racers = chance.happens(0.2) ? 2 : 1; racers > 0; racers--) {
          const own = racers === 1 ? purpose : { ...purpose, name: `${purpose.name}.again` }
          world.after(startMs + chance.between(0, 10), () => say(own, 1, null))
        }
      }
    }
  }
  return {
    askAll: () => {
      for (const wish of wishes)
        ask(wish, (heard) => {
          checkWellAnswered(checker.facts, wish.key, heard)
        })
    },
  }
}

/**
 * What providers tell later of what they accepted: before their answer or long after it, several times, in any order, or
 * never; of attempts whose answer was lost as of others. Some come again until they are heard, some do not. A stranger
 * tells of messages of another environment, and somebody forges.
 */
import { recordReceipt, webhookReader, type Reader } from '../../src/operations/record-receipt.ts'
import { Refusal } from '../../src/operations/refusal.ts'
import type { ParsedWebhook, WebhookEvent } from '../../src/providers/provider.ts'
import type { Checker } from './checker.ts'
import type { Incarnation } from './gateway.ts'
import { idFromUuid } from '../../src/core/ids.ts'
import type { Write } from './vendor.ts'
import { epochMs, type World } from './world.ts'

interface Told extends Omit<WebhookEvent, 'at'> {
  readonly at: string | null
  readonly isForged: boolean
}

/** What the provider's adapter reads. */
export function readTold(rawBody: Buffer): ParsedWebhook {
  const { at, isForged, ...event } = JSON.parse(rawBody.toString()) as Told
  return isForged
    ? { refused: 'forged' }
    : { events: [{ ...event, at: at === null ? null : new Date(at) }], replies: [] }
}

/** A provider of the other environment. */
export const stranger = 'stranger'

export interface ReceiptMoods {
  /** How often a provider tells of what it accepted. */
  tells: number
}

export interface Receipts {
  readonly accepted: (write: Write) => void
}

export function createReceipts(
  world: World,
  { facts }: Checker,
  anyUp: () => Incarnation | undefined,
  moods: ReceiptMoods,
  activeMs: number,
): Receipts {
  const { chance } = world
  let events = 0

  const readerOf = ({ deps }: Incarnation, name: string): Reader => {
    if (name !== stranger) return webhookReader(deps, name)
    const [one] = deps.providers.all()
    return { ...webhookReader(deps, one?.name ?? ''), name, environment: 'test' }
  }

  const tell = (name: string, told: Told, tries: number): void => {
    const incarnation = anyUp()
    let isOver = false
    const again = (): void => {
      if (isOver) return
      isOver = true
      if (tries > 1) world.after(chance.between(100, 15_000), () => tell(name, told, tries - 1))
    }
    if (incarnation === undefined) return again()
    const { process, deps } = incarnation
    world.after(5_000, again)
    process.after(1, () => {
      world.note(process.name, () => `${name} tells ${told.eventId}: ${told.messageId} ${told.kind}`)
      const rawBody = Buffer.from(JSON.stringify(told))
      const request = { rawBody, headers: {}, url: '', query: new URLSearchParams() }
      recordReceipt(deps, readerOf(incarnation, name), request).then(
        () => {
          if (told.isForged) facts.broken('receipts', `${told.eventId} is forged, and was taken in`)
          if (chance.happens(0.15)) again()
          else isOver = true
        },
        (error: unknown) => {
          if (error instanceof Refusal && error.type === 'webhook-forged')
            world.sometimes('a forged receipt was refused')
          else process.after(1, again)
        },
      )
    })
  }

  const eventOf = (kind: Told['kind'], write: Pick<Told, 'messageId' | 'attemptId'>, providerId: string): Told => ({
    eventId: `event-${++events}`,
    messageId: write.messageId,
    attemptId: write.attemptId,
    providerMessageId: providerId,
    kind,
    at: chance.happens(0.9) ? new Date(epochMs + world.now() + chance.between(-200, 200)).toISOString() : null,
    code: null,
    isForged: false,
  })
  const delayMs = (): number =>
    chance.pick([
      chance.between(0, 5),
      chance.between(5, 200),
      chance.between(200, 5_000),
      chance.between(5_000, 40_000),
    ])

  const strange = (): void => {
    if (world.now() >= activeMs) return
    world.after(chance.between(1_000, 20_000), strange)
    const rows = [...facts.tables.messages.values()]
    if (rows.length === 0 || !chance.happens(moods.tells)) return
    const row = chance.pick(rows)
    const told = eventOf('delivered', { messageId: idFromUuid('message', row.id), attemptId: null }, 'strange')
    if (chance.happens(0.5)) tell(stranger, told, 1)
    else tell('ven', { ...told, isForged: true }, 1)
  }
  world.after(chance.between(1_000, 20_000), strange)

  return {
    accepted: (write) => {
      if (!chance.happens(moods.tells)) return
      const { vendor, providerId } = write
      const about = { ...write, attemptId: vendor.namesAttempts ? write.attemptId : null }
      const kinds = chance.pick<readonly Told['kind'][]>([
        ['accepted'],
        ['delivered'],
        ['undelivered'],
        ['accepted', 'delivered'],
        ['accepted', 'undelivered', 'delivered'],
      ])
      for (const kind of kinds) {
        const told = eventOf(kind, about, providerId ?? '')
        // Some are told once, whatever becomes of it.
        const tries = vendor.tellsAgain ? 6 : 1
        for (let times = chance.pick([1, 1, 1, 2, 3]); times > 0; times--)
          world.after(delayMs(), () => tell(vendor.name, told, tries))
      }
    },
  }
}

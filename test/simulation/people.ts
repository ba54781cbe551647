/** Operators: they look at what is unknown, ask the vendor (who tells the truth), and settle; now and then mistakenly. */
import { idFromUuid } from '../../src/core/ids.ts'
import type { MessageRow } from '../../src/store/message-rows.ts'
import { resolveMessage } from '../../src/operations/resolve-message.ts'
import type { Checker } from './checker.ts'
import { eventOf, wasAccepted } from './facts.ts'
import type { SimGateway } from './gateway.ts'
import type { World } from './world.ts'

/** Attempts that may have been accepted, as the row tells. */
function openIn(row: MessageRow): string[] {
  const open = row.openAttempts === null ? [] : (JSON.parse(row.openAttempts) as { id: string }[]).map(({ id }) => id)
  return row.outcome === 'unknown' && row.attemptId !== null ? [...open, row.attemptId] : open
}

export function createPeople(
  world: World,
  gateways: readonly SimGateway[],
  checker: Checker,
  { mistakes, activeMs }: { mistakes: number; activeMs: number },
): void {
  const { chance } = world
  const { facts } = checker

  const settle = (row: MessageRow): void => {
    const up = gateways.flatMap((gateway) => gateway.up() ?? [])
    const attempts = openIn(row)
    const event = eventOf(row)
    const isOnItsWay = (facts.writes.get(event) ?? []).some(({ fate }) => fate === 'travels')
    if (up.length === 0 || attempts.length === 0 || isOnItsWay) return
    const isMistaken = chance.happens(mistakes)
    const outcome: 'sent' | 'not_sent' = wasAccepted(facts, event) === isMistaken ? 'not_sent' : 'sent'
    const resend = outcome === 'not_sent' && chance.happens(0.4)
    const { process, deps } = chance.pick(up)
    const attempt = idFromUuid('attempt', chance.pick(attempts))
    checker.personSays(event, outcome, isMistaken)
    world.note(
      process.name,
      () => `a person says of ${event}: ${outcome}${resend ? ', resend' : ''}${isMistaken ? ' (MISTAKEN)' : ''}`,
    )
    const scope = { account: row.accountId, environment: 'live' } as const
    const verdict = { attempt, outcome, resend, providerMessageId: null, evidence: 'seen' } as const
    process.after(1, () => {
      resolveMessage(deps, scope, idFromUuid('message', row.id), verdict, {
        apiKey: 'person',
        isBootstrap: false,
      }).catch(() => {}) // as it is: too late, say
    })
  }

  const look = (): void => {
    if (world.now() >= activeMs) return
    for (const row of facts.tables.messages.values())
      if (row.status === 'unknown' && chance.happens(row.plan === null ? 0.5 : 0.15)) settle(row)
    world.after(chance.between(500, 4_000), look)
  }
  world.after(chance.between(500, 4_000), look)
}

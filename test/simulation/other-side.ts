/** What the other side says in a conversation: brought by a service, now and then twice, or by two gateways at once. */
import { recordInbound, type ToldInbound } from '../../src/operations/record-inbound.ts'
import type { Asking } from './asking.ts'
import type { Checker } from './checker.ts'
import { epochMs, type World } from './world.ts'
import type { Place } from './writers.ts'

export function createOtherSide(
  world: World,
  { anyUp }: Asking,
  { facts }: Checker,
  places: readonly Place[],
  activeMs: number,
): void {
  const { chance } = world
  /** By what was told: the id under which it is kept. */
  const kept = new Map<string, string>()
  let said = 0

  const tell = ({ account, conversation }: Place, told: ToldInbound, tries: number): void => {
    const incarnation = anyUp()
    const again = (): void => {
      if (tries > 1)
        world.after(chance.between(10, 2_000), () => tell({ account, conversation, to: '' }, told, tries - 1))
    }
    if (incarnation === undefined) return again()
    const { process, deps } = incarnation
    process.after(1, () => {
      recordInbound(deps, { account, environment: 'live' }, conversation, told).then(({ inbound, version, isNew }) => {
        const name = told.text
        if (!isNew) world.sometimes('an inbound message was told twice')
        if ((kept.get(name) ?? inbound.id) !== inbound.id) facts.broken('versions', `${name} is kept twice`)
        kept.set(name, inbound.id)
        if (version < 1) facts.broken('versions', `${name} came in, and its conversation is at ${version}`)
        if (chance.happens(0.2)) again()
      }, again)
    })
  }

  for (const place of places)
    for (let times = chance.between(0, 3); times > 0; times--) {
      const text = `in ${++said}`
      const occurredAt = new Date(epochMs + chance.between(0, 5_000)).toISOString()
      const told = chance.happens(0.5) ? { eventId: text, from: place.to, text } : { from: place.to, text, occurredAt }
      world.after(chance.between(0, activeMs), () => {
        for (let tellers = chance.pick([1, 1, 2, 3]); tellers > 0; tellers--) tell(place, told, 3)
      })
    }
}

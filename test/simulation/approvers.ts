/**
 * Persons who decide about what is held: at once or late, twice, against each other, about another text, about what they
 * sent themselves; and once more where they heard nothing.
 */
import { idFromUuid } from '../../src/core/ids.ts'
import { fingerprintOf, fingerprintText } from '../../src/core/fingerprint.ts'
import { decideApproval } from '../../src/operations/decide-approval.ts'
import { Refusal } from '../../src/operations/refusal.ts'
import { StoreTrouble } from '../../src/store/database-errors.ts'
import type { MessageRow } from '../../src/store/message-rows.ts'
import type { Verdict } from './approval-rules.ts'
import type { Asking } from './asking.ts'
import type { Checker } from './checker.ts'
import { nameOf } from './facts.ts'
import { persons } from './senders.ts'
import { epochMs, type World } from './world.ts'

const patienceMs = 6_000

export function createApprovers(
  world: World,
  { anyUp }: Asking,
  { facts, verdict: checkVerdict }: Checker,
  activeMs: number,
): void {
  const { chance } = world

  const decide = (row: MessageRow, verdict: Verdict, tries = 3): void => {
    const incarnation = anyUp()
    let isOver = false
    const again = (): void => {
      if (isOver) return
      isOver = true
      if (tries > 1) world.after(chance.between(10, 2_000), () => decide(row, verdict, tries - 1))
    }
    if (incarnation === undefined) return again()
    const { process, deps } = incarnation
    const { messageId, decision, by, isShown } = verdict
    const shown = fingerprintText(fingerprintOf(isShown ? row.request : 'another text', row.fingerprintVersion))
    world.after(patienceMs, again)
    process.after(chance.between(1, 20), () => {
      facts.approvals.asked.push(verdict)
      world.note(
        process.name,
        () => `${by} says ${decision} of ${nameOf(row)}${isShown ? '' : ', seeing another text'}`,
      )
      const scope = { account: row.accountId, environment: 'live' } as const
      const decider = { apiKey: by, from: '192.0.2.1' }
      decideApproval(
        deps,
        scope,
        idFromUuid('message', messageId),
        decision,
        shown,
        decider,
        chance.pick([0, 500, 4_000]),
      ).then(
        (message) => {
          if (!process.isAlive()) return
          world.note(process.name, () => `${by} hears: ${message.state.status}`)
          checkVerdict(verdict, message)
          if (chance.happens(0.2)) again()
          else isOver = true
        },
        (error: unknown) => {
          if (!process.isAlive()) return
          if (error instanceof StoreTrouble) return void process.after(1, again)
          if (!(error instanceof Refusal)) return facts.broken('no bug is thrown', `${by}: ${String(error)}`)
          world.note(process.name, () => `${by} is refused: ${error.type}`)
          isOver = true
          checkVerdict(verdict, error)
        },
      )
    })
  }

  const look = (): void => {
    if (world.now() >= activeMs) return
    for (const row of facts.tables.messages.values()) if (row.status === 'held' && chance.happens(0.3)) judge(row)
    world.after(chance.between(300, 3_000), look)
  }
  world.after(chance.between(300, 3_000), look)

  const judge = (row: MessageRow): void => {
    const others = persons.filter((name) => name !== row.apiKeyId)
    const by = chance.pick(others)
    const decision = chance.happens(0.75) ? 'approved' : 'declined'
    const verdict: Verdict = { messageId: row.id, decision, by, isShown: true }
    switch (chance.pick(['once', 'once', 'once', 'twice', 'twice', 'against', 'late', 'other text', 'own'])) {
      case 'once':
        return decide(row, verdict)
      case 'twice':
        decide(row, verdict)
        return decide(row, chance.happens(0.5) ? verdict : { ...verdict, by: chance.pick(others) })
      case 'against':
        decide(row, { ...verdict, decision: 'approved' })
        return decide(row, { ...verdict, decision: 'declined', by: chance.pick(others) })
      case 'late':
        return void world.after(row.notAfter.getTime() - epochMs - world.now() + chance.between(-100, 2_000), () =>
          decide(row, verdict),
        )
      case 'other text':
        return decide(row, { ...verdict, isShown: false })
      case 'own':
        return decide(row, { ...verdict, by: row.apiKeyId ?? '' })
    }
  }
}

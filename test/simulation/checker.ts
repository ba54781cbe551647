/**
 * Holds a history against the invariants of reliability.md: during it, at every write, commit and answer, and at its
 * end. It reads the vendors' ledgers and the tables; no part of the gateway does. The first rule that does not hold ends
 * the history.
 */
import type { Answer } from '../../src/core/answer.ts'
import type { InboundMessage } from '../../src/core/conversation-view.ts'
import type { Message } from '../../src/core/message.ts'
import { idFromUuid } from '../../src/core/ids.ts'
import type { MessageRow } from '../../src/store/message-rows.ts'
import type { Statement } from '../../src/store/database.ts'
import type { Refusal } from '../../src/operations/refusal.ts'
import { checkVerdict, noteDoubted, nobodyAsked, type Verdict } from './approval-rules.ts'
import { checkAnswer, checkRefusal, emptyHeard, type Asked } from './answer-rules.ts'
import { checkReceived, checkVersions, nothingSaid } from './conversation-rules.ts'
import { isClaim, isSave } from './execution.ts'
import { eventOf, nameOf, uuidOf, type Facts } from './facts.ts'
import { checkMarked, checkReceiptsAtEnd } from './receipt-rules.ts'
import { checkChange } from './row-rules.ts'
import type { Tables } from './tables.ts'
import type { Write } from './vendor.ts'
import type { Process, World } from './world.ts'
import { checkAcceptance, checkWrite } from './write-rules.ts'

export interface Checker {
  readonly facts: Facts
  /** Rules that did not hold. */
  readonly broken: readonly string[]
  /** What a message is about, by its public id. */
  readonly eventOf: (messageId: string) => string
  readonly writeBegins: (write: Write, process: Process) => void
  readonly accepted: (write: Write) => void
  readonly changed: (before: MessageRow | null, after: MessageRow | null) => void
  readonly received: (place: string, inbound: InboundMessage) => void
  readonly executed: (
    statement: Statement,
    values: readonly unknown[],
    rows: readonly object[],
    process: Process,
  ) => void
  readonly verdict: (verdict: Verdict, heard: Message | Refusal) => void
  readonly doubted: (statement: Statement, values: readonly unknown[]) => void
  readonly errorLogged: (who: string, text: string, fields: object) => void
  readonly answered: (asked: Asked, answer: Answer) => void
  readonly refused: (asked: Asked, refusal: Refusal) => void
  /** @param isMistaken what is said is not so */
  readonly personSays: (event: string, outcome: 'sent' | 'not_sent', isMistaken: boolean) => void
  /** When all faults are over, and all that could happen by itself has happened. */
  readonly atEnd: () => void
}

export function createChecker(world: World, tables: Tables): Checker {
  const broken: string[] = []
  const heard = emptyHeard()
  const facts: Facts = {
    world,
    tables,
    asked: new Map(),
    said: nothingSaid(),
    approvals: nobodyAsked(),
    writes: new Map(),
    acceptances: new Map(),
    mistaken: new Map(),
    leases: new Map(),
    settledMs: new Map(),
    verdicts: new Map(),
    claimers: new Set(),
    claims: 0,
    stored: new Set(),
    doubtedClaims: new Set(),
    broken: (rule, what) => {
      broken.push(`${rule}: ${what}`)
      world.note('CHECKER', () => `BROKEN ${rule}: ${what}`)
    },
  }
  return {
    facts,
    broken,
    eventOf: (messageId) => {
      const row = tables.messages.get(uuidOf(messageId))
      return row === undefined ? messageId : eventOf(row)
    },
    writeBegins: (write, process) => checkWrite(facts, write, process),
    accepted: (write) => checkAcceptance(facts, write),
    changed: (before, after) => checkChange(facts, before, after),
    received: (place, inbound) => checkReceived(facts, place, inbound),
    executed: ({ name }, [json], rows, process) => {
      if (name === 'mark-receipts') checkMarked(facts, json)
      if (isSave(name))
        for (const { id } of rows as readonly { id: string }[])
          if (facts.approvals.decided.has(id) && !facts.approvals.decider.has(id))
            facts.approvals.decider.set(id, process)
      checkVersions(facts)
    },
    verdict: (verdict, outcome) => checkVerdict(facts, verdict, outcome),
    doubted: ({ name }, [json]) => {
      if (isSave(name)) noteDoubted(facts, JSON.parse(String(json)) as Parameters<typeof noteDoubted>[1])
      if (!isClaim(name)) return
      for (const { id } of JSON.parse(String(json)) as { id: string }[])
        facts.doubtedClaims.add(idFromUuid('message', id))
    },
    errorLogged: (who, text, fields) => {
      const { alarm, because, message } = fields as { alarm?: string; because?: string; message?: string }
      const row = tables.messages.get(message ?? '')
      // A look-up cannot tell whose acceptance it sees: one that began before another attempt raises these without need.
      // A verdict that was truly wrong is found when it is committed, and a message that is truly doubled in the ledger.
      const isLookUps = alarm === 'verdict_corrected' || row?.resolution?.includes('"by":"lookup"') === true
      const isExpected =
        alarm === 'provider_credentials' || isLookUps || (row !== undefined && facts.mistaken.has(eventOf(row)))
      const isWeather =
        text === 'an adapter threw' ||
        text === 'provider refuses our credentials: stopped' ||
        (text === 'alarm' && isExpected)
      if (!isWeather) facts.broken('no bug is logged', `${who}: ${text} ${alarm ?? because ?? ''}`)
    },
    answered: (asked, answer) => checkAnswer(facts, heard, asked, answer),
    refused: (asked, refusal) => checkRefusal(facts, heard, asked, refusal),
    personSays: (event, outcome, isMistaken) => {
      if (!isMistaken) return
      const before = facts.mistaken.get(event) ?? { notSent: 0, sent: 0 }
      facts.mistaken.set(
        event,
        outcome === 'sent' ? { ...before, sent: before.sent + 1 } : { ...before, notSent: before.notSent + 1 },
      )
    },
    atEnd: () => {
      for (const row of tables.messages.values()) {
        const about = nameOf(row)
        const isAtRest =
          ['sent', 'failed', 'canceled'].includes(row.status) || (row.status === 'unknown' && row.plan === null)
        if (!isAtRest) facts.broken('13 liveness', `${about} is still ${row.status}`)
        const due = tables.dueWork.get(row.id)
        if ((due?.task === 'unknown') !== (row.status === 'unknown'))
          facts.broken(
            '13 liveness',
            `${about} is ${row.status}, and stands in the due work as ${due?.task ?? 'nothing'}`,
          )
      }
      checkReceiptsAtEnd(facts)
      if (facts.claims !== tables.messages.size + tables.erased.size)
        facts.broken('15 conservation', `${facts.claims} claims became ${tables.messages.size + tables.erased.size}`)
      for (const id of heard.claimedNothing)
        if (facts.claimers.has(id)) facts.broken('16 a refusal is definite', `${id} was refused, and claimed`)
    },
  }
}

/** What a run must have met at least once to prove anything: a rule that was never put to the test has not held. */
import type { Evidence } from './evidence.ts'
import { isFinal, type Heard } from './history.ts'
import { lateBy, type Stop } from './rules.ts'
import type { Struck } from './tormentor.ts'

export const outcomeNames = [
  'replayed',
  'another body refused',
  'caller gave up, and heard it later',
  'commit in doubt, read back',
  'lease lapsed',
  "a zombie's late result",
  'write gate shut',
  'repeated under its key',
  'look-up: found',
  'look-up: absence proven',
  'settled by a late answer',
  'unknown, for a person',
  'failed',
  'canceled',
  'void',
] as const
export type OutcomeName = (typeof outcomeNames)[number]

export function outcomesIn(
  { keys, tables }: Evidence,
  heard: readonly Heard[],
  struck: readonly Struck[],
): Record<OutcomeName, number> {
  const rows = tables.messages
  const events = rows.flatMap((row) => row.events)
  const settledBy = (by: string): number => rows.filter(({ resolvedBy }) => resolvedBy === by).length
  const count = (type: string): number => events.filter((event) => event.type === type).length
  const isGateShut = (data: Readonly<Record<string, unknown>>): boolean => data['code'] === 'write gate shut'
  return {
    replayed: heard.filter(({ replayed }) => replayed).length,
    'another body refused': heard.filter(({ said }) => said === 'idempotency-key-reused').length,
    'caller gave up, and heard it later': keys.filter((key) => {
      const gaveUp = key.heard.find(({ end }) => end === 'gave up')
      return gaveUp !== undefined && key.heard.some((one) => one.beganMs > gaveUp.endedMs && isFinal(one))
    }).length,
    'commit in doubt, read back': readBack(keys, struck),
    'lease lapsed': count('lease_lapsed'),
    "a zombie's late result": count('late_outcome'),
    'write gate shut': events.filter(({ data }) => isGateShut(data)).length,
    'repeated under its key': settledBy('provider_replay'),
    'look-up: found': rows.filter(({ resolvedBy, status }) => resolvedBy === 'lookup' && status === 'sent').length,
    'look-up: absence proven': events.filter(({ type, data }) => type === 'resolved' && data['by'] === 'lookup').length,
    'settled by a late answer': settledBy('late_answer'),
    'unknown, for a person': rows.filter(({ status, hasPlan }) => status === 'unknown' && !hasPlan).length,
    failed: rows.filter(({ status }) => status === 'failed').length,
    canceled: rows.filter(({ status }) => status === 'canceled').length,
    void: keys.filter(({ claimedAs }) => claimedAs === null).length,
  }
}

/** The claim was committed, its answer lost, and the request that made it was answered as the one that did. */
function readBack(keys: Evidence['keys'], struck: readonly Struck[]): number {
  const doubts = struck.filter(
    ({ fault }) => fault === 'store: claim lost after' || fault === 'store: claim closed after',
  )
  const heardOf = new Map(keys.map(({ asked, heard }) => [asked.key, heard]))
  return doubts.reduce((sum, { keys: inDoubt, gateway, at }) => {
    const answered = inDoubt.filter((key) =>
      heardOf
        .get(key)
        ?.some(
          (one) =>
            one.gateway === gateway &&
            one.beganMs <= at &&
            one.endedMs >= at &&
            one.end === 'answer' &&
            !one.replayed &&
            (one.status === 202 || isFinal(one) || one.said === 'outcome-unknown'),
        ),
    )
    return sum + answered.length
  }, 0)
}

export interface Times {
  readonly answers: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Later than promised by more than 250 ms, with the time left out in which the gateway was stopped. */
  readonly late: number
  readonly latestMs: number
}

const promptMs = 250

export function timesOf(heard: readonly Heard[], stopsOf: (gateway: number) => readonly Stop[]): Times {
  const answered = heard.filter(({ end }) => end === 'answer')
  const took = answered.map(({ beganMs, endedMs }) => endedMs - beganMs).toSorted((a, b) => a - b)
  const at = (part: number): number => took[Math.min(took.length - 1, Math.floor(took.length * part))] ?? 0
  const late = answered.map((one) => lateBy(one, stopsOf(one.gateway))).filter((ms) => ms > promptMs)
  return {
    answers: answered.length,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    late: late.length,
    latestMs: late.reduce((most, ms) => Math.max(most, ms), 0),
  }
}

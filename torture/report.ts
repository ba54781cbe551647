/** The report of a run: a table for people, the same as JSON, and each violation with the story of its key. */
import type { Evidence, KeyEvidence } from './evidence.ts'
import type { Heard } from './history.ts'
import type { OutcomeName, Times } from './outcomes.ts'
import { ruleNames, type RuleName, type Violation } from './rules.ts'

export interface Report {
  readonly seed: number
  readonly seconds: number
  readonly quietSeconds: number
  readonly gateways: number
  readonly keys: number
  readonly asked: number
  readonly statuses: Readonly<Record<string, number>>
  /** Of what stayed unknown: why, and who goes on. */
  readonly unknownBy: Readonly<Record<string, number>>
  readonly violations: Readonly<Record<RuleName, number>>
  readonly oldestInFlightMs: number
  readonly times: Times
  readonly faults: Readonly<Record<string, number>>
  readonly outcomes: Readonly<Record<OutcomeName, number>>
  /** Faults and outcomes that a whole run must meet, and did not. */
  readonly neverMet: readonly string[]
}

export function countBy<T>(list: readonly T[], nameOf: (one: T) => string): Record<string, number> {
  const counts = [...Map.groupBy(list, nameOf)].map(([name, all]) => [name, all.length] as const)
  return Object.fromEntries(counts.toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

export function statusesOf({ tables }: Evidence): Pick<Report, 'statuses' | 'unknownBy'> {
  const unknown = tables.messages.filter(({ status }) => status === 'unknown')
  return {
    statuses: countBy(tables.messages, ({ status }) => status),
    unknownBy: countBy(
      unknown,
      ({ provider, reason, hasPlan }) => `${provider}: ${reason ?? 'no reason'}${hasPlan ? ' (still asked for)' : ''}`,
    ),
  }
}

export function countViolations(violations: readonly Violation[]): Record<RuleName, number> {
  const of = (rule: RuleName): number => violations.filter((violation) => violation.rule === rule).length
  return Object.fromEntries(ruleNames.map((rule) => [rule, of(rule)])) as Record<RuleName, number>
}

const line = (name: string, value: string | number): string => `  ${name.padEnd(46)} ${String(value).padStart(8)}`
const lines = (counts: Readonly<Record<string, number>>): string[] =>
  Object.entries(counts).map(([name, count]) => line(name, count))

export function textOf(report: Report): string {
  const { times, violations } = report
  return [
    `Torture: ${report.gateways} gateways, ${report.seconds} s of faults, ${report.quietSeconds} s of quiet, seed ${report.seed}`,
    '',
    line('keys', report.keys),
    line('requests of callers', report.asked),
    line('answers', times.answers),
    line('p50 of answers, ms', times.p50Ms),
    line('p99 of answers, ms', times.p99Ms),
    line('answers more than 250 ms later than promised', times.late),
    line('the latest of them, ms', times.latestMs),
    line('oldest call in flight ever, ms', Math.round(report.oldestInFlightMs)),
    '',
    'What became of the messages',
    ...lines(report.statuses),
    'Unknown at the end, by provider and cause',
    ...lines(report.unknownBy),
    'Violations',
    ...lines(violations),
    'Outcomes',
    ...lines(report.outcomes),
    'Faults',
    ...lines(report.faults),
    ...(report.neverMet.length > 0 ? ['', `Never met: ${report.neverMet.join(', ')}`] : []),
    '',
  ].join('\n')
}

/** Who heard what, what left, and what the tables say. */
export function storyOf({ asked, heard, row, claimedAs, sentOut, accepted, requests }: KeyEvidence): string {
  const start = Math.min(...heard.map(({ beganMs }) => beganMs), ...sentOut.map(({ at }) => at))
  const at = (ms: number): string => `${((ms - start) / 1000).toFixed(3).padStart(8)} s`
  const heardLine = (one: Heard): string =>
    `${one.operation} at gateway ${one.gateway}, until ${at(one.endedMs).trim()}: ${one.status || one.end} ${one.said}` +
    `${one.replayed ? ', replayed' : ''}${one.sent === null ? '' : `, sent: ${one.sent}`}${one.retryable === null ? '' : `, retryable: ${one.retryable}`}`
  const told: readonly (readonly [number, string])[] = [
    ...heard.map((one) => [one.beganMs, heardLine(one)] as const),
    ...sentOut.map(
      (one) => [one.at, `left for the provider: ${one.fate}, told ${one.answered?.status ?? 'nothing'}`] as const,
    ),
    ...(row?.begun ?? []).map((begun) => [begun, 'an attempt began'] as const),
  ]
  return [
    `    ${asked.key}: ${asked.provider}, recipient ${asked.recipient ?? 'ordinary'}, ${asked.body}`,
    ...told.toSorted(([a], [b]) => a - b).map(([ms, what]) => `    ${at(ms)}  ${what}`),
    ...(row?.events ?? []).map(({ type, data }) => `      event ${type} ${JSON.stringify(data)}`),
    `    row: ${row === undefined ? (claimedAs === null ? 'a tombstone' : 'none') : `${row.id} ${row.status} ${row.reason ?? ''}, notAfter ${at(row.notAfter.getTime()).trim()}`}`,
    `    provider: ${requests} requests, accepted ${accepted} times`,
    '',
  ].join('\n')
}

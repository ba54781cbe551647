/** The rules: what must hold of every key whatever happened (reliability.md, section 1). Pure: evidence in, violations out. */
import type { KeyEvidence, Evidence } from './evidence.ts'
import { isFinal, tellsOfMessage, type Heard } from './history.ts'
import type { SentOut } from './provider-proxy.ts'
import type { MessageRow } from './tables.ts'

export const ruleNames = [
  'duplicate',
  'lost',
  'false verdict',
  'stuck',
  'left to a person',
  'changed answer',
  'claimed twice',
  'sent without a claim',
  'began too late',
  'other bytes under one key',
  'other message under one key',
  'undocumented answer',
  'late answer',
  'process',
] as const
export type RuleName = (typeof ruleNames)[number]

export interface Violation {
  readonly rule: RuleName
  readonly key: string | null
  readonly what: string
}

interface Rule {
  readonly name: RuleName
  /** What is wrong with a key, a sentence each. */
  readonly check: (key: KeyEvidence, evidence: Evidence) => readonly string[]
}

const isRefusalForNow = ({ answered }: SentOut): boolean =>
  answered !== null && (answered.code === 'rate_limited' || answered.code === 'unavailable')

/** A call may begin until half its lease has passed; what comes later is a process that should have kept silent. */
const gatePatienceMs = 1_500
/** An answer may be late by a machine that has other work; beyond this nobody kept the time. */
const latePatienceMs = 10_000
/** A row may be due, or a lease lapsed, for so long before it counts as stuck. */
const stuckAfterMs = 5_000

export const rules = (leaseMs: number, stopsOf: (gateway: number) => readonly Stop[]): readonly Rule[] => [
  {
    name: 'duplicate',
    check: ({ asked, accepted, sentOut }) => {
      const told: string[] = []
      if (accepted > 1) told.push(`the provider accepted it ${accepted} times`)
      const early = asked.provider.startsWith('sandbox-blind') || asked.provider === 'sandbox-lookup-eventual'
      const open = early ? sentOut.slice(0, -1).filter((request) => !isRefusalForNow(request)) : []
      if (open.length > 0)
        told.push(`sent again after a call that may have arrived (${sentOut.map(({ fate }) => fate).join('; ')})`)
      return told
    },
  },
  {
    name: 'lost',
    check: ({ heard, row, claimedAs }) => [
      ...(heard.some(tellsOfMessage) && row === undefined ? ['callers were told of a message that is not there'] : []),
      ...(heard.some(isVoided) && claimedAs !== null ? ['callers were told that it is void, and it is not'] : []),
      ...(row === undefined
        ? []
        : heard.flatMap((one) => {
            const status = statusTold(one)
            return status !== null && status !== row.status ? [`told ${status}, and it is ${row.status}`] : []
          })),
    ],
  },
  {
    name: 'false verdict',
    check: ({ heard, row, accepted }) => {
      const says = (word: string): boolean => heard.some(({ sent }) => sent === word)
      return [
        ...(row?.status === 'sent' && accepted === 0 ? ['it is `sent`, and was never accepted'] : []),
        ...(row !== undefined && ['failed', 'canceled'].includes(row.status) && accepted > 0
          ? [`it is \`${row.status}\`, and was accepted`]
          : []),
        ...(says('no') && accepted > 0 ? ['a caller heard `sent: no`, and it was accepted'] : []),
        ...((says('yes') || heard.some(({ status }) => status === 201)) && accepted === 0
          ? ['a caller heard that it was sent, and it was never accepted']
          : []),
        ...(heard.some(isVoided) && accepted > 0 ? ['a caller was told that it is void, and it was accepted'] : []),
      ]
    },
  },
  {
    name: 'stuck',
    check: ({ row }, { tables }) => {
      if (row === undefined) return []
      const late = tables.now.getTime() - stuckAfterMs
      const overdue = tables.due.filter(({ uuid, at }) => uuid === row.uuid && at !== null && at.getTime() < late)
      const lapsed = row.status === 'sending' && (row.leaseUntil?.getTime() ?? 0) < late
      return [
        ...(lapsed ? ['it is `sending`, and its lease lapsed long ago'] : []),
        ...overdue.map(({ task }) => `it was due for ${task} long ago`),
        ...(waits(row) && !tables.due.some(({ uuid }) => uuid === row.uuid)
          ? [`it is \`${row.status}\` and never due`]
          : []),
      ]
    },
  },
  {
    name: 'left to a person',
    check: ({ asked, row }, { tables }) => {
      if (row?.status !== 'unknown' || row.hasPlan || row.notAfter < tables.now) return []
      if (asked.provider === 'sandbox-lookup') return ['it could be asked for, and nobody will']
      // Refused for good after an answer was lost: the refusal speaks for its own call alone.
      return asked.provider === 'sandbox-keyed' && row.reason !== 'recipient_refused'
        ? ['it could be sent again under its key, and will not']
        : []
    },
  },
  {
    name: 'changed answer',
    check: ({ heard, row }) => {
      const finals = heard.filter((one) => one.end === 'answer' && one.operation === 'send' && isFinal(one))
      const answers = new Set(finals.map(({ bytes }) => bytes))
      const first = finals[0]
      const wentBack = heard.filter(
        (one) => first !== undefined && one.beganMs > first.endedMs && isOfMessage(one) && !isFinal(one),
      )
      return [
        ...(answers.size > 1 ? [`${answers.size} different final answers`] : []),
        ...(first !== undefined && typeof row?.answer === 'string' && !answers.has(row.answer)
          ? ['another answer is stored']
          : []),
        ...(wentBack.length > 0 ? [`after ${first?.status} it was ${wentBack[0]?.status} ${wentBack[0]?.said}`] : []),
        ...(finals.filter(({ replayed }) => !replayed).length > 1
          ? ['two callers were told that theirs was the first']
          : []),
      ]
    },
  },
  {
    name: 'claimed twice',
    check: ({ heard, rows }) => {
      const ids = new Set(heard.flatMap(({ messageId }) => messageId ?? []))
      return [
        ...(rows.length > 1 ? [`${rows.length} messages`] : []),
        ...(ids.size > 1 ? [`callers heard of ${[...ids].join(', ')}`] : []),
      ]
    },
  },
  {
    name: 'began too late',
    check: ({ row, sentOut }) =>
      sentOut.flatMap(({ at }) => {
        if (row === undefined) return []
        const since = Math.min(...row.begun.map((begun) => at - begun).filter((ms) => ms > -500))
        return [
          ...(since > leaseMs / 2 + gatePatienceMs ? [`its first byte left ${since} ms after its attempt began`] : []),
          ...(at > row.notAfter.getTime() + gatePatienceMs ? ['its first byte left after notAfter'] : []),
        ]
      }),
  },
  {
    name: 'other bytes under one key',
    check: ({ asked, sentOut }) =>
      asked.provider === 'sandbox-keyed' && new Set(sentOut.map(({ digest }) => digest)).size > 1
        ? ['its requests differ']
        : [],
  },
  {
    name: 'other message under one key',
    check: ({ heard }) =>
      heard
        .filter(({ operation, end }) => operation === 'send otherwise' && end === 'answer')
        .filter(({ said }) => said !== 'idempotency-key-reused' && !weather.includes(said))
        .map(({ status, said }) => `another body got ${status} ${said}`),
  },
  {
    name: 'undocumented answer',
    check: ({ heard }) =>
      heard
        .filter(({ end, operation }) => end === 'answer' && operation !== 'send otherwise')
        .filter(
          ({ said, status, operation }) =>
            !(documented[operation] ?? []).includes(`${status} ${said}`) && !weather.includes(said),
        )
        .map(({ operation, status, said }) => `${operation}: ${status} ${said}`),
  },
  {
    name: 'late answer',
    check: ({ heard }) =>
      heard.flatMap((one) => {
        const lateMs = lateBy(one, stopsOf(one.gateway))
        return lateMs > latePatienceMs ? [`answered ${lateMs} ms too late by gateway ${one.gateway}`] : []
      }),
  },
]

/** For a worker, and not for a person. */
const waits = ({ status, hasPlan }: MessageRow): boolean =>
  status === 'queued' || status === 'scheduled' || (status === 'unknown' && hasPlan)

/** Told where the gateway cannot say anything of the key, here and now. */
const weather: readonly string[] = ['store-unavailable', 'overloaded', 'shutting-down', 'in-progress']
const documented: Readonly<Record<string, readonly string[]>> = {
  send: [
    '201 message',
    '202 message',
    '409 message-canceled',
    '409 key-void',
    '422 message-rejected',
    '422 message-expired',
    '504 outcome-unknown',
  ],
  cancel: ['200 message', '409 too-late'],
  void: ['200 message', '409 key-taken'],
}

const isVoided = ({ operation, status, said }: Heard): boolean =>
  (operation === 'void' && status === 200) || said === 'key-void'

const isOfMessage = ({ end, operation, status, said, messageId }: Heard): boolean =>
  end === 'answer' &&
  operation === 'send' &&
  (status === 202 || said === 'outcome-unknown' || (said === 'in-progress' && messageId !== null))

/** What a final answer says that the message is. */
function statusTold(heard: Heard): string | null {
  if (heard.operation === 'cancel') return heard.status === 200 ? 'canceled' : null
  if (heard.operation !== 'send') return null
  if (heard.status === 201) return 'sent'
  if (heard.said === 'message-canceled') return 'canceled'
  return heard.said === 'message-rejected' || heard.said === 'message-expired' ? 'failed' : null
}

export interface Stop {
  readonly from: number
  readonly to: number
}

/** By how much an answer was late, less what its gateway was stopped meanwhile. */
export function lateBy({ end, beganMs, endedMs, dueMs }: Heard, stops: readonly Stop[]): number {
  if (end !== 'answer') return 0
  const stopped = stops.reduce(
    (sum, { from, to }) => sum + Math.max(0, Math.min(to, endedMs) - Math.max(from, beganMs)),
    0,
  )
  return Math.max(0, endedMs - dueMs - stopped)
}

export function violationsIn(evidence: Evidence, all: readonly Rule[]): Violation[] {
  const ofKeys = evidence.keys.flatMap((key) =>
    all.flatMap(({ name, check }) => check(key, evidence).map((what) => ({ rule: name, key: key.asked.key, what }))),
  )
  const unclaimed = evidence.unclaimed.map((id) => ({
    rule: 'sent without a claim' as const,
    key: null,
    what: `${id} left, and is in no table`,
  }))
  return [...ofKeys, ...unclaimed]
}

/** The targets: what is compared with what, how far it must go, and how far it should. */
import { median, ratioOf, type Cells, type Measure, type Ratio } from './cells.ts'
import type { Memory } from './scenarios.ts'

/** What is no comparison of rates, but stands by itself. */
export interface Alone {
  readonly stormMs: readonly number[]
  readonly startMs: readonly number[]
  readonly memory: Memory | null
}

export interface Verdict {
  readonly what: string
  readonly atLeast: string
  readonly aim: string
  readonly measured: string
  readonly met: 'aim met' | 'met' | '**not met**'
}

interface Comparison {
  readonly what: string
  readonly cell: string
  readonly connections: number
  readonly program?: string
  readonly base: string
  readonly measure?: Measure
  readonly least: number
  readonly aim: number
  /** Only with stored keys. */
  readonly filled?: boolean
}

const first = { cell: 'first sends', connections: 64 } as const

const comparisons: readonly Comparison[] = [
  { ...first, what: 'first sends, 64 connections, over the floor', base: 'floor', least: 1.5, aim: 2 },
  { ...first, what: 'the same, over the pass-through', base: 'pass-through', least: 0.6, aim: 0.8 },
  { ...first, what: "p99 over the floor's, 64 connections", base: 'floor', measure: 'p99Ms', least: 1, aim: 0.6 },
  {
    ...first,
    connections: 1,
    what: "p50 at 1 connection over the floor's",
    base: 'floor',
    measure: 'p50Ms',
    least: 1.25,
    aim: 1.1,
  },
  { ...first, what: 'first sends over the floor in groups', base: 'floor in groups', least: 0.7, aim: 0.85 },
  {
    ...first,
    connections: 256,
    what: 'first sends, 256 connections, over the floor',
    base: 'floor',
    least: 1.5,
    aim: 2,
  },
  {
    what: 'replays over a floor that reads one row',
    cell: 'replays',
    connections: 64,
    base: 'floor, one row read',
    least: 1,
    aim: 3,
  },
  {
    what: "`respond-async` acceptance over the floor's insert alone",
    cell: 'async acceptance',
    connections: 64,
    base: 'floor',
    least: 1,
    aim: 2,
  },
  {
    what: 'dispatch of queued messages over a pg-boss worker',
    cell: 'dispatch',
    connections: 64,
    base: 'pg-boss',
    least: 1.5,
    aim: 3,
  },
  { ...first, filled: true, what: 'first sends over the floor', base: 'floor', least: 1.5, aim: 2 },
  {
    filled: true,
    what: 'replays over a floor that reads one row',
    cell: 'replays',
    connections: 64,
    base: 'floor, one row read',
    least: 1,
    aim: 3,
  },
]

export const millions = (keys: number): string =>
  keys >= 1e6 ? `${keys / 1e6} M` : keys.toLocaleString('en', { useGrouping: true })

const times = (value: number): string => `${value.toFixed(2)} x`
export const spread = ({ median: middle, least, most }: Ratio): string =>
  `${times(middle)} (${least.toFixed(2)} to ${most.toFixed(2)})`

const verdictOf = (value: number, least: number, aim: number, smallIsGood: boolean): Verdict['met'] => {
  const reaches = (goal: number): boolean => (smallIsGood ? value <= goal : value >= goal)
  return reaches(aim) ? 'aim met' : reaches(least) ? 'met' : '**not met**'
}

export function verdicts(cells: Cells, { stormMs, startMs, memory }: Alone): Verdict[] {
  const sizes = [...new Set(cells.all.map(({ keys }) => keys))]
  const found = comparisons.flatMap((comparison) => {
    const { what, cell, connections, base, measure = 'perSecond', least, aim, filled = false } = comparison
    return sizes
      .filter((keys) => keys > 0 === filled)
      .flatMap((keys): Verdict[] => {
        const ratio = ratioOf(cells.find({ what: cell, keys, connections, delayMs: 0 }), 'gateway', base, measure)
        if (ratio === null) return []
        return [
          {
            what: filled ? `${what}, ${millions(keys)} stored keys` : what,
            atLeast: times(least),
            aim: times(aim),
            measured: spread(ratio),
            met: verdictOf(ratio.median, least, aim, measure !== 'perSecond'),
          },
        ]
      })
  })
  const alone = (what: string, value: number | null, unit: string, least: number, aim: number): Verdict[] =>
    value === null
      ? []
      : [
          {
            what,
            atLeast: `${least} ${unit}`,
            aim: `${aim} ${unit}`,
            measured: `${Math.round(value)} ${unit}`,
            met: verdictOf(value, least, aim, true),
          },
        ]
  return [
    ...found,
    ...alone('200 equal requests at once, provider 50 ms: until all are answered', median(stormMs), 'ms', 150, 150),
    ...alone(`most memory over ${memory?.sends} sends in a row`, memory?.mostMb ?? null, 'MB', 300, 180),
    ...alone('start on a warm data folder, to the first accepted send', median(startMs), 'ms', 3000, 1500),
  ]
}

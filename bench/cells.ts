/** What was measured: one cell a thing, size, number of connections and delay; in it the samples of every program, by round. */
import type { Sample } from './measure.ts'

export interface Place {
  readonly what: string
  readonly keys: number
  readonly connections: number
  readonly delayMs: number
}

export interface Cell extends Place {
  /** By program, one a round. */
  readonly samples: Map<string, Sample[]>
}

export class Cells {
  readonly all: Cell[] = []

  add(place: Place, program: string, sample: Sample): void {
    const cell = this.find(place) ?? { ...place, samples: new Map<string, Sample[]>() }
    if (!this.all.includes(cell)) this.all.push(cell)
    cell.samples.set(program, [...(cell.samples.get(program) ?? []), sample])
  }

  find({ what, keys, connections, delayMs }: Place): Cell | undefined {
    return this.all.find(
      (cell) =>
        cell.what === what && cell.keys === keys && cell.connections === connections && cell.delayMs === delayMs,
    )
  }
}

export type Measure = keyof Sample | 'cpuMs'

/** `cpuMs` is of Node and PostgreSQL together. */
function valueOf(sample: Sample | undefined, measure: Measure): number | null {
  if (sample === undefined) return null
  if (measure !== 'cpuMs') return sample[measure]
  const { nodeCpuMs, postgresCpuMs } = sample
  return nodeCpuMs === null || postgresCpuMs === null ? null : nodeCpuMs + postgresCpuMs
}

export function median(values: readonly number[]): number | null {
  const sorted = [...values].toSorted((a, b) => a - b)
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]]
  return low === undefined || high === undefined ? null : (low + high) / 2
}

const known = (values: readonly (number | null | undefined)[]): number[] =>
  values.filter((value): value is number => typeof value === 'number' && Number.isFinite(value))

export const medianOf = (samples: readonly Sample[] | undefined, measure: Measure): number | null =>
  median(known(samples?.map((sample) => valueOf(sample, measure)) ?? []))

export interface Ratio {
  readonly median: number
  readonly least: number
  readonly most: number
}

/** Of two programs that were measured in turn: the ratio of each round, and the median of these. */
export function ratioOf(
  cell: Cell | undefined,
  program: string,
  base: string,
  measure: Measure = 'perSecond',
): Ratio | null {
  const over = cell?.samples.get(base)
  const ratios = known(
    (cell?.samples.get(program) ?? []).map((sample, round) => {
      const [value, under] = [valueOf(sample, measure), valueOf(over?.[round], measure)]
      return value === null || under === null ? null : value / under
    }),
  )
  const middle = median(ratios)
  return middle === null ? null : { median: middle, least: Math.min(...ratios), most: Math.max(...ratios) }
}

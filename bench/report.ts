/** The results as a document: verdicts first, then every cell with its medians, then the machine. */
import { cpus, release, totalmem, type } from 'node:os'
import { median, medianOf, ratioOf, type Cell, type Cells, type Measure } from './cells.ts'
import type { Plan } from './plan.ts'
import { millions, spread, verdicts, type Alone } from './targets.ts'

export interface Told {
  readonly cells: Cells
  readonly alone: Alone
  readonly plan: Plan
  readonly command: string
  readonly postgres: string
  /** Of the code that was measured. */
  readonly commit: string
  readonly faults: readonly string[]
}

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [row(head), row(head.map((_, i) => (i === 0 ? '---' : '---:'))), ...rows.map(row)].join('\n')

const columns: readonly { name: string; measure: Measure; digits: number }[] = [
  { name: 'per second', measure: 'perSecond', digits: 0 },
  { name: 'p50 ms', measure: 'p50Ms', digits: 1 },
  { name: 'p99 ms', measure: 'p99Ms', digits: 1 },
  // ms of one send is s of 1,000
  { name: 'Node CPU s', measure: 'nodeCpuMs', digits: 2 },
  { name: 'PostgreSQL CPU s', measure: 'postgresCpuMs', digits: 2 },
  { name: 'WAL bytes', measure: 'walBytes', digits: 0 },
  { name: 'commits', measure: 'commits', digits: 2 },
  { name: 'RSS MB', measure: 'residentMb', digits: 0 },
]

const bases: Readonly<Record<string, string>> = { replays: 'floor, one row read', dispatch: 'pg-boss' }

function cellTable(cell: Cell): string {
  const base = bases[cell.what] ?? 'floor'
  const rows = [...cell.samples].map(([program, samples]) => {
    const ratio = ratioOf(cell, program, base)
    const values = columns.map(({ measure, digits }) => {
      const value = medianOf(samples, measure)
      if (value !== null) return value.toFixed(digits)
      return measure === 'p50Ms' || measure === 'p99Ms' ? '' : 'not measured'
    })
    const cpu = ratioOf(cell, program, base, 'cpuMs')
    const over = program === base ? ['1', '1'] : [ratio, cpu].map((each) => (each === null ? '' : spread(each)))
    return [program, ...over, ...values]
  })
  return table(['', `rate over ${base}`, 'CPU over it', ...columns.map(({ name }) => name)], rows)
}

const title = ({ what, connections, keys, delayMs }: Cell): string =>
  `### ${what[0]?.toUpperCase()}${what.slice(1)}, ${millions(keys)} stored keys, ${connections} ${connections === 1 ? 'connection' : 'connections'}${delayMs === 0 ? '' : `, provider ${delayMs} ms`}`

const milliseconds = (values: readonly number[]): string => values.map((ms) => Math.round(ms)).join(', ')

export function report({ cells, alone, plan, command, postgres, commit, faults }: Told): string {
  const { memory, stormMs, startMs } = alone
  const processors = cpus()
  const mb = (value: number | null): string => (value === null ? 'not measured' : `${Math.round(value)} MB`)
  const others = median(
    cells.all.flatMap(({ samples }) => [...samples.values()].flatMap((each) => medianOf(each, 'others') ?? [])),
  )
  const lines = [
    '# Results of the benchmark',
    '',
    `Written by \`${command}\` on ${new Date().toISOString().slice(0, 10)}${commit === '' ? '' : `, at commit ${commit}`}; not by hand.`,
    '',
    `Machine: ${processors.length} x ${processors[0]?.model.trim() ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GB, ${type()} ${release()}; Node ${process.version}, PostgreSQL ${postgres}, fsync on.`,
    'Load, program, provider stub and PostgreSQL share it, so read ratios, not figures. Programs were measured in turn,',
    `${plan.rounds} rounds of ${plan.measureMs / 1000} s each after ${plan.warmMs / 1000} s; a ratio is the median of the rounds' ratios (least to most), all else a median.`,
    ...(others === null
      ? []
      : [
          `Processes that are not of the run took ${Math.round(others * 100)} % of the processors meanwhile (median). The more that is, the less do rates hold, and the`,
          'worse for a program of few processes, since a processor is shared out by process; CPU per message holds better.',
        ]),
    'What each program does is said on top of its file in `bench/programs`.',
    '',
    faults.length === 0
      ? 'No message reached the provider twice, and every answer was the expected one.'
      : `**The run failed:**\n\n${faults.map((fault) => `- ${fault}`).join('\n')}`,
    '',
    '## Targets',
    '',
    table(
      ['the gateway', 'at least', 'aim', 'measured', ''],
      verdicts(cells, alone).map(({ what, atLeast, aim, measured, met }) => [what, atLeast, aim, measured, met]),
    ),
    '',
    ...(stormMs.length === 0 ? [] : [`200 equal requests at once, all rounds: ${milliseconds(stormMs)} ms.`]),
    ...(startMs.length === 0 ? [] : [`Starts: ${milliseconds(startMs)} ms.`]),
    ...(memory === null
      ? []
      : [
          `Memory over ${memory.sends} sends: ${mb(memory.beforeMb)} before, ${mb(memory.halfwayMb)} halfway, ${mb(memory.afterMb)} after, ${mb(memory.mostMb)} at most.`,
        ]),
    '',
    '## Everything that was measured',
    '',
    'CPU is user and system time in seconds of 1,000 messages; WAL and commits are of one message. Replays and conflicts are',
    'of 10,000 sends filled in beforehand where no stored keys were asked for.',
    ...cells.all.flatMap((cell) => ['', title(cell), '', cellTable(cell)]),
    '',
  ]
  return lines.join('\n')
}

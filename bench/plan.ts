/** The flags of a run, and the plan that they make. */
import { parseArgs } from 'node:util'

export const parts = ['sends', 'replays', 'conflicts', 'async', 'storm', 'start', 'soak'] as const
export type Part = (typeof parts)[number]

export interface Plan {
  readonly parts: readonly Part[]
  readonly connections: readonly number[]
  /** Stored keys before the first send, one block of the run each. */
  readonly keys: readonly number[]
  /** Of the provider's answer; all but 0 are measured at 64 connections alone. */
  readonly delaysMs: readonly number[]
  readonly rounds: number
  readonly warmMs: number
  readonly measureMs: number
  /** Sends of the look at memory. */
  readonly soak: number
  readonly out: string
  readonly profileDir: string | null
}

const flags = {
  quick: { type: 'boolean', default: false },
  parts: { type: 'string' },
  connections: { type: 'string' },
  keys: { type: 'string' },
  delays: { type: 'string' },
  rounds: { type: 'string' },
  seconds: { type: 'string' },
  warm: { type: 'string' },
  soak: { type: 'string' },
  out: { type: 'string', default: 'bench/RESULTS.md' },
  profile: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const

export const help = `Measures the gateway against programs that do less, in turn, on one PostgreSQL, one provider stub and one load.

  npm run bench                    everything, with 0 and 1 M stored keys (about 40 minutes)
  npm run bench -- --quick         under 3 minutes: 1 and 64 connections, no stored keys

  --parts ${parts.join(',')}
  --connections 1,8,64,256         of first sends; all else is measured with 64
  --keys 0,1000000                 stored keys before the first send; 10000000 takes long to fill
  --delays 0,50                    milliseconds that the provider takes
  --rounds 3                       of all programs in turn; medians are told
  --seconds 8, --warm 2            of one measurement, and before it
  --soak 100000                    sends of the look at memory; 0: none
  --out FILE                       default bench/RESULTS.md
  --profile FOLDER                 the gateway writes CPU profiles there (which slows it down)

It exits with 1 if the provider saw a message twice, or an answer was not the expected one.
`

/** @returns null: help was asked for. @throws Error with one clear line */
export function planFrom(argv: readonly string[]): Plan | null {
  const { values } = parseArgs({ args: [...argv], options: flags, strict: true, allowPositionals: false })
  if (values.help) return null
  const { quick } = values
  const numbers = (name: string, given: string | undefined, otherwise: number[]): number[] => {
    const list = given?.split(',').map(Number) ?? otherwise
    if (list.some((n) => !Number.isFinite(n) || n < 0)) throw new Error(`--${name}: must be numbers, 0 or more`)
    return list
  }
  const number = (name: string, given: string | undefined, otherwise: number, least = 0): number => {
    const [first = otherwise, ...others] = numbers(name, given, [otherwise])
    if (others.length > 0 || first < least) throw new Error(`--${name}: must be one number, ${least} or more`)
    return first
  }
  const asked = values.parts?.split(',')
  const unknown = asked?.find((part) => !(parts as readonly string[]).includes(part))
  if (unknown !== undefined) throw new Error(`--parts: ${unknown} is none of ${parts.join(', ')}`)
  return {
    parts: parts.filter((part) => asked?.includes(part) ?? true),
    connections: numbers('connections', values.connections, quick ? [1, 64] : [1, 8, 64, 256]),
    keys: numbers('keys', values.keys, quick ? [0] : [0, 1_000_000]),
    delaysMs: numbers('delays', values.delays, quick ? [0] : [0, 50]),
    rounds: number('rounds', values.rounds, quick ? 2 : 3, 1),
    warmMs: number('warm', values.warm, quick ? 0.7 : 2) * 1000,
    measureMs: number('seconds', values.seconds, quick ? 1.5 : 8, 0.5) * 1000,
    soak: number('soak', values.soak, quick ? 0 : 100_000),
    out: values.out,
    profileDir: values.profile ?? null,
  }
}

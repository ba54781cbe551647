/** What a run is asked to do: its flags, checked before anything is started. */
import { parseArgs } from 'node:util'

export interface Plan {
  /** How long the faults go on. Quiet follows. */
  readonly seconds: number
  readonly gateways: number
  readonly callers: number
  readonly seed: number
  /** The longest that quiet may take. */
  readonly quietSeconds: number
  /** Where the report goes as JSON. */
  readonly out: string | null
  /** The run's folder stays: logs, ledger, history. */
  readonly keep: boolean
}

export const help = `npm run torture -- [flags]

  --seconds N        how long faults happen (120); up to --quiet seconds more until everything is settled.
                     A run of 60 s or more that has not met all that it is for goes on, twice at most
  --gateways N       gateway processes, 2 to 4 (3)
  --callers N        callers at a time (64)
  --seed N           the same keys, bodies and order of faults once more (else by chance, and told)
  --quiet N          the longest that the quiet after the faults may take, in seconds (100)
  --out FILE         the report as JSON
  --keep             keep the run's folder, with the gateways' logs, also when all is well

Exit code 1: something was sent twice, lost, told wrongly or got stuck, or a fault or an outcome never happened.
`

/** A run of so many seconds meets every fault and every outcome that it is for. */
export const wholeRunSeconds = 60

/** @returns null: help was asked for @throws Error that names the flag */
export function planFrom(args: readonly string[], anySeed: () => number): Plan | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: 'string', default: '120' },
      gateways: { type: 'string', default: '3' },
      callers: { type: 'string', default: '64' },
      seed: { type: 'string' },
      quiet: { type: 'string', default: '100' },
      out: { type: 'string' },
      keep: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
    strict: true,
    allowPositionals: false,
  })
  if (values.help) return null
  const whole = (flag: 'seconds' | 'gateways' | 'callers' | 'seed' | 'quiet', min: number, max: number): number => {
    const value = values[flag] ?? ''
    if (!/^\d{1,10}$/.test(value) || Number(value) < min || Number(value) > max)
      throw new Error(`--${flag} must be a whole number from ${min} to ${max}`)
    return Number(value)
  }
  return {
    seconds: whole('seconds', 5, 3_600),
    gateways: whole('gateways', 2, 4),
    callers: whole('callers', 1, 256),
    seed: values.seed === undefined ? anySeed() : whole('seed', 0, 4_294_967_295),
    quietSeconds: whole('quiet', 10, 600),
    out: values.out ?? null,
    keep: values.keep,
  }
}

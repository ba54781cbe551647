/** Processor time and memory of processes, from Linux' /proc. On other systems: null, said as "not measured". */
import { readdirSync, readFileSync } from 'node:fs'

/** USER_HZ: 100 on every Linux that Node runs on. */
const ticksPerSecond = 100

interface Stat {
  readonly parent: number
  /** User and system time of its own, and of children that it has waited for, in seconds. */
  readonly own: number
  readonly ended: number
}

function statOf(pid: number | string): Stat | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name of the program stands in brackets and may hold anything.
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    const ticks = (...at: number[]): number => at.reduce((sum, i) => sum + (fields[i] ?? 0), 0) / ticksPerSecond
    return { parent: fields[1] ?? 0, own: ticks(11, 12), ended: ticks(13, 14) }
  } catch {
    return null // no /proc, or no such process any more
  }
}

export const cpuSecondsOf = (pid: number): number | null => statOf(pid)?.own ?? null

/** Of a process and all its children, those that have ended too. */
export function cpuSecondsOfFamily(pid: number): number | null {
  const head = statOf(pid)
  if (head === null) return null
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(statOf)
    .filter((stat) => stat?.parent === pid)
  return children.reduce((sum, stat) => sum + (stat?.own ?? 0), head.own + head.ended)
}

/** Of all processors together since the start of the machine, what a virtual one was kept waiting included. */
export function busySeconds(): number | null {
  try {
    const fields = readFileSync('/proc/stat', 'utf8').split('\n')[0]?.split(/\s+/).slice(1).map(Number) ?? []
    const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = fields
    return (user + nice + system + irq + softirq + steal) / ticksPerSecond
  } catch {
    return null // no /proc
  }
}

export const parentOf = (pid: number): number | null => statOf(pid)?.parent ?? null

/** Resident memory in MB. */
export function residentMb(pid: number): number | null {
  try {
    const kb = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return kb === undefined ? null : Number(kb) / 1024
  } catch {
    return null
  }
}

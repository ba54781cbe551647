/**
 * The cases of the matrix: every kind of provider, every fault that it can meet, every way to send, and something that
 * happens at every call which the gateway makes.
 */
import { momentsAt, type Mishap, type Moment } from './mortal.ts'
import { ways, type Case, type Stage, type Way, type World } from './stage.ts'
import { faults, kinds, type Fault, type FaultName, type Kind } from './vendors.ts'

export const kindNames = Object.keys(kinds) as Kind[]
export const faultNames = Object.keys(faults) as FaultName[]

export const canMeet = (kind: Kind, fault: FaultName): boolean => (faults[fault] as Fault).of?.includes(kind) ?? true

/** Scheduled sends differ from asynchronous ones in how they begin: two faults show it. */
const scheduledFaults: readonly FaultName[] = ['none', 'accepts, answer lost']
const isPlayed = (way: Way, fault: FaultName): boolean => way !== 'scheduled' || scheduledFaults.includes(fault)

const undisturbed = (): Case[] =>
  kindNames.flatMap((kind) =>
    faultNames
      .filter((fault) => canMeet(kind, fault))
      .flatMap((fault) =>
        ways
          .filter((way) => isPlayed(way, fault))
          .map((way): Case => ({ kind, fault, way, first: null, second: null })),
      ),
  )

const mishaps = (steps: readonly string[], allowed: readonly Moment[] | null = null): Mishap[] =>
  steps.flatMap((step, i) =>
    momentsAt(step)
      .filter((moment) => allowed?.includes(moment) ?? true)
      .map((moment) => ({ at: i + 1, step, moment })),
  )

/** Until nothing is left that could happen to it: what goes before a mishap is as it was without. */
async function disturbed(stage: Stage, calm: readonly World[]): Promise<World[]> {
  const cases = calm.flatMap(({ kind, fault, way, gateways }): Case[] =>
    mishaps(gateways[0]?.steps ?? []).map((first) => ({ kind, fault, way, first, second: null })),
  )
  return playAll(stage, cases)
}

const twiceFaults: readonly FaultName[] = ['none', 'accepts not, answer lost']

/** A death of the gateway that follows a dead one, at every step of its own. */
async function disturbedTwice(stage: Stage, once: readonly World[]): Promise<World[]> {
  const cases = once
    .filter(
      ({ way, fault, first }) => way === 'synchronous' && twiceFaults.includes(fault) && first?.moment === 'dies after',
    )
    .flatMap(({ kind, fault, way, first, gateways }): Case[] =>
      mishaps(gateways[1]?.steps ?? [], ['dies after']).map((second) => ({
        kind,
        fault,
        way,
        first,
        second,
      })),
    )
  return playAll(stage, cases)
}

/** So many worlds side by side: few enough for the data base, and enough to share the passing of time. */
const together = 1_000

async function playAll(stage: Stage, cases: readonly Case[]): Promise<World[]> {
  const all: World[] = []
  for (let from = 0; from < cases.length; from += together)
    all.push(...(await stage.play(cases.slice(from, from + together))))
  return all
}

export interface Matrix {
  readonly calm: readonly World[]
  readonly once: readonly World[]
  readonly twice: readonly World[]
}

export async function playMatrix(stage: Stage): Promise<Matrix> {
  const calm = await playAll(stage, undisturbed())
  const once = await disturbed(stage, calm)
  return { calm, once, twice: await disturbedTwice(stage, once) }
}

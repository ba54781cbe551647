/** Chance from a seed: the same seed gives the same keys, bodies and order of faults. What meets what is up to the machine. */
export interface Chance {
  /** In [0, 1). */
  next(): number
  /** In [from, to). */
  between(from: number, to: number): number
  whole(from: number, to: number): number
  pick<T>(list: readonly T[]): T
  happens(probability: number): boolean
  shuffled<T>(list: readonly T[]): T[]
  /** Another sequence, by its name. */
  fork(name: string): Chance
}

/** mulberry32. */
export function chanceFrom(seed: number): Chance {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const whole = (from: number, to: number): number => from + Math.floor(next() * (to - from))
  const pick = <T>(list: readonly T[]): T => {
    if (list.length === 0) throw new Error('nothing to pick from')
    return list[whole(0, list.length)] as T
  }
  return {
    next,
    between: (from, to) => from + next() * (to - from),
    whole,
    pick,
    happens: (probability) => next() < probability,
    shuffled: <T>(list: readonly T[]) => {
      const left = [...list]
      return list.map(() => left.splice(whole(0, left.length), 1)[0] as T)
    },
    fork: (name) => {
      let hash = (seed ^ 0x9e3779b9) >>> 0
      for (const character of name) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0
      return chanceFrom(hash)
    },
  }
}

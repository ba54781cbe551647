/** Chance from a seed: xoshiro128** (Blackman and Vigna), seeded by splitmix32. The same seed is the same history. */
export interface Chance {
  /** In [0, 1). */
  readonly random: () => number
  /** A whole number, both ends included. */
  readonly between: (min: number, max: number) => number
  /** True with this probability. */
  readonly happens: (probability: number) => boolean
  readonly pick: <T>(list: readonly T[]) => T
}

export function chanceFrom(seed: number): Chance {
  let split = seed >>> 0
  const splitmix = (): number => {
    split = (split + 0x9e3779b9) >>> 0
    let z = split
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad)
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97)
    return (z ^ (z >>> 15)) >>> 0
  }
  let [a, b, c, d] = [splitmix(), splitmix(), splitmix(), splitmix()]
  const rotate = (x: number, k: number): number => ((x << k) | (x >>> (32 - k))) >>> 0
  const next = (): number => {
    const result = Math.imul(rotate(Math.imul(b, 5), 7), 9) >>> 0
    const t = b << 9
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= t
    d = rotate(d, 11)
    return result
  }
  const random = (): number => next() / 4_294_967_296
  const between = (min: number, max: number): number => min + Math.floor(random() * (max - min + 1))
  return {
    random,
    between,
    happens: (probability) => probability > 0 && random() < probability,
    pick: (list) => {
      const picked = list[between(0, list.length - 1)]
      if (picked === undefined) throw new Error('nothing to pick from')
      return picked
    },
  }
}

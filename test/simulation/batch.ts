/** Many histories: how many were played, what they showed, and the first that broke a rule, told so that it can be read. */
import { playHistory, type History } from './history.ts'
import { addSeen, unseenIn, type Seen, type Sometimes } from './sometimes.ts'

export interface Batch {
  readonly histories: number
  readonly aMinute: number
  readonly seen: Seen
  readonly unseen: readonly Sometimes[]
  readonly failed: History | undefined
}

/**
 * Plays seeds until one fails.
 * @param isOver is asked after each, with the number of those that were played
 */
export async function playBatch(
  seeds: Iterable<number>,
  isOver: (played: number) => boolean = () => false,
): Promise<Batch> {
  const began = performance.now()
  const seen = new Map<Sometimes, number>()
  let histories = 0
  let failed: History | undefined
  for (const seed of seeds) {
    const history = await playHistory(seed)
    histories++
    addSeen(seen, history.seen)
    if (history.broken !== undefined) failed = history
    if (failed !== undefined || isOver(histories)) break
  }
  const minutes = (performance.now() - began) / 60_000
  return { histories, aMinute: Math.round(histories / minutes), seen, unseen: unseenIn(seen, histories), failed }
}

export function* seedsFrom(first: number): Generator<number> {
  for (let seed = first; ; seed = (seed + 1) >>> 0) yield seed
}

/** The history of a seed that failed, line by line, and how to see it again. */
export async function told({ seed, broken }: History): Promise<string> {
  const { lines } = await playHistory(seed, true)
  return [
    `The history of seed ${seed}:`,
    ...lines,
    '',
    `${broken ?? 'All rules hold'}.`,
    `See it again: npm run simulate -- --seed ${seed} --trace`,
    'When it is mended, give the seed a name in test/simulation/seeds.ts.',
  ].join('\n')
}

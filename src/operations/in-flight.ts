/** The claims and calls that this process is making, by message: for draining, and so that waiters do not poll for their own. */
export interface InFlight {
  has(messageId: string): boolean
  count(): number
  track<T>(messageId: string, work: Promise<T>): Promise<T>
  /** Resolves when none is left. */
  idle(): Promise<void>
}

export function inFlight(): InFlight {
  // By message, and then each for itself: a late first attempt may end while the second one runs.
  const running = new Map<string, Set<Promise<unknown>>>()
  const all = (): Promise<unknown>[] => [...running.values()].flatMap((works) => [...works])
  return {
    has: (messageId) => running.has(messageId),
    count: () => all().length,
    track: async (messageId, work) => {
      const works = running.get(messageId) ?? new Set()
      running.set(messageId, works.add(work))
      try {
        return await work
      } finally {
        works.delete(work)
        if (works.size === 0 && running.get(messageId) === works) running.delete(messageId)
      }
    },
    idle: async () => {
      while (running.size > 0) await Promise.allSettled(all())
    },
  }
}

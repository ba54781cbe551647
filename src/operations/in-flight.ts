/** The claims and calls that this process is making, by message: for draining, and so that waiters do not poll for their own. */
export interface InFlight {
  has(messageId: string): boolean
  count(): number
  track<T>(messageId: string, work: Promise<T>): Promise<T>
  /** Resolves when none is left. */
  idle(): Promise<void>
}

export function inFlight(): InFlight {
  // How many of each message: a late first attempt may end while the second one runs.
  const running = new Map<string, number>()
  let count = 0
  let waiting: (() => void)[] = []
  const end = (messageId: string): void => {
    count--
    const left = (running.get(messageId) ?? 1) - 1
    if (left > 0) running.set(messageId, left)
    else running.delete(messageId)
    if (running.size > 0) return
    for (const resolve of waiting) resolve()
    waiting = []
  }
  return {
    has: (messageId) => running.has(messageId),
    count: () => count,
    track: async (messageId, work) => {
      count++
      running.set(messageId, (running.get(messageId) ?? 0) + 1)
      try {
        return await work
      } finally {
        end(messageId)
      }
    },
    idle: async () => {
      while (running.size > 0) await new Promise<void>((resolve) => void waiting.push(resolve))
    },
  }
}

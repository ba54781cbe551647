/** The claims and calls that this process is making, by message: for draining, and so that waiters do not poll for their own. */
export interface InFlight {
  has(messageId: string): boolean
  count(): number
  track<T>(messageId: string, work: Promise<T>): Promise<T>
  /** Resolves when none is left. */
  idle(): Promise<void>
}

export function inFlight(): InFlight {
  const running = new Map<string, Promise<unknown>>()
  return {
    has: (messageId) => running.has(messageId),
    count: () => running.size,
    track: async (messageId, work) => {
      running.set(messageId, work)
      try {
        return await work
      } finally {
        if (running.get(messageId) === work) running.delete(messageId) // else another call of it runs by now
      }
    },
    idle: async () => {
      while (running.size > 0) await Promise.allSettled(running.values())
    },
  }
}

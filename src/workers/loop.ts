/** The only loop: runs a worker again and again, one run at a time, and sooner when it is nudged. */
import type { Clock } from '../clock.ts'
import type { Log } from '../deps.ts'

export interface Loop {
  /** Something is due: run now, or once more after the present run. */
  nudge(): void
  /** Resolves when the present run has ended; none follows. */
  stop(): Promise<void>
}

/** @param run one pass; `true` if there is more to do at once. An error is logged, and the next pass comes as usual. */
export function startLoop(
  { clock, log }: { clock: Clock; log: Log },
  name: string,
  everyMs: number,
  run: () => Promise<boolean>,
): Loop {
  let stopped = false
  let again = false
  let cancel: () => void = () => {}
  let running: Promise<void> | null = null

  const pass = async (): Promise<void> => {
    again = false
    let more = false
    try {
      more = await run()
    } catch (error) {
      log.warn({ worker: name, error: error instanceof Error ? error.name : 'error' }, 'a worker pass failed')
    }
    running = null
    if (stopped) return
    if (more || again) start()
    else cancel = clock.after(everyMs, start)
  }
  const start = (): void => {
    cancel()
    running ??= pass()
  }
  start()
  return {
    nudge: () => {
      if (stopped) return
      again = true
      start()
    },
    stop: async () => {
      stopped = true
      cancel()
      await running
    },
  }
}

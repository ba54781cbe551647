/** Which loops run in a process, and how often. */
import type { DatabaseClock } from '../clock.ts'
import type { Deps } from '../deps.ts'
import { createCollector } from './collector.ts'
import * as dispatcher from './dispatcher.ts'
import { startLoop } from './loop.ts'
import * as reaper from './reaper.ts'
import type { Pass } from './pass.ts'
import { createReconciler } from './reconciler.ts'
import { createRescuer } from './rescuer.ts'

const dispatchEveryMs = 200
const clockEveryMs = 10_000
const collectEveryMs = 30_000
const reapEveryMs = 3_600_000
const dayMs = 86_400_000
/** Our reading of the data base's clock may be a moment ahead of it. */
const graceMs = 10

export interface WorkersOptions {
  /** `api`: only the clock is kept. */
  readonly role: 'api' | 'worker' | 'all'
  readonly sweepMs: number
  readonly retentionDays: number
}

export interface Workers {
  nudgeDispatcher(): void
  /** A step about an unknown message will be due then. */
  nudgeReconciler(at: Date): void
  /** No pass begins any more; what was taken goes on. */
  stop(): Promise<void>
  /** Resolves when what was taken has been dealt with. */
  idle(): Promise<void>
}

export function startWorkers(
  deps: Deps,
  clock: DatabaseClock,
  { role, sweepMs, retentionDays }: WorkersOptions,
): Workers {
  const with_ = { clock, log: deps.log }
  const keepTime = startLoop(with_, 'clock', clockEveryMs, async () => {
    await clock.synchronise().catch((error: unknown) => {
      deps.metrics.storeUp.set(0)
      throw error
    })
    deps.metrics.storeUp.set(1)
    return false
  })
  if (role === 'api')
    return {
      nudgeDispatcher: () => {},
      nudgeReconciler: () => {},
      stop: async () => keepTime.stop(),
      idle: async () => {},
    }
  const pending = new Set<Promise<void>>()
  /** Keeps what a pass began, and looks again when it is done: a slot that comes free may be for what still waits. */
  const follow = ({ taken, done }: Pass, again: () => void): false => {
    if (taken === 0) return false
    const dealt = done.then((count) => {
      pending.delete(dealt)
      if (count > 0) again() // what was only put off has its time
    })
    pending.add(dealt)
    return false
  }
  const dispatching = startLoop(with_, 'dispatcher', dispatchEveryMs, async () =>
    follow(await dispatcher.runOnce(deps), () => dispatching.nudge()),
  )
  const reconciler = createReconciler(deps)
  const reconciling = startLoop(with_, 'reconciler', sweepMs, async () =>
    follow(await reconciler.runOnce(), () => reconciling.nudge()),
  )
  const rescuer = createRescuer(deps)
  const rescuing = startLoop(with_, 'rescuer', sweepMs, async () => {
    const { rescued } = await rescuer.runOnce()
    if (rescued > 0) deps.log.warn({ rescued }, 'leases lapsed: messages are unknown now')
    return false
  })
  const collector = createCollector(deps)
  const collecting = startLoop(with_, 'collector', collectEveryMs, async () => {
    const applied = await collector.runOnce()
    if (applied > 0) deps.log.warn({ applied }, 'receipts were left over: they are applied now')
    return false
  })
  const reaping = startLoop(with_, 'reaper', reapEveryMs, async () => {
    const erased = await reaper.runOnce(deps, retentionDays * dayMs)
    if (erased > 0) deps.log.info({ erased }, 'results erased by retention')
    return false
  })
  return {
    nudgeDispatcher: () => dispatching.nudge(),
    nudgeReconciler: (at) => {
      const inMs = at.getTime() - clock.now().getTime()
      if (inMs < sweepMs) clock.after(Math.max(inMs, 0) + graceMs, () => reconciling.nudge())
    },
    idle: async () => {
      while (pending.size > 0) await Promise.allSettled(pending)
    },
    stop: async () => {
      await Promise.all(
        [keepTime, dispatching, reconciling, rescuing, collecting, reaping].map(async (loop) => loop.stop()),
      )
    },
  }
}

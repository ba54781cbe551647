/** The only loop, on a clock that the test moves (loop.ts). */
import { expect, test } from 'vitest'
import type { Clock } from '../../src/clock.ts'
import { startLoop, type Loop } from '../../src/workers/loop.ts'

interface Driven {
  readonly loop: Loop
  /** Passes begun so far. */
  runs(): number
  /** Ends the present pass. */
  end(more?: boolean | Error): Promise<void>
  /** The time of the timer that is set comes; tells its milliseconds. */
  tick(): Promise<number | undefined>
  timers(): number
  readonly warned: object[]
}

const turns = async (): Promise<void> => {
  for (let i = 0; i < 5; i++) await Promise.resolve()
}

function drivenLoop(everyMs = 200): Driven {
  const timers = new Map<() => void, number>()
  const warned: object[] = []
  const nothing = (): void => {}
  let runs = 0
  let running: PromiseWithResolvers<boolean> | null = null
  const clock = {
    after: (ms: number, work: () => void) => {
      timers.set(work, ms)
      return () => void timers.delete(work)
    },
  } as unknown as Clock
  const log = { debug: nothing, info: nothing, error: nothing, warn: (fields: object) => void warned.push(fields) }
  const loop = startLoop({ clock, log }, 'worker', everyMs, async () => {
    runs += 1
    if (running !== null) throw new Error('two passes at once')
    running = Promise.withResolvers<boolean>()
    try {
      return await running.promise
    } finally {
      running = null
    }
  })
  return {
    loop,
    runs: () => runs,
    end: async (more = false) => {
      if (more instanceof Error) running?.reject(more)
      else running?.resolve(more)
      await turns()
    },
    tick: async () => {
      const [next] = timers
      if (next === undefined) return undefined
      timers.delete(next[0])
      next[0]()
      await turns()
      return next[1]
    },
    timers: () => timers.size,
    warned,
  }
}

test('it runs at once, and again when its time has come after the pass has ended', async () => {
  const driven = drivenLoop(200)
  expect([driven.runs(), driven.timers()]).toEqual([1, 0])
  await driven.end()
  expect([driven.runs(), driven.timers()]).toEqual([1, 1])
  expect(await driven.tick()).toBe(200)
  expect([driven.runs(), driven.timers()]).toEqual([2, 0])
})

test('a pass that leaves more to do is followed by another at once', async () => {
  const driven = drivenLoop()
  await driven.end(true)
  expect([driven.runs(), driven.timers()]).toEqual([2, 0])
  await driven.end(false)
  expect([driven.runs(), driven.timers()]).toEqual([2, 1])
})

test('a nudge between passes runs now, and its timer does not run a second one', async () => {
  const driven = drivenLoop()
  await driven.end()
  driven.loop.nudge()
  expect([driven.runs(), driven.timers()]).toEqual([2, 0])
  await driven.end()
  expect([driven.runs(), driven.timers()]).toEqual([2, 1])
})

test('nudges during a pass make one more pass after it, never two at once', async () => {
  const driven = drivenLoop()
  for (let i = 0; i < 5; i++) driven.loop.nudge()
  expect(driven.runs()).toBe(1)
  await driven.end()
  expect([driven.runs(), driven.timers()]).toEqual([2, 0])
  await driven.end()
  expect([driven.runs(), driven.timers()]).toEqual([2, 1])
})

test('a pass that fails is logged, and the next one comes as usual', async () => {
  const driven = drivenLoop(200)
  await driven.end(new Error('planned'))
  expect(driven.warned).toEqual([{ worker: 'worker', error: 'Error' }])
  expect(await driven.tick()).toBe(200)
  expect(driven.runs()).toBe(2)
})

test('stop between passes: none follows, whatever is nudged', async () => {
  const driven = drivenLoop()
  await driven.end()
  await driven.loop.stop()
  driven.loop.nudge()
  expect([driven.runs(), driven.timers(), await driven.tick()]).toEqual([1, 0, undefined])
})

test('stop during a pass waits for its end, and none follows', async () => {
  const driven = drivenLoop()
  driven.loop.nudge()
  let stopped = false
  const stopping = driven.loop.stop().then(() => (stopped = true))
  await turns()
  expect(stopped).toBe(false)
  await driven.end(true)
  await stopping
  expect([driven.runs(), driven.timers()]).toEqual([1, 0])
})

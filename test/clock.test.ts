/** The clock: the data base's time, carried on by the monotonic one of a machine that a test can step. */
import { expect, test } from 'vitest'
import { databaseClock } from '../src/clock.ts'

/** Each reading takes so long, one way; the data base's clock is an hour ahead of the machine's. */
function steppedClock(tripsMs: readonly number[]) {
  let nowMs = 0
  let readings = 0
  const machine = { monotonicMs: () => nowMs, wallMs: () => 1_000_000 + nowMs, after: () => () => {} }
  const databaseMs = (): number => 4_600_000 + nowMs
  const clock = databaseClock(async () => {
    const tripMs = tripsMs[readings++] ?? 0
    nowMs += tripMs / 10
    const time = new Date(databaseMs())
    nowMs += (tripMs * 9) / 10 // the way back is the long one
    return time
  }, machine)
  const errorMs = (): number => Math.abs(clock.now().getTime() - databaseMs())
  return { clock, errorMs, readings: () => readings, pass: (ms: number) => void (nowMs += ms) }
}

test('it is wrong by less than half of what reading it took, and goes on with the monotonic clock', async () => {
  const { clock, errorMs, readings, pass } = steppedClock([400])
  await clock.synchronise()
  pass(100_000)
  expect(readings()).toBe(1)
  expect(errorMs()).toBeLessThanOrEqual(200)
})

test('a reading in which the process was stopped is made again, so that it is not half of that behind', async () => {
  const { clock, errorMs, readings } = steppedClock([20_000, 10])
  await clock.synchronise()
  expect(readings()).toBe(2)
  expect(errorMs()).toBeLessThanOrEqual(5)
})

test('a data base that is always slow is read three times, and the best reading is taken', async () => {
  const { clock, errorMs, readings } = steppedClock([3_000, 1_000, 2_000])
  await clock.synchronise()
  expect(readings()).toBe(3)
  expect(errorMs()).toBeLessThanOrEqual(500)
})

test('a machine that slept does not know the time by its monotonic clock, and says so: the latest that it can be by now', async () => {
  let [awakeMs, wallMs] = [0, 1_000_000]
  const machine = { monotonicMs: () => awakeMs, wallMs: () => wallMs, after: () => () => {} }
  const clock = databaseClock(async () => new Date(wallMs), machine)
  await clock.synchronise()
  wallMs += 3_600_000
  awakeMs += 5
  expect([clock.now().getTime(), clock.latest().getTime()]).toEqual([1_000_005, 4_600_000])
  wallMs -= 7_200_000
  expect(clock.latest(), 'a wall clock that steps back takes nothing away').toEqual(clock.now())
})

/** The benchmark is run by hand; what can be held without running it is held here. */
import { expect, test } from 'vitest'
import { parts, planFrom } from '../../bench/plan.ts'

test('the quick plan measures every part but memory, and leaves half of three minutes to starts and stops', () => {
  const plan = planFrom(['--quick'])
  if (plan === null) throw new Error('no plan')
  expect(plan.parts).toEqual(parts)
  expect([plan.keys, plan.delaysMs, plan.soak]).toEqual([[0], [0], 0])
  const [sends, replays, conflicts, asynchronous] = [4 * plan.connections.length, 4, 3, 4]
  const measurements = plan.rounds * (sends + replays + conflicts + asynchronous)
  expect((measurements * (plan.warmMs + plan.measureMs)) / 1000).toBeLessThanOrEqual(90)
})

test.each([['--rounds', '0'], ['--connections', 'many'], ['--parts', 'everything'], ['--fast']])(
  'a mistake in the flags is told before anything is started: %s %s',
  (...flags) => {
    expect(() => planFrom(flags)).toThrow(flags[0])
  },
)

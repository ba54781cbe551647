/** Groups, without a data base (grouped.ts, G1 to G4). */
import { describe, expect, test } from 'vitest'
import { StoreLocked, StoreOverloaded, StoreUnavailable } from '../../src/store/database-errors.ts'
import { grouped } from '../../src/store/grouped.ts'

interface Flush {
  readonly items: readonly number[]
  readonly settle: (error?: unknown) => void
}

/** A group whose statements the test ends when it wants: each gives ten times its items. */
function heldFlushes(): { ask: (item: number) => Promise<number>; flushes: Flush[] } {
  const flushes: Flush[] = []
  const ask = grouped<number, number>(async (items) => {
    const { promise, resolve, reject } = Promise.withResolvers<readonly number[]>()
    flushes.push({
      items,
      settle: (error) => (error === undefined ? resolve(items.map((item) => item * 10)) : reject(error)),
    })
    return promise
  }, setImmediate)
  return { ask, flushes }
}

/** What has been scheduled for this turn of the event loop, and the next ones, has run. */
const turns = async (): Promise<void> => {
  for (let i = 0; i < 5; i++) await new Promise((next) => setImmediate(next))
}
const upTo = (length: number, from = 0): number[] => Array.from({ length }, (_, i) => from + i)
const sizes = (flushes: readonly Flush[]): number[] => flushes.map(({ items }) => items.length)

test('what is asked in one turn goes in one statement, in its order, and each member gets its own result', async () => {
  const { ask, flushes } = heldFlushes()
  const results = Promise.all(upTo(50).map(ask))
  await turns()
  expect(flushes.map(({ items }) => items)).toEqual([upTo(50)])
  flushes[0]?.settle()
  expect(await results).toEqual(upTo(50).map((item) => item * 10))
})

test('G1 a member goes on only after its statement has ended, and not with that of another group', async () => {
  const { ask, flushes } = heldFlushes()
  const ended: number[] = []
  void ask(1).then((result) => ended.push(result))
  await turns()
  void ask(2).then((result) => ended.push(result))
  await turns()
  expect([sizes(flushes), ended]).toEqual([[1, 1], []])
  flushes[1]?.settle()
  await turns()
  expect(ended).toEqual([20])
  flushes[0]?.settle()
  await turns()
  expect(ended).toEqual([20, 10])
})

test('G4 two statements are on the wire at most; what comes meanwhile makes the next group, of 256 at most', async () => {
  const { ask, flushes } = heldFlushes()
  const results = [ask(0)]
  await turns()
  results.push(ask(1))
  await turns()
  results.push(...upTo(600, 2).map(ask))
  await turns()
  expect(sizes(flushes)).toEqual([1, 1])
  flushes[1]?.settle()
  await turns()
  expect(sizes(flushes)).toEqual([1, 1, 256])
  flushes[0]?.settle()
  await turns()
  expect(sizes(flushes)).toEqual([1, 1, 256, 256])
  flushes[3]?.settle()
  await turns()
  flushes[2]?.settle()
  flushes[4]?.settle()
  expect(await Promise.all(results)).toEqual(upTo(602).map((item) => item * 10))
  expect(flushes[2]?.items).toEqual(upTo(256, 2))
})

test('G4 beyond 4,096 that wait a member is refused, and never goes out; those before it are not harmed', async () => {
  const { ask, flushes } = heldFlushes()
  const first = [ask(-1)]
  await turns()
  first.push(ask(-2))
  await turns()
  const results = upTo(4_096).map(ask)
  const refused = ask(9_999)
  await expect(refused).rejects.toBeInstanceOf(StoreOverloaded)
  for (let i = 0; i < flushes.length; i++) {
    flushes[i]?.settle()
    await turns()
  }
  expect(await Promise.all(results)).toEqual(upTo(4_096).map((item) => item * 10))
  expect(flushes.flatMap(({ items }) => items)).not.toContain(9_999)
})

describe('G2', () => {
  /** A statement that fails as a whole if one of `bad` is in it. */
  function poisoned(bad: readonly number[]): { ask: (item: number) => Promise<number>; asked: number[][] } {
    const asked: number[][] = []
    const ask = grouped<number, number>((items) => {
      asked.push([...items])
      const found = items.find((item) => bad.includes(item))
      return found === undefined
        ? Promise.resolve(items.map((item) => item * 10))
        : Promise.reject(new Error(`poison ${found}`))
    }, setImmediate)
    return { ask, asked }
  }

  test.each([[[0]], [[99]], [[41, 42]], [[0, 50, 99]], [upTo(100)]])(
    'an error that is the members’ own fails them alone: %j',
    async (bad) => {
      const { ask } = poisoned(bad)
      const results = await Promise.allSettled(upTo(100).map(ask))
      results.forEach((result, item) =>
        expect(result).toMatchObject(
          bad.includes(item)
            ? { status: 'rejected', reason: { message: `poison ${item}` } }
            : { status: 'fulfilled', value: item * 10 },
        ),
      )
    },
  )

  test('the group is halved, so that one bad member of 256 costs no more than two statements a halving', async () => {
    const { ask, asked } = poisoned([200])
    await Promise.allSettled(upTo(256).map(ask))
    expect(asked.length).toBeLessThanOrEqual(1 + 2 * 8)
    expect(asked.filter((items) => items.length === 1)).toContainEqual([200])
  })

  test('a member alone is not tried again', async () => {
    const { ask, asked } = poisoned([7])
    await expect(ask(7)).rejects.toThrow('poison 7')
    expect(asked).toEqual([[7]])
  })

  test('halves keep the order of their members', async () => {
    const { ask, asked } = poisoned([3])
    await Promise.allSettled(upTo(8).map(ask))
    for (const items of asked) expect(items).toEqual(items.toSorted((a, b) => a - b))
  })
})

test('G2 a member that waits for a lock waits alone: the others of its group, and the next groups, go on', async () => {
  const { ask, flushes } = heldFlushes()
  const results = upTo(6).map(ask)
  await turns()
  flushes[0]?.settle(new StoreLocked('planned'))
  await turns()
  expect(sizes(flushes)).toEqual([6, 1, 1, 1, 1, 1, 1])
  for (const { items, settle } of flushes.slice(1)) if (items[0] !== 3) settle()
  const next = [ask(10)]
  await turns()
  next.push(ask(11))
  await turns()
  expect(flushes.slice(7).map(({ items }) => items)).toEqual([[10], [11]]) // both places on the wire are free
  flushes.slice(7).forEach(({ settle }) => settle())
  expect(await Promise.all(next)).toEqual([100, 110])
  flushes.find(({ items }) => items.length === 1 && items[0] === 3)?.settle(new StoreLocked('planned'))
  const settled = await Promise.allSettled(results)
  expect(settled.map(({ status }) => status)).toEqual(upTo(6).map((i) => (i === 3 ? 'rejected' : 'fulfilled')))
  expect(flushes).toHaveLength(9) // a member alone is not tried again
})

test.each([
  ['is in doubt', new StoreUnavailable('doubtful', 'planned')],
  ['was not made', new StoreUnavailable('absent', 'planned')],
  ['found no connection', new StoreOverloaded()],
])('G3 a statement that %s is so for every member, and is not tried again here', async (_, error) => {
  const { ask, flushes } = heldFlushes()
  const results = upTo(40).map(ask)
  await turns()
  flushes[0]?.settle(error)
  for (const result of await Promise.allSettled(results)) expect(result).toEqual({ status: 'rejected', reason: error })
  expect(flushes).toHaveLength(1)
})

test('a group that failed does not stop the next one', async () => {
  const { ask, flushes } = heldFlushes()
  const failed = ask(1)
  await turns()
  flushes[0]?.settle(new StoreUnavailable('doubtful', 'planned'))
  await expect(failed).rejects.toBeInstanceOf(StoreUnavailable)
  const next = ask(2)
  await turns()
  flushes[1]?.settle()
  expect(await next).toBe(20)
})

test('G4 a group ends before the member that makes it too large; one that is too large itself goes alone', async () => {
  const groups: (readonly number[])[] = []
  const ask = grouped<number, number>(
    async (items) => {
      groups.push(items)
      return items
    },
    setImmediate,
    (megabytes) => megabytes * 1_000_000,
  )
  await Promise.all([0.4, 0.4, 0.4, 3, 0.1].map(ask))
  expect(groups).toEqual([[0.4, 0.4], [0.4], [3], [0.1]])
  await expect(Promise.all([100, 100].map(ask))).rejects.toBeInstanceOf(StoreOverloaded)
})

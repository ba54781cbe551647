/** Where the code does not yet do what the contract says. Each test fails until it does; then it moves to its own file. */
import { describe, expect, test } from 'vitest'
import { preferencesOf } from '../../src/http/prefer.ts'

describe('H4: a header of 16 KB does not hold the process', () => {
  const n = 16_000
  test.each([
    ['a value that never comes', `a=${' '.repeat(n)}"`],
    ['white space before a quote', `a${' '.repeat(n)}"`],
    ['white space around the sign', `a${' '.repeat(n / 2)}=${' '.repeat(n / 2)}"`],
  ])('%s is read within 50 ms (a linear pattern needs less than one)', (_, line) => {
    const begun = performance.now()
    preferencesOf([line])
    expect(performance.now() - begun).toBeLessThan(50)
  })
})

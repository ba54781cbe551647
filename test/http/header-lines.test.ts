import { createServer, type IncomingMessage } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { headerLines } from '../../src/http/header-lines.ts'

const withRaw = (...rawHeaders: string[]): IncomingMessage => ({ rawHeaders }) as IncomingMessage

describe('the lines of a header', () => {
  test.each<[string, string[], string[] | undefined]>([
    ['is undefined where it did not come', ['Host', 'x'], undefined],
    ['is undefined where nothing came', [], undefined],
    ['is one line', ['Idempotency-Key', 'a'], ['a']],
    ['is found in any case', ['IDEMPOTENCY-KEY', 'a'], ['a']],
    ['keeps two lines apart', ['Idempotency-Key', 'a', 'Host', 'x', 'idempotency-key', 'b'], ['a', 'b']],
    ['keeps two equal lines apart', ['Idempotency-Key', 'a', 'Idempotency-Key', 'a'], ['a', 'a']],
    ['does not split a list', ['Idempotency-Key', '"a", "b"'], ['"a", "b"']],
    ['keeps an empty line', ['Idempotency-Key', ''], ['']],
    ['does not take a value for a name', ['X', 'idempotency-key', 'Y', 'z'], undefined],
    ['does not take a longer name', ['X-Idempotency-Key', 'a', 'Idempotency-Key-2', 'b'], undefined],
  ])('%s', (_, raw, lines) => {
    expect(headerLines(withRaw(...raw), 'idempotency-key')).toEqual(lines)
  })

  test('are as many as came, in their order', () => {
    const pairs = fc.array(fc.tuple(fc.constantFrom('Prefer', 'prefer', 'Host', 'X'), fc.string()))
    fc.assert(
      fc.property(pairs, (came) => {
        const values = came.filter(([name]) => name.toLowerCase() === 'prefer').map(([, value]) => value)
        expect(headerLines(withRaw(...came.flat()), 'prefer') ?? []).toEqual(values)
      }),
    )
  })
})

describe('of a real request', () => {
  const seen: (string[] | undefined)[] = []
  const server = createServer((request, response) => {
    seen.push(headerLines(request, 'idempotency-key'))
    response.end()
  })
  beforeAll(async () => new Promise<void>((ready) => void server.listen(0, '127.0.0.1', ready)))
  afterAll(async () => new Promise((closed) => void server.close(closed)))

  const ask = async (...lines: string[]): Promise<string[] | undefined> => {
    const { port } = server.address() as AddressInfo
    await new Promise<void>((answered, failed) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.end(['GET / HTTP/1.1', 'Host: x', 'Connection: close', ...lines, '', ''].join('\r\n'))
      })
      socket
        .resume()
        .once('error', failed)
        .once('close', () => answered())
    })
    return seen.pop()
  }

  test.each<[string, string[], string[] | undefined]>([
    ['two lines, which Node joins', ['Idempotency-Key: a', 'idempotency-key: b'], ['a', 'b']],
    ['two equal lines', ['Idempotency-Key: a', 'Idempotency-Key: a'], ['a', 'a']],
    ['one line with a list', ['Idempotency-Key: a, b'], ['a, b']],
    ['white space around the value', ['Idempotency-Key:  \t a \t '], ['a']],
    ['an empty value', ['Idempotency-Key:'], ['']],
    ['no such header', ['X-Idempotency-Key: a'], undefined],
  ])('they are told apart: %s', async (_, lines, expected) => {
    expect(await ask(...lines)).toEqual(expected)
  })
})

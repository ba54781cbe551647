/**
 * The provider, in a process of its own: accepts everything, at once or after a delay, and remembers every message that
 * it saw, so that a second one under the same key is a duplicate.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { keyInBody } from '../message.ts'
import { answerParent } from '../parent.ts'

export interface StubCounts {
  readonly url: string
  readonly calls: number
  readonly duplicates: number
  /** Milliseconds of the stub's clock; of the calls since `delayMs` was last set. */
  readonly firstAt: number
  readonly lastAt: number
  readonly callsSince: number
}
/** Sets the delay, if there is one to set, and forgets when calls came. */
export interface StubQuestion {
  readonly delayMs?: number
}

const seen = new Set<string>()
let [calls, duplicates, delayMs, firstAt, lastAt, callsSince] = [0, 0, 0, 0, 0, 0]

const server = createServer((request, response) => {
  let body = ''
  request.setEncoding('latin1')
  request.on('data', (chunk: string) => (body += chunk))
  request.on('end', () => {
    const key = keyInBody(body) ?? 'no key'
    calls++
    callsSince++
    lastAt = performance.now()
    if (firstAt === 0) firstAt = lastAt
    if (seen.has(key)) duplicates++
    else seen.add(key)
    const sid = `SM${String(calls).padStart(32, '0')}`
    const answer = (): void => {
      const text = `{"sid":"${sid}","status":"queued"}`
      response.writeHead(201, { 'content-type': 'application/json', 'content-length': text.length })
      response.end(text)
    }
    if (delayMs === 0) answer()
    else setTimeout(answer, delayMs)
  })
})
// Programs are idle in turn; a connection that is closed under them would be their trouble, not what is measured.
server.keepAliveTimeout = 3_600_000
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  answerParent((asked: StubQuestion): StubCounts => {
    const counts = { url: `http://127.0.0.1:${port}`, calls, duplicates, firstAt, lastAt, callsSince }
    if (asked.delayMs !== undefined) {
      delayMs = asked.delayMs
      firstAt = lastAt = callsSince = 0
    }
    return counts
  })
})

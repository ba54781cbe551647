/**
 * HTTP by hand: every byte of a request is the test's, and every byte of what comes back is read. A connection ends with
 * its answer; one that does not end in time is a failure of its own.
 */
import { connect } from 'node:net'

export interface Reply {
  readonly status: number
  /** Lower-case names; several lines of one header stand in one list. */
  readonly headers: ReadonlyMap<string, readonly string[]>
  readonly body: string
}

/**
 * What the server said until it ended the connection. @throws if it did not within `ms`
 * @param stays this client does not hang up in turn
 */
export async function exchange(
  port: number,
  request: string | Uint8Array,
  ms: number,
  stays: boolean = false,
): Promise<Reply[]> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: stays })
  const chunks: Buffer[] = []
  await new Promise<void>((ended, failed) => {
    const timer = setTimeout(() => {
      socket.destroy()
      failed(new Error(`no end of the connection within ${ms} ms; it said ${JSON.stringify(textOf(chunks))}`))
    }, ms)
    socket
      .on('data', (chunk: Buffer) => chunks.push(chunk))
      .on('error', () => {}) // a reset after the answer is an end like another; one before it leaves no answer
      .once(stays ? 'end' : 'close', () => {
        clearTimeout(timer)
        ended()
      })
      .write(typeof request === 'string' ? Buffer.from(request, 'latin1') : request)
  })
  return repliesIn(textOf(chunks), Buffer.from(request).toString('latin1').startsWith('HEAD '))
}

const textOf = (chunks: readonly Buffer[]): string => Buffer.concat(chunks).toString('latin1')

/** All answers on a connection, one character a byte. @throws if anything else stands there */
function repliesIn(bytes: string, headOnly: boolean): Reply[] {
  const replies: Reply[] = []
  for (let rest = bytes; rest !== '';) {
    const [head, start] = headOf(rest)
    const { status, headers } = head
    if (status < 200) {
      rest = rest.slice(start) // 100 Continue
      continue
    }
    const [body, end] = headOnly ? ['', start] : bodyOf(rest, start, headers)
    replies.push({ status, headers, body: Buffer.from(body, 'latin1').toString('utf8') })
    rest = rest.slice(end)
  }
  return replies
}

function headOf(bytes: string): [Pick<Reply, 'status' | 'headers'>, number] {
  const end = bytes.indexOf('\r\n\r\n')
  const [first = '', ...lines] = bytes.slice(0, Math.max(end, 0)).split('\r\n')
  const status = /^HTTP\/1\.1 ([1-5]\d\d) [ -~]+$/.exec(first)?.[1]
  if (status === undefined) throw new Error(`not an answer: ${JSON.stringify(bytes.slice(0, 200))}`)
  const headers = new Map<string, string[]>()
  for (const line of lines) {
    const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+): ?([ -~\t]*)$/.exec(line) ?? []
    if (name === undefined || value === undefined) throw new Error(`not a header: ${JSON.stringify(line)}`)
    headers.set(name.toLowerCase(), [...(headers.get(name.toLowerCase()) ?? []), value])
  }
  return [{ status: Number(status), headers }, end + 4]
}

function bodyOf(bytes: string, start: number, headers: Reply['headers']): [string, number] {
  const length = headers.get('content-length')?.[0]
  if (length !== undefined) {
    const end = start + Number(length)
    if (bytes.length < end) throw new Error(`the body has ${bytes.length - start} bytes, not ${length}`)
    return [bytes.slice(start, end), end]
  }
  if (headers.get('transfer-encoding')?.[0] !== 'chunked') return [bytes.slice(start), bytes.length]
  let body = ''
  for (let at = start; ;) {
    const lineEnd = bytes.indexOf('\r\n', at)
    const size = Number.parseInt(bytes.slice(at, lineEnd), 16)
    if (lineEnd < 0 || Number.isNaN(size)) throw new Error('a chunked body was cut')
    if (size === 0) return [body, lineEnd + 4]
    body += bytes.slice(lineEnd + 2, lineEnd + 2 + size)
    at = lineEnd + 2 + size + 2
  }
}

/** One HTTP/1.1 connection's bytes, taken apart into requests or answers: head and Content-Length, as gateway and sandbox write them. */
export interface Whole {
  readonly bytes: Buffer
  readonly firstLine: string
  readonly body: Buffer
}

const headEnd = Buffer.from('\r\n\r\n')

/** @returns the first whole message and what comes after it; null: not whole yet, or no HTTP */
export function takeWhole(bytes: Buffer): { whole: Whole; rest: Buffer } | null {
  const end = bytes.indexOf(headEnd)
  if (end < 0) return null
  const head = bytes.toString('latin1', 0, end)
  const length = Number(/^content-length: *(\d+)$/im.exec(head)?.[1] ?? 0)
  const until = end + headEnd.length + length
  if (bytes.length < until) return null
  const body = bytes.subarray(end + headEnd.length, until)
  return {
    whole: { bytes: bytes.subarray(0, until), firstLine: head.split('\r\n', 1)[0] ?? '', body },
    rest: bytes.subarray(until),
  }
}

const textMember = (name: string, body: Buffer): string | null =>
  new RegExp(`"${name}":"([^"]*)"`).exec(body.toString('latin1'))?.[1] ?? null

export interface SeenRequest {
  readonly messageId: string
  readonly isSend: boolean
}

export function seenRequest({ firstLine, body }: Whole): SeenRequest {
  const isSend = firstLine.startsWith('POST /v1/send')
  const messageId = isSend ? textMember('messageId', body) : /[?&]reference=([\w]+)/.exec(firstLine)?.[1]
  return { messageId: messageId ?? '', isSend }
}

export interface SeenAnswer {
  readonly status: number
  readonly code: string | null
}

export const seenAnswer = ({ firstLine, body }: Whole): SeenAnswer => ({
  status: Number(firstLine.split(' ')[1]),
  code: textMember('code', body),
})

export function answerBytes(status: number, reason: string, type: string, body: string, more = ''): Buffer {
  const length = Buffer.byteLength(body)
  const head = `HTTP/1.1 ${status} ${reason}\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\n${more}`
  return Buffer.from(`${head}\r\n${body}`)
}

/** What the callers did and heard: one line an operation, in the order in which they ended. */
export type Operation = 'send' | 'send otherwise' | 'cancel' | 'void'

export interface Heard {
  readonly key: string
  readonly operation: Operation
  readonly gateway: number
  readonly beganMs: number
  readonly endedMs: number
  /** Until when an answer was promised. */
  readonly dueMs: number
  readonly end: 'answer' | 'no answer' | 'gave up'
  /** Of an answer. */
  readonly status: number
  /** The problem's type, `message`, or how the answer failed to come. */
  readonly said: string
  readonly sent: string | null
  readonly retryable: boolean | null
  readonly messageId: string | null
  readonly replayed: boolean
  /** Content-Type, Location and body, of a final answer. */
  readonly bytes: string | null
}

export class History {
  readonly heard: Heard[] = []
  readonly #byKey = new Map<string, Heard[]>()

  add(heard: Heard): void {
    this.heard.push(heard)
    const known = this.#byKey.get(heard.key)
    if (known === undefined) this.#byKey.set(heard.key, [heard])
    else known.push(heard)
  }

  of(key: string): readonly Heard[] {
    return this.#byKey.get(key) ?? []
  }
}

/** The answer is stored, and every repeat gets the same. */
export function isFinal({ status, said }: Pick<Heard, 'status' | 'said'>): boolean {
  return status === 201 || ['message-rejected', 'message-expired', 'message-canceled'].includes(said)
}

/** Nothing else is to be learnt by asking again. */
export function isDefinite(heard: Heard): boolean {
  if (heard.end !== 'answer') return false
  return isFinal(heard) || heard.said === 'key-void' || (heard.said === 'outcome-unknown' && heard.retryable === false)
}

/** Whoever hears this knows that the key has a message. */
export function tellsOfMessage(heard: Heard): boolean {
  if (heard.end !== 'answer') return false
  return (
    isFinal(heard) ||
    heard.status === 202 ||
    (heard.said === 'in-progress' && heard.messageId !== null) ||
    ['outcome-unknown', 'idempotency-key-reused', 'key-taken'].includes(heard.said)
  )
}

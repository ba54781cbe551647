/** The child's side of the pipe to its parent: answers what is asked, one answer a question, and ends with its parent. */
export interface Question {
  readonly id: number
  readonly asked: unknown
}
export type Reply =
  | { readonly id: number; readonly answer: unknown }
  | { readonly id: number; readonly error: string }
  | { readonly told: string }

/** @param answer is asked in the parent's words: `never` takes any of them */
export function answerParent(answer: (asked: never, tell: (told: string) => void) => unknown): void {
  const send = (reply: Reply): void => void process.send?.(reply)
  const tell = (told: string): void => send({ told })
  process.on('message', ({ id, asked }: Question) => {
    Promise.resolve()
      .then(() => answer(asked as never, tell))
      .then(
        (given: unknown) => send({ id, answer: given ?? null }),
        (error: unknown) =>
          send({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
      )
  })
  process.on('disconnect', () => process.exit(0))
  tell('ready')
}

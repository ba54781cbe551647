/** What commands have in common: who sits there, and how a refusal reads. */
import { userInfo } from 'node:os'
import { Refusal } from '../operations/refusal.ts'

export type Write = (text: string) => void

/** As a decision names whoever took it, where an API key would stand. */
export const whoAmI = (): string => `cli:${userInfo().username}`

/** A refusal is a problem for HTTP; here it is one line. */
export function plainly(error: unknown): never {
  throw error instanceof Refusal
    ? new Error(`${error.type}: ${error.detail ?? JSON.stringify(error.extras.decision ?? {})}`)
    : error
}

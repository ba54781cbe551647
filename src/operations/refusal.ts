/** A request that is not carried out: a problem of the catalogue, thrown by operations and answered by the HTTP layer. */
import type { ProblemExtras, ProblemType } from '../core/problems.ts'

export class Refusal extends Error {
  readonly type: ProblemType
  /** What happened here; the catalogue's advice follows it. */
  readonly detail: string | null
  readonly extras: ProblemExtras
  readonly retryAfterS: number | null

  constructor(
    type: ProblemType,
    detail: string | null = null,
    extras: ProblemExtras = {},
    retryAfterS: number | null = null,
  ) {
    super(type)
    this.name = 'Refusal'
    this.type = type
    this.detail = detail
    this.extras = extras
    this.retryAfterS = retryAfterS
  }
}

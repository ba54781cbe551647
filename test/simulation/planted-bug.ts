/** A bug to be planted: a change, or several, of texts that stand once in the source. */
interface Change {
  readonly file: string
  /** Stands there once. */
  readonly text: string
  readonly becomes: string
}

export interface PlantedBug {
  readonly name: string
  readonly changes: readonly Change[]
}

export const bug = (name: string, ...changes: Change[]): PlantedBug => ({ name, changes })
export const change = (file: string, text: string, becomes: string): Change => ({ file, text, becomes })

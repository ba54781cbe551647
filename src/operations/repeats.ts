/**
 * How many of the latest requests were repeats. Where many are, the stored answer is looked for before a claim is tried:
 * one small statement in place of a claim that does not take and a reading of the whole message. A guess of this process,
 * which decides in what order the data base is asked, and nothing else.
 */
export interface Repeats {
  note(isRepeat: boolean): void
  areLikely(): boolean
}

/** The weight of one request: some fifty make up the guess. */
const weight = 0.02
const many = 0.3

export function repeatsSeen(): Repeats {
  let share = 0
  return {
    note: (isRepeat) => {
      share += weight * ((isRepeat ? 1 : 0) - share)
    },
    areLikely: () => share > many,
  }
}

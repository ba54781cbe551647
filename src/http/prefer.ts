/** `Prefer` (RFC 7240): how long the caller waits. What cannot be read is ignored, as the RFC wants. */
export interface Preferences {
  readonly waitMs: number
  readonly async: boolean
}

const defaultWaitS = 15
const maxWaitS = 60

export function preferencesOf(lines: readonly string[] | undefined): Preferences {
  const preferences = (lines ?? []).flatMap((line) => line.split(',')).map((part) => (part.split(';')[0] ?? '').trim())
  const async = preferences.some((preference) => preference.toLowerCase() === 'respond-async')
  // The first of several counts (RFC 7240, section 2).
  const wait = preferences
    .map((preference) => /^wait\s*=\s*"?(\d{1,9})"?$/i.exec(preference)?.[1])
    .find((found) => found !== undefined)
  return { waitMs: Math.min(wait === undefined ? defaultWaitS : Number(wait), maxWaitS) * 1000, async }
}

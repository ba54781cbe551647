/** `Prefer` (RFC 7240): how long the caller waits. What cannot be read is ignored, as the RFC wants. */
export interface Preferences {
  readonly waitMs: number
  readonly async: boolean
}

const defaultWaitS = 15
const maxWaitS = 60
const unasked: Preferences = { waitMs: defaultWaitS * 1000, async: false }
/** Longer lines are ignored: the pattern is not linear in white space. */
const maxLine = 512

/** name [ = value ], then parameters; a value is a token or a quoted string (RFC 7240, section 2). */
const preference =
  /[\s,]*([^\s=,;"]+)\s*(?:=\s*("(?:[^"\\]|\\.)*"|[^\s,;"]*))?\s*((?:;(?:[^,"]|"(?:[^"\\]|\\.)*")*)?)(?:,|$)/gy

export function preferencesOf(lines: readonly string[] | undefined): Preferences {
  if (lines === undefined) return unasked
  const found = lines
    .filter((line) => line.length <= maxLine)
    .flatMap((line) =>
      [...line.matchAll(preference)].map(([, name = '', value = '']) => ({
        name: name.toLowerCase(),
        value: unquoted(value),
      })),
    )
  // The first of several counts (RFC 7240, section 2).
  const wait = found.find(({ name, value }) => name === 'wait' && /^\d+$/.test(value))?.value
  return {
    waitMs: Math.min(wait === undefined ? defaultWaitS : Number(wait), maxWaitS) * 1000,
    async: found.some(({ name, value }) => name === 'respond-async' && value === ''),
  }
}

const unquoted = (value: string): string =>
  value.startsWith('"') ? value.slice(1, -1).replaceAll(/\\(.)/g, '$1') : value

/** A header's lines as they came: Node joins repeated ones with commas, and a list is not the same as a key. */
import type { IncomingMessage } from 'node:http'

/** @param name in lower case. @returns undefined if the header did not come */
export function headerLines({ rawHeaders }: IncomingMessage, name: string): string[] | undefined {
  const lines: string[] = []
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const came = rawHeaders[i] ?? ''
    // By length first: four headers of each send are looked for among all that came.
    if (came.length === name.length && came.toLowerCase() === name) lines.push(rawHeaders[i + 1] ?? '')
  }
  return lines.length === 0 ? undefined : lines
}

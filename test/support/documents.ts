/** What documents say of the code is printed by the code, between markers: `npm run docs` writes it, tests compare it. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './process.ts'

export interface Section {
  readonly file: string
  /** Of its markers: `<!-- name -->` and `<!-- /name -->`. */
  readonly name: string
  readonly text: string
}

export const table = (head: string[], rows: string[][]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')

interface Compared {
  readonly written: string
  readonly right: string
}

/** The document as it is, and as it should be. @throws if the markers are not there */
export function compareSection({ file, name, text }: Section): Compared {
  const before = readFileSync(join(root, file), 'utf8')
  const [open, close] = [`<!-- ${name} -->\n`, `<!-- /${name} -->`]
  const [start, end] = [before.indexOf(open), before.indexOf(close)]
  if (start < 0 || end < start) throw new Error(`${file} has no markers of ${name}`)
  return compareFile(file, `${before.slice(0, start + open.length)}${text}\n${before.slice(end)}`)
}

export function compareFile(file: string, right: string): Compared {
  const path = join(root, file)
  if (process.env['UPDATE_DOCS'] === '1') writeFileSync(path, right)
  return { written: readFileSync(path, 'utf8'), right }
}

/**
 * npm run simulate:mutants [-- NAME]: plants each bug in a copy of the source and plays histories until one breaks a
 * rule, for a minute at most. Prints which rule caught it, and after how many; ends with 1 if a bug survived.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { PlantedBug } from './planted-bug.ts'
import { plantedBugs } from './planted-bugs.ts'

const root = resolve(import.meta.dirname, '../..')
const seconds = 60
const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** @returns the folder of the copy, with the bug in it */
function plant({ name, changes }: PlantedBug): string {
  const copy = mkdtempSync(join(tmpdir(), 'sendonce-mutant-'))
  for (const part of ['src', 'test/simulation', 'package.json'])
    cpSync(join(root, part), join(copy, part), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  for (const { file, text, becomes } of changes) {
    const path = join(copy, file)
    const pieces = readFileSync(path, 'utf8').split(text)
    if (pieces.length !== 2)
      throw new Error(
        `"${name}" is to be planted anew: its text stands ${pieces.length - 1} times in ${file}:\n${text}`,
      )
    writeFileSync(path, pieces.join(becomes))
  }
  return copy
}

/** @returns whether it was found */
function hunt(bug: PlantedBug): boolean {
  const copy = plant(bug)
  try {
    const began = performance.now()
    const played = spawnSync(
      process.execPath,
      ['test/simulation/main.ts', '--seconds', String(seconds), '--seed', '1'],
      {
        cwd: copy,
        encoding: 'utf8',
        maxBuffer: 64 * 1024 * 1024,
      },
    )
    const took = ((performance.now() - began) / 1000).toFixed(1)
    const rule = /BROKEN (.*)/.exec(played.stdout)?.[1]
    const histories = /^(\d+) histories/m.exec(played.stdout)?.[1] ?? '?'
    if (rule === undefined && ![0, 2].includes(played.status ?? -1))
      throw new Error(`${bug.name}: it does not run:\n${played.stderr}`)
    say(
      rule === undefined
        ? `SURVIVED  ${bug.name} (${histories} histories)`
        : `found     ${bug.name}: ${rule} (history ${histories}, ${took} s)`,
    )
    return rule !== undefined
  } finally {
    rmSync(copy, { recursive: true })
  }
}

const [wanted] = process.argv.slice(2)
const chosen = plantedBugs.filter(({ name }) => wanted === undefined || name.startsWith(wanted))
const survivors = chosen.filter((bug) => !hunt(bug))
say(`${chosen.length - survivors.length} of ${chosen.length} found`)
process.exit(survivors.length > 0 || chosen.length === 0 ? 1 : 0)

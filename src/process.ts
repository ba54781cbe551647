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

export function endWithSignals(gateway: Gateway): void {
  let ending = false
  const end = (code: number): void => {
    if (ending) return
    ending = true
    // The grace period is the gateway's; this only makes sure that the process ends if something hangs after it.
    setTimeout(() => process.exit(1), gateway.drainMs + 15_000).unref()
    gateway.close().then(
      () => process.exit(code),
      () => process.exit(1),
    )
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => end(0))
  for (const bug of ['uncaughtException', 'unhandledRejection'] as const)
    process.on(bug, (error: unknown) => {
      const { name, stack } = error instanceof Error ? error : { name: 'error', stack: undefined }
      gateway.log.error(
        { bug, error: name, at: stack?.split('\n').filter((line) => line.startsWith('    at ')) },
        'ending after a bug',
      )
      end(1)
    })
}

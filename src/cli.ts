/**
 * `npm run -s sendonce -- <command>`: what an operator does beside the running gateway. Results go to stdout as JSON,
 * what went wrong is one line on stderr and a non-zero exit.
 *
 *   keys create | list | rotate | revoke                                 who may ask; a key is printed once
 *   unknown list | show | resolve                                        what became of messages that nobody confirmed
 *   db migrate                                                           applies what is pending to DATABASE_URL
 *   openapi [file]                                                       the OpenAPI document
 *   mcp                                                                  tools for an agent, over stdin and stdout
 */
import { writeFile } from 'node:fs/promises'
import { pino } from 'pino'
import { databaseClock } from './clock.ts'
import { keysCommand, keysUsage } from './commands/keys.ts'
import { unknownCommand, unknownUsage } from './commands/unknown.ts'
import { loadAgentConfig, loadToolConfig } from './config.ts'
import type { Deps } from './deps.ts'
import { createMetrics } from './metrics.ts'
import { newSecret } from './new-secret.ts'
import { newUuid } from './new-uuid.ts'
import { inFlight } from './operations/in-flight.ts'
import { providerSlots } from './operations/provider-slots.ts'
import { repeatsSeen } from './operations/repeats.ts'
import { waitersFor } from './operations/wait-for-outcome.ts'
import { openApiText } from './openapi-text.ts'
import { startUp } from './process.ts'
import { withDatabase } from './store/connect.ts'
import { migrate } from './store/migrate.ts'
import { createStore, type Store } from './store/store.ts'

const usage = `usage: ${keysUsage}
       ${unknownUsage}
       sendonce db migrate
       sendonce openapi [FILE]
       sendonce mcp`

const print = (value: unknown): void => void process.stdout.write(`${JSON.stringify(value)}\n`)

async function run(command: typeof unknownCommand, args: string[]): Promise<void> {
  await withDatabase(loadToolConfig(), async (database) =>
    command(await toolDeps(createStore(database)), args, (text) => void process.stdout.write(text)),
  )
}

/** What operations need, of a process that calls no provider and serves nobody. */
async function toolDeps(store: Store): Promise<Deps> {
  const clock = databaseClock(async () => store.readTime())
  await clock.synchronise()
  const calls = inFlight()
  return {
    store,
    providers: { find: () => undefined, route: () => [], all: () => [] },
    clock,
    newUuid,
    newSecret,
    random: Math.random,
    log: pino({ level: 'warn' }, process.stderr),
    metrics: createMetrics(),
    slots: providerSlots(clock),
    waiters: waitersFor(store, clock, calls),
    inFlight: calls,
    repeats: repeatsSeen(),
    leaseMarginMs: 0,
    acceptsClaims: () => false,
    nudgeDispatcher: () => {},
    nudgeReconciler: () => {},
  }
}

async function migrateDatabase(): Promise<void> {
  const { databaseUrl } = loadToolConfig()
  if (databaseUrl === null)
    throw new Error('DATABASE_URL is not set; the embedded data base is migrated when the gateway starts')
  print({ applied: await migrate(databaseUrl) })
}

async function writeOpenApi([file]: string[]): Promise<void> {
  const text = await openApiText()
  if (file === undefined) process.stdout.write(text)
  else await writeFile(file, text)
}

await startUp(async () => {
  const [first, second] = process.argv.slice(2)
  if (first === 'keys') return run(keysCommand, process.argv.slice(3))
  if (first === 'unknown') return run(unknownCommand, process.argv.slice(3))
  if (first === 'db' && second === 'migrate') return migrateDatabase()
  if (first === 'openapi') return writeOpenApi(process.argv.slice(3))
  if (first === 'mcp') return (await import('./mcp/stdio.ts')).serveStdio(loadAgentConfig())
  throw new Error(usage)
})

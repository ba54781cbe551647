/**
 * `npm run -s sendonce -- <command>`: what an operator does beside the running gateway. Results go to stdout as JSON,
 * what went wrong is one line on stderr and a non-zero exit.
 *
 *   keys create --account acme --environment live --scopes send,read     prints the key, once
 *   unknown list | show | resolve                                        what became of messages that nobody confirmed
 *   db migrate                                                           applies what is pending to DATABASE_URL
 *   openapi [file]                                                       the OpenAPI document
 *   mcp                                                                  tools for an agent, over stdin and stdout
 */
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { pino } from 'pino'
import { databaseClock } from './clock.ts'
import { unknownCommand, unknownUsage } from './commands/unknown.ts'
import { loadAgentConfig, loadToolConfig } from './config.ts'
import { apiScopes, secretHash, type ApiScope } from './core/api-key.ts'
import { environments } from './core/message-content.ts'
import type { Deps } from './deps.ts'
import { serveStdio } from './mcp/stdio.ts'
import { createMetrics } from './metrics.ts'
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

const usage = `usage: sendonce keys create --account NAME --environment live|test --scopes ${apiScopes.join(',')}
       ${unknownUsage}
       sendonce db migrate
       sendonce openapi [FILE]
       sendonce mcp`

const print = (value: unknown): void => void process.stdout.write(`${JSON.stringify(value)}\n`)

async function createKey(args: string[]): Promise<void> {
  const text = { type: 'string' } as const
  const { values } = parseArgs({ args, options: { account: text, environment: text, scopes: text }, strict: true })
  const { account = '', environment: asked, scopes: list = '' } = values
  const environment = environments.find((known) => known === asked)
  const scopes = list.split(',')
  if (!/^[a-z0-9][a-z0-9_-]{0,62}$/.test(account))
    throw new Error('--account: small letters, digits, - and _, at most 63')
  if (environment === undefined) throw new Error(`--environment: must be one of ${environments.join(', ')}`)
  if (!scopes.every(isScope)) throw new Error(`--scopes: some of ${apiScopes.join(', ')}, with commas between them`)
  const id = randomBytes(9).toString('hex')
  const secret = randomBytes(32).toString('hex')
  await withDatabase(loadToolConfig(), async (database) =>
    createStore(database).insertApiKey({ id, account, environment, scopes, secretHash: secretHash(secret) }),
  )
  print({ id, key: `so_${environment}_${id}_${secret}`, account, environment, scopes })
}

const isScope = (value: string): value is ApiScope => (apiScopes as readonly string[]).includes(value)

async function unknown(args: string[]): Promise<void> {
  await withDatabase(loadToolConfig(), async (database) =>
    unknownCommand(await toolDeps(createStore(database)), args, (text) => void process.stdout.write(text)),
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
  const [first, second, ...rest] = process.argv.slice(2)
  if (first === 'keys' && second === 'create') return createKey(rest)
  if (first === 'unknown') return unknown(process.argv.slice(3))
  if (first === 'db' && second === 'migrate') return migrateDatabase()
  if (first === 'openapi') return writeOpenApi(process.argv.slice(3))
  if (first === 'mcp') return serveStdio(loadAgentConfig())
  throw new Error(usage)
})

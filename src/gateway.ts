/**
 * One gateway: everything that runs in a process, started in order and ended in the reverse one. What was started before
 * a failure is ended again: nothing stays half-started.
 */
import { randomBytes } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { hostname } from 'node:os'
import { resolve as resolvePath } from 'node:path'
import { pino } from 'pino'
import { buildApp } from './app.ts'
import { bootstrapKeyFor } from './bootstrap-key.ts'
import { databaseClock, type Clock } from './clock.ts'
import type { Config } from './config.ts'
import type { Deps, Log } from './deps.ts'
import { authenticator } from './http/auth.ts'
import { createMetrics } from './metrics.ts'
import { newSecret } from './new-secret.ts'
import { uuidMaker } from './new-uuid.ts'
import { inFlight } from './operations/in-flight.ts'
import { providerSlots } from './operations/provider-slots.ts'
import { repeatsSeen } from './operations/repeats.ts'
import { waitersFor } from './operations/wait-for-outcome.ts'
import { createProviders } from './providers/registry.ts'
import { startSandbox } from './sandbox/server.ts'
import { connect } from './store/connect.ts'
import { createStore } from './store/store.ts'
import { startWorkers } from './workers/workers.ts'

const lastRequestsMs = 2_000

export interface Gateway {
  readonly url: string
  readonly sandboxUrl: string
  /** Shown in the curl line of a newcomer; null if whoever started it brought keys of their own. */
  readonly madeKey: string | null
  readonly log: Log
  readonly drainMs: number
  /** Finishes open calls within the grace period, then ends everything. */
  close(): Promise<void>
}

export async function startGateway(config: Config): Promise<Gateway> {
  const ends: (() => Promise<unknown>)[] = []
  const endAll = async (): Promise<void> => {
    for (const end of ends.splice(0).toReversed()) await end()
  }
  try {
    return await start(config, ends, endAll)
  } catch (error) {
    await endAll().catch(() => {}) // the first error is the one to tell
    throw error
  }
}

async function start(config: Config, ends: (() => Promise<unknown>)[], endAll: () => Promise<void>): Promise<Gateway> {
  const logger = pino({ level: config.logLevel })
  const log: Log = logger
  const connection = await connect(config.databaseUrl, config.dataDir, log)
  ends.push(async () => connection.close())
  const store = createStore(connection.database)
  const clock = databaseClock(async () => store.readTime())
  await clock.synchronise()
  const { key, madeKey } = await bootstrapKeyFor(config)

  const secret = config.sandboxWebhookSecret ?? (config.sandboxUrl === null ? madeSecret() : null)
  const ledgerFile = resolvePath(config.dataDir, 'sandbox-ledger.jsonl')
  const sandbox =
    config.sandboxUrl === null
      ? await startSandbox({
          host: '127.0.0.1',
          port: config.sandboxPort,
          ledgerFile,
          receiptSecret: secret,
        })
      : { url: config.sandboxUrl, close: async () => {} }
  ends.push(async () => sandbox.close())
  // One that runs in the process is told where this gateway listens, as soon as it does.
  let ownUrl: string | null = null
  const publicUrl = (): string | null => (config.sandboxUrl === null ? ownUrl : config.publicUrl)
  const ledger = config.sandboxUrl ?? `${hostname()} ${ledgerFile}`
  const providers = createProviders(config.providers, config.routes, sandbox.url, { publicUrl, secret, ledger })
  ends.push(async () => providers.close())

  const calls = inFlight()
  const waiters = waitersFor(store, clock, calls)
  let nudge = (): void => {}
  let nudgeAt: Deps['nudgeReconciler'] = () => {}
  let closed = false
  const deps: Deps = {
    store,
    providers,
    clock,
    newUuid: uuidMaker(() => clock.now().getTime()),
    newSecret,
    random: Math.random,
    log,
    metrics: createMetrics(),
    slots: providerSlots(clock),
    waiters,
    inFlight: calls,
    repeats: repeatsSeen(),
    leaseMarginMs: config.leaseMarginMs,
    acceptsClaims: () => !closed,
    nudgeDispatcher: () => nudge(),
    nudgeReconciler: (at) => nudgeAt(at),
  }
  let draining = false
  const app = await buildApp({
    deps,
    logger,
    authenticate: authenticator(store, key, clock),
    readiness: { draining: () => draining },
    bodyLimitBytes: config.bodyLimitBytes,
    trustedProxies: config.trustedProxies,
    publicUrl: config.publicUrl,
  })
  ends.push(async () => app.fastify.close())
  await app.fastify.listen({ host: config.host, port: config.port }).catch((error: NodeJS.ErrnoException) => {
    const taken = error.code === 'EADDRINUSE' ? 'the port is taken' : error.message
    throw new Error(`cannot listen on ${config.host}:${config.port}: ${taken}; set PORT or HOST`, { cause: error })
  })
  const url = urlOf(app.fastify.server.address(), config.host)
  ownUrl = url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
  const workers = startWorkers(deps, clock, {
    role: config.role,
    sweepMs: config.sweepMs,
    retentionDays: config.retentionDays,
  })
  nudge = () => workers.nudgeDispatcher()
  nudgeAt = (at) => workers.nudgeReconciler(at)
  log.info({ url, docs: `${url}/docs`, role: config.role }, 'ready')

  return {
    url,
    sandboxUrl: sandbox.url,
    madeKey,
    log,
    drainMs: config.drainMs,
    close: async () => {
      log.info({ callsInFlight: calls.count() }, 'draining')
      draining = true
      await workers.stop()
      waiters.drain()
      const finish = async (): Promise<void> => {
        await workers.idle()
        await calls.idle()
        // A request that is half-sent by then is let in for this long; what it claims is finished, and nothing after it.
        await within(clock, lastRequestsMs, app.idle())
        closed = true
        await calls.idle()
        await within(clock, lastRequestsMs, app.idle())
      }
      if (!(await within(clock, config.drainMs, finish())))
        log.warn({ callsInFlight: calls.count() }, 'the grace period is over; what is open is left to recovery')
      await endAll()
      log.info({}, 'ended')
    },
  }
}

/** For receipts of the sandbox in this process: nobody else has to know it. */
const madeSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`

/** @returns whether `work` ended in time */
async function within(clock: Clock, ms: number, work: Promise<void>): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = clock.after(ms, () => resolve(false))
    void work.then(() => {
      cancel()
      resolve(true)
    })
  })
}

function urlOf(address: AddressInfo | string | null, host: string): string {
  if (address === null || typeof address === 'string') return `http://${host}`
  return `http://${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`
}

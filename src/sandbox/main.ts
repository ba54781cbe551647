/**
 * `npm run sandbox`: the sandbox by itself, for several gateways that share one data base. Each finds it by SANDBOX_URL.
 * SIGTERM and SIGINT end it with exit code 0; what keeps it from starting is one line on stderr and exit code 1.
 */
import { join } from 'node:path'
import { startSandbox, type SandboxOptions } from './server.ts'

type Env = Readonly<Record<string, string | undefined>>

/** An empty variable is one not set: an empty HOST would listen to the whole network. */
function optionsFromEnv(env: Env): SandboxOptions {
  const port = env['SANDBOX_PORT'] || '4010'
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) throw new Error(`SANDBOX_PORT is no port: ${port}`)
  return {
    host: env['HOST'] || '127.0.0.1',
    port: Number(port),
    ledgerFile: join(env['SENDONCE_DATA_DIR'] || '.sendonce', 'sandbox-ledger.jsonl'),
    receiptSecret: env['SANDBOX_WEBHOOK_SECRET'] || null,
  }
}

export async function main(env: Env): Promise<void> {
  try {
    const sandbox = await startSandbox(optionsFromEnv(env))
    // Not once(): a terminal and npm may both pass on one Ctrl-C, and the second would kill instead of closing.
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void sandbox.close())
    process.stdout.write(`The sandbox listens on ${sandbox.url}; start gateways with SANDBOX_URL=${sandbox.url}\n`)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    process.stderr.write(`${message} (settings: HOST, SANDBOX_PORT, SENDONCE_DATA_DIR, SANDBOX_WEBHOOK_SECRET)\n`)
    process.exitCode = 1
  }
}

if (import.meta.main) await main(process.env)

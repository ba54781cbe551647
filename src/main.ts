/** Composition root: configuration -> gateway (data base, sandbox, providers, application, workers) -> graceful end. */
import { loadConfig } from './config.ts'
import { startGateway } from './gateway.ts'
import { runUntilSignal } from './process.ts'
import { welcome } from './welcome.ts'

await runUntilSignal(async () => {
  const config = loadConfig()
  const gateway = await startGateway(config)
  if (config.welcome) process.stdout.write(welcome(gateway))
  return gateway
})

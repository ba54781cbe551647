/** Composition root: configuration -> data base, sandbox, providers -> application and workers -> graceful end. */
import { loadConfig, type Config } from './config.ts'
import { startGateway, type Gateway } from './gateway.ts'
import { endWithSignals, startUp } from './process.ts'
import { welcome } from './welcome.ts'

let config: Config | undefined
const gateway: Gateway = await startUp(async () => {
  config = loadConfig()
  return startGateway(config)
})
if (config?.welcome === true) process.stdout.write(welcome(gateway))
endWithSignals(gateway)

/** The programs that are compared: each with a data base of its own on the one server, and the one provider stub. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { migrate } from '../src/store/migrate.ts'
import { freePort } from '../src/store/postgres-programs.ts'
import { startGateway, startHelper, type Child } from './children.ts'
import { fillRows, floorTable } from './fill.ts'
import type { Server } from './postgres.ts'

export type Name = 'pass-through' | 'floor' | 'floor in groups' | 'gateway' | 'gateway, api' | 'pg-boss'

export interface Contender {
  readonly name: Name
  readonly url: string
  readonly child: Child
  readonly headers: Readonly<Record<string, string>>
  readonly database: string | null
  /** Rows as if so many sends had been made; nothing for a program without a store. */
  fill(prefix: string, count: number): Promise<void>
  stop(): Promise<void>
}

export interface Surroundings {
  readonly server: Server
  readonly stubUrl: string
  /** A folder of the run. */
  readonly folder: string
  /** Where the gateway writes CPU profiles, if anywhere. */
  readonly profileDir: string | null
}

const apiKey = `so_live_bench_${'k'.repeat(40)}`

/** What an operator would write: the adapter of a blind provider, pointed at the stub. All else is as it comes. */
function gatewayEnv({ server, stubUrl, folder }: Surroundings, database: string): Record<string, string> {
  const config = join(folder, 'sendonce.yaml')
  const blind = {
    adapter: 'twilio',
    accountSid: `AC${'0'.repeat(32)}`,
    authToken: 'a'.repeat(32),
    from: '+15005550006',
    baseUrl: stubUrl,
  }
  writeFileSync(config, JSON.stringify({ providers: { blind }, routes: { sms: ['blind'] } }))
  return {
    DATABASE_URL: server.urlOf(database),
    SENDONCE_CONFIG: config,
    SENDONCE_DATA_DIR: folder,
    SENDONCE_BOOTSTRAP_KEY: apiKey,
  }
}

export async function startGatewayOn(
  surroundings: Surroundings,
  database: string,
  role: 'all' | 'api' | 'worker',
): Promise<{ url: string; child: Child }> {
  const url = `http://127.0.0.1:${await freePort()}`
  const { folder, profileDir } = surroundings
  const nodeArgs = profileDir === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileDir}`]
  const args = ['--role', role]
  const log = join(folder, 'gateway.log')
  return { url, child: await startGateway(url, gatewayEnv(surroundings, database), { args, nodeArgs, log }) }
}

async function makeGatewayDatabase(server: Server, database: string): Promise<void> {
  await server.createDatabase(database)
  await migrate(server.urlOf(database))
}

const databaseOf = (name: 'gateway' | 'gateway, api'): string =>
  name === 'gateway' ? 'bench_gateway' : 'bench_gateway_api'

/** On the data base that it had. */
export async function restartGateway(
  surroundings: Surroundings,
  name: 'gateway' | 'gateway, api' = 'gateway',
): Promise<Contender> {
  const database = databaseOf(name)
  const { url, child } = await startGatewayOn(surroundings, database, name === 'gateway' ? 'all' : 'api')
  return {
    name,
    url,
    child,
    headers: { Authorization: `Bearer ${apiKey}` },
    database,
    fill: async (prefix, count) => fillRows(surroundings.server, database, 'gateway', prefix, count),
    stop: async () => child.stop(),
  }
}

export async function startContender(surroundings: Surroundings, name: Name): Promise<Contender> {
  const { server, stubUrl } = surroundings
  switch (name) {
    case 'gateway':
    case 'gateway, api':
      await makeGatewayDatabase(server, databaseOf(name))
      return restartGateway(surroundings, name)
    case 'floor':
    case 'floor in groups': {
      const database = name === 'floor' ? 'bench_floor' : 'bench_floor_in_groups'
      await server.createDatabase(database)
      await server.query(database, floorTable)
      const env = { STUB_URL: stubUrl, DATABASE_URL: server.urlOf(database) }
      const child = await startHelper(name.replaceAll(' ', '-'), env)
      return {
        name,
        url: await child.ask<string>('where'),
        child,
        headers: {},
        database,
        fill: async (prefix, count) => fillRows(server, database, 'floor', prefix, count),
        stop: async () => child.stop(),
      }
    }
    case 'pass-through': {
      const child = await startHelper(name, { STUB_URL: stubUrl })
      const url = await child.ask<string>('where')
      return { name, url, child, headers: {}, database: null, fill: async () => {}, stop: async () => child.stop() }
    }
    case 'pg-boss':
      throw new Error('pg-boss takes no requests: see dispatch.ts')
  }
}

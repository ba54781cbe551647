/**
 * One PostgreSQL server for the whole run, and in it a migrated template that each test file copies. Which server:
 * TEST_DATABASE_URL if set; else one in a container, where a Docker engine answers; else the embedded one.
 * TEST_POSTGRES=embedded or =testcontainers asks for one of them, and then nothing else will do.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { startEmbeddedPostgres } from '../../src/store/embedded-postgres.ts'
import { migrate } from '../../src/store/migrate.ts'
import { templateName, urlOfDatabase } from './database.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Of the server's own data base; a test makes others. */
    serverUrl: string
    serverKind: string
  }
}

interface Server {
  readonly kind: string
  readonly url: string
  stop(): Promise<unknown>
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startServer()
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  await client.query(`DROP DATABASE IF EXISTS ${templateName}`)
  await client.query(`CREATE DATABASE ${templateName}`)
  await client.end()
  await migrate(urlOfDatabase(server.url, templateName))
  project.provide('serverUrl', server.url)
  project.provide('serverKind', server.kind)
  process.stdout.write(`PostgreSQL of this run: ${server.kind}\n`)
  return async () => {
    await server.stop()
  }
}

async function startServer(): Promise<Server> {
  const { TEST_DATABASE_URL: given, TEST_POSTGRES: wanted } = process.env
  if (given !== undefined && given !== '') return { kind: 'TEST_DATABASE_URL', url: given, stop: async () => {} }
  if (wanted === 'testcontainers') return startContainer()
  if (wanted === 'embedded') return startEmbedded()
  // No engine, or no image to be had: the embedded server serves as well.
  return startContainer().catch(startEmbedded)
}

async function startEmbedded(): Promise<Server> {
  const dataDir = await mkdtemp(join(tmpdir(), 'sendonce-test-'))
  const server = await startEmbeddedPostgres({ dataDir, exclusive: true })
  const stop = async (): Promise<void> => {
    await server.stop()
    await rm(dataDir, { recursive: true })
  }
  return { kind: 'embedded', url: server.url, stop }
}

async function startContainer(): Promise<Server> {
  const { getContainerRuntimeClient, Wait } = await import('testcontainers')
  const { PostgreSqlContainer } = await import('@testcontainers/postgresql')
  await getContainerRuntimeClient() // fails at once where no engine answers
  const image = process.env['TEST_POSTGRES_IMAGE'] ?? 'postgres:18'
  const container = await new PostgreSqlContainer(image)
    .withCommand(['postgres', '-c', 'max_connections=200'])
    // The default one asks four times a second for as long as the container lives.
    .withHealthCheck({ test: ['CMD-SHELL', 'exit 0'], interval: 3_600_000, timeout: 1_000, retries: 1 })
    // It is ready once in the server that makes the data base, and once for us.
    .withWaitStrategy(
      Wait.forAll([Wait.forLogMessage(/database system is ready to accept connections/, 2), Wait.forListeningPorts()]),
    )
    .withStartupTimeout(120_000)
    .start()
  return { kind: `testcontainers (${image})`, url: container.getConnectionUri(), stop: async () => container.stop() }
}

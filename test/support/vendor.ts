/**
 * A vendor for contract tests: its own OpenAPI description in front of a fake that remembers. What a description does not
 * allow gets the vendor's refusal, so that a wrong request fails as it would there; and what the fake answers is held
 * against the description, so that it stays a vendor that exists. Descriptions are no part of this repository: they are
 * read from ../shared/specs beside it, or from SPECS_DIR.
 */
import { existsSync, readFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { resolve } from 'node:path'
import type { AnySchemaObject } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { onTestFinished } from 'vitest'
import { parse } from 'yaml'

interface Operation {
  readonly parameters?: readonly { name: string; in: string; schema: AnySchemaObject }[]
  readonly requestBody: { content: Record<string, { schema: { $ref: string } }> }
  readonly responses: Record<string, { content: Record<string, { schema: { $ref: string } }> }>
}
export interface Description {
  readonly servers: readonly { url: string }[]
  readonly paths: Record<string, { post: Operation }>
  readonly components: { readonly schemas: Record<string, AnySchemaObject> }
}

/** @returns the description, and where it is missing, what to write behind the name of a test that is skipped */
export function describedBy(name: string): { absent: boolean; why: string; read: () => Description } {
  const file = resolve(import.meta.dirname, '../..', process.env['SPECS_DIR'] ?? '../shared/specs', name)
  const absent = !existsSync(file)
  const why = absent ? ` [SKIPPED: no ${name} in ../shared/specs or SPECS_DIR]` : ''
  if (absent) process.stderr.write(`A contract is not checked${why}\n`)
  return { absent, why, read: () => parse(readFileSync(file, 'utf8')) as Description }
}

/** Errors of a value against schemas of the description; those named in `closed` allow no member that they do not name. */
export function checker({ components }: Description, closed: readonly string[]) {
  const schemas = structuredClone(components.schemas)
  for (const name of closed) schemas[name] = { ...schemas[name], additionalProperties: false }
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: true })
  ajv.addFormat('uuid', /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/)
  for (const format of ['binary', 'uri', 'date-time', 'email', 'int32', 'int64', 'date']) ajv.addFormat(format, true)
  ajv.addSchema({ $id: 'api:', components: { schemas } })
  return (schema: AnySchemaObject, value: unknown): string[] => {
    const given = typeof schema['$ref'] === 'string' ? { $ref: `api:${schema['$ref']}` } : schema
    return ajv.validate(given, value) === true
      ? []
      : (ajv.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
  }
}

export interface VendorRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}
export interface VendorAnswer {
  readonly status: number
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** What the vendor did may not be heard: `lost` drops the connection after the fake has acted. */
export async function vendor(act: (request: VendorRequest) => VendorAnswer) {
  let isLost = false
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      const { method = '', url: path = '', headers } = incoming
      const {
        status,
        body,
        headers: more,
      } = act({ method, path, headers, body: Buffer.concat(chunks).toString('utf8') })
      if (isLost) {
        isLost = false
        incoming.socket.destroy()
        return
      }
      const isText = typeof body === 'string'
      outgoing.writeHead(status, { 'content-type': isText ? 'text/plain' : 'application/json', ...more })
      outgoing.end(isText ? body : JSON.stringify(body))
    })
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    loseNextAnswer: () => (isLost = true),
  }
}

/** The examples of the OpenAPI document, as a reader would try them: on the sandbox, by a gateway just started. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { dataFolder, root, startGateway } from '../support/process.ts'

interface Document {
  readonly paths: Record<string, { post: { requestBody: { content: { 'application/json': { examples: Examples } } } } }>
}
type Examples = Record<string, { readonly value: object }>

/** What an example is there to show; all others are sent. */
const shows: Readonly<Record<string, number>> = { lostReply: 504, scheduled: 202 }

test('every example of a request works on the sandbox, and what it sends arrives once', async () => {
  const folder = await dataFolder()
  const gateway = await startGateway({ env: { SENDONCE_DATA_DIR: folder, SANDBOX_PORT: '0' }, args: ['--welcome'] })
  const apiKey = (await readFile(join(folder, 'api-key'), 'utf8')).trim()
  const ledgerUrl = /http:\S+\/ledger/.exec(gateway.output())?.[0] ?? ''
  const document = JSON.parse(await readFile(join(root, 'openapi/openapi.json'), 'utf8')) as Document
  const examples = document.paths['/v1/messages']?.post.requestBody.content['application/json'].examples ?? {}
  expect(Object.keys(examples).length).toBeGreaterThan(5)
  for (const [name, { value }] of Object.entries(examples)) {
    const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', 'idempotency-key': name }
    const send = async (): Promise<number> =>
      (await fetch(`${gateway.url}/v1/messages`, { method: 'POST', headers, body: JSON.stringify(value) })).status
    expect([name, await send(), await send()]).toEqual([name, shows[name] ?? 201, shows[name] ?? 201])
  }
  const { data } = (await (await fetch(ledgerUrl)).json()) as { data: { acceptedCount: number }[] }
  expect(data.map(({ acceptedCount }) => acceptedCount)).toEqual(
    Object.keys(examples)
      .slice(1)
      .map(() => 1),
  )
})

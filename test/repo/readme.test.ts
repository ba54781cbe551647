/** The README's first minute, as a newcomer lives it. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { until } from '../support/gateway.ts'
import { alive, dataFolder, start } from '../support/process.ts'

const shell = promisify(execFile)

test('npm start shows an address, a key and a curl line; that curl sends once, and SIGTERM to npm ends everything', async () => {
  const folder = await dataFolder()
  const gateway = start('npm', ['start'], { PORT: '0', SENDONCE_DATA_DIR: folder })
  await until(() => gateway.output().includes('curl http'), 30_000)
  const [send, ledger] = [/curl -i .*/.exec(gateway.output())?.[0], /curl http.*\/ledger/.exec(gateway.output())?.[0]]
  const first = await shell('sh', ['-c', send ?? 'false'])
  const again = await shell('sh', ['-c', send ?? 'false'])
  expect(first.stdout).toMatch(/^HTTP\/1\.1 201 /)
  expect(first.stdout).not.toMatch(/idempotent-replayed/i)
  expect(again.stdout).toMatch(/idempotent-replayed: true/i)
  expect(again.stdout.split('\r\n\r\n')[1]).toBe(first.stdout.split('\r\n\r\n')[1])
  const { data } = JSON.parse((await shell('sh', ['-c', ledger ?? 'false'])).stdout) as {
    data: { acceptedCount: number }[]
  }
  expect(data.map(({ acceptedCount }) => acceptedCount)).toEqual([1])

  const pid = gateway.child.pid ?? 0
  gateway.child.kill('SIGTERM')
  expect(await gateway.exited).toBe(0)
  expect(alive(pid)).toBe(false)
  expect(existsSync(join(folder, 'postgres/postmaster.pid'))).toBe(false)
})

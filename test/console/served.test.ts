/** What the console is served as: policy, types, caching, nothing from or to another host, no markup made of strings. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { testGateway, type TestGateway } from '../support/gateway.ts'

const folder = resolve(import.meta.dirname, '../../src/http/console/browser')
const served = readdirSync(folder).filter((name) => /\.(html|js|css|svg)$/.test(name))
const textOf = (name: string): string => readFileSync(join(folder, name), 'utf8')

const database = useDatabase()
let gateway: TestGateway
beforeAll(async () => {
  gateway = await testGateway(database.url)
})
afterAll(async () => gateway.close())

const types: Record<string, string> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}

test.each(['/console', ...served.map((name) => `/console/${name}`)])(
  '%s comes with its type, a policy that allows nothing else, and an ETag that answers 304',
  async (path) => {
    const answer = await gateway.get(path)
    expect(answer.statusCode).toBe(200)
    expect(answer.headers['content-type']).toBe(types[path.split('.')[1] ?? 'html'])
    const policy = String(answer.headers['content-security-policy']).split('; ')
    expect(policy).toEqual(
      expect.arrayContaining([
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
      ]),
    )
    expect(policy.join()).not.toMatch(/unsafe|https?:|\*/)
    expect(answer.headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-cache',
    })
    const again = await gateway.get(path, { 'if-none-match': `W/"other", ${String(answer.headers['etag'])}` })
    expect([again.statusCode, again.body]).toEqual([304, ''])
  },
)

test.each([
  '/console/types.ts',
  '/console/tsconfig.json',
  '/console/nothing.js',
  '/console/..%2fpages.ts',
  '/console/%2e%2e%2fpages.ts',
])('%s is not served', async (path) => {
  expect((await gateway.get(path)).statusCode).toBe(404)
})

test('/console/ leads to /console', async () => {
  const answer = await gateway.get('/console/')
  expect([answer.statusCode, answer.headers['location']]).toEqual([308, '/console'])
})

test('the page has no inline script, style or handler, and names what exists alone', () => {
  const html = textOf('index.html')
  expect(html).toMatch(/<html lang="en">/)
  expect(html).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|javascript:/i)
  const named = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map((found) => found[1] ?? '')
  expect(named.length).toBeGreaterThan(3)
  for (const path of named) expect(served).toContain(path.replace('/console/', ''))
})

test.each(served)('%s names no other host, stores nothing, and makes no markup of a string', (name) => {
  const text = textOf(name).replaceAll('http://www.w3.org/2000/svg', '') // a name, and no address
  expect(text).not.toMatch(/https?:\/\/|url\(|@import ['"]/)
  expect(text).not.toMatch(
    /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|srcdoc|\beval\(|new Function/,
  )
  expect(text).not.toMatch(/localStorage|sessionStorage|indexedDB|document\.cookie|caches\.|serviceWorker/)
})

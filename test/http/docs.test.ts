import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { problemTypes } from '../../src/core/problems.ts'
import { hasBrowser, launchBrowser, watch, why } from '../support/browser.ts'
import { useDatabase } from '../support/database.ts'
import { testGateway, type TestGateway } from '../support/gateway.ts'

const database = useDatabase()

let gateway: TestGateway
let browser: Browser | undefined
let url = ''
beforeAll(async () => {
  gateway = await testGateway(database.url)
  await gateway.app.listen({ host: '127.0.0.1', port: 0 })
  url = `http://127.0.0.1:${(gateway.app.server.address() as AddressInfo).port}`
  if (hasBrowser) browser = await launchBrowser()
})
afterAll(async () => {
  await browser?.close()
  await gateway.close()
})

/** Opens a page and tells what went wrong on it. */
async function open(path: string, look: (page: Page) => Promise<void>): Promise<void> {
  if (browser === undefined) throw new Error('no browser')
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
  const wrong = watch(page, url)
  await page.goto(url + path, { waitUntil: 'networkidle' })
  await look(page)
  await page.close()
  expect(wrong).toEqual([])
}

test.skipIf(!hasBrowser)(
  `a browser that opens /docs sees every operation, with no failed request and no other host${why}`,
  async () => {
    await open('/docs', async (page) => {
      await page.waitForSelector('#operations-messages-sendMessage')
      const shown = await page.locator('.opblock').count()
      const { paths } = gateway.app.swagger() as { paths: Record<string, object> }
      expect(shown).toBe(Object.values(paths).reduce((sum, methods) => sum + Object.keys(methods).length, 0))
      await page.click('#operations-messages-sendMessage .opblock-summary')
      await page.waitForSelector('#operations-messages-sendMessage .responses-table')
      const text = await page.locator('#operations-messages-sendMessage').innerText()
      expect(text).toContain('Idempotency-Key')
      expect(text).toContain('outcome-unknown')
      if (process.env['SCREENSHOTS'] !== undefined)
        await page.screenshot({ path: `${process.env['SCREENSHOTS']}/docs.png`, fullPage: true })
    })
  },
)

test.skipIf(!hasBrowser)(`the page "Which key?" can be read on a phone${why}`, async () => {
  await open('/docs/which-key', async (page) => {
    await page.setViewportSize({ width: 390, height: 800 })
    expect(await page.locator('h1').innerText()).toBe('Which key?')
    const overflow = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
    expect(overflow).toBe(0)
    if (process.env['SCREENSHOTS'] !== undefined)
      await page.screenshot({ path: `${process.env['SCREENSHOTS']}/which-key.png`, fullPage: true })
  })
})

test('every problem type has its page', async () => {
  for (const type of problemTypes) {
    const page = await gateway.get(`/problems/${type}`)
    expect([type, page.statusCode, page.headers['content-type']]).toEqual([type, 200, 'text/html; charset=utf-8'])
  }
  expect((await gateway.get('/problems/nonsense')).statusCode).toBe(404)
})

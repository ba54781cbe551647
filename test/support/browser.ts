/** A chromium, if this machine has one: tests of pages are skipped without it, and say so. */
import { existsSync } from 'node:fs'
import { chromium, type Browser, type Page } from 'playwright-core'

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) =>
  existsSync(path),
)
export const hasBrowser = executablePath !== undefined
/** For the title of a test. */
export const why = hasBrowser ? '' : ' (skipped: there is no chromium on this machine)'

export async function launchBrowser(): Promise<Browser> {
  if (executablePath === undefined) throw new Error('no browser')
  return chromium.launch({
    executablePath,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
    ],
  })
}

/**
 * What goes wrong on a page: errors, failed requests, and requests to another host.
 * @param url of the host that is the page's own
 */
export function watch(page: Page, url: string): string[] {
  const wrong: string[] = []
  page.on('requestfailed', (request) => wrong.push(`failed (${request.failure()?.errorText ?? ''}): ${request.url()}`))
  page.on('response', (response) => {
    if (response.status() >= 400) wrong.push(`${response.status()}: ${response.url()}`)
  })
  page.on('request', (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith('data:'))
      wrong.push(`another host: ${request.url()}`)
  })
  page.on('console', (message) => {
    if (message.type() === 'error') wrong.push(`console: ${message.text()}`)
  })
  page.on('pageerror', (error) => wrong.push(`error: ${error.message}`))
  return wrong
}

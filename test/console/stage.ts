/** What the tests of the console begin with: the fake, a browser, and pages that somebody has signed in on. */
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { hasBrowser, launchBrowser, watch } from '../support/browser.ts'
import { consoleFake, type ConsoleFake } from '../support/console-fake.ts'
import { ada, type Person } from '../support/console-samples.ts'

export interface Stage {
  readonly fake: ConsoleFake
  /** Another window, with the console opened and signed in to. */
  open(hash?: string, options?: OpenOptions): Promise<Page>
  /** What went wrong on any page so far; a test that wants an error takes it out. */
  wrong(): string[]
}

interface OpenOptions {
  readonly by?: Person | null
  readonly viewport?: { width: number; height: number }
}

/** A fake of its own for each test. */
export function useStage(): Stage {
  let browser: Browser | undefined
  let fake: ConsoleFake | undefined
  let contexts: BrowserContext[] = []
  let wrong: string[] = []
  beforeAll(async () => {
    if (hasBrowser) browser = await launchBrowser()
  })
  afterAll(async () => browser?.close())
  beforeEach(async () => {
    wrong = []
    fake = await consoleFake()
  })
  afterEach(async () => {
    await Promise.all(contexts.map(async (context) => context.close()))
    contexts = []
    await fake?.close()
    expect(wrong).toEqual([])
  })
  const present = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error('only within a test, and with a browser')
    return value
  }
  return {
    get fake() {
      return present(fake)
    },
    wrong: () => wrong.splice(0),
    open: async (hash = '', { by = ada, viewport = { width: 1200, height: 800 } } = {}) => {
      const { url } = present(fake)
      const context = await present(browser).newContext({ viewport, locale: 'en-GB', timezoneId: 'Europe/Berlin' })
      contexts.push(context)
      const page = await context.newPage()
      page.setDefaultTimeout(10_000)
      const own = watch(page, url)
      // What is not wanted any more is ended by the page itself.
      own.push = (...more) => wrong.push(...more.filter((line) => !line.startsWith('failed (net::ERR_ABORTED)')))
      await page.goto(`${url}/console${hash}`)
      if (by !== null) await signIn(page, by)
      return page
    },
  }
}

export async function signIn(page: Page, { token }: Person): Promise<void> {
  await page.fill('#api-key', token)
  await page.keyboard.press('Enter')
  await page.waitForSelector('nav')
}

export const button = (page: Page, name: string): Locator => page.getByRole('button', { name, exact: true })

/** Resolves when it is seen. */
export const sees = async (page: Page, text: string | RegExp): Promise<void> =>
  page.getByText(text).first().waitFor({ state: 'visible' })

/** Is nothing wider than the window? */
export const overflow = async (page: Page): Promise<number> =>
  page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')

/** Runs in the page; what `text` says of it. */
export const focused = async (page: Page): Promise<string> =>
  page.evaluate(
    'document.activeElement?.textContent?.trim() || document.activeElement?.id || document.activeElement?.tagName',
  )

/** Ids of the messages in the list, in its order. */
export const listed = async (page: Page): Promise<string[]> =>
  page.evaluate("[...document.querySelectorAll('[data-item]')].map((item) => item.dataset.item)")

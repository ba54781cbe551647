/** The console against the gateway itself: two browsers, two gateways, one data base, one send. */
import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { messageView } from '../../src/core/message-view.ts'
import type { timelineView } from '../../src/core/timeline.ts'
import type { Message, TimelineEntry } from '../../src/http/console/browser/types.ts'
import { hasBrowser, launchBrowser, watch, why } from '../support/browser.ts'
import { callerOf, type TestCaller } from '../support/callers.ts'
import { useDatabase } from '../support/database.ts'
import { fakeProvider, lost, sms, testGateway, type TestGateway } from '../support/gateway.ts'
import { dispatch } from '../operations/steps.ts'
import { button, sees } from './stage.ts'

type Known<T> = { [Name in keyof T]: unknown }

test('what the console reads of a message is what the gateway shows', () => {
  // Compiles only if the gateway's views have every member that the console's types name.
  const message = (view: ReturnType<typeof messageView>): Known<Omit<Message, 'cc' | 'bcc' | 'replyTo'>> => view
  const status = (view: ReturnType<typeof messageView>['status']): Message['status'] => view
  const approval = (view: ReturnType<typeof messageView>['approval']): Message['approval'] => view
  const line = (view: ReturnType<typeof timelineView>['data'][number]): TimelineEntry => view
  expect([message, status, approval, line]).toHaveLength(4)
})

describe.skipIf(!hasBrowser)(`the console and the gateway${why}`, () => {
  const database = useDatabase()
  const provider = fakeProvider('fake')
  let gateways: TestGateway[] = []
  let browsers: Browser[] = []
  let agent: TestCaller
  let persons: TestCaller[] = []
  const wrong: string[] = []
  beforeAll(async () => {
    gateways = [await testGateway(database.url, { provider }), await testGateway(database.url, { provider })]
    for (const { app } of gateways) await app.listen({ host: '127.0.0.1', port: 0 })
    browsers = [await launchBrowser(), await launchBrowser()]
    const [first] = gateways
    if (first === undefined) throw new Error('no gateway')
    agent = await callerOf(first, 'agent')
    persons = [await callerOf(first, 'person'), await callerOf(first, 'person')]
  })
  afterAll(async () => {
    await Promise.all(browsers.map(async (browser) => browser.close()))
    for (const gateway of gateways) await gateway.close()
  })

  const at = <T>(list: readonly T[], index: number): T => {
    const found = list[index]
    if (found === undefined) throw new Error(`nothing at ${index}`)
    return found
  }

  /** The page of one person in one browser, at one gateway. */
  async function open(index: number, hash: string): Promise<Page> {
    const url = `http://127.0.0.1:${(at(gateways, index).app.server.address() as AddressInfo).port}`
    const page = await at(browsers, index).newPage({ viewport: { width: 1200, height: 800 } })
    const own = watch(page, url)
    own.push = (...more) => wrong.push(...more.filter((line) => !line.startsWith('failed (net::ERR_ABORTED)')))
    await page.goto(`${url}/console${hash}`)
    await page.fill('#api-key', at(persons, index).key)
    await page.keyboard.press('Enter')
    return page
  }

  let nth = 0
  async function propose(text: string, conversation: string): Promise<Message> {
    const key = `end-to-end-${nth++}`
    const answer = await agent.send(sms(text, { conversation, reference: key }), {
      'idempotency-key': key,
      'if-match': '"0"',
    })
    expect(answer.statusCode).toBe(202)
    return answer.json<Message>()
  }

  test('two persons press approve at once, twice each, at two gateways: one send, and both see that it was sent', async () => {
    const held = await propose('May I say this?', 'ticket-1')
    const pages = [await open(0, `#/held/${held.id}`), await open(1, `#/held/${held.id}`)]
    await Promise.all(pages.map(async (page) => button(page, 'Approve').waitFor()))
    const pressed = Promise.all(pages.map(async (page) => button(page, 'Approve').dblclick()))
    await dispatch(at(gateways, 0))
    await pressed
    for (const page of pages) {
      await sees(page, /^Approved/)
      await sees(page, 'It was sent')
      await page.locator('.time-line', { hasText: /Approved by key .*Attempt 1: fake accepted it/s }).waitFor()
      await page.close()
    }
    expect(provider.calls).toHaveLength(1)
    expect(wrong).toEqual([])
  })

  test('who declines after another has approved is told so', async () => {
    provider.calls.length = 0
    const held = await propose('And may I say that?', 'ticket-2')
    const page = await open(1, `#/held/${held.id}`)
    await button(page, 'Decline').waitFor()
    await page.route('**/v1/messages/msg_*', async (route) => route.abort('connectionfailed')) // it shows what was held
    const { statusCode } = await at(persons, 0).post(
      `/v1/messages/${held.id}/approve`,
      { fingerprint: held.fingerprint },
      { prefer: 'wait=0' },
    )
    expect(statusCode).toBe(200)
    await button(page, 'Decline').click()
    await sees(page, 'It was approved already')
    await sees(page, `key ${at(persons, 0).id}`)
    await page.close()
    await dispatch(at(gateways, 0))
    expect(provider.calls).toHaveLength(1)
    wrong.length = 0
  })

  test('a conversation that moved is seen to have moved; approved all the same, nothing is sent', async () => {
    provider.calls.length = 0
    const held = await propose('Thursday at nine?', 'ticket-3')
    const page = await open(0, `#/held/${held.id}`)
    await button(page, 'Approve').waitFor()
    const recorded = await at(persons, 0).post('/v1/conversations/ticket-3/inbound', {
      eventId: 'in-1',
      from: '+447700900123',
      text: 'Not Thursday!',
    })
    expect(recorded.statusCode).toBe(200)
    await sees(page, 'It was at version 0 then, and is at 1 now.')
    await sees(page, 'Not Thursday!')
    await button(page, 'Approve').click()
    await sees(page, 'The conversation had moved on since it was written, so it was not sent.')
    await page.close()
    expect(provider.calls).toEqual([])
    expect(wrong).toEqual([])
  })

  test('an unknown outcome is settled by a person, with the evidence in the time line', async () => {
    provider.answer = () => lost()
    const service = await callerOf(at(gateways, 0), 'service')
    const sent = await service.send(sms('Your code is 481 552.'), { 'idempotency-key': 'code-1' })
    expect(sent.statusCode).toBe(504)
    const page = await open(0, '#/unknown')
    await page.locator('[data-item]').click()
    await sees(page, 'The gateway has no further step of its own.')
    await page.getByLabel('It was not sent', { exact: true }).check()
    await page.getByLabel('What you saw, and where').fill('Not in the log of the provider')
    await button(page, 'Record the verdict').dblclick()
    await page.locator('.message-head', { hasText: 'Not sent' }).waitFor()
    await page.locator('.time-line', { hasText: /Settled by a person .*: not sent/ }).waitFor()
    await sees(page, '“Not in the log of the provider”')
    await page.evaluate("location.hash = '#/search?by=key&for=code-1'")
    await sees(page, 'Nothing was sent, and nothing will be under this key.')
    await page.close()
    expect(wrong).toEqual([])
  })
})

/** Approving and declining in a real browser: pressed twice, in two tabs, by two people, with answers that are lost. */
import { describe, expect, test } from 'vitest'
import { hasBrowser, why } from '../support/browser.ts'
import { ada, ben, reader } from '../support/console-samples.ts'
import { until } from '../support/gateway.ts'
import { button, focused, listed, sees, useStage } from './stage.ts'

describe.skipIf(!hasBrowser)(`approving and declining in a browser${why}`, () => {
  const stage = useStage()

  test('a double click approves once, with the fingerprint that was shown', async () => {
    const { fake } = stage
    const message = fake.add()
    let goOn = (): void => {}
    const waitFor = new Promise<void>((resolve) => (goOn = resolve))
    fake.instead = ({ method }) => (method === 'POST' ? { waitFor } : undefined)
    const page = await stage.open(`#/held/${message.id}`)
    await button(page, 'Approve').dblclick()
    await button(page, 'Approving…').waitFor()
    expect(await button(page, 'Approving…').isDisabled()).toBe(true)
    expect(await button(page, 'Decline').isDisabled()).toBe(true)
    goOn()
    await sees(page, /^Approved/)
    expect(await focused(page)).toContain('Approved by you')
    expect(fake.posts()).toEqual([
      {
        method: 'POST',
        path: `/v1/messages/${message.id}/approve`,
        by: ada.id,
        body: { fingerprint: message.fingerprint },
      },
    ])
    expect(fake.sends).toEqual([message.id])
  })

  test('a double click is one request however fast the answer comes', async () => {
    const message = stage.fake.add()
    const page = await stage.open(`#/held/${message.id}`)
    await button(page, 'Approve').dblclick()
    await sees(page, /It was sent/)
    expect(stage.fake.posts()).toHaveLength(1)
  })

  test('two people, two pages: the second is told who decided, and one send comes of it', async () => {
    const { fake } = stage
    const message = fake.add()
    const [one, two] = [await stage.open(`#/held/${message.id}`), await stage.open(`#/held/${message.id}`, { by: ben })]
    // The second still shows what was held when the first has decided.
    fake.instead = ({ by, method }) => (by === ben.id && method === 'GET' ? { status: 503, body: {} } : undefined)
    await button(one, 'Decline').click()
    await sees(one, /Declined by you/)
    fake.instead = () => undefined
    await button(two, 'Approve').click()
    await sees(two, 'It was declined already')
    await sees(two, 'key ada-desk')
    await sees(two, 'what you pressed changed nothing')
    expect(fake.sends).toEqual([])
    expect(stage.wrong()).not.toEqual([])
  })

  test('a decision of somebody else appears by itself, and the list forgets the message', async () => {
    const { fake } = stage
    const [message, other] = [fake.add(), fake.add({ to: '+447700900999' })]
    const page = await stage.open(`#/held/${message.id}`)
    await button(page, 'Approve').waitFor()
    fake.change(message.id, {
      status: 'sent',
      statusReason: null,
      sentAt: new Date().toISOString(),
      approval: { status: 'approved', reason: 'approval', by: 'ben-phone', at: new Date().toISOString() },
    })
    await sees(page, 'key ben-phone')
    expect(await button(page, 'Approve').count()).toBe(0)
    expect(await listed(page)).toEqual([other.id])
  })

  test('a lost answer is said to be one, and the same can be asked again: one send', async () => {
    const { fake } = stage
    const message = fake.add()
    const page = await stage.open(`#/held/${message.id}`)
    await button(page, 'Approve').waitFor()
    let isAway = true
    fake.instead = ({ method }) => (isAway ? (method === 'POST' ? 'drop' : { status: 503, body: {} }) : undefined)
    await button(page, 'Approve').click()
    await sees(page, 'is not known here')
    await sees(page, 'Not connected.')
    expect(await focused(page)).toContain('To ask the same again is safe')
    isAway = false
    await button(page, 'Repeat: approve').click()
    await sees(page, /^Approved/)
    // The browser, too, repeats a POST by itself if a connection that it reused ends without an answer.
    const fingerprints = fake.posts().map(({ body }) => (body as { fingerprint: string }).fingerprint)
    expect(fingerprints.length).toBeGreaterThanOrEqual(2)
    expect(new Set(fingerprints)).toEqual(new Set([message.fingerprint]))
    expect(fake.sends).toEqual([message.id])
    expect(stage.wrong()).not.toEqual([])
  })

  test('a 5xx to an approval is a lost answer, too', async () => {
    const message = stage.fake.add()
    stage.fake.instead = ({ method }) => (method === 'POST' ? { status: 504, body: { title: 'Away' } } : undefined)
    const page = await stage.open(`#/held/${message.id}`)
    await button(page, 'Decline').click()
    await sees(page, 'The gateway answered 504: Away.')
    await button(page, 'Repeat: decline').waitFor()
    expect(stage.wrong()).not.toEqual([])
    stage.fake.instead = () => undefined
    await button(page, 'Approve instead').click()
    await sees(page, /^Approved/)
  })

  test('a gateway that never answers is given up on, and the act is offered again', async () => {
    const { fake } = stage
    const message = fake.add()
    const page = await stage.open('', { by: null })
    await page.clock.install()
    await page.reload()
    await page.fill('#api-key', ada.token)
    await page.keyboard.press('Enter')
    await page.waitForSelector('nav')
    await page.evaluate(`location.hash = '#/held/${message.id}'`)
    fake.instead = ({ method }) => (method === 'POST' ? { waitFor: new Promise(() => {}) } : undefined)
    await button(page, 'Approve').click()
    await until(() => fake.posts().length === 1)
    await page.clock.runFor(41_000)
    await sees(page, 'The gateway did not answer in time.')
    await button(page, 'Repeat: approve').waitFor()
    expect(fake.posts()).toHaveLength(1)
  })

  const refusals = [
    ['fingerprint-mismatch', 'You were shown another message'],
    ['too-late', 'It is too late'],
    ['not-held', 'was never held'],
  ] as const
  test.each(refusals)('a 409 %s is explained', async (type, told) => {
    const message = stage.fake.add()
    stage.fake.instead = ({ method }) =>
      method === 'POST'
        ? { status: 409, body: { type: `/problems/${type}`, title: type, status: 409, detail: '' } }
        : undefined
    const page = await stage.open(`#/held/${message.id}`)
    await button(page, 'Approve').click()
    await sees(page, told)
    await button(page, 'Approve').waitFor()
    expect(stage.wrong()).not.toEqual([])
  })

  test('a conversation that moved is shown before, and what came of approving all the same after', async () => {
    const { fake } = stage
    const message = fake.add({ conversation: 'ticket-1', conversationVersion: 1 })
    fake.conversations.set('ticket-1', { version: 1, entries: [] })
    const page = await stage.open(`#/held/${message.id}`)
    await sees(page, 'Nothing was said in it before.')
    expect(await page.getByText('The conversation has moved on').count()).toBe(0)
    const at = new Date().toISOString()
    fake.conversations.set('ticket-1', {
      version: 2,
      entries: [
        {
          direction: 'inbound',
          at,
          inbound: {
            id: 'evt_1',
            source: 'api',
            from: '+44',
            text: 'Please cancel that.',
            occurredAt: at,
            receivedAt: at,
          },
        },
      ],
    })
    await sees(page, 'It was at version 1 then, and is at 2 now.')
    await sees(page, 'Please cancel that.')
    await sees(page, 'since this was written')
    await button(page, 'Approve').click()
    await sees(page, 'The conversation had moved on since it was written, so it was not sent.')
    expect(fake.sends).toEqual([])
  })

  test('a key that may not decide is told what is missing', async () => {
    const message = stage.fake.add()
    const page = await stage.open(`#/held/${message.id}`, { by: reader })
    await button(page, 'Approve').click()
    await sees(page, 'This key may not decide it. The scope `approve` is needed.')
    expect(stage.wrong()).not.toEqual([])
  })

  test('who asked for a message cannot approve it', async () => {
    const message = stage.fake.add({ sentBy: ada.id })
    const page = await stage.open(`#/held/${message.id}`)
    await sees(page, 'somebody else has to decide')
    expect(await button(page, 'Approve').isDisabled()).toBe(true)
  })
})

/** Unknown messages, a message's time line and searches in a real browser. */
import { describe, expect, test } from 'vitest'
import { hasBrowser, why } from '../support/browser.ts'
import { addUnknown, fill } from '../support/console-samples.ts'
import { button, sees, useStage } from './stage.ts'

describe.skipIf(!hasBrowser)(`unknown messages, time lines and searches in a browser${why}`, () => {
  const stage = useStage()

  test('an unknown message shows its evidence and the plan, and takes a verdict once', async () => {
    const { fake } = stage
    const plan = {
      step: 'look',
      at: new Date(Date.now() + 90_000).toISOString(),
      givesUpAt: new Date(Date.now() + 7_200_000).toISOString(),
      steps: 2,
      lastEvidence: 'no answer',
    } as const
    const message = addUnknown(fake, { plan })
    const page = await stage.open(`#/unknown/${message.id}`)
    await sees(page, 'twilio-eu may have it')
    await sees(page, 'code UND_ERR_SOCKET')
    await sees(page, 'The gateway asks the provider')
    await sees(page, '2 steps so far')
    await button(page, 'Record the verdict').click()
    expect(fake.posts()).toEqual([]) // neither chosen nor proven
    await page.getByLabel('It was sent').check()
    await page.getByLabel('What you saw, and where').fill('In the log of Twilio')
    await page.getByLabel("The provider's id of it").fill('SM77')
    await button(page, 'Record the verdict').dblclick()
    await page.locator('.message-head', { hasText: 'Sent' }).waitFor()
    expect(fake.posts().map(({ body }) => body)).toEqual([
      {
        attempt: message.openAttempts[0],
        outcome: 'sent',
        evidence: 'In the log of Twilio',
        providerMessageId: 'SM77',
      },
    ])
  })

  test('each open attempt has a form of its own, and a draft outlives another view', async () => {
    const { fake } = stage
    const message = addUnknown(fake, {}, 2)
    const page = await stage.open(`#/unknown/${message.id}`)
    const forms = page.locator('form')
    await expect.poll(async () => forms.count()).toBe(2)
    const second = forms.nth(1)
    await second.getByLabel('It was not sent: send it again, once').check()
    await second.getByLabel('What you saw, and where').fill('Nowhere')
    await page.evaluate("location.hash = '#/search'")
    await page.getByRole('heading', { name: 'Search' }).waitFor()
    await page.goBack()
    await second.getByRole('button').click()
    await expect.poll(async () => forms.count()).toBe(1)
    expect(fake.posts().map(({ body }) => body)).toEqual([
      { attempt: message.openAttempts[1], outcome: 'not_sent', evidence: 'Nowhere', resend: true },
    ])
  })

  test('a verdict against an earlier one is told whose that was; a lost answer can be repeated', async () => {
    const { fake } = stage
    const message = addUnknown(fake)
    const [attempt = ''] = message.openAttempts
    const page = await stage.open(`#/unknown/${message.id}`)
    await page.getByLabel('It was not sent', { exact: true }).check()
    await page.getByLabel('What you saw, and where').fill('Not in the log')
    fake.instead = ({ method }) => (method === 'POST' ? { status: 502, body: {} } : undefined)
    await button(page, 'Record the verdict').click()
    await sees(page, 'To give the same again is safe')
    const decision = {
      by: 'operator',
      at: new Date().toISOString(),
      attempt,
      outcome: 'sent',
      apiKey: 'ben-phone',
      evidence: 'I called them',
    }
    fake.instead = ({ method }) =>
      method === 'POST'
        ? { status: 409, body: { type: '/problems/already-decided', title: 'Decided', detail: '', decision } }
        : undefined
    await button(page, 'Repeat the verdict').click()
    await sees(page, 'It was settled already: sent')
    await sees(page, 'I called them')
    expect(stage.wrong()).not.toEqual([])
  })

  test("a message's page tells its time line in words, and what the words do not know as it is", async () => {
    const { fake } = stage
    const message = fake.add({
      status: 'sent',
      sentAt: '2026-11-30T12:00:01.000Z',
      createdAt: '2026-11-30T12:00:00.000Z',
    })
    fake.events.set(message.id, [
      {
        id: 'evt_1',
        type: 'attempt_ended',
        at: '2026-11-30T12:00:01.000Z',
        attempt: 'att_1',
        data: {
          number: 1,
          provider: 'twilio-eu',
          outcome: 'accepted',
          phase: 'answered',
          httpStatus: 201,
          detail: 'accepted',
        },
      },
      {
        id: 'evt_2',
        type: 'receipt',
        at: '2026-11-30T12:00:02.000Z',
        attempt: 'att_1',
        data: { provider: 'twilio-eu', evidence: 'delivered', code: null },
      },
      { id: 'evt_3', type: 'never_heard_of', at: '2026-11-30T12:00:03.000Z', attempt: null, data: { what: 'this' } },
    ])
    const page = await stage.open(`#/messages/${message.id}`)
    await page.locator('.time-line li').nth(3).waitFor()
    const lines = await page.locator('.time-line li').allInnerTexts()
    expect(lines.join('\n')).toMatch(
      /claimed[\s\S]*Attempt 1: twilio-eu accepted it\.\s*it answered · HTTP 201 · accepted[\s\S]*A receipt came: delivered\.[\s\S]*never heard of\.\s*what: this/,
    )
    const first = page.locator('.time-line time').first()
    expect(await first.getAttribute('title')).toContain('2026-11-30T12:00:00.000Z')
    expect(await first.innerText()).toContain('13:00:00') // in the reader's zone
  })

  test('search finds by recipient, reference and key, and says what a key stands for', async () => {
    const { duplicate } = fill(stage.fake)
    const page = await stage.open('#/search')
    const search = async (by: string, value: string): Promise<void> => {
      await page.getByLabel(by, { exact: true }).check()
      await page.getByLabel('Exactly').fill(value)
      await button(page, 'Search').click()
    }
    await search('Recipient', '+447700900123')
    await sees(page, '3 messages')
    await search('Reference', 'refund-991-b')
    await sees(page, '1 message')
    await search('Idempotency key', 'refund-991')
    await sees(page, 'It was sent.')
    await search('Idempotency key', 'voided')
    await sees(page, 'The key was voided')
    await search('Idempotency key', 'never/seen?')
    await sees(page, 'This key was never seen.')
    expect(stage.wrong().every((line) => line.includes('404'))).toBe(true)
    await page.goBack()
    await page.goBack()
    await page.goBack()
    await page.locator(`[data-item="${duplicate.id}"]`).click()
    await sees(page, 'May say again what was said:')
    await page.keyboard.press('Escape')
    await sees(page, '1 message')
  })
})

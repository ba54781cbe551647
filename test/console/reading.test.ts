/** Reading in a real browser: hostile texts, live updates, keys, phones, signing in and out, searching. */
import { describe, expect, test } from 'vitest'
import { hasBrowser, why } from '../support/browser.ts'
import { ada, addUnknown, fill, sender } from '../support/console-samples.ts'
import { button, focused, overflow, sees, signIn, useStage } from './stage.ts'

describe.skipIf(!hasBrowser)(`the console in a browser${why}`, () => {
  const stage = useStage()

  const hostile = '<img src=x onerror="document.title=1"><script>alert(1)</script>'

  test.each([
    ['sms', { text: hostile }],
    ['chat', { text: hostile, threadId: hostile }],
    [
      'email',
      {
        subject: hostile,
        text: hostile,
        html: hostile,
        headers: { 'X-A': hostile },
        attachments: [{ filename: hostile, contentType: 'text/html', content: 'PGI+' }],
      },
    ],
    ['push', { title: hostile, body: hostile, data: { [hostile]: hostile } }],
    ['webhook', { type: hostile, data: [hostile] }],
  ] as const)('a hostile %s is shown as the text that it is', async (channel, content) => {
    const { fake } = stage
    const message = fake.add({
      channel,
      content,
      to: hostile,
      from: hostile,
      cc: [hostile],
      conversation: hostile,
      conversationVersion: 0,
      reference: hostile,
      intent: hostile,
      metadata: { [hostile]: hostile },
    })
    const at = new Date().toISOString()
    fake.conversations.set(hostile, {
      version: 0,
      entries: [
        {
          direction: 'inbound',
          at,
          inbound: { id: 'evt_1', source: 'api', from: hostile, text: hostile, occurredAt: at, receivedAt: at },
        },
      ],
    })
    fake.events.set(message.id, [
      { id: 'evt_2', type: hostile, at, attempt: null, data: { detail: hostile, [hostile]: hostile } },
    ])
    const page = await stage.open(`#/held/${message.id}`)
    await button(page, 'Approve').waitFor()
    await page.locator('.entries .said').waitFor()
    expect(await page.locator('.content').innerText()).toContain(
      channel === 'push' || channel === 'webhook' ? JSON.stringify(hostile) : hostile,
    )
    expect(await page.locator('img, #page script').count()).toBe(0)
    expect(await page.title()).toBe('(1) Held · Sendonce')
  })

  test('what cannot be seen in a text is named', async () => {
    const message = stage.fake.add({ content: { text: 'pay \u202Egnp.exe\u200B now\u0007' } })
    const page = await stage.open(`#/held/${message.id}`)
    await button(page, 'Approve').waitFor()
    expect(await page.locator('.content').innerText()).toBe('pay [U+202E]gnp.exe[U+200B] now[U+0007]')
  })

  test('news comes in by itself: in place, announced, and without taking focus, text or scroll position', async () => {
    const { fake } = stage
    const [unknown] = [addUnknown(fake), addUnknown(fake)]
    for (let n = 0; n < 12; n++) fake.add({ to: `+4477009000${10 + n}` })
    const page = await stage.open(`#/unknown/${unknown.id}`)
    const field = page.getByLabel('What you saw, and where')
    await field.fill('Seen in the console of')
    await page.mouse.wheel(0, 200)
    await expect.poll(async () => page.evaluate('scrollY')).toBe(200)
    await page.evaluate('globalThis.first = document.querySelector("[data-item]")')
    fake.add({ to: '+447700900555' })
    await page.getByRole('link', { name: /^Held 13$/ }).waitFor({ timeout: 15_000 })
    addUnknown(fake, { to: '+447700900777', agoMs: 1000 })
    await page.locator('[data-item]', { hasText: '+447700900777' }).waitFor()
    await page.keyboard.type(' twilio')
    expect(await field.inputValue()).toBe('Seen in the console of twilio')
    expect(await page.evaluate('scrollY')).toBe(200)
    expect(await page.evaluate('first === document.querySelector("[data-item]")')).toBe(true)
    expect(await page.locator('#announced').innerText()).toBe('A new held message: SMS to +447700900555.')
  }, 40_000)

  test('the focus stays on a message of the list while others come and go around it', async () => {
    const { fake } = stage
    const [first, second] = [fake.add({ agoMs: 50_000 }), fake.add({ agoMs: 40_000, to: '+447700900200' })]
    const page = await stage.open()
    await page.locator(`[data-item="${second.id}"]`).focus()
    fake.change(first.id, { status: 'canceled' })
    const third = fake.add({ agoMs: 100, to: '+447700900300' })
    await page.locator(`[data-item="${third.id}"]`).waitFor()
    await expect.poll(async () => page.locator('[data-item]').count()).toBe(2)
    expect(await focused(page)).toContain('+447700900200')
  })

  test('a gateway that is away is told, and so is its return', async () => {
    const { fake } = stage
    fake.add()
    const page = await stage.open()
    await page.locator('[data-item]').waitFor()
    fake.instead = () => ({ status: 503, body: {} })
    await sees(page, 'Not connected.')
    expect(await page.locator('[data-item]').count()).toBe(1)
    fake.instead = () => undefined
    await button(page, 'Try now').click()
    await page.getByText('Not connected.').waitFor({ state: 'hidden' })
    expect(stage.wrong()).not.toEqual([])
  })

  test('everything can be done by keys alone', async () => {
    const { fake } = stage
    const [one, two] = [
      fake.add({ agoMs: 90_000, to: '+447700900001' }),
      fake.add({ agoMs: 80_000, to: '+447700900002' }),
    ]
    const page = await stage.open('', { by: null })
    await page.keyboard.press('Tab') // to the field, if it does not have the focus
    await page.locator('#api-key').focus()
    await page.keyboard.type(ada.token)
    await page.keyboard.press('Enter')
    await page.locator(`[data-item="${two.id}"]`).waitFor()
    await page.keyboard.press('?')
    await sees(page, 'No single key approves or declines')
    await page.keyboard.press('Escape')
    await page.keyboard.press('j')
    expect(await focused(page)).toContain(one.to)
    await page.keyboard.press('j')
    await page.keyboard.press('k')
    await page.keyboard.press('ArrowDown')
    expect(await focused(page)).toContain(two.to)
    await page.keyboard.press('Enter')
    await button(page, 'Approve').waitFor()
    expect(await focused(page)).toContain(`SMS to ${two.to}`)
    await page.keyboard.press('Escape')
    // Not the heading of the message, which names the recipient too.
    await expect.poll(async () => (await focused(page)).startsWith(two.to)).toBe(true)
    expect(page.url()).toMatch(/#\/held$/)
    await page.keyboard.press('Enter')
    await expect.poll(async () => focused(page)).toBe(`SMS to ${two.to}`)
    for (let presses = 0; presses < 10 && (await focused(page)) !== 'Approve'; presses++)
      await page.keyboard.press('Tab')
    const outline = await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')
    expect([await focused(page), outline]).toEqual(['Approve', 'solid'])
    await page.keyboard.press('Enter')
    await sees(page, /^Approved/)
    expect(fake.sends).toEqual([two.id])
    await page.keyboard.press('/')
    await expect.poll(async () => focused(page)).toBe('search-for')
    await page.keyboard.type(one.idempotencyKey)
    await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('ArrowUp') // of the three choices, the last
    await page.keyboard.press('Enter')
    await sees(page, 'It was sent, or may yet be')
    await page.goBack()
    await page.goBack()
    await expect.poll(() => page.url()).toContain(`#/held/${two.id}`)
  })

  test('the key is nowhere but in memory: not in storage, address or page, and gone after a reload or signing out', async () => {
    const { fake } = stage
    const { to } = fake.add()
    const page = await stage.open()
    await page.getByText(to).first().waitFor()
    const secret = ada.token.slice(-40)
    const kept = await page.evaluate(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, history.state, document.documentElement.outerHTML])',
    )
    expect(kept).not.toContain(secret)
    expect(await page.context().storageState()).toEqual({ cookies: [], origins: [] })
    await button(page, 'Sign out').click()
    await page.locator('#api-key').waitFor()
    expect(await page.locator('body').innerText()).not.toContain(to)
    const asked = fake.asked.length
    await page.waitForTimeout(2_500) // longer than between two rounds
    expect(fake.asked.length).toBe(asked)
    await signIn(page, ada)
    await page.reload()
    await page.locator('#api-key').waitFor()
    expect(await page.locator('#api-key').inputValue()).toBe('')
  })

  test('a key that is not known, one that is none, and one that is revoked lead to the form', async () => {
    const { fake } = stage
    const page = await stage.open('', { by: null })
    await page.fill('#api-key', 'secret')
    await page.keyboard.press('Enter')
    await sees(page, 'This is no API key')
    await page.fill('#api-key', `so_test_nobody_${'x'.repeat(40)}`)
    await page.keyboard.press('Enter')
    await sees(page, 'The gateway does not accept this key')
    await signIn(page, ada)
    fake.instead = () => ({ status: 401, body: { type: '/problems/unauthorized', title: 'No valid API key' } })
    await page.locator('#api-key').waitFor()
    await sees(page, 'it was revoked')
    expect(stage.wrong()).not.toEqual([])
  })

  test('a key that may not read is told so', async () => {
    const page = await stage.open('', { by: sender })
    await sees(page, 'This key may not see that. The scope `read` is needed.')
    expect(stage.wrong()).not.toEqual([])
  })

  test('on a phone no view is wider than the window, and the list makes room for what is open', async () => {
    const made = fill(stage.fake)
    const page = await stage.open('', { viewport: { width: 360, height: 740 } })
    const long = stage.fake.add({
      content: { text: 'W'.repeat(500) },
      to: `${'l'.repeat(300)}@example.org`,
      conversation: 'c'.repeat(200),
      idempotencyKey: 'k'.repeat(255),
      metadata: { ['m'.repeat(200)]: 'v'.repeat(400) },
    })
    const ids = [...Object.values(made), long].map(({ id }) => id)
    for (const hash of [
      '#/held',
      '#/unknown',
      '#/search',
      '#/search?by=to&for=x',
      ...ids.map((id) => `#/messages/${id}`),
      ...ids.map((id) => `#/held/${id}`),
    ]) {
      await page.evaluate(`location.hash = ${JSON.stringify(hash)}`)
      await page.locator('#main h1, #main h2').first().waitFor({ state: 'attached' })
      if (hash.includes('msg_')) await page.locator('.facts').waitFor()
      expect([hash, await overflow(page)]).toEqual([hash, 0])
    }
    expect(await page.locator('.items').isVisible()).toBe(false)
    await page.getByRole('link', { name: '← Held messages' }).click()
    await page.locator('.items').waitFor()
  })
})

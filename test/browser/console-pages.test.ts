/** Lists, forms and charts, where the second console showed something else than is true. */
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { openTestKeyring, pepper } from '../support/platform/keyring.ts'
import { until } from '../support/until.ts'
import { chromium, useStage } from './stage.ts'

/** What a chart wrote on its canvas, with the colour of each text. */
type Drawn = { text: string; color: string }[]

describe.skipIf(!chromium)('the pages around the tasks', () => {
  const stage = useStage()

  test('the axis of a small cost does not end at a dollar', async () => {
    const page = await openUsage()
    const costs = (await drawn(page)).flatMap(({ text }) => (text.startsWith('$') ? [Number(text.slice(1))] : []))
    expect(Math.max(...costs)).toBeLessThan(0.1)
  })

  test('a day of usage is that day west of Greenwich, too', async () => {
    const page = await openUsage()
    const texts = (await drawn(page)).map(({ text }) => text)
    expect(texts.filter(text => /^3\/[123]/.test(text)).length).toBeGreaterThan(0)
    expect(texts.filter(text => /2\/28|Feb/.test(text))).toEqual([])
  })

  test('charts change their colours with the theme', async () => {
    const page = await openUsage()
    const before = new Set((await drawn(page)).map(({ color }) => color))
    await page.evaluate(() => Object.assign(globalThis, { drawn: [] }))
    await page.getByRole('button', { name: /Change to light/ }).click()
    await page.getByRole('button', { name: /Change to dark/ }).click()
    await until('the charts have other colours', async () => (await drawn(page)).some(({ color }) => !before.has(color)))
  })

  test('a form says which fields are wrong, and why', async () => {
    const { page, platform } = stage
    await page.goto(`${platform.url}/schedules`)
    await page.getByRole('button', { name: 'New schedule' }).click()
    const details = ['cron', 'timezone'].map(name => ({ path: `/${name}`, reason: `The ${name} is wrong` }))
    const error = { code: 'validation_failed', message: 'Request validation failed: /cron: The cron is wrong', details }
    await page.route('**/v1/schedules', route =>
      route.request().method() === 'POST' ? route.fulfill({ status: 400, json: { error } }) : route.continue(),
    )
    await page.getByLabel('Cron line').fill('every day at nine')
    await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click()
    await page.getByText('Request validation failed. cron: The cron is wrong. timezone: The timezone is wrong').waitFor()
    stage.complaints = stage.complaints.filter(text => !text.includes('400'))
  })

  test('a webhook whose deliveries fail is not shown as one that works', async () => {
    const { page, platform } = stage
    const created = await platform.client.post<{ webhook: { id: string } }>('/v1/webhooks', {
      url: 'https://hook.example',
      events: ['task.created'],
    })
    const { id } = created.body.webhook
    const delivery = {
      id,
      type: 'task.created',
      task: id,
      status: 'pending',
      attempts: 3,
      lastStatus: 500,
      createdAt: new Date().toISOString(),
    }
    await page.route('**/deliveries?*', route => route.fulfill({ json: { data: [delivery, delivery], nextCursor: null } }))
    await page.goto(`${platform.url}/schedules`)
    const row = page.getByRole('row', { name: /hook\.example/ })
    await row.getByText('failing').waitFor()
    await row.getByText('2 of the last 2 failed').waitFor()
  })

  test('on a phone, the navigation shows where one is, and no field is so small that the phone zooms into it', async () => {
    const { browser, platform } = stage
    const id = await stage.start({ steps: [] })
    const phone = await browser.newContext({ viewport: { width: 390, height: 800 }, isMobile: true, hasTouch: true })
    const page = await phone.newPage()
    await page.goto(`${platform.url}/schedules`)
    const here = page.getByRole('navigation').locator('[aria-current=page]')
    await until('it is in sight', async () => {
      const box = await here.boundingBox()
      return box !== null && box.x >= 0 && box.x + box.width <= 390
    })
    for (const path of ['/', '/waits', `/tasks/${id}?inspect=1`, '/agents']) {
      await page.goto(`${platform.url}${path}`)
      await page.locator('input:not([type=checkbox]), select, textarea').first().waitFor({ state: 'attached' })
      const sizes = await page
        .locator('input:not([type=checkbox]), select, textarea')
        .evaluateAll(fields => fields.map(field => Number.parseFloat(getComputedStyle(field).fontSize)))
      expect([path, Math.min(...sizes) >= 16]).toEqual([path, true])
    }
    await phone.close()
  })

  test('a key that may only read sees no button for new keys, and its page asks no more', async () => {
    const { page, platform } = stage
    const guarded = await platform.startApi({ env: { RIVULET_KEY: 'secret', KEY_PEPPER: pepper } })
    await page.goto(guarded.url)
    await page.getByLabel('This server wants a key').waitFor()
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('key')
    const keyring = openTestKeyring(platform.databaseUrl)
    const { key } = await keyring.create({ tenant: 'default', scopes: ['tasks:read'] })
    await keyring.close()
    await page.keyboard.type(key)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Tasks' }).waitFor()
    await page.goto(`${guarded.url}/keys`)
    await page.getByRole('heading', { name: 'This page is for admins' }).waitFor()
    expect(await page.getByRole('button', { name: 'New key' }).count()).toBe(0)
    stage.complaints = stage.complaints.filter(text => !/40[13]/.test(text))
  })

  test('the links of a group of errors show the tasks that failed for this reason', async () => {
    const { page, platform } = stage
    for (const reason of ['out of paper', 'out of ink', 'out of paper'])
      await platform.client.waitForEnd(
        await stage.start({ steps: [{ throw: reason }] }, { maxAttempts: 1, name: `${reason} ${Math.random()}` }),
      )
    for (const link of ['out of paper', 'scripted']) {
      await page.goto(`${platform.url}/errors`)
      await page
        .getByRole('row', { name: /out of paper/ })
        .getByRole('link', { name: link, exact: true })
        .click()
      await until('the two are listed', async () => (await page.getByRole('list', { name: 'Tasks' }).getByRole('link').count()) === 2)
      expect(await page.getByRole('link', { name: /out of ink/ }).count()).toBe(0)
    }
  })

  /** Three days with a cost of two cents, for a reader in New York. */
  async function openUsage(): Promise<Page> {
    await stage.context.close()
    stage.context = await stage.browser.newContext({ timezoneId: 'America/New_York', viewport: { width: 1280, height: 1000 } })
    const page = await stage.open()
    await recordTexts(page)
    const used = { tokens: 12, cost: 0.02, responses: 1, turns: 1, unpriced: 0, usage: { inputTokens: 8, outputTokens: 4 } }
    const days = { by: 'day', from: '2026-03-01T00:00:00.000Z', to: '2026-03-04T00:00:00.000Z' }
    await page.route('**/v1/usage?*', route => route.fulfill({ json: { ...days, total: used, data: [{ ...used, group: '2026-03-02' }] } }))
    await page.goto(`${stage.platform.url}/usage`)
    await page.getByRole('img', { name: /Cost by day/ }).waitFor()
    await until('the axes are drawn', async () => (await drawn(page)).some(({ text }) => text.startsWith('$')))
    return page
  }
})

/** A chart is a canvas, so what it writes is noted before the page does anything. */
async function recordTexts(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const scope = globalThis as unknown as { drawn: Drawn }
    scope.drawn = []
    const { fillText } = CanvasRenderingContext2D.prototype
    CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
      scope.drawn.push({ text, color: String(this.fillStyle) })
      return fillText.call(this, text, ...rest)
    }
  })
}

function drawn(page: Page): Promise<Drawn> {
  return page.evaluate(() => (globalThis as unknown as { drawn: Drawn }).drawn)
}

/** The other pages of the API in a real browser: its description works under its own policy, no page can be framed, and others change nothing. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { findChromium, launchBrowser } from '../support/browser.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

const chromium = findChromium(process.env)

let platform: Platform
let browser: Browser
let page: Page
let complaints: string[]
let elsewhere: { server: Server; url: string }

describe.skipIf(!chromium)('the pages of an API', () => {
  beforeAll(async () => {
    ;[platform, browser, elsewhere] = await Promise.all([
      startPlatform({ workers: 0 }),
      launchBrowser(chromium ?? ''),
      serveAnotherOrigin(),
    ])
  })
  afterAll(async () => {
    await browser?.close()
    elsewhere?.server.close()
    await platform?.close()
  })
  beforeEach(async () => {
    complaints = []
    page = await browser.newPage()
    page.on('console', message => message.type() === 'error' && complaints.push(message.text()))
    page.on('pageerror', error => complaints.push(String(error)))
  })
  afterEach(() => page.close())

  test.each(['/docs', '/docs/'])('%s shows every call, and makes one', async path => {
    await page.goto(`${platform.url}${path}`)
    // Swagger UI draws what is near the screen.
    const shown = new Set<string>()
    await until('a person who scrolls sees many calls', async () => {
      for (const path of await page.locator('.opblock-summary-path').allInnerTexts()) shown.add(path)
      await page.mouse.wheel(0, 500)
      return shown.size > 10
    })
    await page.evaluate(() => scrollTo(0, 0))
    const healthz = page.locator('.opblock', { hasText: '/healthz' })
    await healthz.getByRole('button').first().click()
    await healthz.getByRole('button', { name: 'Try it out' }).click()
    await healthz.getByRole('button', { name: 'Execute' }).click()
    await healthz.getByText('"status": "ok"').first().waitFor()
    expect(complaints).toEqual([])
  })

  test.each(['127.0.0.1', 'localhost'])(
    'a page of another origin (of %s) cannot cancel, where no key is asked for; one of the API can',
    async host => {
      await platform.client.post('/internal/hello', { worker: 'none', agents: [{ name: 'idle', description: '' }] })
      const { task } = await platform.client.createTask({ agent: 'idle', input: 'x' })
      const cancel = `${platform.url}/v1/tasks/${task.id}/cancel`
      await page.goto(elsewhere.url.replace('127.0.0.1', host))
      // The browser sends no preflight, and hides the response.
      expect(await page.evaluate(url => fetch(url, { method: 'POST', mode: 'no-cors' }).then(({ type }) => type), cancel)).toBe('opaque')
      expect((await platform.client.detail(task.id)).task.status).toBe('queued')
      await page.goto(`${platform.url}/healthz`)
      expect(await page.evaluate(url => fetch(url, { method: 'POST' }).then(({ status }) => status), cancel)).toBe(200)
      expect((await platform.client.detail(task.id)).task.status).toBe('canceled')
    },
  )

  test.each(['/docs', '/', '/openapi.json', '/healthz', '/nowhere'])('%s cannot be shown in a frame of another page', async path => {
    await page.goto(`${elsewhere.url}/?${encodeURIComponent(`${platform.url}${path}`)}`)
    await until('the browser refuses', () => complaints.some(text => /frame-ancestors|X-Frame-Options/i.test(text)))
  })
})

/** A page that frames the address in its query. */
async function serveAnotherOrigin(): Promise<{ server: Server; url: string }> {
  const server = createServer((request, response) => {
    const [, query = ''] = (request.url ?? '').split('?')
    response.setHeader('content-type', 'text/html').end(`<!doctype html><iframe src="${decodeURIComponent(query)}"></iframe>`)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

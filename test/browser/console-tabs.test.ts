/** Many tabs of one browser, which has six connections to a server: each shows what is new, and each can send. */
import type { BrowserContext, Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { metric } from '../support/platform/metrics.ts'
import { until } from '../support/until.ts'
import { chromium, say, useStage } from './stage.ts'

describe.skipIf(!chromium)('many tabs', () => {
  const stage = useStage()

  test('eight tabs show eight tasks as they stream, and the last one sends and stops', async () => {
    const ids = await startAll(8)
    const pages = await openAll(ids)
    for (const [place, page] of pages.entries()) await page.getByText(`task ${place} begins`).waitFor()
    const last = pages.at(-1) as Page
    await last.getByLabel('Message to the agent').fill('sent by the eighth tab')
    await last.getByRole('button', { name: 'Send' }).click()
    await last.getByRole('article', { name: 'You' }).getByText('sent by the eighth tab').waitFor()
    await last.getByRole('button', { name: 'Stop' }).click()
    await last.getByText('Stopped here').waitFor()
    await cancelAll(ids)
    for (const page of pages) await page.getByRole('status').getByText('Up to date').waitFor()
  })

  test('eight tabs of one task with the inspector show every event once, whenever they were opened', async () => {
    const id = await stage.start({ steps: [say('first words '), { sleep: 60_000 }] })
    const pages = []
    for (let count = 0; count < 8; count += 1) {
      const page = await stage.open()
      await page.goto(`${stage.platform.url}/tasks/${id}?inspect=1`)
      await page.getByText('first words').first().waitFor()
      pages.push(page)
    }
    await stage.platform.client.post(`/v1/tasks/${id}/turns`, { params: { steps: [say('second turn')] }, ifBusy: 'interrupt' })
    for (const page of pages) {
      await page.getByRole('log').getByText('second turn').waitFor()
      const events = page.getByRole('list', { name: 'Events' })
      await until('both turns have ended', async () => (await events.getByText('turn.finished').count()) === 2)
      expect(await events.getByText('turn.started').count()).toBe(2)
      expect(await events.getByText('snapshot').count()).toBe(0)
    }
  })

  test('a tab that is hidden closes its streams, and has everything when it is visible again', async () => {
    const [id = ''] = await startAll(1)
    const { page } = stage
    await hideable(stage.context)
    await page.goto(`${stage.platform.url}/tasks/${id}`)
    await page.getByText('task 0 begins').waitFor()
    await until('the streams are open', async () => (await viewers()) === 1)
    await show(page, 'hidden')
    await until('the streams are closed', async () => (await viewers()) === 0)
    await cancelAll([id])
    await show(page, 'visible')
    await page.getByText('Stopped here').waitFor()
  })

  test('a task that has ended has no stream, and shows its next turn as soon as there is one', async () => {
    const [id = ''] = await startAll(1)
    const { page } = stage
    await page.goto(`${stage.platform.url}/tasks/${id}`)
    await page.getByText('task 0 begins').waitFor()
    expect(await viewers()).toBe(1)
    await cancelAll([id])
    await page.getByText('Stopped here').waitFor()
    await until('its stream is closed', async () => (await viewers()) === 0)
    await page.getByRole('status').getByText('Up to date').waitFor()
    await stage.platform.client.post(`/v1/tasks/${id}/turns`, { params: { steps: [say('the second turn')] } })
    await page.getByRole('log').getByText('the second turn').waitFor()
    await until('its stream is closed again', async () => (await viewers()) === 0)
  })

  test('a shared worker that dies is replaced, and the task goes on', async () => {
    const [id = ''] = await startAll(1)
    const { page } = stage
    await page.goto(`${stage.platform.url}/tasks/${id}`)
    await page.getByText('task 0 begins').waitFor()
    await closeSharedWorker()
    await until('the worker took its streams with it', async () => (await viewers()) === 0)
    await stage.platform.client.post(`/v1/tasks/${id}/turns`, { params: { steps: [say('the second turn')] }, ifBusy: 'interrupt' })
    await page.getByRole('log').getByText('the second turn').waitFor()
  })

  test('without SharedWorker, eight tabs work as well, because only the visible one has streams', async () => {
    await stage.context.addInitScript('delete globalThis.SharedWorker')
    await hideable(stage.context)
    const ids = await startAll(8)
    let before: Page | null = null
    for (const [place, id] of ids.entries()) {
      if (before) await show(before, 'hidden')
      before = await stage.open()
      await before.goto(`${stage.platform.url}/tasks/${id}`)
      await before.getByText(`task ${place} begins`).waitFor()
    }
    await cancelAll(ids)
    await before?.getByText('Stopped here').waitFor()
  })

  async function startAll(count: number): Promise<string[]> {
    const steps = (place: number) => [say(`task ${place} begins`), { sleep: 60_000 }]
    return Promise.all(Array.from({ length: count }, (_, place) => stage.start({ steps: steps(place) })))
  }

  async function openAll(ids: readonly string[]): Promise<Page[]> {
    const pages = []
    for (const id of ids) {
      const page = await stage.open()
      await page.goto(`${stage.platform.url}/tasks/${id}`)
      pages.push(page)
    }
    return pages
  }

  async function cancelAll(ids: readonly string[]): Promise<void> {
    for (const id of ids) await stage.platform.client.post(`/v1/tasks/${id}/cancel`, {})
  }

  /** By the protocol of the browser's inspector, because a page cannot end a shared worker. */
  async function closeSharedWorker(): Promise<void> {
    const session = await stage.browser.newBrowserCDPSession()
    const { targetInfos } = await session.send('Target.getTargets')
    const { targetId = '' } = targetInfos.find(({ type }) => type === 'shared_worker') ?? {}
    const { sessionId } = await session.send('Target.attachToTarget', { targetId, flatten: false })
    const message = JSON.stringify({ id: 1, method: 'Runtime.evaluate', params: { expression: 'close()' } })
    await session.send('Target.sendMessageToTarget', { sessionId, message })
    await session.detach()
  }

  function viewers(): Promise<number> {
    return metric(stage.platform.url, 'rivulet_viewers')
  }
})

/** Headless tabs are all visible, so the page is made to report what the test says. */
async function hideable(context: BrowserContext): Promise<void> {
  await context.addInitScript(() => {
    const scope = globalThis as unknown as { shown: string }
    scope.shown = 'visible'
    Object.defineProperty(document, 'visibilityState', { get: () => scope.shown })
    Object.defineProperty(document, 'hidden', { get: () => scope.shown !== 'visible' })
  })
}

async function show(page: Page, state: 'visible' | 'hidden'): Promise<void> {
  await page.evaluate(state => {
    Object.assign(globalThis, { shown: state })
    document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))
  }, state)
}

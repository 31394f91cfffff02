/** The list of tasks, and signing in, as a person uses them. */
import { describe, expect, test } from 'vitest'
import type { ApiProcess } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'
import { chromium, useStage } from './stage.ts'

describe.skipIf(!chromium)('the list of tasks', () => {
  const stage = useStage()
  let guarded: ApiProcess | undefined

  test('Back returns to where the list was, with its filters, and so does "All tasks"', async () => {
    await manyTasks(90)
    const { page } = stage
    await page.goto(`${stage.platform.url}/?agent=scripted&status=queued`)
    const list = page.getByRole('list', { name: 'Tasks' })
    await list.getByRole('link').first().waitFor()
    const scroller = list.locator('..')
    await until('the list is long', () => list.evaluate(element => element.clientHeight >= 85 * 60))
    await scroller.evaluate(element => element.scrollTo(0, 3_600))
    await until('rows are drawn', async () => (await list.getByRole('link').first().boundingBox()) !== null)
    const opened = list.getByRole('link').nth(20)
    const href = await opened.getAttribute('href')
    await opened.click()
    await page.waitForURL(`**${href}`)
    await page.getByText('Queued …').waitFor()
    await page.goBack()
    await until('the list is where it was', () => scroller.evaluate(element => Math.abs(element.scrollTop - 3_600) < 2))
    expect(await page.evaluate(() => document.activeElement?.getAttribute('href'))).toBe(href)
    await page.goForward()
    await page.getByRole('link', { name: 'All tasks' }).click()
    await page.waitForURL('**/?agent=scripted&status=queued')
    await until('the list is where it was', () => scroller.evaluate(element => Math.abs(element.scrollTop - 3_600) < 2))
  })

  test('a search finds what no loaded page has, by its first words', async () => {
    const { page, platform } = stage
    await platform.client.post('/v1/tasks', { agent: 'scripted', input: 'the needle in the stack', params: { steps: [] } })
    await manyTasks(130)
    await page.goto(platform.url)
    await page.getByRole('list', { name: 'Tasks' }).getByRole('link').first().waitFor()
    await page.getByLabel('Search tasks').fill('NEEDLE')
    await page.getByRole('link', { name: /the needle in the stack/ }).waitFor()
    await until('only one is left', async () => (await page.getByRole('list', { name: 'Tasks' }).getByRole('link').count()) === 1)
    await page.reload()
    await page.getByRole('link', { name: /the needle in the stack/ }).waitFor()
  })

  test('a search goes on through empty pages, and keeps what it found when the list is read again', async () => {
    const { page, platform } = stage
    await stage.start({ steps: [] }, { name: 'deep-needle', delayMs: 3_600_000 })
    const above = 'ffffffff-ffff-7fff-bfff-'
    let sendSecond = () => {}
    const second = new Promise<void>(resolve => (sendSecond = resolve))
    let firstPages = 0
    await page.route('**/v1/tasks?*', async route => {
      const cursor = new URL(route.request().url()).searchParams.get('cursor')
      if (cursor === null) firstPages += 1
      if (cursor === null) return route.fulfill({ json: { data: [], nextCursor: `${above}000000000002` } })
      if (cursor !== `${above}000000000002`) return route.continue()
      await second
      return route.fulfill({ json: { data: [], nextCursor: `${above}000000000001` } })
    })
    await page.goto(`${platform.url}/?search=deep-needle`)
    await page.getByText('Searching older tasks …').waitFor()
    expect(await page.getByText('No task matches the filters').count()).toBe(0)
    sendSecond()
    await page.getByText('deep-needle', { exact: true }).waitFor()
    const before = firstPages
    await stage.start({ steps: [] }, { name: 'a change', delayMs: 3_600_000 })
    await until('the list was read again', () => firstPages > before)
    const again = firstPages
    await stage.start({ steps: [] }, { name: 'another change', delayMs: 3_600_000 })
    await until('the list was read once more', () => firstPages > again)
    expect(await page.getByText('deep-needle', { exact: true }).count()).toBeGreaterThan(0)
    await page.getByText('Searching older tasks …').waitFor({ state: 'detached' })
  })

  test('the list loads no params, and one request for all of its rows', async () => {
    const { page, platform } = stage
    const large = 'x'.repeat(200_000)
    for (let place = 0; place < 5; place += 1)
      await stage.start({ steps: [{ custom: { name: 'large', data: large } }] }, { delayMs: 3_600_000 })
    const asked: string[] = []
    let bytes = 0
    page.on('response', async response => {
      const { pathname } = new URL(response.url())
      if (!pathname.startsWith('/v1/tasks')) return
      asked.push(pathname)
      bytes += (await response.body().catch(() => Buffer.alloc(0))).length
    })
    await page.goto(platform.url)
    const list = page.getByRole('list', { name: 'Tasks' })
    await list.getByRole('link').first().waitFor()
    await stage.start({ steps: [] }, { name: 'a change' })
    await page.getByText('a change').waitFor()
    expect(new Set(asked)).toEqual(new Set(['/v1/tasks']))
    expect(bytes / asked.length).toBeLessThan(60_000)
  })

  test('the list is live by the feed: a change is shown at once, and a list without one is not read again', async () => {
    const { page, platform } = stage
    const asked: string[] = []
    // The requests of a SharedWorker are not those of the page.
    await page.addInitScript('delete globalThis.SharedWorker')
    page.on('request', request => asked.push(new URL(request.url()).pathname))
    await page.goto(platform.url)
    await until('it follows the feed', () => asked.includes('/v1/feed'))
    await until('it was read once the feed was open', () => asked.lastIndexOf('/v1/tasks') > asked.indexOf('/v1/feed'))
    const before = asked.filter(path => path === '/v1/tasks').length
    await until('the agents were read again', () => asked.filter(path => path === '/v1/agents').length >= 3)
    expect(asked.filter(path => path === '/v1/tasks').length - before).toBeLessThanOrEqual(1)
    const startedAt = performance.now()
    await stage.start({ steps: [] }, { name: 'told by the feed' })
    await page.getByText('told by the feed').waitFor()
    expect(performance.now() - startedAt).toBeLessThan(30_000)
  })

  test('filters are chips in the address, and a view is saved under a name', async () => {
    const { page, platform } = stage
    const failing = { maxAttempts: 1, metadata: { customer: 'Nordwind' } }
    const id = await stage.start({ steps: [{ throw: 'out of paper' }] }, { ...failing, name: 'chip-failed' })
    const other = await stage.start({ steps: [] }, { name: 'chip-done', metadata: { customer: 'Nordwind' } })
    await Promise.all([id, other].map(each => platform.client.waitForEnd(each)))
    const rows = page.getByRole('list', { name: 'Tasks' }).getByRole('link')
    await page.goto(`${platform.url}/?search=chip-`)
    await until('both are there', async () => (await rows.count()) === 2)
    await page.getByRole('button', { name: 'More filters' }).click()
    await page.getByLabel('Error code').fill('agent_error')
    await page.getByLabel('Created within the last').selectOption({ label: 'hour' })
    await page.getByLabel('Metadata key').fill('customer')
    await page.getByLabel('Metadata value').fill('Nordwind')
    await page.getByRole('button', { name: 'Filter', exact: true }).click()
    await until('only the failed one is left', async () => (await rows.count()) === 1)
    for (const chip of ['“chip-”', 'Error: agent_error', 'Last hour', 'customer: Nordwind'])
      await page.getByText(chip, { exact: true }).waitFor()
    expect(new URL(page.url()).search).toBe('?search=chip-&within=60&error=agent_error&metadata.customer=Nordwind')
    await page.getByRole('button', { name: 'Save this view' }).click()
    await page.getByLabel('Name').fill('Broken for Nordwind')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('button', { name: 'Remove the filter Error: agent_error' }).click()
    await until('both are there again', async () => (await rows.count()) === 2)
    await page.getByRole('button', { name: 'Clear all' }).click()
    await until('all are there', async () => (await rows.count()) > 2)
    await page.reload()
    await page.getByRole('link', { name: 'Broken for Nordwind' }).click()
    await until('the view is back', async () => (await rows.count()) === 1)
    await until('the field has its search', async () => (await page.getByLabel('Search tasks').inputValue()) === 'chip-')
    await page.getByRole('button', { name: 'Delete the view Broken for Nordwind' }).click()
    await page.getByRole('link', { name: 'Broken for Nordwind' }).waitFor({ state: 'detached' })
  })

  test('a failed row tells why', async () => {
    const { page, platform } = stage
    const id = await stage.start({ steps: [{ throw: 'the source is empty' }] }, { maxAttempts: 1 })
    await platform.client.waitForEnd(id)
    await page.goto(`${platform.url}/?status=failed`)
    await page.getByText('agent_error: the source is empty').waitFor()
  })

  test('a server that is not ready shows a page that says so, at once', async () => {
    const { page, platform } = stage
    const body = { error: { code: 'dependency_unavailable', message: 'A required database is unavailable; retry' } }
    await page.route('**/v1/**', route => route.fulfill({ status: 503, json: body }))
    await page.goto(platform.url)
    await page.getByRole('heading', { name: 'Tasks' }).waitFor({ timeout: 30_000 })
    await page.getByText('A required database is unavailable').waitFor({ timeout: 30_000 })
    await page.unroute('**/v1/**')
    await page.getByText('A required database is unavailable').waitFor({ state: 'detached' })
    stage.complaints = stage.complaints.filter(text => !text.includes('503'))
  })

  test('a list that is not up to date says since when', async () => {
    const { page, platform } = stage
    await stage.start({ steps: [] })
    await page.goto(platform.url)
    await page.getByRole('list', { name: 'Tasks' }).getByRole('link').first().waitFor()
    await page.route('**/v1/tasks?*', route => route.abort())
    await stage.start({ steps: [] })
    await page.getByText(/Not up to date for \d+/).waitFor()
    expect(await page.getByRole('list', { name: 'Tasks' }).getByRole('link').count()).toBeGreaterThan(0)
    await page.unroute('**/v1/tasks?*')
    await page.getByText(/Not up to date/).waitFor({ state: 'detached' })
    stage.complaints = stage.complaints.filter(text => !text.includes('ERR_FAILED'))
  })

  test('tasks are canceled and deleted together, and a person sees how many before', async () => {
    const { page, platform } = stage
    const ids = []
    for (let place = 0; place < 3; place += 1)
      ids.push(await stage.start({ steps: [{ sleep: 60_000 }] }, { name: `bulk-${place}`, metadata: { set: 'bulk' } }))
    const done = await stage.start({ steps: [] }, { name: 'bulk-done', metadata: { set: 'bulk' } })
    await platform.client.waitForEnd(done)
    await page.goto(`${platform.url}/?search=bulk-`)
    await page.getByText('bulk-2').waitFor()
    await page.getByLabel('Select bulk-done').click()
    await page.getByLabel('Select bulk-0').click({ modifiers: ['Shift'] })
    await page.getByRole('toolbar').getByText('4 selected').waitFor()
    await page.getByRole('toolbar').getByRole('button', { name: 'Cancel 3' }).click()
    await page.getByText('1 of the 4 selected have ended already').waitFor()
    await page.getByRole('button', { name: 'Cancel 3 tasks' }).click()
    await page.getByText('3 of 3 done').waitFor()
    await page.getByRole('button', { name: 'Close' }).last().click()
    for (const id of ids) await until('it is canceled', async () => (await platform.client.detail(id)).task.status === 'canceled')
  })

  test('a response to the old key does not throw out the new one', async () => {
    const { page } = stage
    const { url } = await guardedApi()
    await page.addInitScript(() => sessionStorage.getItem('rivulet.key') ?? sessionStorage.setItem('rivulet.key', 'wrong'))
    let late = () => {}
    await page.route('**/v1/agents', async route => {
      if (route.request().headers().authorization === 'Bearer wrong') await new Promise<void>(resolve => (late = resolve))
      await route.continue().catch(() => {})
    })
    await page.goto(url)
    await page.getByLabel('This server wants a key').fill('secret')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Tasks' }).waitFor()
    const answered = page.waitForResponse(response => response.status() === 401).catch(() => null)
    late()
    await Promise.race([answered, page.getByRole('option', { name: 'scripted' }).waitFor({ state: 'attached' })])
    expect(await page.getByLabel('This server wants a key').count()).toBe(0)
    stage.complaints = stage.complaints.filter(text => !text.includes('401'))
  })

  test('all tabs share one sign-in and one sign-out, and show who is signed in', async () => {
    const { page } = stage
    const { url } = await guardedApi()
    const other = await stage.open()
    await Promise.all([page.goto(url), other.goto(url)])
    await Promise.all([page, other].map(tab => tab.getByLabel('This server wants a key').waitFor()))
    await page.getByLabel('This server wants a key').fill('secret')
    await page.keyboard.press('Enter')
    await Promise.all([page, other].map(tab => tab.getByRole('heading', { name: 'Tasks' }).waitFor()))
    const third = await stage.open()
    await third.goto(url)
    await third.getByRole('heading', { name: 'Tasks' }).waitFor()
    await third.getByText('default', { exact: true }).first().waitFor()
    await third.getByRole('button', { name: 'Sign out' }).click()
    await Promise.all([page, other, third].map(tab => tab.getByLabel('This server wants a key').waitFor()))
    expect(await page.evaluate(() => [localStorage.length, sessionStorage.length])).toEqual([0, 0])
    stage.complaints = stage.complaints.filter(text => !text.includes('401'))
  })

  async function guardedApi(): Promise<ApiProcess> {
    guarded ??= await stage.platform.startApi({ env: { RIVULET_KEY: 'secret' } })
    return guarded
  }

  /** They wait for their time, so that no worker is kept busy. */
  async function manyTasks(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => stage.start({ steps: [] }, { delayMs: 3_600_000 })))
  }
})

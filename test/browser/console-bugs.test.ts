/** What a person stumbled over in the first console. */
import { describe, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { chromium, say, useStage } from './stage.ts'

const lines = (count: number) => Array.from({ length: count }, (_, place) => `line ${place}`).join('\n')

describe.skipIf(!chromium)('the console, as a person uses it', () => {
  const stage = useStage()

  test('"To the latest" goes there, also when nothing grows', async () => {
    const id = await stage.start({ steps: [say(`${lines(300)}\nthe last line`)] })
    await stage.platform.client.waitForEnd(id)
    const { page } = stage
    await page.goto(`${stage.platform.url}/tasks/${id}`)
    await page.getByText('the last line').waitFor()
    const log = page.getByRole('log')
    await log.hover()
    await page.mouse.wheel(0, -3_000)
    await page.getByRole('button', { name: 'To the latest' }).click()
    await until('the end is in sight', () => log.evaluate(isAtEnd))
    await page.getByRole('button', { name: 'To the latest' }).waitFor({ state: 'detached' })
  })

  test('scrolling up is not pulled back while lines come fast', async () => {
    const id = await stage.start({
      steps: [say(`${lines(200)}\n`), { repeat: { times: 900, steps: [say('one more line\n'), { sleep: 10 }] } }],
    })
    const { page } = stage
    await page.goto(`${stage.platform.url}/tasks/${id}`)
    const log = page.getByRole('log')
    await until('there is something to scroll', () => log.evaluate(element => element.scrollTop > 1_000))
    await log.hover()
    const tops: number[] = []
    for (let notch = 0; notch < 12; notch += 1) {
      await page.mouse.wheel(0, -40)
      await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done)))))
      tops.push(await log.evaluate(element => Math.round(element.scrollTop)))
    }
    for (const [place, top] of tops.entries())
      expect(top, `after notch ${place + 1} of ${tops}`).toBeLessThan(tops[place - 1] ?? Number.POSITIVE_INFINITY)
    await stage.platform.client.post(`/v1/tasks/${id}/cancel`, {})
  })

  test('what is typed while a message is being sent stays, and a message that was not sent comes back', async () => {
    const id = await stage.start({ steps: [] })
    const { page } = stage
    await page.goto(`${stage.platform.url}/tasks/${id}`)
    await page.getByText('Up to date').waitFor()
    let release = () => {}
    let isFailing = false
    await page.route('**/turns', async route => {
      await new Promise<void>(resolve => (release = resolve))
      await (isFailing
        ? route.fulfill({ status: 409, json: { error: { code: 'task_busy', message: 'A turn is running' } } })
        : route.continue())
    })
    const field = page.getByLabel('Message to the agent')
    await field.fill('the first')
    await field.press('Enter')
    await field.pressSequentially('the second')
    release()
    await page.getByRole('article', { name: 'You' }).getByText('the first').waitFor()
    await until('only the second is in the field', async () => (await field.inputValue()) === 'the second')
    isFailing = true
    release = () => {}
    await field.press('Enter')
    await field.pressSequentially('and a third')
    release()
    await page.getByText('A turn is running').waitFor()
    expect(await field.inputValue()).toBe('the second\nand a third')
    stage.complaints = stage.complaints.filter(text => !text.includes('409'))
  })

  test('inputs that were queued stay in sight after Stop, and after a reload', async () => {
    const id = await stage.start({ steps: [say('at work'), { sleep: 60_000 }] }, { input: 'the running one' })
    const { page } = stage
    await page.goto(`${stage.platform.url}/tasks/${id}`)
    await page.getByText('at work').waitFor()
    for (const input of ['queued once', 'queued twice']) await stage.platform.client.post(`/v1/tasks/${id}/turns`, { input })
    await page.getByText('queued twice').waitFor()
    await page.keyboard.press('s')
    await page.getByText('Stopped here').waitFor()
    await page.getByText('Stop', { exact: true }).waitFor({ state: 'detached' })
    for (const input of ['queued once', 'queued twice']) await page.getByRole('article', { name: 'You' }).getByText(input).waitFor()
    await page.reload()
    for (const input of ['queued once', 'queued twice']) await page.getByRole('article', { name: 'You' }).getByText(input).waitFor()
    // Also where a later turn has run.
    await stage.platform.client.post(`/v1/tasks/${id}/turns`, { input: 'a later one', params: { steps: [say('done now')] } })
    await page.getByText('done now').waitFor()
    const order = await page.getByRole('article', { name: 'You' }).allTextContents()
    expect(order).toEqual(['the running one', 'queued once', 'queued twice', 'a later one'])
  })

  test('an address with an event scrolls the list of events to it', async () => {
    const steps = Array.from({ length: 400 }, (_, index) => ({ full: { index, content: { type: 'text', text: `message ${index}` } } }))
    const id = await stage.start({ steps })
    await stage.platform.client.waitForEnd(id)
    const log = await stage.platform.log(id)
    const cursor = log[60]?.cursor ?? ''
    const { page } = stage
    await page.goto(`${stage.platform.url}/tasks/${id}?inspect=1&at=${cursor}`)
    await page.getByText(`As of event ${cursor}`).waitFor()
    const events = page.getByRole('list', { name: 'Events' })
    await events.getByText('turn.finished').or(events.locator('[aria-current]')).first().waitFor()
    await until('the event is in sight', () =>
      page.evaluate(() => {
        const row = document.querySelector('ol[aria-label=Events] [aria-current=true]')?.getBoundingClientRect()
        const list = document.querySelector('ol[aria-label=Events]')?.parentElement?.getBoundingClientRect()
        return row !== undefined && list !== undefined && row.top >= list.top - 1 && row.bottom <= list.bottom + 1
      }),
    )
  })

  test('a tool that will never be answered does not wait for ever, and its state is in sight on a phone', async () => {
    const name = 'a_tool_with_a_name_that_is_much_longer_than_any_phone_is_wide'
    const id = await stage.start({
      steps: [{ full: { index: 0, content: { type: 'tool_request', callId: '1', name, arguments: {} } } }, say('done', 1)],
    })
    await stage.platform.client.waitForEnd(id)
    const { page } = stage
    await page.setViewportSize({ width: 390, height: 800 })
    await page.goto(`${stage.platform.url}/tasks/${id}`)
    const state = page.getByRole('region', { name: `Tool ${name}` }).getByText('no answer')
    await state.waitFor()
    const box = await state.boundingBox()
    expect((box?.x ?? 0) + (box?.width ?? 999)).toBeLessThanOrEqual(390 - 16)
  })

  test('tables keep their alignment, and a long text has the same gaps throughout', async () => {
    const table = '| left | right |\n|:---|---:|\n| a | 1 |\n\n'
    const markdown = table + Array.from({ length: 80 }, (_, place) => `Paragraph ${place}.\n\n`).join('')
    const id = await stage.start({
      steps: [{ full: { index: 0, content: { type: 'text', text: markdown, format: 'markdown' } } }],
    })
    const { page } = stage
    await page.goto(`${stage.platform.url}/tasks/${id}`)
    await page.getByText('Paragraph 79.').waitFor()
    await page.getByText('Paragraph 2.', { exact: true }).scrollIntoViewIfNeeded()
    expect(await page.getByRole('cell', { name: '1' }).evaluate(cell => getComputedStyle(cell).textAlign)).toBe('right')
    const gaps = await page.evaluate(async () => {
      const paragraphs = [...document.querySelectorAll('.prose p')]
      const gaps: number[] = []
      for (const [place, paragraph] of paragraphs.entries()) {
        const next = paragraphs[place + 1]
        if (!next) break
        paragraph.scrollIntoView({ block: 'center' })
        await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))
        gaps.push(Math.round(next.getBoundingClientRect().top - paragraph.getBoundingClientRect().bottom))
      }
      return gaps
    })
    expect(gaps).toHaveLength(79)
    expect([...new Set(gaps)]).toHaveLength(1)
  })

  test('code has colours when its block is closed, at the end and at the beginning of a long text', async () => {
    const code = '```ts\n// a comment\nconst a = "text"\n```\n\n'
    const markdown = code + Array.from({ length: 3_000 }, (_, place) => `Paragraph ${place}.\n\n`).join('') + code
    const id = await stage.start({ steps: [{ full: { index: 0, content: { type: 'text', text: markdown, format: 'markdown' } } }] })
    const { page } = stage
    await page.goto(`${stage.platform.url}/tasks/${id}`)
    const colored = page.locator('pre code')
    await colored.last().getByText('const', { exact: true }).waitFor()
    const colors = await colored
      .last()
      .locator('span')
      .evaluateAll(spans => spans.map(span => getComputedStyle(span).color))
    expect(new Set(colors).size).toBe(3)
    expect(await colored.last().textContent()).toBe('// a comment\nconst a = "text"')
    const log = page.getByRole('log')
    await log.hover()
    await page.mouse.wheel(0, -100)
    await until('its beginning is drawn', async () => {
      await log.evaluate(element => element.scrollTo(0, 0))
      return page.getByText('Paragraph 0.', { exact: true }).isVisible()
    })
  })

  test('an unknown path shows a page that says so', async () => {
    const { page } = stage
    const response = await page.goto(`${stage.platform.url}/no/such/page`)
    expect(response?.status()).toBe(404)
    await page.getByRole('heading', { name: 'There is no such page' }).waitFor()
    await page.getByRole('link', { name: 'All tasks' }).click()
    await page.getByRole('heading', { name: 'Tasks' }).waitFor()
    stage.complaints = stage.complaints.filter(text => !text.includes('404'))
  })

  test('a part of the page that breaks leaves the rest usable', async () => {
    const id = await stage.start({ steps: [say('fine')] })
    await stage.platform.client.waitForEnd(id)
    const { page } = stage
    // A status that this version does not know.
    await page.route('**/v1/tasks?*', async route => {
      const response = await route.fetch()
      const body = await response.json()
      await route.fulfill({ response, json: { ...body, data: body.data.map((task: object) => ({ ...task, status: 'odd' })) } })
    })
    await page.goto(stage.platform.url)
    await page.getByRole('heading', { name: 'This page broke' }).waitFor()
    await page.getByRole('link', { name: 'Agents' }).click()
    await page.getByRole('row', { name: /scripted/ }).waitFor()
    stage.complaints = []
  })

  test('all that the page loads is compressed', async () => {
    const { page } = stage
    const encodings = new Map<string, string>()
    page.on('response', response => {
      const { pathname } = new URL(response.url())
      const { 'content-encoding': encoding = 'none', 'content-length': length } = response.headers()
      // Below 1 KiB, compression is not worth its header.
      if (/\.(js|css)$/.test(pathname) && (encoding !== 'none' || Number(length) >= 1_024)) encodings.set(pathname, encoding)
    })
    await page.goto(stage.platform.url)
    await page.getByRole('heading', { name: 'Tasks' }).waitFor()
    expect(encodings.size).toBeGreaterThanOrEqual(2)
    expect([...new Set(encodings.values())]).toEqual(['gzip'])
  })

  function isAtEnd(element: Element): boolean {
    return element.scrollHeight - element.scrollTop - element.clientHeight < 4
  }
})

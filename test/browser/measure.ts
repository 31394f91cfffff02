/**
 * `npm run measure:console [seconds]`: how the console bears a slow line, a fast agent, a long message and a long task, in a real browser. Prints a table.
 *
 * A frame is late when the one before it was drawn more than 50 ms ago; a long task is one of more than 50 ms, as browsers count them.
 */

import { loadavg } from 'node:os'
import { buildConsole } from '@rivulet/console/page'
import type { Page } from 'playwright-core'
import { startTestPlatform } from 'rivulet/testing'
import { findChromium, launchBrowser } from '../support/browser.ts'
import { until } from '../support/until.ts'

type Figures = {
  seconds: number
  frames: number
  late: number
  worstFrameMs: number
  longTasks: number
  /** In the page, at the end. */
  elements: number
  worstTaskMs: number
  heapMb: number[]
}

const seconds = Number(process.argv[2] ?? 60)
const chromium = findChromium(process.env)
if (!chromium) throw new Error('No chromium on the PATH, and CHROMIUM does not name one')
await buildConsole()
const platform = await startTestPlatform({ agentFiles: [], environment: { ...process.env, LOG_LEVEL: 'warn' } })
const browser = await launchBrowser(chromium)
try {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage()
  // What runs this file names functions by a helper that the page does not have.
  await page.addInitScript('globalThis.__name = value => value')
  for (let place = 0; place < 100; place += 1) await start({ steps: [] })
  await firstOpened('the first list', '/', '[aria-label=Tasks] a')
  const short = await start({ steps: [{ full: { index: 0, content: { type: 'text', text: 'A **short** answer', format: 'markdown' } } }] })
  await ended(short)
  await firstOpened('a task', `/tasks/${short}`, '[role=log] strong')
  const say = (text: string, index = 0) => ({ delta: { index, delta: { type: 'text', text } } })
  const markdown = (index: number) => ({ start: { index, content: { type: 'text', text: '', format: 'markdown' } } })

  // Two messages take turns: neighbouring deltas of one would be merged on the way. Timers on a busy machine are late, so four come at a time.
  const four = (place: number) => {
    const text = place === 9 ? '.\n\n' : `word${place} `
    return [say(text, 0), say(text, 1), say(text, 0), say(text, 1), { sleep: 19 }]
  }
  const ten = Array.from({ length: 10 }, (_, place) => four(place)).flat()
  const words = [markdown(0), markdown(1), { repeat: { times: seconds * 5, steps: ten } }]
  report(`${seconds * 200} deltas`, await streamed(page, { steps: words }))
  report(`the same, with the inspector`, await streamed(page, { steps: words }, '?inspect=1'))

  const paragraph = `${'The river takes the shortest way that it can find. '.repeat(20)}\n\n`
  const long = [markdown(0), { repeat: { times: 1_000, steps: [say(paragraph), { sleep: 10 }] } }]
  report('a message of 1 MB, as it grows', await streamed(page, { steps: long }))
  const reopenedAt = performance.now()
  await page.reload()
  await lastShown(page, '[role=log] .prose', 'it can find')
  console.log(`the same, opened again: ${Math.round(performance.now() - reopenedAt)} ms, ${await page.locator('*').count()} elements`)

  const two = await filled(4)
  const shownAt = performance.now()
  await page.goto(`${platform.url}/tasks/${two}`)
  await lastShown(page, '[role=log] article', '1999')
  console.log(`2,000 messages: the last one is shown after ${Math.round(performance.now() - shownAt)} ms`)
  await page.waitForFunction(() => document.querySelectorAll('[role=log] article').length >= 2_000, null, {
    polling: 'raf',
    timeout: 60_000,
  })
  console.log(
    `  and after ${Math.round(performance.now() - shownAt)} ms ${await page.getByRole('article').count()} are in the page: ${await page.locator('*').count()} elements, heap ${await heapOf(page)} MB`,
  )
  report(
    `2,000 messages, and ${seconds * 200} deltas`,
    await measured(page, async () => {
      await fetch(`${platform.url}/v1/tasks/${two}/turns`, json({ params: { steps: words } }))
      await untilConnection(page, 'Live')
      await untilConnection(page, 'Up to date')
    }),
  )
  report('2,000 messages, scrolling up', await scrolledUp(page))

  const id = await filled(20)
  const openedAt = performance.now()
  await page.goto(`${platform.url}/tasks/${id}`)
  await lastShown(page, '[role=log] article', '9999')
  console.log(
    `10,000 messages: the last one is shown after ${Math.round(performance.now() - openedAt)} ms, ${await page.locator('*').count()} elements`,
  )
  report('10,000 messages, scrolling up', await scrolledUp(page))
  console.log(
    `  and then ${await page.locator('*').count()} elements, first message in the page: ${await page.getByRole('article').first().textContent()}`,
  )
} finally {
  await browser.close()
  await platform.stop()
}

/** A task with turns of 500 messages each. */
async function filled(turns: number): Promise<string> {
  const id = await start({ steps: [] })
  for (let turnNumber = 0; turnNumber < turns; turnNumber += 1) {
    const steps = Array.from({ length: 500 }, (_, index) => ({
      full: { index, content: { type: 'text', text: `message **${turnNumber * 500 + index}** of many`, format: 'markdown' } },
    }))
    await fetch(`${platform.url}/v1/tasks/${id}/turns`, json({ params: { steps } }))
  }
  await ended(id)
  return id
}

function scrolledUp(page: Page): Promise<Figures> {
  return measured(page, async () => {
    await page.getByRole('log').hover()
    for (let step = 0; step < 300; step += 1) await page.mouse.wheel(0, -1_200)
  })
}

async function streamed(page: Page, params: object, query = ''): Promise<Figures> {
  const id = await start({ steps: [] })
  await page.goto(`${platform.url}/tasks/${id}${query}`)
  await untilConnection(page, 'Up to date')
  return measured(page, async () => {
    await fetch(`${platform.url}/v1/tasks/${id}/turns`, json({ params }))
    await untilConnection(page, 'Live')
    await untilConnection(page, 'Up to date')
  })
}

/** Looks at one element only: to search a megabyte of text for a word would be what is measured. */
async function untilConnection(page: Page, words: string): Promise<void> {
  const mark = page.locator('header [role=status]')
  await until(`it is ${words}`, async () => (await mark.textContent()) === words, { timeoutMs: (seconds + 600) * 1_000, intervalMs: 250 })
}

/** The heap is the least of each ten seconds, because a collection that this file forced in between would count as a long task of the page. */
async function measured(page: Page, work: () => Promise<void>): Promise<Figures> {
  const before = await heapOf(page)
  await page.evaluate(() => {
    const figures = { frames: 0, late: 0, worstFrameMs: 0, longTasks: 0, worstTaskMs: 0, heapMb: [] as number[] }
    const scope = globalThis as unknown as { figures: typeof figures & { isOver?: boolean } }
    const { memory } = performance as unknown as { memory: { usedJSHeapSize: number } }
    scope.figures = figures
    let samples: number[] = []
    const timer = setInterval(() => {
      if (samples.push(memory.usedJSHeapSize) < 20) return
      figures.heapMb.push(Math.round(Math.min(...samples) / 100_000) / 10)
      samples = []
    }, 500)
    new PerformanceObserver(list => {
      for (const { duration } of list.getEntries()) {
        figures.longTasks += 1
        figures.worstTaskMs = Math.max(figures.worstTaskMs, Math.round(duration))
      }
    }).observe({ entryTypes: ['longtask'] })
    let last = performance.now()
    const frame = (now: number) => {
      figures.frames += 1
      if (now - last > 50) figures.late += 1
      figures.worstFrameMs = Math.max(figures.worstFrameMs, Math.round(now - last))
      last = now
      if (scope.figures.isOver) clearInterval(timer)
      else requestAnimationFrame(frame)
    }
    requestAnimationFrame(now => {
      last = now
      requestAnimationFrame(frame)
    })
  })
  const startedAt = performance.now()
  await work()
  const took = (performance.now() - startedAt) / 1_000
  const figures = await page.evaluate(() => {
    const scope = globalThis as unknown as { figures: Omit<Figures, 'seconds' | 'elements'> & { isOver?: boolean } }
    scope.figures.isOver = true
    return scope.figures
  })
  const heapMb = [before, ...figures.heapMb, await heapOf(page)]
  return { ...figures, heapMb, seconds: took, elements: await page.locator('*').count() }
}

/** After a collection. */
function heapOf(page: Page): Promise<number> {
  return page.evaluate(() => {
    ;(globalThis as unknown as { gc(): void }).gc()
    return Math.round((performance as unknown as { memory: { usedJSHeapSize: number } }).memory.usedJSHeapSize / 100_000) / 10
  })
}

/** With the load of the machine in the last minute, without which the figures say little. */
function report(what: string, { seconds, frames, late, worstFrameMs, longTasks, worstTaskMs, elements, heapMb }: Figures): void {
  const pace = `${(frames / seconds).toFixed(0)} frames/s, ${late} late (worst ${worstFrameMs} ms)`
  console.log(
    `${what}: ${seconds.toFixed(1)} s, ${pace}, ${longTasks} long tasks (worst ${worstTaskMs} ms), heap ${heapMb.join(' ')} MB, ${elements} elements, load ${loadavg()[0]?.toFixed(1)}`,
  )
}

/** Looks in each frame of the page: a locator looks every half second only. */
async function lastShown(page: Page, selector: string, text: string): Promise<void> {
  const isShown = ([among, part]: readonly [string, string]) => [...document.querySelectorAll(among)].at(-1)?.textContent?.includes(part)
  await page.waitForFunction(isShown, [selector, text] as const, { polling: 'raf' })
}

/** With an empty cache, over a line of 9 Mbit/s with 40 ms to the server and back. */
async function firstOpened(what: string, path: string, shown: string): Promise<void> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  const page = await context.newPage()
  const line = await context.newCDPSession(page)
  await line.send('Network.enable')
  await line.send('Network.emulateNetworkConditions', {
    offline: false,
    latency: 40,
    downloadThroughput: 9e6 / 8,
    uploadThroughput: 9e6 / 8,
  })
  let bytes = 0
  const data = new Set<string>()
  line.on('Network.responseReceived', ({ requestId, response }) => {
    if (response.url.includes('/v1/')) data.add(requestId)
  })
  line.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    if (!data.has(requestId)) bytes += encodedDataLength
  })
  const startedAt = performance.now()
  await page.goto(`${platform.url}${path}`)
  await lastShown(page, shown, '')
  console.log(`${what} over 9 Mbit/s: ${Math.round(performance.now() - startedAt)} ms, ${Math.round(bytes / 1_000)} kB of files so far`)
  await context.close()
}

async function start(params: object): Promise<string> {
  const reply = await fetch(`${platform.url}/v1/tasks`, json({ agent: 'scripted', params }))
  return ((await reply.json()) as { task: { id: string } }).task.id
}

async function ended(id: string): Promise<void> {
  await (await fetch(`${platform.url}/v1/tasks/${id}/events`)).text()
}

function json(body: object): RequestInit {
  return { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}

/** The console as a person meets it, in a real browser, over the real platform. */
import { buildConsole } from '@rivulet/console/page'
import { defineAgent } from '@rivulet/worker'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { findChromium, launchBrowser } from '../support/browser.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type ApiProcess, type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

const chromium = findChromium(process.env)
if (!chromium) console.warn('The browser tests are skipped: no chromium on the PATH, and CHROMIUM does not name one.')

const words = Array.from({ length: 24 }, (_, place) => `word${place} `)
const say = (text: string, index = 0) => ({ delta: { index, delta: { type: 'text', text } } })
/** Speaks for about two and a half seconds. */
const speech = { steps: words.flatMap(word => [say(word), { sleep: 100 }]) }
const wholeSpeech = words.join('').trim()

let platform: Platform
let mortal: ApiProcess
let guarded: ApiProcess
let browser: Browser
let context: BrowserContext
let page: Page
let complaints: string[]

describe.skipIf(!chromium)('the console', () => {
  beforeAll(async () => {
    await buildConsole()
    ;[platform, browser] = await Promise.all([startPlatform(), launchBrowser(chromium ?? '')])
    ;[mortal, guarded] = await Promise.all([platform.startApi(), platform.startApi({ env: { RIVULET_KEY: 'secret' } })])
  })
  afterAll(async () => {
    await browser?.close()
    await platform?.close()
  })

  beforeEach(async () => {
    complaints = []
    context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
    page = await open()
  })
  afterEach(async () => {
    await context.close()
    expect(complaints).toEqual([])
  })

  test('an agent’s words appear one by one', async () => {
    await watch(speech)
    const seen = await page.evaluate(async () => {
      const texts: string[] = []
      for (;;) {
        const text = document.querySelector('[aria-label="Agent"]')?.textContent ?? ''
        if (text !== texts.at(-1)) texts.push(text)
        if (text.includes('word23')) return texts
        await new Promise(resolve => requestAnimationFrame(resolve))
      }
    })
    expect(seen.length).toBeGreaterThan(8)
    for (const [place, text] of seen.entries()) expect(text.startsWith(seen[place - 1] ?? '')).toBe(true)
    await untilStatus('completed')
    expect(await said()).toBe(wholeSpeech)
  })

  test('a reload in the middle loses nothing, and a second tab sees the same', async () => {
    const id = await watch(speech)
    await page.getByText('word4').waitFor()
    const other = await open()
    await Promise.all([page.reload(), other.goto(`${platform.url}/tasks/${id}`)])
    await Promise.all([untilStatus('completed'), untilStatus('completed', other)])
    expect(await said()).toBe(wholeSpeech)
    expect(await said(other)).toBe(wholeSpeech)
  })

  test('a message that is too long for a snapshot is loaded by itself', async () => {
    const lines = `${'many words in a line '.repeat(20)}\n\n`.repeat(140)
    const id = await start({ steps: [{ repeat: { times: 20, steps: [say(lines)] } }, say('and the end of it')] })
    await platform.client.waitForEnd(id)
    // As if the log had expired: nothing is left but what is stored.
    await until('the end is announced', async () => (await platform.log(id)).some(({ event }) => event.type === 'turn.finished'))
    await platform.redis.del(platform.keys.stream(id), platform.keys.state(id))
    await page.goto(`${platform.url}/tasks/${id}`)
    await page.getByText('and the end of it').waitFor()
    expect(await page.getByText('No messages yet.').count()).toBe(0)
  })

  test('Stop stops at once and keeps what was said', async () => {
    const id = await start({ steps: [...words.flatMap(word => [say(word), { sleep: 50 }]), { sleep: 60_000 }] })
    await page.goto(`${platform.url}/tasks/${id}`)
    await page.getByText('word9').waitFor()
    const askedAt = performance.now()
    await page.keyboard.press('s')
    await untilStatus('canceled')
    expect(performance.now() - askedAt).toBeLessThan(30_000)
    await page.getByText('Stopped here').waitFor()
    const stored = await storedText(id)
    expect(stored).toContain('word9 ')
    expect(`${await said()} `).toContain(stored)
    await page.getByRole('button', { name: 'Stop' }).waitFor({ state: 'detached' })
  })

  test('a server that is restarted under it is found again, and nothing is missing', async () => {
    const id = await start(speech)
    await page.goto(`${mortal.url}/tasks/${id}`)
    await page.getByText('word2').waitFor()
    await mortal.kill('SIGKILL')
    await page.getByText('Reconnecting').or(page.getByText('Connecting')).first().waitFor()
    await platform.startApi({ port: new URL(mortal.url).port })
    await untilStatus('completed')
    expect(await said()).toBe(wholeSpeech)
    complaints = complaints.filter(complaint => !/ERR_CONNECTION|ERR_SOCKET|ERR_INCOMPLETE|ERR_EMPTY|status of 503/.test(complaint))
  })

  test('offline and back', async () => {
    const id = await watch(speech)
    await page.getByText('word2').waitFor()
    await context.setOffline(true)
    await page.getByText('Offline').waitFor()
    await until('the agent has gone on without it', async () => (await storedText(id)).includes('word12'))
    await context.setOffline(false)
    await untilStatus('completed')
    expect(await said()).toBe(wholeSpeech)
    complaints = complaints.filter(complaint => !/ERR_INTERNET_DISCONNECTED|ERR_NETWORK/.test(complaint))
  })

  test('HTML in an answer is text, addresses that run something are no links, and pictures from elsewhere are not loaded', async () => {
    const attack = [
      '<script>window.hacked = 1</script>',
      '',
      '# Title <img src=x onerror="window.hacked = 2">',
      '',
      '[a link](javascript:window.hacked=3) and [another](https://example.test/fine) and ![spy](https://example.test/spy.png)',
      '',
      '```js',
      'const fine = "</code><img src=x onerror=window.hacked=4>"',
      '```',
    ].join('\n')
    const start0 = { start: { index: 0, content: { type: 'text', text: '', format: 'markdown' } } }
    const id = await start({ steps: [start0, ...(attack.match(/[\s\S]{1,7}/g) ?? []).map(part => say(part))] })
    const asked: string[] = []
    page.on('request', request => asked.push(request.url()))
    await page.goto(`${platform.url}/tasks/${id}`)
    await untilStatus('completed')
    await page.getByText('<script>window.hacked = 1</script>').waitFor()
    await page.getByRole('heading', { name: 'Title <img src=x onerror="window.hacked = 2">' }).waitFor()
    const log = page.getByRole('log')
    expect(await log.locator('img, script, iframe').count()).toBe(0)
    expect(await log.locator('a').evaluateAll(links => links.map(link => link.getAttribute('href')))).toEqual([
      'https://example.test/fine',
      'https://example.test/spy.png',
    ])
    expect(await page.locator('pre code').textContent()).toBe('const fine = "</code><img src=x onerror=window.hacked=4>"')
    expect(await page.evaluate('window.hacked')).toBeUndefined()
    expect(asked.filter(url => !url.startsWith(platform.url))).toEqual([])
  })

  test('another attempt replaces what the first one said, before the reader’s eyes', async () => {
    const id = await start({
      attempts: { 1: [say('first try'), { sleep: 800 }, { throw: 'no luck' }], 2: [say('second try'), { sleep: 300 }] },
    })
    await page.goto(`${platform.url}/tasks/${id}`)
    await page.getByText('first try').waitFor()
    await page.getByText('Attempt 1 did not finish: no luck').waitFor()
    await page.getByText('second try').waitFor()
    await untilStatus('completed')
    await page.getByText('first try').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: /Attempt 1 did not finish/ }).click()
    await page.getByText('first try').waitFor()
  })

  test('what an agent threw is shown beside the text for its viewers', async () => {
    const agent = defineAgent('leaky', () => Promise.reject(new Error('connect ECONNREFUSED db-7')))
    await startOwnWorker(platform, [agent])
    const { task } = await platform.client.createTask({ agent: 'leaky', maxAttempts: 1 })
    await page.goto(`${platform.url}/tasks/${task.id}`)
    const alert = page.getByRole('alert')
    await alert.getByText('The turn failed (agent_error): The agent failed').waitFor()
    await alert.getByText('connect ECONNREFUSED db-7').waitFor()
  })

  test('a newcomer asks the assistant, watches it use a tool, and finds the event that explains it', async () => {
    await page.goto(platform.url)
    await page.getByRole('button', { name: 'New task' }).first().click()
    await page.getByLabel('Input', { exact: true }).fill('What is 12 * (3 + 4)?')
    await page.getByRole('button', { name: 'Start' }).click()
    await page.getByText('= 84').waitFor()
    const tool = page.getByRole('region', { name: 'Tool calculate' })
    await tool.getByRole('button').first().click()
    await tool.getByRole('heading', { name: 'Result' }).waitFor()
    await page.keyboard.press('i')
    const events = page.getByRole('list', { name: 'Events' })
    await events.getByText('turn.finished').waitFor()
    await page
      .getByRole('list', { name: 'Waterfall' })
      .getByRole('button', { name: /^calculate, / })
      .click()
    const span = page.getByRole('region', { name: 'Chosen span' })
    await span.getByRole('region', { name: 'Input' }).getByText('12 * (3 + 4)').waitFor()
    await span.getByRole('region', { name: 'Output' }).getByText('84').waitFor()
    await span.getByRole('button', { name: 'Transcript as of then' }).click()
    await page.getByText('As of event').waitFor()
    await until('the transcript is an earlier one', async () => (await page.getByRole('log').textContent())?.includes('= 84') === false)
    await page.getByRole('region', { name: 'Chosen event' }).getByRole('heading', { name: 'message.started' }).waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('Escape')
    await page.getByText('As of event').waitFor({ state: 'detached' })
    await until('it is now again', async () => (await page.getByRole('log').textContent())?.includes('= 84') === true)
  })

  test('the list is live, and keys do what a hand on the mouse would', async () => {
    await page.goto(`${platform.url}/?agent=scripted`)
    await page.getByRole('list', { name: 'Tasks' }).getByRole('link').first().waitFor()
    const { body } = await platform.client.post<{ task: { id: string } }>('/v1/tasks', {
      agent: 'scripted',
      name: 'found-by-name',
      params: speech,
    })
    await page.getByText('found-by-name').waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('found-by')
    // A slow machine searches for a part of it first, and the list of that part has one task, too.
    await page.waitForURL('**search=found-by')
    await until('only one is left', async () => (await page.getByRole('list', { name: 'Tasks' }).getByRole('link').count()) === 1)
    await page.keyboard.press('Escape')
    expect(await page.getByLabel('Search tasks').inputValue()).toBe('found-by')
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.waitForURL(`**/tasks/${body.task.id}`)
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'Agents' }).click()
    await page.getByRole('row', { name: /scripted/ }).waitFor()
    await page.getByRole('img', { name: /Turns per minute/ }).waitFor()
  })

  test('everything that can be used has a name, on a phone too, and nothing is wider than the screen', async () => {
    const id = await start(speech)
    await page.setViewportSize({ width: 375, height: 700 })
    for (const path of ['/', '/agents', `/tasks/${id}?inspect=1`]) {
      await page.goto(`${platform.url}${path}`)
      await page.getByRole('main').waitFor()
      await page.getByRole('heading', { level: 1 }).waitFor()
      const nameless = await page.locator('button, a, input, select, textarea').evaluateAll(elements =>
        elements
          .filter(element => {
            const own = element.getAttribute('aria-label') || element.textContent?.trim()
            const labels = 'labels' in element ? Array.from(element.labels as NodeListOf<HTMLElement>) : []
            return !own && !labels.some(label => label.textContent?.trim())
          })
          .map(element => element.outerHTML),
      )
      expect(nameless).toEqual([])
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(375)
    }
  })

  test('a server that wants a key is given one, which the tab keeps', async () => {
    await page.goto(guarded.url)
    await page.getByLabel('This server wants a key').fill('wrong')
    await page.keyboard.press('Enter')
    await page.getByText('does not take that key').waitFor()
    await page.getByLabel('This server wants a key').fill('secret')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Tasks' }).waitFor()
    await page.reload()
    await page.getByRole('heading', { name: 'Tasks' }).waitFor()
    expect(await page.evaluate(() => [localStorage.length, sessionStorage.length])).toEqual([0, 1])
    complaints = complaints.filter(complaint => !complaint.includes('401'))
  })

  test('with a key, what a task’s page opens and does goes by the key, which is in no address', async () => {
    const addresses: string[] = []
    const bearers = new Map<string, string>()
    page.on('request', request => {
      const { pathname } = new URL(request.url())
      addresses.push(request.url())
      if (pathname.startsWith('/v1/')) bearers.set(pathname.replace(/^.*\//, ''), request.headers().authorization ?? '')
    })
    // The requests of a SharedWorker are not those of the page.
    await page.addInitScript('delete globalThis.SharedWorker')
    await page.addInitScript(() => sessionStorage.setItem('rivulet.key', 'secret'))
    const id = await start({ steps: [say('said before')] })
    await page.goto(`${guarded.url}/tasks/${id}?inspect=1`)
    await page.getByText('said before').first().waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('and now')
    await page.keyboard.press('Enter')
    await page.getByText('and now').first().waitFor()
    expect([bearers.get('events'), bearers.get('feed'), bearers.get('turns')]).toEqual(['Bearer secret', 'Bearer secret', 'Bearer secret'])
    expect(addresses.filter(address => address.includes('secret'))).toEqual([])
  })
})

async function open(): Promise<Page> {
  const opened = await context.newPage()
  opened.on('pageerror', error => complaints.push(error.message))
  opened.on('console', message => message.type() === 'error' && complaints.push(message.text()))
  return opened
}

async function start(params: object): Promise<string> {
  const { body } = await platform.client.post<{ task: { id: string } }>('/v1/tasks', { agent: 'scripted', params })
  return body.task.id
}

/** A page that is already there when the agent begins. */
async function watch(params: object): Promise<string> {
  const id = await start({ steps: [] })
  await page.goto(`${platform.url}/tasks/${id}`)
  await page.getByText('Up to date').waitFor()
  await platform.client.post(`/v1/tasks/${id}/turns`, { params })
  return id
}

function untilStatus(status: string, on: Page = page): Promise<void> {
  return on.getByRole('banner').or(on.locator('header')).getByText(status, { exact: true }).first().waitFor()
}

async function said(on: Page = page): Promise<string> {
  const texts = await on.getByRole('article', { name: 'Agent' }).locator('.whitespace-pre-wrap').allTextContents()
  return texts.join('\n').trim()
}

async function storedText(id: string): Promise<string> {
  const { body } = await platform.client.get<{ data: { author: string; content: { text: string } }[] }>(`/v1/tasks/${id}/messages`)
  return body.data
    .filter(({ author }) => author === 'agent')
    .map(({ content }) => content.text)
    .join('')
}

/** A browser in front of a real platform, for one test file: a fresh page for each test, and no complaint of the browser goes unnoticed. */
import { buildConsole } from '@rivulet/console/page'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { findChromium, launchBrowser } from '../support/browser.ts'
import { type Platform, type PlatformOptions, startPlatform } from '../support/platform/platform.ts'

export const chromium = findChromium(process.env)
if (!chromium) console.warn('The browser tests are skipped: no chromium on the PATH, and CHROMIUM does not name one.')

export const say = (text: string, index = 0) => ({ delta: { index, delta: { type: 'text', text } } })

export type Stage = {
  platform: Platform
  browser: Browser
  context: BrowserContext
  page: Page
  /** What the browser wrote to its console as an error. A test removes what it caused on purpose. */
  complaints: string[]
  open(): Promise<Page>
  /** Creates a task of the agent `scripted`. */
  start(params: object, more?: object): Promise<string>
}

/** To be called in a `describe`. */
export function useStage(options: PlatformOptions = {}): Stage {
  const stage = { complaints: [] as string[], open, start } as Stage
  beforeAll(async () => {
    await buildConsole()
    ;[stage.platform, stage.browser] = await Promise.all([startPlatform(options), launchBrowser(chromium ?? '')])
  })
  afterAll(async () => {
    await stage.browser?.close()
    await stage.platform?.close()
  })
  beforeEach(async () => {
    stage.complaints = []
    // Without animations: while a mark breathes, Chromium draws sixty frames a second. `console.test.ts` has them.
    stage.context = await stage.browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' })
    stage.page = await open()
  })
  afterEach(async () => {
    await stage.context.close()
    expect(stage.complaints).toEqual([])
  })
  return stage

  async function open(): Promise<Page> {
    const page = await stage.context.newPage()
    page.on('pageerror', error => stage.complaints.push(error.message))
    page.on('console', message => message.type() === 'error' && stage.complaints.push(message.text()))
    return page
  }

  async function start(params: object, more: object = {}): Promise<string> {
    const { body } = await stage.platform.client.post<{ task: { id: string } }>('/v1/tasks', { agent: 'scripted', params, ...more })
    return body.task.id
  }
}

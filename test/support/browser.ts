/** A real browser, where there is one: `CHROMIUM` names it, else it is looked for on the PATH. */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type Browser, chromium } from 'playwright-core'

const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

export function findChromium(environment: Record<string, string | undefined>): string | null {
  if (environment.CHROMIUM) return environment.CHROMIUM
  const folders = (environment.PATH ?? '').split(delimiter).filter(Boolean)
  return folders.flatMap(folder => names.map(name => join(folder, name))).find(isProgram) ?? null
}

/** Headless, with an empty profile, and requests only to the page's origin. */
export async function launchBrowser(executablePath: string): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath,
    headless: true,
    chromiumSandbox: false,
    args: [
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      // For measuring memory.
      '--enable-precise-memory-info',
      '--js-flags=--expose-gc',
    ],
  })
  const newContext = browser.newContext.bind(browser)
  browser.newContext = async options => {
    const context = await newContext(options)
    // As long as the other conditions of the tests may take.
    context.setDefaultTimeout(300_000)
    return context
  }
  return browser
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

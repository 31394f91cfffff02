/** Checks of what a page shows: the findings of axe, and whether it fits on the screen. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

const pictures = process.env.SCREENSHOTS

/** The findings of axe on the page that is open, each with the elements that cause it. */
export async function audit(page: Page): Promise<string[]> {
  await page.evaluate(axe)
  return page.evaluate(async () => {
    // A person who speaks to the browser says the words that are in sight, so a name has them. Axe does not check that by default.
    const options = { rules: { 'label-content-name-mismatch': { enabled: true } } }
    const { violations } = await (globalThis as unknown as Axe).axe.run(options)
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(node => node.html.slice(0, 160)).join(' | ')}`)

    type Finding = { id: string; nodes: { html: string }[] }
    type Axe = { axe: { run(options: object): Promise<{ violations: Finding[] }> } }
  })
}

/**
 * In both themes, on a desk and on a phone: axe finds nothing, and nothing is wider than the screen. With SCREENSHOTS=<folder>, each is saved as a picture.
 * @param prepare makes what is checked visible again after the size has changed
 */
export async function checkLooks(page: Page, name: string, prepare = async () => {}): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const)
    for (const width of [390, 1_280]) {
      await page.setViewportSize({ width, height: 800 })
      await page.emulateMedia({ colorScheme })
      await prepare()
      if (pictures) await page.screenshot({ path: `${pictures}/${name}-${colorScheme}-${width}.png` })
      expect(await audit(page)).toEqual([])
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width)
    }
}

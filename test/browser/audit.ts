/** The findings of axe on the page that is open, each with the elements that cause it. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

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

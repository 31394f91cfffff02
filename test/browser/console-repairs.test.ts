/** The page of a task, where the second console did something else than a person meant. */
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { chromium, say, useStage } from './stage.ts'

describe.skipIf(!chromium)('the page of a task', () => {
  const stage = useStage()

  test('"Run again" sends every input of the first turn', async () => {
    const { page, platform } = stage
    const id = await ended({ steps: [say('an answer')] }, { input: ['the first part', 'the second part'] })
    await page.goto(`${platform.url}/tasks/${id}`)
    await act('Run again')
    await page.waitForURL(url => !url.pathname.endsWith(id) && url.pathname.startsWith('/tasks/'))
    await page.getByText('an answer').waitFor()
    expect(await page.getByRole('article', { name: 'You' }).allTextContents()).toEqual(['the first part', 'the second part'])
  })

  test('"Edit and run" shows the inputs of the task, whatever was typed for a new task, and leaves that alone', async () => {
    const { page, platform } = stage
    const id = await ended({ steps: [say('an answer')] }, { input: 'the first question' })
    await page.goto(platform.url)
    await page.getByRole('button', { name: 'New task' }).first().click()
    await page.getByLabel('Input', { exact: true }).fill('half a task')
    await page.keyboard.press('Escape')
    await page.goto(`${platform.url}/tasks/${id}`)
    await act('Edit and run')
    const field = page.getByRole('dialog', { name: 'New task' }).locator('textarea').first()
    await field.waitFor()
    expect(await field.inputValue()).toBe('the first question')
    await field.fill('another question')
    await page.keyboard.press('Escape')
    await page.goto(platform.url)
    await page.getByRole('button', { name: 'New task' }).first().click()
    await field.waitFor()
    expect(await field.inputValue()).toBe('half a task')
  })

  test('a file that is dropped beside the composer is attached, and does not replace the page', async () => {
    const { page, platform } = stage
    const id = await ended({ steps: [say('an answer')] })
    await page.goto(`${platform.url}/tasks/${id}`)
    await page.getByText('an answer').waitFor()
    expect(await drop(page, '[role=log]')).toBe(true)
    await page.getByRole('list', { name: 'Files' }).getByText('dropped.csv').waitFor()
    await page.goto(`${platform.url}/agents`)
    await page.getByRole('row', { name: /scripted/ }).waitFor()
    expect(await drop(page, 'main')).toBe(true)
  })

  test('the waterfall shows a failed tool as failed, and what the turn waited for, and its children', async () => {
    const { page, platform } = stage
    const request = { type: 'tool_request', callId: '1', name: 'look', arguments: {} }
    const response = { type: 'tool_response', callId: '1', name: 'look', content: 'no such file', isError: true }
    const id = await stage.start({
      steps: [
        ...[{ full: { index: 0, content: request } }, { full: { index: 1, content: response } }],
        ...[{ spawn: { name: 'helper', agent: 'echo', input: 'hello' } }, { ask: { name: 'more', title: 'Go on?', holdMs: 0 } }],
      ],
    })
    await platform.client.waitForTask(id, ({ task }) => task.status === 'waiting')
    await page.goto(`${platform.url}/tasks/${id}?inspect=1`)
    const bars = page.getByRole('list', { name: 'Waterfall' })
    await bars.getByRole('button', { name: /^look, .*failed$/ }).waitFor()
    await bars.getByRole('button', { name: /^child helper, .*complete$/ }).waitFor()
    await bars.getByRole('button', { name: /^Go on\?, .*goes on$/ }).waitFor()
  })

  test('the comparison of attempts shows what the one that counts said', async () => {
    const { page, platform } = stage
    const id = await ended({ attempts: { 1: [say('first try'), { throw: 'no luck' }], 2: [say('second try')] } })
    await page.goto(`${platform.url}/tasks/${id}`)
    await page.getByRole('button', { name: 'Compare the 2 attempts' }).click()
    const [first, second] = [1, 2].map(number => page.getByRole('dialog').getByRole('region', { name: `Attempt ${number}` }))
    await first?.getByText('first try').waitFor()
    await second?.getByText('second try').waitFor()
  })

  test('after an edit, the title and the list have the new words, and the discarded input is as wide as its words', async () => {
    const { page, platform } = stage
    const id = await ended({ steps: [say('an answer')] }, { input: 'old words' })
    await page.goto(`${platform.url}/tasks/${id}`)
    const input = page.getByRole('article', { name: 'You' }).filter({ hasText: 'old words' })
    await input.hover()
    await page.getByRole('button', { name: 'Edit this input' }).click()
    await page.getByLabel('Edited input').fill('new words')
    await page.getByRole('button', { name: 'Submit' }).click()
    await page.getByRole('heading', { level: 1, name: 'new words' }).waitFor()
    await page.getByText('2 of 2').waitFor()
    await page.getByRole('button', { name: 'Earlier version' }).click()
    await page.getByText(/^Discarded/).waitFor()
    expect((await input.boundingBox())?.width).toBeLessThan(200)
    await platform.client.waitForEnd(id)
    await page.goto(`${platform.url}/?search=new+words`)
    await page.getByRole('link', { name: /new words/ }).waitFor()
  })

  test('"Delete" is not the button that has the focus, and Escape returns the focus to where it was', async () => {
    const { page, platform } = stage
    const id = await ended({ steps: [say('an answer')] }, { name: 'to-be-kept' })
    await page.goto(`${platform.url}/tasks/${id}`)
    await act('Delete')
    await page.getByRole('dialog', { name: 'Delete this task?' }).waitFor()
    expect(await focused(page)).toBe('Back')
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(await page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toBe('Actions')
    await page.goto(`${platform.url}/?search=to-be-kept`)
    const row = page.getByRole('link', { name: /to-be-kept/ })
    await row.focus()
    await page.keyboard.press('n')
    await page.getByRole('dialog', { name: 'New task' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(await row.evaluate(element => element === document.activeElement)).toBe(true)
  })

  test('a task is printed whole, without the buttons', async () => {
    const { page, platform } = stage
    const steps = Array.from({ length: 120 }, (_, index) => ({
      full: { index, content: { type: 'text', text: `paragraph ${index}\n\n`.repeat(8), format: 'markdown' } },
    }))
    const id = await ended({ steps })
    await page.goto(`${platform.url}/tasks/${id}`)
    await page.getByText('paragraph 119').first().waitFor()
    const pdf = await page.pdf({ format: 'A4' })
    const pages = pdf.toString('latin1').match(/\/Type\s*\/Page\b(?!s)/g)?.length ?? 0
    expect(pages).toBeGreaterThan(20)
    await page.emulateMedia({ media: 'print' })
    expect(await page.getByLabel('Message to the agent').isVisible()).toBe(false)
    expect(await page.getByRole('navigation').isVisible()).toBe(false)
  })

  test('all of a long text is in the page, where the browser’s own search and screen readers find it', async () => {
    const { page, platform } = stage
    const text = Array.from({ length: 3_000 }, (_, place) => `Paragraph number ${place}.\n\n`).join('')
    const id = await ended({ steps: [{ full: { index: 0, content: { type: 'text', text, format: 'markdown' } } }] })
    await page.goto(`${platform.url}/tasks/${id}`)
    await page.getByText('Paragraph number 2999.', { exact: true }).waitFor()
    await until('all of it is there', async () => (await page.locator('.prose p').count()) === 3_000)
    expect(await page.evaluate('window.find("Paragraph number 17.")')).toBe(true)
    await page.evaluate(() => getSelection()?.anchorNode?.parentElement?.scrollIntoView({ block: 'center' }))
    await until('it stays in sight', () =>
      page.evaluate(() => {
        const box = getSelection()?.getRangeAt(0).getBoundingClientRect()
        return box !== undefined && box.top >= 0 && box.bottom <= innerHeight
      }),
    )
  })

  test('all of 600 messages are in the page, and are printed, whatever is in sight', async () => {
    const { page, platform } = stage
    const steps = Array.from({ length: 600 }, (_, index) => ({
      full: { index, content: { type: 'text', text: `message ${index}\n\n`.repeat(8), format: 'markdown' } },
    }))
    const id = await ended({ steps })
    await page.goto(`${platform.url}/tasks/${id}`)
    await until('all of them are there', async () => (await page.getByRole('article').count()) === 600)
    expect(await page.evaluate('window.find("message 3")')).toBe(true)
    const pdf = await page.pdf({ format: 'A4' })
    const pages = pdf.toString('latin1').match(/\/Type\s*\/Page\b(?!s)/g)?.length ?? 0
    expect(pages).toBeGreaterThan(100)
  })

  test('"Copy code" copies all of a long block, also while its end is not drawn', async () => {
    const { page, platform, context } = stage
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    const code = Array.from({ length: 40_000 }, (_, place) => `const line${place} = ${place}`).join('\n')
    const text = `\`\`\`ts\n${code}\n\`\`\`\n`
    const id = await ended({ steps: [{ full: { index: 0, content: { type: 'text', text, format: 'markdown' } } }] })
    await page.goto(`${platform.url}/tasks/${id}`)
    await page.getByText('const line39999').waitFor()
    const log = page.getByRole('log')
    await log.hover()
    await page.mouse.wheel(0, -100)
    const button = page.getByRole('button', { name: 'Copy code' })
    await until('its beginning is drawn', async () => {
      await log.evaluate(element => element.scrollTo(0, 0))
      return (await button.count()) > 0
    })
    await button.click()
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(code)
  })

  test('a long title is not cut inside a character, and the words are there while the markdown parser loads', async () => {
    const { page, platform } = stage
    const steps = [{ full: { index: 0, content: { type: 'text', text: '**bold** words', format: 'markdown' } } }]
    const id = await ended({ steps }, { input: `${'a'.repeat(159)}👩‍🚀 and more` })
    let release = () => {}
    await page.route('**/assets/markdown-*.js', async route => {
      await new Promise<void>(resolve => (release = resolve))
      await route.continue()
    })
    await page.goto(`${platform.url}/tasks/${id}`)
    await page.getByText('**bold** words').waitFor()
    release()
    await page.getByRole('log').locator('strong').getByText('bold').waitFor()
    const title = await page.getByRole('heading', { level: 1 }).evaluate(heading => heading.textContent ?? '')
    expect(title).toBe('a'.repeat(159))
  })

  async function ended(params: object, more: object = {}): Promise<string> {
    const id = await stage.start(params, more)
    await stage.platform.client.waitForEnd(id)
    return id
  }

  async function act(name: string): Promise<void> {
    await stage.page.getByRole('button', { name: 'Actions' }).click()
    await stage.page.getByRole('menuitem', { name }).click()
  }
})

function focused(page: Page): Promise<string> {
  return page.evaluate(() => document.activeElement?.textContent ?? '')
}

/** Returns whether the page took the file, because otherwise a browser shows it in place of the page. */
function drop(page: Page, selector: string): Promise<boolean> {
  return page.evaluate(selector => {
    const dataTransfer = new DataTransfer()
    dataTransfer.items.add(new File(['x'], 'dropped.csv', { type: 'text/csv' }))
    const event = new DragEvent('drop', { bubbles: true, cancelable: true, dataTransfer })
    document.querySelector(selector)?.dispatchEvent(event)
    return event.defaultPrevented
  }, selector)
}

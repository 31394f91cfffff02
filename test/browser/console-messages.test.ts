/** The bar below each message, the versions of a turn, and the retry of one that failed. */
import { describe, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { checkLooks } from './audit.ts'
import { chromium, say, useStage } from './stage.ts'

const text = (index: number) => ({ start: { index, content: { type: 'text', text: '', format: 'markdown' } } })
const call = { callId: '1', name: 'look' }
const work = [
  ...[text(0), { sleep: 300 }, say('I look it up.', 0), { sleep: 200 }],
  { done: { index: 0, usage: { inputTokens: 900, outputTokens: 60 }, model: 'test-model-1' } },
  ...[{ full: { index: 1, content: { type: 'tool_request', ...call, arguments: { query: 'bends' } } } }, { sleep: 200 }],
  { full: { index: 2, content: { type: 'tool_response', ...call, content: 'no such river', isError: true } } },
  { spawn: { name: 'helper', agent: 'echo', input: 'how long is it?' } },
  ...[text(3), say('It has bends.', 3), { done: { index: 3, usage: { inputTokens: 990, outputTokens: 40 }, model: 'test-model-1' } }],
]

describe.skipIf(!chromium)('the bar below a message', () => {
  const stage = useStage()

  test('copies, links, shows time, model, tokens and rate, and forks from there', async () => {
    const { page, platform, context } = stage
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    const id = await stage.start({ steps: work }, { input: 'Why do rivers bend?' })
    await platform.client.waitForEnd(id)
    await platform.client.post(`/v1/tasks/${id}/turns`, { input: 'And lakes?', params: { steps: [say('They do not.')] } })
    await platform.client.waitForEnd(id)
    await page.goto(`${platform.url}/tasks/${id}`)
    const row = page.locator('[data-row]').filter({ hasText: 'I look it up.' })
    const before = await row.boundingBox()
    await row.hover()
    await row.getByText(/^\d\d:\d\d:\d\d · test-model-1 · 960 tokens · \d+ tokens\/s$/).waitFor()
    expect(await row.boundingBox()).toEqual(before)
    await row.getByRole('button', { name: 'Copy this message' }).click()
    await until('the message was copied', async () => (await clipboard()) === 'I look it up.')
    await row.getByRole('button', { name: 'Link to this message' }).click()
    await until('the link was copied', async () => (await clipboard()) === `${platform.url}/tasks/${id}?message=1`)
    await checkLooks(page, 'message-bar', () => row.hover())
    await row.getByRole('button', { name: 'Fork from here' }).click()
    const dialog = page.getByRole('dialog')
    expect(await dialog.getByLabel('After turn').inputValue()).toBe('1')
    await dialog.getByRole('button', { name: 'Fork' }).click()
    await page.waitForURL(url => !url.pathname.endsWith(id) && url.pathname.startsWith('/tasks/'))
    await page.getByText('I look it up.').waitFor()
    expect(await page.getByText('They do not.').count()).toBe(0)
  })

  test('a turn that failed has a button that runs it again, and what it said before is one of two versions', async () => {
    const { page, platform } = stage
    const id = await stage.start({ steps: [say('a try'), { throw: 'no luck' }] }, { input: 'go', maxAttempts: 1 })
    await platform.client.waitForEnd(id)
    await page.goto(`${platform.url}/tasks/${id}`)
    await page.getByRole('alert').getByRole('button', { name: 'Retry' }).click()
    const versions = page.getByRole('group', { name: 'Versions of this turn' })
    await versions.getByText('2 of 2').waitFor()
    const earlier = versions.getByRole('button', { name: 'Earlier version' })
    await earlier.focus()
    await page.keyboard.press('Enter')
    await versions.getByText('1 of 2').waitFor()
    await page.getByText('Discarded: the agent no longer gets this turn').waitFor()
    expect(await earlier.evaluate(element => element === document.activeElement)).toBe(true)
    await checkLooks(page, 'versions')
  })

  test('a link to a message of a discarded turn shows that version', async () => {
    const { page, platform } = stage
    const id = await stage.start({ steps: [say('a first answer')] }, { input: 'go' })
    await platform.client.waitForEnd(id)
    await platform.client.post(`/v1/tasks/${id}/retry`, {})
    await platform.client.waitForEnd(id)
    await page.goto(`${platform.url}/tasks/${id}`)
    await page.getByText('2 of 2').waitFor()
    // The input is the first message, the answer the second.
    await page.goto(`${platform.url}/tasks/${id}?message=1`)
    await page.getByText('1 of 2').waitFor()
    await page.getByText('a first answer').waitFor()
  })

  function clipboard(): Promise<string> {
    return stage.page.evaluate(() => navigator.clipboard.readText())
  }
})

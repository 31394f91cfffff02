/** What took the time of a task: the waterfall beside its transcript. */
import type { Page } from 'playwright-core'
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

describe.skipIf(!chromium)('the waterfall', () => {
  const stage = useStage()

  test('explains a turn that took two attempts: queue, back-off, models, a tool as one row, and a child that opens', async () => {
    const { page } = stage
    await openWaterfall({ attempts: { 1: [say('first try'), { throw: 'no luck' }], 2: work } })
    for (const row of [
      /^turn 1, .*1,990 tokens.*complete$/,
      /^queue, /,
      /^attempt 1, .*failed$/,
      /^back-off before attempt 2, /,
      /^look, .*failed$/,
    ])
      await rows(page).getByRole('button', { name: row }).waitFor()
    expect(
      await rows(page)
        .getByRole('button', { name: /^test-model-1, .* 960 tokens, complete$/ })
        .count(),
    ).toBe(1)
    // The transcript has another message at the index of the earlier attempt's.
    await rows(page)
      .getByRole('button', { name: /^text, / })
      .first()
      .click()
    await page.getByRole('region', { name: 'Chosen span' }).getByText('first try').waitFor()
    expect(new URL(page.url()).searchParams.get('message')).toBeNull()
    await rows(page).getByRole('button', { name: 'Open child helper' }).click()
    await until(
      'the rows of the child are there',
      async () =>
        (await rows(page)
          .getByRole('button', { name: /^turn 1, / })
          .count()) === 2,
    )
    await checkLooks(page, 'waterfall')
  })

  test('a click shows what a span got, what it made and what went wrong, and leads to its message', async () => {
    const { page } = stage
    await openWaterfall({ steps: work })
    await rows(page)
      .getByRole('button', { name: /^look, / })
      .click()
    const span = page.getByRole('region', { name: 'Chosen span' })
    await span.getByRole('region', { name: 'Input' }).getByText('bends').waitFor()
    await span.getByRole('region', { name: 'Output' }).getByText('no such river').waitFor()
    await span.getByRole('region', { name: 'Error' }).getByText('The tool failed').waitFor()
    expect(new URL(page.url()).searchParams.get('message')).toBe('2')
    await rows(page)
      .getByRole('button', { name: /^test-model-1, / })
      .first()
      .click()
    await span.getByText('before the first word').waitFor()
    await span.getByRole('region', { name: 'Output' }).getByText('I look it up.').waitFor()
    await checkLooks(page, 'waterfall-span')
    await span.getByRole('button', { name: 'Close the span' }).click()
    await span.waitFor({ state: 'detached' })
  })

  test('on a phone, the chosen span has the room of the events', async () => {
    const { page } = stage
    await page.setViewportSize({ width: 390, height: 844 })
    await openWaterfall({ steps: work })
    await rows(page)
      .getByRole('button', { name: /^look, / })
      .click()
    const span = page.getByRole('region', { name: 'Chosen span' })
    await span.getByRole('button', { name: 'Close the span' }).waitFor()
    expect(await page.getByRole('list', { name: 'Events' }).isVisible()).toBe(false)
    const [box, inspector] = [await span.boundingBox(), await page.getByRole('complementary', { name: 'Inspector' }).boundingBox()]
    if (!box || !inspector) throw new Error('The span is not drawn')
    expect(box.height).toBeGreaterThan(100)
    expect(Math.round(box.y + box.height)).toBe(Math.round(inspector.y + inspector.height))
    await span.getByRole('button', { name: 'Close the span' }).click()
    await page.getByRole('list', { name: 'Events' }).getByText('turn.finished').waitFor()
  })

  test('has an axis, shows the time of the pointer, and zooms', async () => {
    const { page } = stage
    await openWaterfall({ steps: work })
    const chart = page.getByRole('region', { name: 'Where the time went' })
    await chart.getByText('0', { exact: true }).waitFor()
    const box = await chart.boundingBox()
    if (!box) throw new Error('The chart is not drawn')
    await page.mouse.move(box.x + box.width * 0.6, box.y + 60)
    await chart
      .locator('[aria-hidden]')
      .getByText(/^\d.* m?s$/)
      .waitFor()
    await page.getByRole('button', { name: 'Zoom in' }).click()
    await page.getByRole('button', { name: 'Zoom in' }).click()
    await until('the axis begins later', async () => (await chart.getByText('0', { exact: true }).count()) === 0)
    await page.getByRole('button', { name: 'Show all of the time' }).click()
    await chart.getByText('0', { exact: true }).waitFor()
  })

  async function openWaterfall(params: object): Promise<string> {
    const id = await stage.start(params, { input: 'Why do rivers bend?' })
    await stage.platform.client.waitForEnd(id)
    await stage.page.goto(`${stage.platform.url}/tasks/${id}?inspect=1`)
    await rows(stage.page).waitFor()
    return id
  }
})

function rows(page: Page) {
  return page.getByRole('list', { name: 'Waterfall' })
}

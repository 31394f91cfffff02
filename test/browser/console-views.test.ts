/**
 * Every view of the console, in both themes, on a phone and on a desk: no finding of axe, nothing wider than the screen, and usable at 320 × 256, which is
 * what a person sees at 400 %. With SCREENSHOTS=<folder>, each is also saved as a picture.
 */
import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { audit } from './audit.ts'
import { chromium, say, useStage } from './stage.ts'

const pictures = process.env.SCREENSHOTS
/** Each theme and each width once, because colours do not depend on the width; all four for pictures. */
const screens = [
  { colorScheme: 'light' as const, width: 1280 },
  { colorScheme: 'dark' as const, width: 390 },
  ...(pictures
    ? [
        { colorScheme: 'light' as const, width: 390 },
        { colorScheme: 'dark' as const, width: 1280 },
      ]
    : []),
]
const answer =
  '# Rivers\n\nA **straight** one does not stay so.\n\n| quantity | value |\n|---|---:|\n| wavelength | 11 |\n\n```ts\nconst a = 1\n```\n'

type View = { name: string; path: (id: string, asking: string) => string; ready: (page: Page) => Promise<void> }

const views: View[] = [
  { name: 'tasks', path: () => '/', ready: page => page.getByRole('list', { name: 'Tasks' }).getByRole('link').first().waitFor() },
  { name: 'no-tasks', path: () => '/?search=nothing-like-this', ready: page => page.getByText('No task matches').waitFor() },
  { name: 'selected', path: () => '/', ready: page => page.getByRole('checkbox').first().click() },
  { name: 'new-task', path: () => '/', ready: page => openDialog(page, 'New task') },
  { name: 'task', path: id => `/tasks/${id}`, ready: page => page.getByRole('heading', { name: 'Rivers', exact: true }).waitFor() },
  { name: 'facts', path: id => `/tasks/${id}?facts=1`, ready: page => page.getByText('Nordwind').waitFor() },
  { name: 'inspector', path: id => `/tasks/${id}?inspect=1`, ready: page => page.getByText('turn.finished').first().waitFor() },
  { name: 'span', path: id => `/tasks/${id}?inspect=1`, ready: chooseSpan },
  { name: 'compare', path: id => `/tasks/${id}`, ready: page => page.getByRole('button', { name: /Compare the/ }).click() },
  { name: 'edit', path: id => `/tasks/${id}`, ready: edit },
  { name: 'share', path: id => `/tasks/${id}`, ready: share },
  { name: 'question', path: (_, asking) => `/tasks/${asking}`, ready: page => page.getByRole('button', { name: 'Decline' }).waitFor() },
  { name: 'waits', path: () => '/waits', ready: page => page.getByRole('button', { name: 'Order to refund' }).waitFor() },
  { name: 'respond', path: () => '/waits', ready: page => page.getByRole('button', { name: 'Order to refund' }).click() },
  { name: 'dashboard', path: () => '/dashboard', ready: page => page.getByRole('img', { name: /Queue depth/ }).waitFor() },
  { name: 'usage', path: () => '/usage', ready: page => page.getByRole('img', { name: /Tokens by day/ }).waitFor() },
  { name: 'errors', path: () => '/errors', ready: page => page.getByRole('link', { name: 'The source is empty', exact: true }).waitFor() },
  { name: 'agents', path: () => '/agents', ready: page => page.getByRole('row', { name: /scripted/ }).waitFor() },
  { name: 'workers', path: () => '/workers', ready: page => page.getByText('live', { exact: true }).first().waitFor() },
  { name: 'schedules', path: () => '/schedules', ready: page => page.getByRole('cell', { name: /Europe\/Berlin/ }).waitFor() },
  { name: 'new-schedule', path: () => '/schedules', ready: page => openDialog(page, 'New schedule') },
  { name: 'new-webhook', path: () => '/schedules', ready: page => openDialog(page, 'New webhook') },
  { name: 'filters', path: () => '/?status=failed&within=60', ready: page => openDialog(page, 'More filters') },
  { name: 'limits', path: () => '/agents', ready: limit },
  { name: 'addresses', path: () => '/agents', ready: showAddresses },
  { name: 'fork', path: id => `/tasks/${id}`, ready: page => choose(page, 'Fork') },
  {
    name: 'keys',
    path: () => '/keys',
    ready: page => page.getByText('There are no keys').or(page.getByRole('row').nth(1)).first().waitFor(),
  },
  {
    name: 'audit',
    path: () => '/audit',
    ready: page => page.getByText('Nothing was changed').or(page.getByRole('row').nth(1)).first().waitFor(),
  },
  { name: 'missing', path: () => '/nowhere', ready: page => page.getByRole('heading', { name: 'There is no such page' }).waitFor() },
]

describe.skipIf(!chromium)('every view', () => {
  const stage = useStage()
  let id: string
  let asking: string

  beforeAll(async () => {
    const full = { full: { index: 1, content: { type: 'text', text: answer, format: 'markdown' } } }
    const tool = [
      { full: { index: 0, content: { type: 'tool_request', callId: '1', name: 'search_library', arguments: { query: 'meander' } } } },
      full,
    ]
    const attempts = { 1: [say('Rivers are wat'), { throw: 'The model hung up' }], 2: tool }
    id = await stage.start({ attempts }, { input: 'Why do rivers meander?', metadata: { customer: 'Nordwind' } })
    await stage.platform.client.waitForEnd(id)
    await stage.platform.client.post(`/v1/tasks/${id}/tokens`, { can: 'read' })
    const failing = await stage.start({ steps: [{ throw: 'The source is empty' }] }, { maxAttempts: 1, name: 'nightly-report' })
    await stage.platform.client.waitForEnd(failing)
    await stage.platform.client.post('/v1/schedules', {
      agent: 'echo',
      cron: '0 9 * * 1-5',
      timezone: 'Europe/Berlin',
      input: 'Good morning',
    })
    asking = (await stage.platform.client.createTask({ agent: 'clerk', input: 'I want my money back' })).task.id
    await stage.platform.client.waitForTask(asking, ({ task }) => task.status === 'waiting')
  })

  test.each(screens)('in the $colorScheme theme has no finding of axe, at a width of $width', async ({ colorScheme, width }) => {
    const { page } = stage
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await page.setViewportSize({ width, height: 800 })
    const findings: Record<string, unknown> = {}
    for (const { name, path, ready } of views) {
      const response = await page.goto(`${stage.platform.url}${path(id, asking)}`)
      if (name !== 'missing') expect([name, response?.status()]).toEqual([name, 200])
      await ready(page)
      if (pictures) await page.screenshot({ path: `${pictures}/${name}-${colorScheme}-${width}.png`, animations: 'disabled' })
      const found = await audit(page)
      const scrollWidth = await page.evaluate(() => document.documentElement.scrollWidth)
      if (found.length > 0 || scrollWidth > width) findings[name] = { found, scrollWidth }
    }
    expect(findings).toEqual({})
    stage.complaints = stage.complaints.filter(text => !text.includes('404'))
  })

  test('can be used at 320 × 256', async () => {
    const { page } = stage
    await page.setViewportSize({ width: 320, height: 256 })
    for (const { name, path, ready } of views) {
      await page.goto(`${stage.platform.url}${path(id, asking)}`)
      await ready(page)
      if (pictures) await page.screenshot({ path: `${pictures}/${name}-reflow.png` })
      expect([name, await page.evaluate(() => document.documentElement.scrollWidth)]).toEqual([name, 320])
    }
    await page.goto(`${stage.platform.url}/tasks/${id}`)
    await page.getByLabel('Message to the agent').fill('reachable')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('article', { name: 'You' }).getByText('reachable').waitFor()
    stage.complaints = stage.complaints.filter(text => !text.includes('404'))
  })
})

function share(page: Page): Promise<void> {
  return choose(page, 'Share a link')
}

async function choose(page: Page, action: string): Promise<void> {
  await page.getByRole('button', { name: 'Actions' }).click()
  await page.getByRole('menuitem', { name: action }).click()
  await page.getByRole('dialog').waitFor()
}

/** Dialogs are loaded when they are opened. */
async function openDialog(page: Page, button: string): Promise<void> {
  await page.getByRole('button', { name: button }).click()
  await page.getByRole('dialog').waitFor()
}

async function edit(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Edit this input' }).click()
  await page.getByRole('button', { name: 'Submit' }).scrollIntoViewIfNeeded()
}

async function chooseSpan(page: Page): Promise<void> {
  await page
    .getByRole('list', { name: 'Waterfall' })
    .getByRole('button', { name: /^attempt 1, / })
    .click()
  await page.getByRole('region', { name: 'Chosen span' }).getByText('The model hung up').waitFor()
}

async function limit(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Actions of echo' }).click()
  await page.getByRole('menuitem', { name: 'Limits' }).click()
}

async function showAddresses(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Addresses of echo' }).click()
  await page.getByRole('button', { name: 'Copy: OpenAI: model' }).waitFor()
  await page.getByText(`${new URL(page.url()).origin}/a2a/echo/.well-known/agent-card.json`).waitFor()
}

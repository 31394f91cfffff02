/** `npm run screenshots`: the pictures of the READMEs, light and dark, wide and narrow, taken of a platform that is really at work. */
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { buildConsole } from '@rivulet/console/page'
import type { Page } from 'playwright-core'
import { startTestPlatform } from 'rivulet/testing'
import { findChromium, launchBrowser } from '../support/browser.ts'
import { animatedPng, type Shot } from './animated-png.ts'

const folder = fileURLToPath(new URL('../../docs/images/', import.meta.url))
const reply = `Rivers bend because a straight one does not stay straight.

1. **Any disturbance** turns the current a little to one side.
2. On the outside of the bend the water is *faster*, and takes soil away.
3. On the inside it is slower, and leaves what it carries.

| quantity | symbol | grows with |
|---|---|---|
| wavelength | \`λ\` | about 11 widths |
| migration | \`m\` | speed at the bank |

\`\`\`ts
// How far one bend is from the next.
const wavelength = (width: number) => 10.9 * width ** 1.01
\`\`\`

So a river of 100 m has a bend about every`

const say = (index: number, text: string) => ({ delta: { index, delta: { type: 'text', text } } })
const tool = { callId: 'call-1', name: 'search_library' }
const scriptAt = (pauseMs: number) => ({
  steps: [
    {
      delta: {
        index: 0,
        delta: { type: 'reasoning_summary', index: 0, text: 'Erosion outside, deposits inside. I should check the numbers.' },
      },
    },
    { sleep: 400 },
    { done: { index: 0 } },
    { start: { index: 1, content: { type: 'tool_request', ...tool, arguments: {} } } },
    { delta: { index: 1, delta: { type: 'tool_request', text: '{"query": "meander wavelength",' } } },
    { sleep: 150 },
    { delta: { index: 1, delta: { type: 'tool_request', text: ' "limit": 3}' } } },
    { done: { index: 1 } },
    { start: { index: 2, content: { type: 'tool_response', ...tool, content: null, isError: false } } },
    { sleep: 600 },
    { delta: { index: 2, delta: { type: 'data', value: { found: 3, best: 'Leopold & Wolman, 1960', score: 0.93 } } } },
    { done: { index: 2 } },
    { start: { index: 3, content: { type: 'text', text: '', format: 'markdown' } } },
    ...(reply.match(/\S+\s*/g) ?? []).flatMap(word => [say(3, word), { sleep: pauseMs }]),
    { sleep: 120_000 },
  ],
})

const chromium = findChromium(process.env)
if (!chromium) throw new Error('No chromium on the PATH, and CHROMIUM does not name one')
await buildConsole()
const platform = await startTestPlatform({ agentFiles: [], environment: { ...process.env, LOG_LEVEL: 'warn' } })
const browser = await launchBrowser(chromium)
try {
  await create({ agent: 'echo', input: 'A first word to every agent' })
  await create({ agent: 'cited', input: 'What is a stream?' })
  await create({ agent: 'scripted', name: 'nightly-report', params: { steps: [{ throw: 'The source is empty' }] }, maxAttempts: 1 })
  await create({ agent: 'researcher', input: 'How do viewers resume after a lost connection?' })
  await create({ agent: 'assistant', input: 'What time is it in Europe/Lisbon, and what is 12 * (3 + 4)?' })
  const id = await create({ agent: 'scripted', input: 'Why do rivers meander?', params: scriptAt(15) })
  const light = await open('light', 1_280, 800)
  await light.goto(`${platform.url}/tasks/${id}?inspect=1`)
  await light.getByText('has a bend about every').waitFor()
  await light.waitForTimeout(600)
  await light.screenshot({ path: `${folder}console-task.png` })
  const dark = await open('dark', 1_280, 560)
  await dark.goto(platform.url)
  await dark.getByText('Why do rivers meander?').waitFor()
  await dark.getByText('What is a stream?').waitFor()
  await dark.waitForTimeout(600)
  await dark.screenshot({ path: `${folder}console-tasks.png` })
  const parent = await create({ agent: 'researcher', input: 'How do viewers resume after a lost connection?' })
  await light.goto(`${platform.url}/tasks/${parent}?facts=1`)
  await light
    .getByRole('region', { name: /^Child/ })
    .first()
    .getByRole('article')
    .nth(1)
    .waitFor()
  await light.waitForTimeout(600)
  await light.screenshot({ path: `${folder}console-children.png` })
  const phone = await open('dark', 390, 800)
  await phone.goto(`${platform.url}/tasks/${id}`)
  await phone.getByText('has a bend about every').waitFor()
  await phone.waitForTimeout(600)
  await phone.screenshot({ path: `${folder}console-phone.png` })
  await film()
} finally {
  await browser.close()
  await platform.stop()
}

/** The first picture of the README: a task from its question to the middle of the response. */
async function film(): Promise<void> {
  const page = await open('light', 960, 600)
  const id = await create({ agent: 'scripted', input: 'Why do rivers meander?', params: scriptAt(60) })
  await page.goto(`${platform.url}/tasks/${id}`)
  await page.getByText('Why do rivers meander?').first().waitFor()
  const shots: Shot[] = []
  while ((await page.getByText('has a bend about every').count()) === 0) {
    const startedAt = performance.now()
    const png = await page.screenshot({ animations: 'disabled', caret: 'hide' })
    await page.waitForTimeout(150)
    shots.push({ png, shownMs: performance.now() - startedAt })
  }
  shots.push({ png: await page.screenshot({ animations: 'disabled' }), shownMs: 4_000 })
  writeFileSync(`${folder}console-live.png`, animatedPng(shots))
}

async function open(colorScheme: 'light' | 'dark', width: number, height: number): Promise<Page> {
  return (await browser.newContext({ colorScheme, viewport: { width, height } })).newPage()
}

async function create(body: object): Promise<string> {
  const headers = { 'content-type': 'application/json' }
  const reply = await fetch(`${platform.url}/v1/tasks`, { method: 'POST', headers, body: JSON.stringify(body) })
  return ((await reply.json()) as { task: { id: string } }).task.id
}

/** What people do with a task: look at its facts and attempts, run it again, take it elsewhere, show it to others. */
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { openTestKeyring, pepper } from '../support/platform/keyring.ts'
import { until } from '../support/until.ts'
import { chromium, say, useStage } from './stage.ts'

describe.skipIf(!chromium)('the page of a task', () => {
  const stage = useStage()

  test('shows its first words as the heading, and its facts', async () => {
    const { page, platform } = stage
    const id = await stage.start({ steps: [say('done')] }, { input: 'Count the ships in the harbour', metadata: { customer: 'Nordwind' } })
    await platform.client.waitForEnd(id)
    await page.goto(`${platform.url}/tasks/${id}`)
    await page.getByRole('heading', { level: 1, name: 'Count the ships in the harbour' }).waitFor()
    expect(await page.title()).toBe('Count the ships in the harbour · Rivulet')
    await page.getByRole('button', { name: 'Facts' }).click()
    const facts = page.getByRole('complementary', { name: 'Facts' })
    for (const text of ['Nordwind', 'Worker', 'Trace', 'Queued', 'Finished', id]) await facts.getByText(text).first().waitFor()
    await page.reload()
    await facts.getByText('Nordwind').waitFor()
  })

  test('tells when a delayed task is due', async () => {
    const { page, platform } = stage
    const id = await stage.start({ steps: [] }, { delayMs: 3_600_000 })
    await page.goto(`${platform.url}/tasks/${id}?facts=1`)
    await page.getByRole('complementary', { name: 'Facts' }).getByText('Due', { exact: true }).waitFor()
  })

  test('runs it again, with other words, and deletes it', async () => {
    const { page, platform } = stage
    const id = await stage.start({ steps: [say('an answer')] }, { input: 'the first question' })
    await platform.client.waitForEnd(id)
    await page.goto(`${platform.url}/tasks/${id}`)
    await act('Run again')
    await page.waitForURL(url => !url.pathname.endsWith(id) && url.pathname.startsWith('/tasks/'))
    await page.getByText('an answer').waitFor()
    await page.getByRole('heading', { name: 'the first question' }).waitFor()
    const again = new URL(page.url()).pathname
    await act('Edit and run')
    const dialog = page.getByRole('dialog', { name: 'New task' })
    await until('it has the input', async () => (await dialog.locator('textarea').first().inputValue()) === 'the first question')
    await dialog.locator('textarea').first().fill('another question')
    await dialog.getByRole('button', { name: 'Start' }).click()
    await page.getByRole('heading', { name: 'another question' }).waitFor()
    await page.getByText('an answer').waitFor()
    await page.goto(`${platform.url}${again}`)
    await page.getByText('an answer').waitFor()
    await act('Delete')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('heading', { name: 'Tasks' }).waitFor()
    expect((await platform.client.get(`/v1${again}`)).status).toBe(404)
    stage.complaints = stage.complaints.filter(text => !/40[49]|410/.test(text))
  })

  test('forks it after a turn, and shows where the copy came from', async () => {
    const { page, platform } = stage
    const id = await stage.start({ steps: [say('an answer')] }, { input: 'the first question' })
    await platform.client.waitForEnd(id)
    await page.goto(`${platform.url}/tasks/${id}`)
    await page.getByText('an answer').waitFor()
    await act('Fork')
    await page.getByLabel('Next input').fill('another way')
    await page.getByRole('dialog').getByRole('button', { name: 'Fork' }).click()
    await page.waitForURL(url => !url.pathname.endsWith(id) && url.pathname.startsWith('/tasks/'))
    await page.getByRole('article', { name: 'You' }).getByText('another way').waitFor()
    expect(await page.getByText('an answer').count()).toBeGreaterThanOrEqual(1)
    await page.getByRole('button', { name: 'Facts' }).click()
    await page.getByRole('complementary', { name: 'Facts' }).getByText(id).waitFor()
  })

  test('an earlier input is edited and sent again: its turn and the later ones are discarded, more than once', async () => {
    const { page, platform } = stage
    const id = await stage.start({ steps: [say('the first answer')] }, { input: 'the first question' })
    await platform.client.waitForEnd(id)
    const second = { input: 'a second qestion', params: { steps: [say('the second answer')] } }
    await platform.client.post(`/v1/tasks/${id}/turns`, second)
    await platform.client.waitForEnd(id)
    await page.goto(`${platform.url}/tasks/${id}`)
    await edit('a second qestion', 'a second question')
    await edit('a second question', 'a third question')
    const versions = page.getByRole('group', { name: 'Versions of this turn' })
    for (const [place, words] of [
      ['3 of 3', 'a third question'],
      ['2 of 3', 'a second question'],
      ['1 of 3', 'a second qestion'],
    ] as const) {
      await versions.getByText(place).waitFor()
      await page.getByRole('article', { name: 'You' }).filter({ hasText: words }).waitFor()
      await until('its fate is shown', async () => (await page.getByText(/^Discarded/).count()) === (place === '3 of 3' ? 0 : 1))
      if (place !== '1 of 3') await versions.getByRole('button', { name: 'Earlier version' }).click()
    }
    const { body } = await platform.client.get<{ turns: { status: string; params?: object }[] }>(`/v1/tasks/${id}`)
    expect(body.turns.map(({ status }) => status)).toEqual(['completed', 'discarded', 'discarded', 'completed'])
    expect(body.turns.at(-1)?.params).toEqual(second.params)

    async function edit(from: string, to: string): Promise<void> {
      const input = page.getByRole('article', { name: 'You' }).filter({ hasText: from })
      await input.hover()
      await page.locator('[data-row]').filter({ has: input }).getByRole('button', { name: 'Edit this input' }).click()
      const field = page.getByLabel('Edited input')
      expect(await field.inputValue()).toBe(from)
      await field.fill(to)
      await page.getByRole('form', { name: 'Edit the input' }).getByRole('button', { name: 'Submit' }).click()
      await page.getByRole('article', { name: 'You' }).filter({ hasText: to }).waitFor()
      await page.getByText('Up to date').waitFor()
      await platform.client.waitForEnd(id)
    }
  })

  test('sends files that were chosen, pasted and dropped, with the params of the turn, and shows them as cards', async () => {
    const { page, platform } = stage
    const id = await stage.start({ steps: [] })
    await page.goto(`${platform.url}/tasks/${id}`)
    await page.getByText('Up to date').waitFor()
    const field = page.getByLabel('Message to the agent')
    await page
      .getByLabel('Files to attach')
      .setInputFiles({ name: 'chosen.txt', mimeType: 'text/plain', buffer: Buffer.from('chosen bytes') })
    for (const [kind, name] of [
      ['paste', 'pasted.png'],
      ['drop', 'dropped.csv'],
    ] as const)
      await field.evaluate(
        (element, [kind, name]) => {
          const data = new DataTransfer()
          data.items.add(new File(['x'], name, { type: name.endsWith('png') ? 'image/png' : 'text/csv' }))
          const options = { bubbles: true, cancelable: true }
          element.dispatchEvent(
            kind === 'paste'
              ? new ClipboardEvent(kind, { ...options, clipboardData: data })
              : new DragEvent(kind, { ...options, dataTransfer: data }),
          )
        },
        [kind, name] as const,
      )
    await until(
      'all are stored',
      async () =>
        (await page
          .getByRole('list', { name: 'Files' })
          .getByText(/^\d+ B$/)
          .count()) === 3,
    )
    await page.getByRole('button', { name: 'Remove dropped.csv' }).click()
    await page.getByLabel('Params', { exact: true }).check()
    await page.getByLabel('Parameters of this turn').fill(JSON.stringify({ steps: [say('read them')] }))
    await field.fill('what is in these?')
    await field.press('Enter')
    await page.getByText('read them').waitFor()
    await page.getByRole('article', { name: 'You' }).getByText('what is in these?').waitFor()
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download chosen.txt' }).click()])
    expect(readFileSync(await download.path(), 'utf8')).toBe('chosen bytes')
    await page.getByText('pasted.png').waitFor()
    expect(await page.getByText('dropped.csv').count()).toBe(0)
  })

  test('draws the waterfall when the log has expired, and a row leads to its message', async () => {
    const { page, platform } = stage
    const steps = Array.from({ length: 120 }, (_, index) => ({
      full: { index, content: { type: 'text', text: `message ${index}\n\n`.repeat(3) } },
    }))
    const id = await stage.start({ steps }, { input: 'many' })
    await platform.client.waitForEnd(id)
    await until('the end is announced', async () => (await platform.log(id)).some(({ event }) => event.type === 'turn.finished'))
    await platform.redis.del(platform.keys.stream(id), platform.keys.state(id))
    await page.goto(`${platform.url}/tasks/${id}?inspect=1`)
    await page.getByRole('note').getByText('The log has expired').waitFor()
    const waterfall = page.getByRole('list', { name: 'Waterfall' })
    await waterfall.getByRole('button', { name: /^turn 1, .*complete/ }).waitFor()
    await waterfall
      .getByRole('button', { name: /^text, / })
      .nth(20)
      .click()
    await until('its message is in sight', () => isInSight('message 20'))
    await page.reload()
    await until('its message is in sight again', () => isInSight('message 20'))
  })

  test('filters the events, folds deltas, and keeps the place of the split', async () => {
    const { page, platform } = stage
    const tool = { full: { index: 1, content: { type: 'tool_request', callId: '1', name: 'look', arguments: {} } } }
    const id = await stage.start({ steps: [say('one '), { sleep: 60 }, say('two '), { sleep: 60 }, say('three'), tool] })
    await platform.client.waitForEnd(id)
    await page.goto(`${platform.url}/tasks/${id}?inspect=1`)
    const events = page.getByRole('list', { name: 'Events' })
    await events.getByText('turn.finished').waitFor()
    await events.getByText(/message\.delta ×\d/).waitFor()
    await page.getByLabel('Fold deltas').uncheck()
    await until('each delta has a row', async () => (await events.getByText('message.delta', { exact: true }).count()) > 1)
    await page.getByLabel('Which events').selectOption('Tools')
    await until('only the tool is left', async () => (await events.getByRole('button').count()) === 1)
    const inspector = page.getByRole('complementary', { name: 'Inspector' })
    const before = (await inspector.boundingBox())?.width ?? 0
    await page.getByRole('separator', { name: 'Size of the transcript' }).focus()
    for (let press = 0; press < 3; press += 1) await page.keyboard.press('ArrowLeft')
    await until('the inspector is wider', async () => ((await inspector.boundingBox())?.width ?? 0) > before + 50)
    await page.reload()
    await events.getByText('turn.finished').waitFor()
    expect((await inspector.boundingBox())?.width).toBeGreaterThan(before + 50)
  })

  test('nests the transcript of a child while the child speaks, and draws the tree', async () => {
    const { page, platform } = stage
    const child = { agent: 'scripted', params: { steps: [say('the child speaks'), { sleep: 60_000 }] } }
    const id = await stage.start({ steps: [{ spawn: { name: 'scout', ...child } }] }, { input: 'look around' })
    await page.goto(`${platform.url}/tasks/${id}?facts=1`)
    const card = page.getByRole('region', { name: 'Child scout' })
    await card.getByText('the child speaks').waitFor()
    const tree = page.getByRole('region', { name: 'Children and forks' })
    await tree.getByRole('link', { name: /scripted/ }).waitFor()
    await card.getByRole('button', { name: 'scout' }).click()
    await card.getByText('the child speaks').waitFor({ state: 'detached' })
    await card.getByRole('link', { name: 'Open' }).click()
    await page.getByRole('complementary', { name: 'Facts' }).waitFor({ state: 'detached' })
    await page.getByText('the child speaks').waitFor()
    await platform.client.post(`/v1/tasks/${id}/cancel`, {})
  })

  test('retries what failed', async () => {
    const { page, platform } = stage
    const id = await stage.start({ steps: [say('a word'), { throw: 'no luck' }] }, { maxAttempts: 1 })
    await platform.client.waitForEnd(id)
    await page.goto(`${platform.url}/tasks/${id}`)
    await page.getByText('The turn failed').waitFor()
    await act('Retry the last turn')
    await page.getByText('Turn 2').waitFor()
    await until('turn 2 failed, too', async () => (await platform.client.detail(id)).turns.at(-1)?.status === 'failed')
    await page.getByText('The turn failed').waitFor()
    expect(await page.getByText('a word').count()).toBe(1)
    await page.getByRole('button', { name: 'Earlier version' }).click()
    await page.getByText('Discarded: the agent no longer gets this turn').waitFor()
    expect(await page.getByText('The turn failed').count()).toBe(0)
    expect(await page.getByText('a word').count()).toBe(1)
  })

  test('copies the answer, and exports JSON and markdown', async () => {
    const { page, platform, context } = stage
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    const id = await stage.start({ steps: [say('the whole answer')] }, { input: 'a question' })
    await platform.client.waitForEnd(id)
    await page.goto(`${platform.url}/tasks/${id}`)
    await page.getByText('the whole answer').waitFor()
    await act('Copy the answer')
    await page.getByText('Copied').waitFor()
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe('the whole answer')
    const json = JSON.parse(await downloaded('Export as JSON'))
    expect(json).toMatchObject({
      task: { id },
      turns: [{ number: 1 }],
      messages: [{ author: 'user' }, { content: { text: 'the whole answer' } }],
    })
    expect(await downloaded('Export as markdown')).toBe('# a question\n\n## You\n\na question\n\n## Agent\n\nthe whole answer\n')
  })

  test('keeps its attempts after a reload, and compares them', async () => {
    const { page, platform } = stage
    const id = await stage.start({ attempts: { 1: [say('first try'), { throw: 'no luck' }], 2: [say('second try')] } })
    await platform.client.waitForEnd(id)
    await page.goto(`${platform.url}/tasks/${id}`)
    await page.getByText('second try').waitFor()
    await page.getByRole('button', { name: /Attempt 1 did not finish: no luck/ }).click()
    await page.getByText('first try').waitFor()
    await page.getByRole('button', { name: 'Compare the 2 attempts' }).click()
    const [first, second] = [1, 2].map(number => page.getByRole('dialog').getByRole('region', { name: `Attempt ${number}` }))
    await first?.getByText('first try').waitFor()
    await first?.getByText('agent_error').waitFor()
    await second?.getByText('completed').waitFor()
  })

  test('a link shows it to a person without a key, and nothing else', async () => {
    const { page, platform, browser } = stage
    const guarded = await platform.startApi({ env: { RIVULET_KEY: 'secret' } })
    await page.addInitScript(() => sessionStorage.setItem('rivulet.key', 'secret'))
    const id = await stage.start({ steps: [say('for your eyes')] }, { input: 'a shared question' })
    await platform.client.waitForEnd(id)
    await page.goto(`${guarded.url}/tasks/${id}`)
    await page.getByText('for your eyes').waitFor()
    await act('Share a link')
    await page.getByRole('button', { name: 'Create the link' }).click()
    const link = await page.getByLabel('Link', { exact: true }).inputValue()
    expect(link).toMatch(/#token=rvt_/)
    const stranger = await browser.newContext()
    const theirs = await stranger.newPage()
    const asked: string[] = []
    theirs.on('request', request => asked.push(request.url()))
    await theirs.goto(link)
    await theirs.getByText('for your eyes').waitFor()
    await theirs.getByText(/Shared with you, read-only, until/).waitFor()
    expect(await theirs.getByLabel('Message to the agent').count()).toBe(0)
    expect(await theirs.getByRole('link', { name: 'Agents' }).count()).toBe(0)
    expect(asked.filter(url => url.includes('rvt_'))).toEqual([])
    // Once its tokens are revoked, the link is over.
    await fetch(`${guarded.url}/v1/tasks/${id}/tokens`, { method: 'DELETE', headers: { authorization: 'Bearer secret' } })
    await theirs.reload()
    await theirs.getByRole('heading', { name: 'This link has expired' }).waitFor()
    await stranger.close()
  })

  test('a key that may only read has no buttons that write', async () => {
    const { page, platform } = stage
    const guarded = await platform.startApi({ env: { RIVULET_KEY: 'secret', KEY_PEPPER: pepper } })
    const keyring = openTestKeyring(platform.databaseUrl)
    const { key } = await keyring.create({ tenant: 'default', scopes: ['tasks:read'] })
    await keyring.close()
    await page.addInitScript(text => sessionStorage.setItem('rivulet.key', text), key)
    const id = await stage.start({ steps: [say('x'), { sleep: 60_000 }] })
    await page.goto(guarded.url)
    await page.getByRole('list', { name: 'Tasks' }).getByRole('link').first().waitFor()
    await until('the caller is known', async () => (await page.getByRole('button', { name: 'New task' }).count()) === 0)
    await page.goto(`${guarded.url}/tasks/${id}`)
    await page.getByRole('article', { name: 'Agent' }).waitFor()
    await until('the caller is known', async () => (await page.getByLabel('Message to the agent').count()) === 0)
    expect(await page.getByRole('button', { name: 'Stop' }).count()).toBe(0)
    await page.getByRole('button', { name: 'Actions' }).click()
    expect(await page.getByRole('menuitem').allTextContents()).toEqual([
      'Copy the answer',
      'Export as JSON',
      'Export as markdown',
      'Share a link',
    ])
    await page.goto(`${guarded.url}/schedules`)
    await page.getByText('No schedules yet').waitFor()
    expect(await page.getByRole('button', { name: /^New/ }).count()).toBe(0)
    await platform.client.post(`/v1/tasks/${id}/cancel`, {})
    stage.complaints = stage.complaints.filter(text => !text.includes('403'))
  })

  test('drafts survive Escape and other pages; the end is announced; shortcuts can be turned off', async () => {
    const { page, platform } = stage
    const id = await stage.start({ steps: [say('x'), { sleep: 60_000 }] })
    await page.goto(`${platform.url}/tasks/${id}`)
    const field = page.getByLabel('Message to the agent')
    await field.fill('half a thought')
    await field.press('Escape')
    await page.getByRole('link', { name: 'All tasks' }).click()
    await page.getByRole('heading', { name: 'Tasks' }).waitFor()
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('main')
    await page.keyboard.press('n')
    await page.getByLabel('Input', { exact: true }).fill('half a task')
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.keyboard.press('n')
    expect(await page.getByRole('dialog').locator('textarea').first().inputValue()).toBe('half a task')
    await page.keyboard.press('Escape')
    await page.goBack()
    expect(await field.inputValue()).toBe('half a thought')
    await page.getByRole('button', { name: 'Keyboard shortcuts' }).click()
    await page.getByLabel('Single-letter shortcuts').uncheck()
    await page.getByRole('button', { name: 'Close' }).click()
    await page.keyboard.press('i')
    expect(await page.getByRole('complementary', { name: 'Inspector' }).count()).toBe(0)
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByRole('status').filter({ hasText: 'The task was canceled' }).waitFor({ state: 'attached' })
  })

  function isInSight(text: string): Promise<boolean> {
    return stage.page.getByRole('log').evaluate((log, text) => {
      const found = [...log.querySelectorAll('article')].find(article => article.textContent?.includes(`${text}\n`))
      const [box, frame] = [found?.getBoundingClientRect(), log.getBoundingClientRect()]
      return box !== undefined && box.top >= frame.top - 1 && box.bottom <= frame.bottom + 1
    }, text)
  }

  async function act(name: string, on: Page = stage.page): Promise<void> {
    await on.getByRole('button', { name: 'Actions' }).click()
    await on.getByRole('menuitem', { name }).click()
  }

  async function downloaded(name: string): Promise<string> {
    const [download] = await Promise.all([stage.page.waitForEvent('download'), act(name)])
    return readFileSync(await download.path(), 'utf8')
  }
})

/** What operators do in the console: schedules, webhooks, agents and workers. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { chromium, say, useStage } from '../browser/stage.ts'
import { until } from '../support/until.ts'

describe.skipIf(!chromium)('the pages of operators', () => {
  const stage = useStage({ env: { WEBHOOK_ALLOW_PRIVATE: 'on' } })

  test('a schedule is created, paused, resumed, run now and deleted', async () => {
    const { page, platform } = stage
    await page.goto(`${platform.url}/schedules`)
    await page.getByRole('button', { name: 'New schedule' }).click()
    const dialog = page.getByRole('dialog', { name: 'New schedule' })
    await dialog.getByLabel('Agent').selectOption('echo')
    await dialog.getByLabel('Cron line').fill('every day')
    await dialog.getByLabel('Time zone').fill('Europe/Berlin')
    await dialog.getByLabel('Input').fill('Good morning')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.getByRole('alert').waitFor()
    await dialog.getByLabel('Cron line').fill('0 9 * * 1-5')
    await dialog.getByRole('button', { name: 'Create' }).click()
    const row = page.getByRole('row', { name: /0 9 \* \* 1-5/ })
    await row.getByText(/^in \d/).waitFor()
    await choose('Actions of echo', 'Pause')
    await row.getByText('paused').waitFor()
    await choose('Actions of echo', 'Resume')
    await row.getByText('active').waitFor()
    await choose('Actions of echo', 'Run now')
    await page
      .getByRole('dialog', { name: /^Runs of echo/ })
      .getByRole('link')
      .click()
    await page.getByRole('heading', { level: 1, name: 'Good morning' }).waitFor()
    await page.goBack()
    await choose('Actions of echo', 'Delete')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No schedules yet').waitFor()
    stage.complaints = stage.complaints.filter(text => !text.includes('400'))
  })

  test('a webhook shows its secret once and its deliveries, and is disabled', async () => {
    const { page, platform } = stage
    const heard: string[] = []
    const server = createServer((request, response) => {
      heard.push(String(request.headers['webhook-id']))
      response.end()
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
    try {
      await page.goto(`${platform.url}/schedules`)
      await page.getByRole('button', { name: 'New webhook' }).click()
      await page.getByLabel('Address').fill(address)
      await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click()
      await page.getByText(/^whsec_/).waitFor()
      await page.getByRole('button', { name: 'Done' }).click()
      await stage.start({ steps: [] })
      await page.getByRole('button', { name: 'Deliveries' }).click()
      await page.getByRole('cell', { name: /delivered.*HTTP 200/ }).waitFor()
      await page.getByRole('button', { name: 'Send again' }).click()
      await until('it came again', () => heard.length >= 2 && new Set(heard).size === 1)
      await page.keyboard.press('Escape')
      await choose(`Actions of ${address}`, 'Disable')
      await page
        .getByRole('row', { name: /127\.0\.0\.1/ })
        .getByText('disabled')
        .waitFor()
    } finally {
      server.close()
    }
  })

  test('an agent is limited, paused and resumed', async () => {
    const { page, platform } = stage
    await page.goto(`${platform.url}/agents`)
    const row = page.getByRole('row', { name: /^cited/ })
    await choose('Actions of cited', 'Limits')
    await page.getByLabel('Turns at a time', { exact: true }).fill('3')
    await page.getByRole('button', { name: 'Save' }).click()
    await row.getByText('3 at a time').waitFor()
    await choose('Actions of cited', 'Pause')
    await row.getByText('paused').waitFor()
    const { task } = await platform.client.createTask({ agent: 'cited', input: 'What is a stream?' })
    expect((await platform.client.detail(task.id)).task.status).toBe('queued')
    await choose('Actions of cited', 'Resume')
    await platform.client.waitForEnd(task.id)
  })

  test('a worker has its version, its slots and what it runs, and tells when it is silent', async () => {
    const { page, platform } = stage
    const id = await stage.start({ steps: [say('x'), { sleep: 60_000 }] })
    await platform.client.waitForTask(id, ({ task }) => task.status === 'running')
    await page.goto(`${platform.url}/workers`)
    await page.getByText('live', { exact: true }).waitFor()
    await page.getByRole('table', { name: 'Workers' }).getByRole('cell', { name: '0.2.0' }).waitFor()
    await page
      .getByRole('table', { name: 'Versions' })
      .getByRole('row', { name: /^0\.2\.0 1 0 1 0 has turns$/ })
      .waitFor()
    await page.getByRole('cell', { name: /^1 of \d+$/ }).waitFor()
    await page.getByRole('link', { name: /scripted, turn 1/ }).waitFor()
    await page.route('**/v1/workers', async route => {
      const response = await route.fetch()
      const { data } = (await response.json()) as { data: { silentMs: number }[] }
      await route.fulfill({ response, json: { data: data.map(worker => ({ ...worker, silentMs: 12_000 })) } })
    })
    await page.getByText(/^silent for 1[2-9]\.0 s$/).waitFor()
    await platform.client.post(`/v1/tasks/${id}/cancel`, {})
  })

  async function choose(menu: string, action: string): Promise<void> {
    await stage.page.getByRole('button', { name: menu }).click()
    await stage.page.getByRole('menuitem', { name: action }).click()
  }
})

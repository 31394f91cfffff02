/** Forms that are made from schemas: the params of a new task, and the arguments of a tool that a person approves. */
import { call, defineTool, say, scriptedModel } from '@rivulet/agent'
import { defineAgent } from '@rivulet/worker'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { until } from '../support/until.ts'
import { checkLooks } from './audit.ts'
import { chromium, useStage } from './stage.ts'

const traveler = defineAgent({
  name: 'traveler',
  params: z.object({ city: z.string().describe('Where to'), days: z.int().max(7).default(3), isCheap: z.boolean().optional() }),
  run: turn => turn.send(JSON.stringify(turn.params)).then(() => {}),
})

const refund = defineTool({
  name: 'refund',
  description: 'Pays money back',
  input: z.object({ amount: z.number(), reason: z.enum(['damaged', 'late']) }),
  run: ({ amount, reason }) => `paid ${amount}, ${reason}`,
})
const payer = defineAgent('payer', async turn => {
  const model = scriptedModel(({ messages }) =>
    messages.some(({ content }) => content.type === 'tool_response') ? [say('Done.')] : [call('refund', { amount: 5, reason: 'late' })],
  )
  await turn.run({ model, tools: [refund], approve: () => ({ ask: { hold: 0 } }) })
})

describe.skipIf(!chromium)('forms from schemas', () => {
  const stage = useStage({ workers: 0 })

  test('a task is started from its agent, with a form of its params, a budget, a delay and metadata, and again from recent inputs', async () => {
    const { page, platform } = stage
    await startOwnWorker(platform, [traveler])
    await page.goto(`${platform.url}/agents`)
    await page.getByRole('button', { name: 'Start traveler' }).click()
    const dialog = page.getByRole('dialog', { name: 'New task' })
    expect(await dialog.getByLabel('days').inputValue()).toBe('3')
    await dialog.getByLabel('city').fill('Oslo')
    await dialog.getByLabel('isCheap').check()
    await dialog.getByLabel('Input', { exact: true }).fill('Plan it')
    await dialog.getByText('Secrets, name').click()
    await dialog.getByLabel('Budget, in tokens').fill('500')
    await dialog.getByLabel('Starts after, in seconds').fill('0.1')
    await dialog.getByLabel('Metadata').fill('customer=Nordwind')
    await checkLooks(page, 'form-params')
    await dialog.getByRole('button', { name: 'Start' }).click()
    await page.getByText('{"city":"Oslo","days":3,"isCheap":true}').waitFor()
    const id = new URL(page.url()).pathname.split('/').at(-1) ?? ''
    const { task } = await platform.client.detail(id)
    expect(task).toMatchObject({ budget: { tokens: 500 }, metadata: { customer: 'Nordwind' } })
    await page.goto(platform.url)
    await page.getByRole('button', { name: 'New task' }).first().click()
    await dialog.getByRole('combobox', { name: /^Agent/ }).selectOption('traveler')
    await dialog.getByLabel('Recent inputs').selectOption({ label: 'Plan it' })
    await until('the form has the params', async () => (await dialog.getByLabel('city').inputValue()) === 'Oslo')
    expect(await dialog.getByRole('textbox', { name: 'Input', exact: true }).inputValue()).toBe('Plan it')
    expect(await dialog.getByLabel('isCheap').isChecked()).toBe(true)
  })

  test('a recent input keeps the params that have no field, and its files', async () => {
    const { page, platform } = stage
    // A schema without `additionalProperties`, as those of pydantic are, allows more than it names.
    const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
    await platform.client.post('/internal/hello', { worker: 'none', agents: [{ name: 'guide', description: '', params: schema }] })
    const headers = { 'content-type': 'text/plain', 'x-filename': 'sights.txt' }
    const upload = await fetch(`${platform.url}/v1/files`, { method: 'POST', body: 'a list of sights', headers })
    const { file } = (await upload.json()) as { file: { id: string } }
    const params = { city: 'Rome', tone: { dry: true } }
    const input = [{ type: 'media', mimeType: 'text/plain', file: file.id, name: 'sights.txt' }, 'See them']
    const { task } = await platform.client.createTask({ agent: 'guide', input, params })
    await page.goto(`${platform.url}/agents`)
    await page.getByRole('button', { name: 'Start guide' }).click()
    const dialog = page.getByRole('dialog', { name: 'New task' })
    await dialog.getByLabel('Recent inputs').selectOption(task.id)
    await dialog.getByText('Sent as before, without a field: tone').waitFor()
    await dialog.getByText('sights.txt').waitFor()
    await dialog.getByLabel('city').fill('Pisa')
    await dialog.getByRole('button', { name: 'Start' }).click()
    await page.waitForURL(url => url.pathname.startsWith('/tasks/'))
    const id = new URL(page.url()).pathname.split('/').at(-1) ?? ''
    const { task: second, turns } = await platform.client.detail(id)
    expect(second.params).toMatchObject({ ...params, city: 'Pisa' })
    expect(turns[0]?.inputs).toMatchObject([{ type: 'media', name: 'sights.txt' }, { text: 'See them' }])
  })

  test('the arguments of an approval are edited in a form of the tool’s schema', async () => {
    const { page, platform } = stage
    await startOwnWorker(platform, [payer])
    const { task } = await platform.client.createTask({ agent: 'payer', input: 'pay' })
    await platform.client.waitForTask(task.id, ({ task }) => task.status === 'waiting')
    await page.goto(`${platform.url}/tasks/${task.id}`)
    await page.getByRole('button', { name: 'Edit arguments' }).click()
    expect(await page.getByLabel('amount').inputValue()).toBe('5')
    await page.getByLabel('amount').fill('4')
    await page.getByLabel('reason').selectOption('damaged')
    await checkLooks(page, 'form-approval')
    await page.getByRole('button', { name: 'Accept with edits' }).click()
    await page.getByText('Done.').waitFor()
    await page.getByRole('region', { name: 'Tool refund' }).getByRole('button').first().click()
    await page.getByText('paid 4, damaged').waitFor()
  })
})

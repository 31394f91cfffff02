/** What turns ask people, in the console: a form in the transcript, the inbox, and both by keyboard alone. */
import { call, defineTool, say, scriptedModel } from '@rivulet/agent'
import { type AgentDefinition, defineAgent } from '@rivulet/worker'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { until } from '../support/until.ts'
import { chromium, useStage } from './stage.ts'

const pictures = process.env.SCREENSHOTS

const order = z.object({
  number: z.string().min(1).max(20).describe('Of the order'),
  mail: z.email(),
  day: z.iso.date().optional(),
  amount: z.number().min(0.01),
  times: z.int(),
  isUrgent: z.boolean(),
  reason: z.enum(['damaged', 'late']),
  colors: z.array(z.enum(['red', 'green', 'blue'])),
  note: z.string().optional(),
})

const asker = defineAgent('asker', async turn => {
  await turn.send('Which one?')
  const { action, content } = await turn.ask('order', { title: 'Which order?', detail: 'Look at **the label**.', schema: order, hold: 0 })
  await turn.send(`${action} ${JSON.stringify(content)}`)
})

const approver = defineAgent('approver', async turn => {
  const about = { tool: 'pay', arguments: { amount: 5 }, actions: ['accept', 'edit', 'decline'] as const, assignee: 'finance', hold: 0 }
  const { action, content, comment, by } = await turn.ask('pay', { title: 'Pay 5 €?', ...about })
  await turn.send(`${action} ${JSON.stringify(content)} ${comment} ${by}`)
})

const locate = defineTool({ name: 'locate', description: 'Where the user is', input: z.object({}), where: 'client' })
const finder = defineAgent('finder', async turn => {
  const model = scriptedModel(({ messages }) =>
    messages.some(({ content }) => content.type === 'tool_response') ? [say('Found.')] : [call('locate', {})],
  )
  await turn.run({ model, tools: [locate] })
})

describe.skipIf(!chromium)('what a turn asks', () => {
  const stage = useStage({ workers: 0 })

  test('is a form drawn from its schema, which a person fills in by keyboard alone', async () => {
    const { page } = stage
    const id = await asking(asker)
    await page.goto(`${stage.platform.url}/tasks/${id}`)
    const form = page.getByRole('region', { name: 'Question: Which order?' })
    await form.getByText('the label').waitFor()
    await page.keyboard.press('a')
    await into('number', 'A-7')
    await into('mail', 'x@y')
    await into('amount', '12.5')
    await into('times', '3')
    await into('isUrgent', ' ')
    await into('reason', 'late')
    await into('red', ' ')
    await into('blue', ' ')
    await into('note', 'two')
    await into('Comment', 'as the customer says')
    await picture(page, 'form')
    await page.keyboard.press('Enter')
    await form.getByText('Expected the format email').waitFor()
    for (let place = 0; place < 30 && !(await isIn('mail')); place += 1) await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('End')
    await page.keyboard.type('.example')
    await page.keyboard.press('Enter')
    const decided = page.getByRole('region', { name: 'Decided: Which order?' })
    await decided.waitFor()
    await until('the decision has the focus', () => decided.evaluate(element => element === document.activeElement))
    const content =
      '{"number":"A-7","mail":"x@y.example","amount":12.5,"times":3,"isUrgent":true,"reason":"late","colors":["red","blue"],"note":"two"}'
    await page.getByText(`accept ${content}`).waitFor()
    await decided.getByText('as the customer says').waitFor()
    await picture(page, 'form-decided')
    await page.reload()
    await decided.getByText('“as the customer says”').waitFor()
    stage.complaints = stage.complaints.filter(text => !text.includes('400'))

    /** Tab by tab to the field with this label. */
    async function into(label: string, text: string): Promise<void> {
      await until(`the keyboard reaches ${label}`, async () => {
        return (await isIn(label)) || void (await page.keyboard.press('Tab'))
      })
      await page.keyboard.type(text)
    }

    async function isIn(label: string): Promise<boolean> {
      const name = await page.evaluate(() => (document.activeElement as HTMLInputElement | null)?.labels?.[0]?.textContent ?? '')
      return name.startsWith(label)
    }
  })

  test('that is answered in one tab closes in the other, with the decision, its time and its comment', async () => {
    const { page } = stage
    const id = await asking(approver)
    const other = await stage.open()
    const forms = [page, other].map(tab => tab.getByRole('region', { name: 'Question: Pay 5 €?' }))
    for (const tab of [page, other]) await tab.goto(`${stage.platform.url}/tasks/${id}`)
    for (const form of forms) await form.getByText('for finance').waitFor()
    await forms[0]?.getByLabel('Comment').fill('too much')
    await forms[0]?.getByRole('button', { name: 'Decline' }).click()
    for (const form of forms) await form.waitFor({ state: 'detached' })
    for (const tab of [page, other]) {
      const decided = tab.getByRole('region', { name: 'Decided: Pay 5 €?' })
      await decided.getByText('Declined').waitFor()
      await decided.getByText('“too much”').waitFor()
      await decided.getByText(String(new Date().getFullYear())).waitFor()
      await tab.getByText('decline undefined too much undefined').waitFor()
    }
  })

  test('runs with the arguments that a person has edited', async () => {
    const { page } = stage
    const id = await asking(approver)
    await page.goto(`${stage.platform.url}/tasks/${id}`)
    await page.getByRole('button', { name: 'Edit arguments' }).click()
    await page.getByLabel('Arguments, as JSON').fill('{ "amount": ')
    await page.getByRole('button', { name: 'Accept with edits' }).click()
    await page.getByText('The arguments are not valid JSON').waitFor()
    // What was typed survives a reload.
    await page.reload()
    await page.getByLabel('Arguments, as JSON').fill('{ "amount": 4 }')
    await page.getByRole('button', { name: 'Accept with edits' }).click()
    await page.getByText('edit {"amount":4}').waitFor()
    await page.getByRole('region', { name: 'Decided: Pay 5 €?' }).getByText('Accepted with edits').waitFor()
  })

  test('of the client is a tool whose result a person can give', async () => {
    const { page } = stage
    const id = await asking(finder)
    await page.goto(`${stage.platform.url}/tasks/${id}`)
    await page.getByLabel('Result, as JSON or as text').fill('{ "city": "Bremen" }')
    await picture(page, 'client-tool')
    await page
      .getByRole('region', { name: /^Question/ })
      .getByRole('button', { name: 'Send' })
      .click()
    await page.getByText('Found.').waitFor()
    const { body } = await stage.platform.client.get<{ data: { content: object }[] }>(`/v1/tasks/${id}/messages`)
    expect(body.data.map(({ content }) => content)).toContainEqual(expect.objectContaining({ content: { city: 'Bremen' } }))
  })

  test('is in the inbox: counted, filtered, linked, and answered by keyboard with the key’s name', async () => {
    const guarded = await stage.platform.startApi({ env: { RIVULET_KEY: 'secret' } })
    const { page } = stage
    await page.addInitScript(() => sessionStorage.setItem('rivulet.key', 'secret'))
    await asking(asker)
    const id = await asking(approver)
    await page.goto(`${guarded.url}/waits`)
    const question = page.getByRole('button', { name: 'Pay 5 €?' })
    await question.waitFor()
    await page
      .getByRole('link', { name: /Waiting for people/ })
      .getByText(/^\d+$/)
      .waitFor()
    await page.getByLabel('Kind').selectOption('form')
    await question.waitFor({ state: 'detached' })
    await page.getByLabel('Kind').selectOption('approval')
    await page.getByLabel('Assignee').fill('legal')
    await page.getByText('No turn waits for a person.').waitFor()
    await page.getByLabel('Assignee').fill('finance')
    await question.waitFor()
    await picture(page, 'inbox')
    await question.focus()
    await page.keyboard.press('Enter')
    const form = page.getByRole('region', { name: 'Question: Pay 5 €?' })
    await form.getByText('for finance').waitFor()
    await picture(page, 'inbox-answer')
    await until('the keyboard reaches the button', async () => {
      await page.keyboard.press('Tab')
      return page.evaluate(() => document.activeElement?.textContent === 'Accept')
    })
    await page.keyboard.press('Enter')
    await form.waitFor({ state: 'detached' })
    await question.waitFor({ state: 'detached' })
    await page.getByLabel('Status').selectOption('answered')
    await page.getByRole('cell', { name: 'Accepted by root' }).first().waitFor()
    await page.getByRole('link', { name: 'Open the task of Pay 5 €?' }).last().click()
    await page.waitForURL(`**/tasks/${id}`)
    await page.getByRole('region', { name: 'Decided: Pay 5 €?' }).getByText('by root').waitFor()
  })

  test('has the words of its task beside it in the inbox, and after an answer the next one has the focus', async () => {
    const { page, platform } = stage
    await startOwnWorker(platform, [asker])
    for (const input of ['my red chair', 'my blue chair', 'my old chair']) {
      const { task } = await platform.client.createTask({ agent: asker.name, input })
      await platform.client.waitForTask(task.id, ({ task }) => task.status === 'waiting')
    }
    await page.goto(`${platform.url}/waits?agent=asker`)
    const questions = page.getByRole('list', { name: 'Questions' }).getByRole('button')
    await questions.filter({ hasText: 'my blue chair' }).waitFor()
    const before = await questions.count()
    await until('the count is in the title', async () => (await page.title()).startsWith(`(${before}) `))
    await questions.filter({ hasText: 'my red chair' }).click()
    await page.getByRole('region', { name: 'The agent’s last words' }).getByText('Which one?').waitFor()
    await page.getByRole('button', { name: 'Decline' }).click()
    const next = page.locator('[aria-current=true]').filter({ hasText: 'my blue chair' })
    await next.waitFor()
    await until('its form has the focus', () =>
      page.evaluate(() => document.activeElement?.getAttribute('aria-label') === 'Question: Which order?'),
    )
    await until('the answered one is gone', async () => (await questions.count()) === before - 1)
    await page.keyboard.press('j')
    await page.locator('[aria-current=true]').filter({ hasText: 'my old chair' }).waitFor()
    await page.keyboard.press('k')
    await next.waitFor()
  })

  async function asking(agent: AgentDefinition): Promise<string> {
    await startOwnWorker(stage.platform, [agent])
    const { task } = await stage.platform.client.createTask({ agent: agent.name })
    await stage.platform.client.waitForTask(task.id, ({ task }) => task.status === 'waiting')
    return task.id
  }
})

async function picture(page: Page, name: string): Promise<void> {
  if (pictures) await page.screenshot({ path: `${pictures}/waits-${name}.png`, animations: 'disabled', fullPage: true })
}
